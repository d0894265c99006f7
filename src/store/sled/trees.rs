//! sled's trees: one per class of value, since sixteen neighbours share a leaf and are written
//! together, whatever their size.

use super::keys;
use crate::store::StoreError;
use crate::store::record::{Record, RecordError, decode};
use std::io;

/// The longest value in one entry of a tree, in bytes. Sixteen of them make the largest leaf, which
/// so stays below the 128 KiB from which on sled 0.34 leaks space.
pub(super) const PIECE: usize = 7_000;
/// The most pieces of one value.
const PIECES_LIMIT: usize = u16::MAX as usize;

/// The value stands whole behind this byte.
const WHOLE: u8 = 0;
/// The number of pieces stands behind this byte.
const IN_PIECES: u8 = 1;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident $field:ident $number:literal)+) => {
        /// A class of values. The numbers are part of the format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub(super) enum Class {
            $($(#[$doc])* $class = $number,)+
        }

        impl Class {
            /// All classes.
            pub(super) const ALL: &[Self] = &[$(Self::$class,)+];

            /// The class with this number.
            pub(super) fn numbered(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|class| *class as u8 == number)
            }

            /// The name of its tree.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$class => stringify!($field),)+ }
            }
        }

        /// All trees.
        pub(super) struct Trees {
            path: String,
            $($field: ::sled::Tree,)+
            db: ::sled::Db,
        }

        impl Trees {
            /// Opens all trees of the database in the folder `path`.
            pub(super) fn open(db: &::sled::Db, path: &str) -> ::sled::Result<Self> {
                Ok(Self {
                    path: path.to_owned(),
                    $($field: db.open_tree(stringify!($field))?,)+
                    db: db.clone(),
                })
            }

            /// The tree of a class.
            pub(super) const fn tree(&self, class: Class) -> &::sled::Tree {
                match class { $(Class::$class => &self.$field,)+ }
            }
        }
    };
}

classes! {
    /// What operators say of feeds.
    Feeds feeds 1
    /// States of feeds.
    States states 2
    /// The documents around the entries.
    Skeletons skeletons 3
    /// Orders of reader views.
    Orders orders 4
    /// Ledger entries.
    Ledger ledger 5
    /// Where the newest bytes of items stand.
    Heads heads 6
    /// Items by tick; the values are empty.
    ByTick by_tick 7
    /// Notes of versions.
    Versions versions 8
    /// Bytes of versions; written once.
    Bodies bodies 9
    /// Newest bytes that made no version.
    Latest latest 10
    /// Events.
    Events events 11
    /// The change log.
    Log log 12
    /// Poll states.
    Polls polls 13
    /// Large documents while they are taken in, by feed.
    Attempts attempts 26
    /// Pieces of large values of all classes.
    Pieces pieces 14
    /// What is left of purged feeds.
    Floors floors 15
    /// Entries of held documents.
    Kept kept 23
    /// What is in conflict with current versions, by item.
    Conflicts conflicts 25
    /// Subscriptions of the hub, by id. Each is far smaller than a piece.
    Subscriptions subscriptions 24
    /// Since when the present orders and skeletons are in force.
    Histories histories 20
    /// Orders of reader views that are not in force any more.
    PastOrders past_orders 21
    /// Documents around the entries that are not in force any more.
    PastSkeletons past_skeletons 22
    /// Notes of archives, by number.
    Archives archives 16
    /// Numbers of archives, by id.
    ArchiveIds archive_ids 17
    /// Blocks of archives; written once but for redaction.
    Segments segments 18
    /// A change of many entries while it is carried out, in blocks.
    Redo redo 27
}

/// A class and a key.
pub(super) type RecordKey = (Class, Vec<u8>);

/// Entries to set (`Some`) and to remove (`None`), each with its class and key.
pub(super) type Writes = std::collections::BTreeMap<RecordKey, Option<Vec<u8>>>;

impl Trees {
    /// The database itself, whose default tree holds what the store says of itself.
    pub(super) const fn db(&self) -> &::sled::Db {
        &self.db
    }

    /// The folder, for messages.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A whole value.
    pub(super) fn get(&self, class: Class, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.tree(class).get(key).map_err(|error| self.failed("read", error))? {
            Some(root) => self.whole(class, key, &root).map(Some),
            None => Ok(None),
        }
    }

