//! Who may read private feeds. Each reader has a token, of which only its hash is kept.

use super::answers::answer;
use super::{
    AppState, Audience, AudienceKey, Budget, BudgetShares, Client, Problem, Reply, ServedFeed,
    SharedState, TOKEN_PATH,
};
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, MASK, mask_token};
use tidegate_core::xml::address::percent_decoded;
use utoipa::ToSchema;

/// How long the answer to a token that opens nothing is held back.
pub(super) const WRONG_TOKEN_PAUSE: Duration = Duration::from_secs(1);
/// How many such answers of one client are held back at a time; more are refused with 429.
const WRONG_TOKENS_AT_ONCE: u64 = 4;
/// How many of all clients are held back at a time: each holds a connection.
const HELD_AT_ONCE: u64 = 64;
const HELD_BACK: BudgetShares =
    BudgetShares { all: HELD_AT_ONCE, each: WRONG_TOKENS_AT_ONCE, network: HELD_AT_ONCE };
/// How many times a path is decoded where a token is looked for in it.
const DECODINGS: usize = 3;

/// A reader's token, of which the hash and the length are kept.
#[derive(Clone, Copy)]
pub struct ReaderKey {
    hash: [u8; 32],
    length: usize,
}

impl ReaderKey {
    /// The key of a token.
    pub fn new(token: &str) -> Self {
        Self { hash: Sha256::digest(token).into(), length: token.len() }
    }
}

impl PartialEq for ReaderKey {
    /// In constant time, so that the time tells nothing of how much was right.
    fn eq(&self, other: &Self) -> bool {
        bool::from(self.hash.ct_eq(&other.hash))
    }
}

impl Eq for ReaderKey {}

impl fmt::Debug for ReaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReaderKey(…)")
    }
}

/// A reader, and what the token opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderAccess {
    /// What the operator calls the reader.
    pub name: String,
    /// The token's hash.
    pub key: ReaderKey,
    /// The feeds that it opens, private or not.
    pub feeds: BTreeSet<FeedName>,
    /// Whether it opens every private feed.
    pub all_private: bool,
}

/// Identifies what one reader may see, in cache keys: another token or another list of feeds has another id, and none
/// reveals a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccessId(u64);

/// A reader whose token counts.
#[derive(Debug)]
pub(super) struct KnownReader {
    access: ReaderAccess,
    pub(super) id: AccessId,
}

impl KnownReader {
    fn new(access: ReaderAccess) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { access, id: AccessId(id) }
    }

    /// Whether the token opens a feed.
    pub(super) fn opens(&self, feed: &FeedName, is_private: bool) -> bool {
        self.access.feeds.contains(feed) || (self.access.all_private && is_private)
    }

    /// Whether the token opens a feed by its name, whatever it is.
    pub(super) fn names(&self, feed: &FeedName) -> bool {
        self.access.feeds.contains(feed)
    }

    /// What the operator calls the reader.
    pub(super) fn name(&self) -> &str {
        &self.access.name
    }
}

/// The readers, the hashes and lengths by which their tokens are found in a path, and the answers that are held back.
pub(super) struct KnownReaders {
    all: Vec<Arc<KnownReader>>,
    hashes: HashSet<[u8; 32]>,
    lengths: BTreeSet<usize>,
    held_back: Arc<Budget>,
}

impl KnownReaders {
    /// Creates the readers. One whose access is as in `before` keeps its id, and with it the cached documents.
    pub(super) fn new(readers: Vec<ReaderAccess>, before: Option<&Self>) -> Self {
        let keys = || readers.iter().map(|access| access.key);
        let hashes = keys().map(|key| key.hash).collect();
        let lengths = keys().map(|key| key.length).collect();
        let same = |access: &ReaderAccess| {
            before?.all.iter().find(|reader| reader.access == *access).map(Arc::clone)
        };
        let reader = |access| same(&access).unwrap_or_else(|| Arc::new(KnownReader::new(access)));
        let all = readers.into_iter().map(reader).collect();
        Self { all, hashes, lengths, held_back: Budget::new(HELD_BACK, Duration::MAX) }
    }

    /// The reader of a token. All are compared, so that the time does not tell which one it is.
    pub(super) fn find(&self, token: &str) -> Option<Arc<KnownReader>> {
        if self.all.is_empty() {
            return None;
        }
        let key = ReaderKey::new(token);
        let of = |found, reader: &Arc<KnownReader>| match reader.access.key == key {
            true => Some(Arc::clone(reader)),
            false => found,
        };
        self.all.iter().fold(None, of)
    }

    /// The reader that has the same token here.
    pub(super) fn find_same_token(&self, before: &KnownReader) -> Option<Arc<KnownReader>> {
        self.all.iter().find(|reader| reader.access.key == before.access.key).cloned()
    }

