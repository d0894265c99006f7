//! Feeds as operators configure them.

use super::{
    EndpointId, Enrolment, FeedAccess, FeedName, Ignore, ListMember, ShownAddress, Time, ValueError,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// When absence becomes a deletion (CONTRACT, Configuration).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DeletionRule))]
#[serde(rename_all = "snake_case")]
pub enum Deletions {
    /// Confirmed in time and polls.
    #[default]
    Safe,
    /// The first full document with the evidence is enough.
    Eager,
    /// Never.
    Off,
}

/// Which missing items' own addresses are asked whether they are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Probing {
    /// None.
    Off,
    /// Those of all that are missing and not plainly gone by age, a few an hour.
    All,
    /// Those of which doubts have been open for long, two a day; never of a feed with a secret.
    #[default]
    Doubts,
}

/// How an operator says that a feed's document runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Order {
    /// As is learned from its documents.
    #[default]
    Auto,
    /// The newest item stands first, by when it was published.
    NewestFirst,
    /// The oldest item stands first, by when it was published.
    OldestFirst,
    /// The item that was changed last stands first, so that items jump when they are edited.
    Updated,
    /// By rank or by hand: the place of an item says nothing of its age, and there is no middle
    /// for it to be missing from.
    None,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::NewestFirst, Self::OldestFirst, Self::Updated, Self::None];

    /// Its word in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::NewestFirst => "newest-first",
            Self::OldestFirst => "oldest-first",
            Self::Updated => "updated",
            Self::None => "none",
        }
    }
}

/// What an operator says of one feed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FeedOptions {
    /// The document lists every item.
    pub complete: bool,
    /// When absence becomes a deletion.
    pub deletions: Deletions,
    /// Polls are at least this far apart, where it differs from the gateway's setting.
    pub min_interval: Option<Duration>,
    /// Polls are at most this far apart, where it differs from the gateway's setting.
    pub max_interval: Option<Duration>,
    /// How the document runs.
    pub order: Order,
    /// Which missing items' own addresses are asked whether they are gone.
    pub probe: Probing,
    /// Whether the publisher's older documents are walked through once.
    pub backfill: bool,
    /// What is noise in this feed, at most [`IGNORE_LIMIT`](super::IGNORE_LIMIT) entries.
    pub ignore: Vec<Ignore>,
    /// How it takes part in sharing.
    pub sharing: SharingOptions,
    /// Whether the upstream's address is secret; where nothing is said, its query tells.
    pub secret: Option<bool>,
    /// The most items that its ledger keeps, where it differs from the gateway's setting.
    pub items: Option<u32>,
    /// Rules of judgement that are switched off, which only a replay does.
    #[serde(skip)]
    pub without: Without,
}

/// Rules of judgement that are switched off, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Without(pub Vec<String>);

impl Without {
    /// Whether the rule is switched off.
    pub fn has(&self, rule: &str) -> bool {
        self.0.iter().any(|name| name == rule)
    }
}

/// Who added a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FeedSource {
    /// The configuration file, which wins over the others.
    File,
    CommandLine,
    /// The administration API.
    Api,
}

/// Whether a feed is polled and served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FeedStanding {
    /// Polled and served.
    Active,
    /// Served, no longer polled: it left the configuration file.
    Paused,
    /// Deleted by the operator: answers 410.
    Gone,
}

impl FeedStanding {
    /// Whether it is served.
    pub const fn is_served(self) -> bool {
        !matches!(self, Self::Gone)
    }

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Gone => "gone",
        }
    }
}

/// A feed of this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeedRecord {
    pub name: FeedName,
    /// The upstream's address, as configured; never rewritten. Empty where it has none: an
    /// aggregate, and a local feed that nobody else shares.
    pub url: String,
    /// Who added it.
    pub source: FeedSource,
    /// Whether it is polled and served.
    pub standing: FeedStanding,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// What the list of subscriptions says of it.
    pub enrolment: Enrolment,
    /// What its publisher is asked with beside the address; `None` where that is as of every other.
    pub access: Option<Box<FeedAccess>>,
    /// Whether only readers with a token may read it.
    pub private: bool,
    /// Whether it is a subscription list whose feeds are feeds of this gateway.
    pub adds_feeds: bool,
    /// The list that added it; `None` where none did.
    pub list: Option<ListMember>,
    /// What is kept of it where a reader's request made it.
    pub on_demand: Option<OnDemand>,
}