    /// The value whose root entry is `root`.
    pub(super) fn whole(
        &self,
        class: Class,
        key: &[u8],
        root: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let pieces = match root.split_first() {
            Some((&WHOLE, value)) => return Ok(value.to_vec()),
            _ => pieces(root).ok_or_else(|| self.damaged(class, key, "it has no head"))?,
        };
        let mut value = Vec::with_capacity(usize::from(pieces) * PIECE);
        for number in 0..pieces {
            let piece = keys::piece(key, number, class as u8);
            let found = self.tree(Class::Pieces).get(&piece);
            match found.map_err(|error| self.failed("read", error))? {
                Some(piece) => value.extend_from_slice(&piece),
                None => return Err(self.damaged(class, key, format!("piece {number} is missing"))),
            }
        }
        Ok(value)
    }

    /// The bytes that a value takes, whose root entry is `root`.
    pub(super) fn size(&self, class: Class, key: &[u8], root: &[u8]) -> Result<u64, StoreError> {
        let wide = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let Some(last) = pieces(root).and_then(|pieces| pieces.checked_sub(1)) else {
            return Ok(wide(root.len().saturating_sub(1)));
        };
        let piece = keys::piece(key, last, class as u8);
        let found = self.tree(Class::Pieces).get(&piece);
        let found = found.map_err(|error| self.failed("read", error))?;
        Ok(wide(usize::from(last) * PIECE + found.map_or(0, |piece| piece.len())))
    }

    /// A record.
    pub(super) fn record<T: Record>(
        &self,
        class: Class,
        key: &[u8],
    ) -> Result<Option<T>, StoreError> {
        match self.get(class, key)? {
            Some(value) => self.decode(class, key, &value).map(Some),
            None => Ok(None),
        }
    }

    /// A record that must be there, as what refers to it is.
    pub(super) fn expected<T: Record>(&self, class: Class, key: &[u8]) -> Result<T, StoreError> {
        self.record(class, key)?.ok_or_else(|| self.damaged(class, key, "it is missing"))
    }

    /// All records whose keys begin with `prefix`, in the order of their keys.
    pub(super) fn scan<T: Record>(
        &self,
        class: Class,
        prefix: Vec<u8>,
    ) -> impl DoubleEndedIterator<Item = Result<(Vec<u8>, T), StoreError>> {
        self.tree(class).scan_prefix(prefix).map(move |entry| {
            let (key, root) = entry.map_err(|error| self.failed("read", error))?;
            let value = self.whole(class, &key, &root)?;
            Ok((key.to_vec(), self.decode(class, &key, &value)?))
        })
    }

    fn decode<T: Record>(&self, class: Class, key: &[u8], value: &[u8]) -> Result<T, StoreError> {
        decode(value).map_err(|error| self.damaged(class, key, error))
    }

    /// Plans to set a value, in pieces where it is large.
    pub(super) fn put(
        &self,
        writes: &mut Writes,
        class: Class,
        key: Vec<u8>,
        value: &[u8],
    ) -> Result<(), StoreError> {
        self.remove(writes, class, key.clone())?;
        let root = if value.len() < PIECE {
            [&[WHOLE], value].concat()
        } else {
            let pieces = value.chunks(PIECE);
            let count = u16::try_from(pieces.len()).map_err(|_| StoreError::TooLarge {
                what: format!("the value {} of {}", keys::shown(&key), class.name()),
                size: value.len(),
                limit: PIECE * PIECES_LIMIT,
            })?;
            for (number, piece) in (0..count).zip(pieces) {
                let place = keys::piece(&key, number, class as u8);
                writes.insert((Class::Pieces, place), Some(piece.to_vec()));
            }
            [&[IN_PIECES], count.to_be_bytes().as_slice()].concat()
        };
        writes.insert((class, key), Some(root));
        Ok(())
    }

