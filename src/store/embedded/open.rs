//! Opening a store: whose it is, whether it is whole, and everything that is kept in memory.

use super::read::last_logged;
use super::records::Records;
use super::undo::{self, Cleaning, LAST};
use super::{keys, purge};
use crate::model::{EndpointId, FeedName, SupIdBasis, Time};
use crate::store::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::store::purge_mark::PurgeMark;
use crate::store::record::{FloorRecord, IdentityRecord, StateRecord};
use crate::store::{Epoch, StoreError, endpoint};
use std::collections::HashMap;

/// The format that is written, and the newest that is read.
const FORMAT: u32 = 1;
/// Where the format's number stands in [`Class::Gateway`]: four bytes, the greatest first.
const FORMAT_KEY: &[u8] = b"format";
/// Where the identity stands.
const IDENTITY_KEY: &[u8] = b"identity";

/// What a store holds in memory from its start.
pub(in crate::store) struct Opened {
    pub(in crate::store) endpoint: EndpointId,
    pub(super) sup_ids: SupIdBasis,
    pub(in crate::store) fence: u64,
    pub(super) committed: HashMap<FeedName, StateRecord>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    /// The last closed epoch, and when it was closed.
    pub(in crate::store) sealed: (Epoch, Time),
}

/// What was found in a store that is whole.
pub(in crate::store) struct Found {
    /// Whose store it is; `None` where it is new.
    pub(in crate::store) identity: Option<IdentityRecord>,
    committed: HashMap<FeedName, StateRecord>,
    floors: HashMap<FeedName, PurgeMark>,
    /// Purged feeds whose data was not all removed.
    sweeping: Vec<(FeedName, PurgeMark)>,
    /// The last closed epoch, and when it was closed.
    pub(in crate::store) sealed: (Epoch, Time),
}

/// Reads what is kept in memory. Writes nothing.
pub(in crate::store) fn inspect(records: &Records) -> Result<Found, StoreError> {
    let identity = identity(records)?;
    let sealed = last_logged(records)?.unwrap_or((Epoch(0), Time::MIN));
    let (floors, sweeping) = floors(records)?;
    Ok(Found { identity, committed: states(records)?, floors, sweeping, sealed })
}

/// Decides whose store it is, raises the fence, ends an unfinished purge and undoes unfinished writes.
/// Durable on return.
pub(super) fn begin(
    records: &Records,
    found: Found,
    configured: Option<EndpointId>,
    new_sup_ids: Option<SupIdBasis>,
) -> Result<Opened, StoreError> {
    let Found { identity, committed, floors, sweeping, sealed } = found;
    let used = !(committed.is_empty() && floors.is_empty() && sealed.0 == Epoch(0));
    // An id that was chosen is chosen again for a store that is made anew.
    let of_new = if configured.is_some() { SupIdBasis::Endpoint } else { SupIdBasis::Name };
    let (stored, fence, sup_ids) = match identity {
        Some(IdentityRecord { endpoint, fence, sup_ids }) => (Some(endpoint), fence + 1, sup_ids),
        None => (None, 1, new_sup_ids.unwrap_or(of_new)),
    };
    let endpoint = match (stored, configured) {
        (Some(stored), Some(wanted)) if stored != wanted && used => {
            return Err(StoreError::Endpoint { stored, wanted });
        }
        (_, Some(wanted)) => wanted,
        (Some(stored), None) => stored,
        (None, None) => endpoint::random()?,
    };
    for (feed, floor) in sweeping {
        while !purge::sweep(records, &feed, &floor)? {}
    }
    undo_unfinished(records, &committed)?;
    let mut writes = Writes::new();
    let format = FORMAT.to_be_bytes().to_vec();
    writes.insert((Class::Gateway, FORMAT_KEY.to_vec()), Some(format));
    let identity = IdentityRecord { endpoint: endpoint.clone(), fence, sup_ids };
    records.put(&mut writes, Class::Gateway, IDENTITY_KEY.to_vec(), &identity)?;
    records.engine().apply(writes)?;
    records.engine().pass().map_err(|error| match error {
        StoreError::Io { source, .. } => {
            StoreError::Io { doing: "make its opening durable", source }
        }
        other => other,
    })?;
    Ok(Opened { endpoint, sup_ids, fence, committed, floors, sealed })
}