impl FeedRecord {
    /// A feed that is polled and served, of which nothing else is said.
    pub fn new(name: FeedName, url: impl Into<String>, source: FeedSource) -> Self {
        Self {
            name,
            url: url.into(),
            source,
            standing: FeedStanding::Active,
            options: FeedOptions::default(),
            enrolment: Enrolment::default(),
            access: None,
            private: false,
            adds_feeds: false,
            list: None,
            on_demand: None,
        }
    }

    /// The upstream's address as it may be shown.
    pub fn shown(&self) -> ShownAddress {
        ShownAddress::new(&self.url, self.options.secret)
    }

    /// Whether there is an upstream to poll.
    pub const fn has_upstream(&self) -> bool {
        !self.url.is_empty()
    }
}

// How a feed takes part in sharing, as its operator says.

/// What becomes of the versions that are in conflict once a merge is done (SSE 1.0 section 3.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ConflictPolicy {
    /// They are kept until a person resolves them.
    #[default]
    Keep,
    /// The winning version is kept.
    Winner,
    /// What this endpoint says is kept; where none of the versions is its own, the winning one.
    Prefer(EndpointId),
}

/// The word that an endpoint follows.
const PREFER: &str = "prefer:";
/// How much of a wrong word is said back, in characters.
const SAID: usize = 64;

impl FromStr for ConflictPolicy {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match (text, text.strip_prefix(PREFER)) {
            ("keep", _) => Ok(Self::Keep),
            ("winner", _) => Ok(Self::Winner),
            (_, Some(endpoint)) => EndpointId::new(endpoint).map(Self::Prefer).map_err(|why| {
                ValueError(format!(
                    "what stands behind \"prefer:\" is the id of an endpoint: {why}"
                ))
            }),
            _ => {
                let said: String = text.chars().take(SAID).collect();
                let wanted = "write one of \"keep\", \"winner\", \"prefer:ENDPOINT\"";
                Err(ValueError(format!("{said:?} is unknown; {wanted}")))
            }
        }
    }
}

impl fmt::Display for ConflictPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Winner => f.write_str("winner"),
            Self::Prefer(endpoint) => write!(f, "{PREFER}{endpoint}"),
        }
    }
}

/// What an operator says of how a feed takes part in sharing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SharingOptions {
    /// Its items are made here. Where it has an address too, what that shares is merged into them.
    pub local: bool,
    /// What it is called, where it is local or an aggregate; its name where nothing is said. At
    /// most [`SharingOptions::TITLE_LIMIT`] bytes.
    pub title: Option<String>,
    /// The feeds that an aggregate gathers, in the operator's order; empty: it is none.
    pub sources: Vec<FeedName>,
    /// The feeds of this gateway that may change its items, and whose items it may change. At most
    /// [`SharingOptions::SHARES_LIMIT`].
    pub shares_with: Vec<FeedName>,
    /// What becomes of conflicts.
    pub conflicts: ConflictPolicy,
}

impl SharingOptions {
    /// The most bytes of a title.
    pub const TITLE_LIMIT: usize = 500;
    /// The most feeds that a feed shares with.
    pub const SHARES_LIMIT: usize = 1000;

    /// Whether it gathers other feeds.
    pub const fn is_aggregate(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Checks a title; what is wrong with it otherwise, as a sentence.
    pub fn title(text: &str) -> Result<String, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a title is a text of at least one character".to_owned());
        }
        if text.len() > Self::TITLE_LIMIT {
            let (length, limit) = (text.len(), Self::TITLE_LIMIT);
            return Err(format!("the title is {length} bytes long, the limit is {limit}"));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(_) => Err("a title has no line breaks or control characters".to_owned()),
            None => Ok(text.to_owned()),
        }
    }
}

// Feeds that the requests of readers made: below an origin, or by `/subscribe`.

/// What is kept of a feed that a reader's request made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OnDemand {
    /// The address of the site that the configuration admits, below which the feed's own is.
    pub site: String,
    /// When it was last asked for or announced, as far as that was written down.
    pub asked: Time,
    /// Whether it is paused because it was not asked for any more.
    pub is_let_go: bool,
    /// Whether its publisher has it as JSON Feed, as which it is answered at his address.
    pub is_json: bool,
}