    /// Plans to remove a value with its pieces.
    pub(super) fn remove(
        &self,
        writes: &mut Writes,
        class: Class,
        key: Vec<u8>,
    ) -> Result<(), StoreError> {
        let old = self.tree(class).get(&key).map_err(|error| self.failed("read", error))?;
        if let Some(root) = old {
            for number in 0..pieces(&root).unwrap_or(0) {
                let place = keys::piece(&key, number, class as u8);
                writes.insert((Class::Pieces, place), None);
            }
            writes.insert((class, key), None);
        }
        Ok(())
    }

    /// Sets one entry as it is, or removes it; not durable yet.
    pub(super) fn set(&self, place: &RecordKey, value: Option<&[u8]>) -> Result<(), StoreError> {
        let (class, key) = place;
        let tree = self.tree(*class);
        let done = match value {
            Some(value) => tree.insert(key, value),
            None => tree.remove(key),
        };
        done.map(drop).map_err(|error| self.failed("write", error))
    }

    /// Removes what has keys that begin with `prefix`, entry by entry; not durable yet.
    pub(super) fn clear(&self, class: Class, prefix: &[u8]) -> Result<(), StoreError> {
        let tree = self.tree(class);
        for key in tree.scan_prefix(prefix).keys() {
            let key = key.map_err(|error| self.failed("read", error))?;
            tree.remove(key).map_err(|error| self.failed("write", error))?;
        }
        Ok(())
    }

    /// Applies what was planned as one transaction; not durable yet.
    pub(super) fn apply(&self, writes: &Writes) -> Result<(), StoreError> {
        use ::sled::Transactional;
        let mut classes: Vec<Class> = writes.keys().map(|(class, _)| *class).collect();
        classes.dedup();
        let touched: Vec<&::sled::Tree> = classes.iter().map(|class| self.tree(*class)).collect();
        if touched.is_empty() {
            return Ok(());
        }
        let applied = touched.as_slice().transaction(|views| {
            for ((class, key), value) in writes {
                let view = classes.iter().zip(views).find(|(touched, _)| *touched == class);
                match (view, value) {
                    (Some((_, view)), Some(value)) => {
                        view.insert(key.as_slice(), value.as_slice())?;
                    }
                    (Some((_, view)), None) => {
                        view.remove(key.as_slice())?;
                    }
                    (None, _) => {}
                }
            }
            Ok::<(), ::sled::transaction::ConflictableTransactionError<()>>(())
        });
        applied.map_err(|error| match error {
            ::sled::transaction::TransactionError::Storage(error) => self.failed("write", error),
            ::sled::transaction::TransactionError::Abort(()) => {
                self.failed("write", ::sled::Error::Unsupported("aborted".to_owned()))
            }
        })
    }

    /// What an error of the engine means.
    pub(super) fn failed(&self, doing: &'static str, error: ::sled::Error) -> StoreError {
        failed(&self.path, doing, error)
    }

    /// An entry that cannot be right.
    pub(super) fn damaged(
        &self,
        class: Class,
        key: &[u8],
        what: impl std::fmt::Display,
    ) -> StoreError {
        let what = format!("in {} at {}: {what}", class.name(), keys::shown(key));
        StoreError::Damaged { path: self.path.clone(), what }
    }

    /// A record that cannot be written.
    pub(super) fn unwritable(&self, what: String, error: RecordError) -> StoreError {
        match error {
            RecordError::TooLarge { size, limit } => StoreError::TooLarge { what, size, limit },
            other => StoreError::Io { doing: "encode a record", source: io::Error::other(other) },
        }
    }
}

/// The number of pieces behind a root entry.
fn pieces(root: &[u8]) -> Option<u16> {
    match root {
        [IN_PIECES, high, low] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// What an error of the engine means for the store in `path`.
pub(super) fn failed(path: &str, doing: &'static str, error: ::sled::Error) -> StoreError {
    match error {
        ::sled::Error::Io(source) => {
            let said = io::Error::new(source.kind(), format!("{path}: {source}"));
            StoreError::Io { doing, source: said }
        }
        // Its Display would print the engine's own wording; only the place matters here.
        ::sled::Error::Corruption { at, .. } => StoreError::Damaged {
            path: path.to_owned(),
            what: at.map_or_else(
                || "the engine found corrupted data".to_owned(),
                |at| format!("the engine found corrupted data at {at}"),
            ),
        },
        other => StoreError::Damaged { path: path.to_owned(), what: other.to_string() },
    }
}