/// Undoes every write that was not finished, and takes out what nobody looks behind any more.
fn undo_unfinished(
    records: &Records,
    committed: &HashMap<FeedName, StateRecord>,
) -> Result<(), StoreError> {
    let all = || beginning_with(&[]);
    while let Some((key, _)) = records.first(Class::Unfinished, all(), KeyOrder::Ascending)? {
        let feed = name(records, Class::Unfinished, &key)?;
        let last = committed.get(&feed).map_or(0, |head| head.write);
        tracing::info!(feed = %feed, "a change that was not finished is undone");
        undo::roll_back::<StoreError>(records, &feed, last, &mut |writes| {
            records.engine().apply(writes)
        })?;
    }
    while let Some((key, _)) = records.first(Class::Undo, all(), KeyOrder::Ascending)? {
        let feed = keys::feed_of(&key)
            .ok_or_else(|| records.damaged(Class::Undo, &key, "it names no feed"))?;
        let mut cleaning = Cleaning::default();
        loop {
            let (writes, is_all) = cleaning.portion(records, &feed, LAST)?;
            records.engine().apply(writes)?;
            if is_all {
                break;
            }
        }
    }
    Ok(())
}

/// Checks that this program reads the format of the store; whether there is one.
fn check_format(records: &Records) -> Result<bool, StoreError> {
    let Some(format) = records.get(Class::Gateway, FORMAT_KEY)? else { return Ok(false) };
    let damaged = |what| records.damaged(Class::Gateway, FORMAT_KEY, what);
    let format = <[u8; 4]>::try_from(&*format).map(u32::from_be_bytes);
    match format.map_err(|_| damaged("the format number is no number"))? {
        FORMAT => Ok(true),
        found if found > FORMAT => {
            let path = records.engine().path().to_owned();
            Err(StoreError::Newer { path, found, known: FORMAT })
        }
        _ => Err(damaged("the format number is none that was ever written")),
    }
}

/// Whose store it is; `None` where it is new.
pub(super) fn identity(records: &Records) -> Result<Option<IdentityRecord>, StoreError> {
    if check_format(records)? {
        return records.expected(Class::Gateway, IDENTITY_KEY).map(Some);
    }
    if is_empty(records)? {
        return Ok(None);
    }
    Err(records.damage("it has data and no format number".to_owned()))
}

/// Whether nothing was ever put into a database.
pub(super) fn is_empty(records: &Records) -> Result<bool, StoreError> {
    for class in Class::ALL.iter().filter(|class| **class != Class::Gateway) {
        if records.first(*class, beginning_with(&[]), KeyOrder::Ascending)?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn states(records: &Records) -> Result<HashMap<FeedName, StateRecord>, StoreError> {
    records
        .scan::<StateRecord>(Class::States, &[])
        .map(|entry| {
            let (key, head) = entry?;
            Ok((name(records, Class::States, &key)?, head))
        })
        .collect()
}

/// The marks of purged feeds, and those whose data was not all removed.
type Floors = (HashMap<FeedName, PurgeMark>, Vec<(FeedName, PurgeMark)>);

fn floors(records: &Records) -> Result<Floors, StoreError> {
    let (mut floors, mut sweeping) = (HashMap::new(), Vec::new());
    for entry in records.scan::<FloorRecord>(Class::Floors, &[]) {
        let (key, record) = entry?;
        let feed = name(records, Class::Floors, &key)?;
        if record.sweeping {
            sweeping.push((feed.clone(), record.floor));
        }
        floors.insert(feed, record.floor);
    }
    Ok((floors, sweeping))
}

/// The feed in the key of what a feed has one of.
pub(super) fn name(records: &Records, class: Class, key: &[u8]) -> Result<FeedName, StoreError> {
    keys::feed_name(key).ok_or_else(|| records.damaged(class, key, "it names no feed"))
}