impl FeedRecord {
    /// A feed that a request makes now.
    pub fn on_demand(name: super::FeedName, url: &str, site: &str, asked: Time) -> Self {
        let on_demand = OnDemand { site: site.to_owned(), asked, is_let_go: false, is_json: false };
        Self { on_demand: Some(on_demand), ..Self::new(name, url, FeedSource::Api) }
    }

    /// Whether it is paused because it was not asked for, so that the next request resumes it.
    pub fn is_let_go(&self) -> bool {
        self.standing == FeedStanding::Paused
            && self.on_demand.as_ref().is_some_and(|made| made.is_let_go)
    }

    /// Pauses it, since it is not asked for any more. Its history is kept.
    pub fn let_go(&mut self) {
        self.standing = FeedStanding::Paused;
        self.on_demand.iter_mut().for_each(|made| made.is_let_go = true);
    }

    /// Has it be where its site is now, with all that is kept of it; whether it is a feed of that
    /// site, which was at `from`.
    pub fn move_with_site(&mut self, from: &str, to: &str) -> bool {
        let Some(made) = self.on_demand.as_mut().filter(|made| made.site == from) else {
            return false;
        };
        let Some(url) = self.url.strip_prefix(from).map(|rest| format!("{to}{rest}")) else {
            return false;
        };
        to.clone_into(&mut made.site);
        self.url = url;
        true
    }

    /// Notes that it was asked for; resumes it where it was let go.
    pub fn ask_for(&mut self, now: Time) {
        if self.is_let_go() {
            self.standing = FeedStanding::Active;
        }
        if let Some(made) = &mut self.on_demand {
            made.asked = made.asked.max(now);
            made.is_let_go = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::name;
    use crate::model::{EndpointId, Stamp};

    #[test]
    fn policies_are_read_as_they_are_written() {
        for text in ["keep", "winner", "prefer:feeds.example.org", "prefer:a b"] {
            assert_eq!(text.parse::<ConflictPolicy>().unwrap().to_string(), text);
        }
        for text in ["", "Keep", "prefer", "prefer:", "prefer: x", "loser"] {
            assert!(text.parse::<ConflictPolicy>().is_err(), "{text:?}");
        }
        let said = "loser".parse::<ConflictPolicy>().unwrap_err().to_string();
        assert!(said.contains("prefer:ENDPOINT"), "{said}");
    }

    #[test]
    fn titles_have_bounds() {
        assert_eq!(SharingOptions::title("  What we read "), Ok("What we read".to_owned()));
        for bad in ["", "  ", "a\nb", &"x".repeat(SharingOptions::TITLE_LIMIT + 1)] {
            assert!(SharingOptions::title(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_request_resumes_what_was_let_go_and_not_what_the_operator_paused() {
        let at = Time::from_unix;
        let mut feed = FeedRecord::on_demand(name("a"), "http://a/f", "http://a/", at(10));
        feed.follow(None, at(10), &EndpointId::own("here").unwrap());
        feed.let_go();
        assert!(feed.is_let_go() && feed.standing == FeedStanding::Paused);
        feed.ask_for(at(20));
        assert!(!feed.is_let_go() && feed.standing == FeedStanding::Active);
        // The clock may go back.
        feed.ask_for(at(15));
        assert_eq!(feed.on_demand.as_ref().unwrap().asked, at(20));
        let made = feed.enrolment.history.last().and_then(Stamp::when);
        assert_eq!(made, Some(at(10)), "it is no newer for being asked for");
        feed.pause_by_hand();
        feed.ask_for(at(30));
        assert_eq!(feed.standing, FeedStanding::Paused);
    }

    #[test]
    fn a_feed_moves_with_its_site_alone() {
        let made = FeedRecord::on_demand(name("a"), "http://a/x/f?y", "http://a/x/", Time::MIN);
        let mut moved = made.clone();
        assert!(!moved.move_with_site("http://a/", "https://b/") && moved == made);
        assert!(moved.move_with_site("http://a/x/", "https://b:1/"));
        let site = &*moved.on_demand.as_ref().unwrap().site;
        assert_eq!((&*moved.url, site), ("https://b:1/f?y", "https://b:1/"));
        let mut configured = FeedRecord { on_demand: None, ..made };
        assert!(!configured.move_with_site("http://a/x/", "https://b/"));
    }
}