    /// A path as a log shows it: without any token, wherever it is and however it is spelled there.
    pub(super) fn mask(&self, path: &str) -> String {
        let mut shown = mask_token(path).into_owned();
        // Each turn takes a token out.
        while let Some(place) = self.find_token_in(&shown) {
            shown.replace_range(place, MASK);
        }
        let mut decoded = shown.clone();
        for _ in 0..DECODINGS {
            if !decoded.contains('%') {
                break;
            }
            decoded = percent_decoded(&decoded).into_owned();
            if self.find_token_in(&decoded).is_some() {
                return format!("/{MASK}");
            }
        }
        shown
    }

    /// The place of a token in a text.
    fn find_token_in(&self, text: &str) -> Option<Range<usize>> {
        let mut places = self.lengths.iter().flat_map(|length| {
            (0..=text.len().saturating_sub(*length)).map(move |at| at..at + length)
        });
        // Anybody sends any path: of a part that could be a token the hash is looked up, and not compared with each reader's.
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        places.find(|place| {
            let part = text.get(place.clone()).filter(|part| part.bytes().all(is_plain));
            part.is_some_and(|part| self.hashes.contains(&ReaderKey::new(part).hash))
        })
    }

    /// Whether there is any.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Holds back the answer to a token that opens nothing; false where the client guesses too fast, or too many do.
    pub(super) async fn hold_back(&self, client: Client) -> bool {
        let Ok(_held) = self.held_back.take_one(client, None, false) else { return false };
        tokio::time::sleep(WRONG_TOKEN_PAUSE).await;
        true
    }
}

// What is shown of readers: to the operator alone, since they are not told of each other.

/// How many feeds of a reader are named, and how many of those that are no feeds here.
const FEEDS_SHOWN: usize = 1_000;
const MISSING_SHOWN: usize = 100;
/// How many readers of a feed are named.
const NAMES_SHOWN: usize = 20;

impl KnownReaders {
    /// Who may read a private feed.
    pub(super) fn of_private(&self, feed: &FeedName) -> PrivateReaders {
        let names =
            self.all.iter().filter(|reader| reader.opens(feed, true)).map(|reader| reader.name());
        let count = names.clone().count();
        let names: Vec<String> = names.take(NAMES_SHOWN).map(str::to_owned).collect();
        let more = match count.saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let about = match names.is_empty() {
            true => "no reader may see it yet".to_owned(),
            false => {
                format!("for {}{more}, below {TOKEN_PATH}TOKEN/feeds/{feed}", names.join(", "))
            }
        };
        PrivateReaders { count, names, words: format!("private: {about}"), about }
    }
}

/// Who may read a private feed.
#[derive(Serialize, ToSchema)]
pub(super) struct PrivateReaders {
    count: usize,
    /// At most 20.
    names: Vec<String>,
    words: String,
    /// For whom it is, and where they find it, in words that follow "private".
    #[serde(skip)]
    pub(super) about: String,
}

/// The readers of a private feed for the operator, `None` for anybody else; and the audience in the key of such a page.
pub(super) async fn readers_for_operator(
    app: &AppState,
    audience: &Audience,
    feed: &ServedFeed,
) -> Result<(Option<PrivateReaders>, AudienceKey), Problem> {
    let is_private = app.directory.listing().await?.private.contains(&feed.name);
    // The operator is told of readers, who are not told of each other.
    Ok(match audience.is_operator() && is_private {
        true => (Some(app.readers.of_private(&feed.name)), AudienceKey::Operator),
        false => (None, feed.site.key()),
    })
}

/// The readers in the order of the configuration.
#[derive(Serialize, ToSchema)]
#[schema(as = ReaderList)]
struct ReadersAnswer {
    readers: Vec<ReaderAnswer>,
}

#[derive(Serialize, ToSchema)]
struct ReaderAnswer {
    name: String,
    /// Whether every private feed may be read.
    all_private: bool,
    /// How many feeds may be read.
    count: usize,
    #[schema(max_items = 1000)]
    feeds: Vec<FeedName>,
    /// Feeds of the reader's configuration that are not here.
    #[schema(max_items = 100)]
    missing: Vec<FeedName>,
}

/// The readers of private feeds, and what each may read; no token is shown.
#[utoipa::path(get, path = "/api/v1/readers", operation_id = "listReaders", responses(
    (status = 200, description = "The readers in the order of the configuration.", body = ReadersAnswer),
))]
pub(super) async fn list(State(app): State<SharedState>) -> Reply {
    let listing = app.directory.listing().await?;
    let readers = app.readers.all.iter().map(|reader| {
        let is_there = |feed: &&Arc<FeedRecord>| feed.standing != FeedStanding::Gone;
        let is_missing =
            |name: &&FeedName| listing.get(*name).as_ref().is_none_or(|feed| !is_there(feed));
        let is_open = |feed: &&Arc<FeedRecord>| {
            reader.opens(&feed.name, listing.private.contains(&feed.name))
        };
        let open = listing.values().filter(is_there).filter(is_open);
        let mut feeds: Vec<FeedName> = open.map(|feed| feed.name.clone()).collect();
        let missing = reader.access.feeds.iter().filter(is_missing).take(MISSING_SHOWN);
        let (name, all_private) = (reader.name().to_owned(), reader.access.all_private);
        let (count, missing) = (feeds.len(), missing.cloned().collect());
        feeds.truncate(FEEDS_SHOWN);
        ReaderAnswer { name, all_private, count, feeds, missing }
    });
    Ok(answer(StatusCode::OK, &ReadersAnswer { readers: readers.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{access, client};

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    fn known(readers: Vec<ReaderAccess>) -> KnownReaders {
        KnownReaders::new(readers, None)
    }

    #[test]
    fn a_token_finds_its_reader_who_is_the_same_as_before() {
        let before = known(vec![access("ann", TOKEN, &["a"]), access("bob", "other", &[])]);
        let now = vec![access("bob", "other", &["a"]), access("ann", TOKEN, &["a"])];
        let now = KnownReaders::new(now, Some(&before));
        let id = |readers: &KnownReaders, token: &str| readers.find(token).unwrap().id;
        assert_eq!(id(&before, TOKEN), id(&now, TOKEN));
        assert_ne!(id(&before, "other"), id(&now, "other"));
        // A token finds its reader, and nothing shows it.
        let readers = known(vec![access("ann", TOKEN, &["a"]), access("bob", "other", &[])]);
        let ann = readers.find(TOKEN).unwrap();
        let name = |text: &str| FeedName::new(text).unwrap();
        assert_eq!(ann.name(), "ann");
        assert!(ann.opens(&name("a"), true) && ann.opens(&name("a"), false));
        assert!(!ann.opens(&name("b"), true));
        assert!(readers.find("").is_none() && readers.find(&TOKEN.replace('f', "")).is_none());
        assert!(!format!("{ann:?}").contains("0123"));
        let all =
            KnownReader::new(ReaderAccess { all_private: true, ..access("all", "x", &["b"]) });
        assert!(all.opens(&name("a"), true) && all.opens(&name("b"), false));
        assert!(!all.opens(&name("a"), false), "what is public is not its own");
        assert!(known(Vec::new()).is_empty());
        // A private feed says for whom it is.
        let feed = FeedName::new("diary").unwrap();
        let said = |readers: Vec<ReaderAccess>| known(readers).of_private(&feed).about;
        assert_eq!(said(Vec::new()), "no reader may see it yet");
        let all = ReaderAccess { all_private: true, ..access("all", "x", &[]) };
        let some = vec![access("ann", TOKEN, &["diary"]), access("bob", "y", &["b"]), all];
        assert_eq!(said(some), "for ann, all, below /t/TOKEN/feeds/diary");
        let many = (0..=NAMES_SHOWN).map(|n| access(&format!("r{n}"), &n.to_string(), &["diary"]));
        let said = said(many.collect());
        assert!(said.contains("r19 and 1 more, below") && !said.contains("r20"), "{said}");
        // A token is masked however it is spelled.
        const OTHER: &str = "Qf7bcdefghijklmnopqrs-tuv_w";
        let both = [TOKEN, OTHER].map(|token| access("ann", token, &[]));
        let readers = known(both.to_vec());
        let encoded = |token: &str| token.bytes().map(|b| format!("%{b:02x}")).collect::<String>();
        for token in [TOKEN, OTHER] {
            for (path, shown) in [
                (format!("/T/{token}/feeds/x"), "/T/***/feeds/x"),
                (format!("/t%2f{token}/feeds/x"), "/t%2f***/feeds/x"),
                (format!("/t%252F{token}"), "/t%252F***"),
                (format!("/feeds/{token}.xml"), "/feeds/***.xml"),
                (format!("/x{token}y{token}"), "/x***y***"),
                (format!("/feeds/{}", encoded(token)), "/***"),
                (format!("/feeds/{}", encoded(&encoded(token))), "/***"),
                (format!("/feeds/é{token}"), "/feeds/é***"),
            ] {
                assert_eq!(readers.mask(&path), shown, "{path}");
            }
        }
        let others = [format!("/feeds/{}", TOKEN.replace('f', "e")), "/feeds/news".to_owned()];
        assert!(others.iter().all(|path| readers.mask(path) == *path));
        assert_eq!(known(Vec::new()).mask("/feeds/x"), "/feeds/x");
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_are_slow() {
        let readers = Arc::new(known(vec![access("ann", TOKEN, &[])]));
        let begun = tokio::time::Instant::now();
        let hold_back = |_| {
            let readers = Arc::clone(&readers);
            tokio::spawn(async move { readers.hold_back(client(1)).await })
        };
        let held: Vec<_> = (0..WRONG_TOKENS_AT_ONCE).map(hold_back).collect();
        tokio::task::yield_now().await;
        assert!(!readers.hold_back(client(1)).await, "one too many");
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(readers.hold_back(client(2)).await, "another client");
        for held in held {
            assert!(held.await.unwrap());
        }
        assert!(begun.elapsed() >= WRONG_TOKEN_PAUSE);
    }
}
