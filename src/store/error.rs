//! The errors of a store.

use super::StoreStop;
use std::error::Error;
use std::fmt::Display;
use std::io;
use tidegate_core::model::{EndpointId, FeedName};

/// The reason in errors of a database without an answer.
pub(super) const AWAY: &str = "does not answer, or fails over";

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder is in use by another process.
    #[error("the data folder {path} is in use by another process; stop it, or use another --data")]
    InUse {
        /// The folder.
        path: String,
    },
    /// Commits wait for no standby of the database.
    #[error(
        "{database} has no synchronous standby (its synchronous_standby_names is empty, or its synchronous_commit \
         local): where it fails over, what readers and aggregators have seen may be taken back; set one up, or allow \
         that with store.require_standby = false"
    )]
    NoStandby {
        /// The database.
        database: String,
    },
    /// The gateway could not refresh its copy of the database for so long that the copy may be old.
    #[error(
        "this gateway has not seen its database for {seconds} seconds, and what it has may be old; ask another gateway, if there is one"
    )]
    Unseen { seconds: u64 },
    /// The connection to the database was lost, or the database did not answer in time, starts, stops or hands over.
    #[error("the store could not {doing}: its database {why}")]
    Away {
        /// What it was doing.
        doing: &'static str,
        /// What is known of the database, for everybody; otherwise that it does not answer.
        why: &'static str,
        /// What the database or the system said.
        #[source]
        source: std::io::Error,
    },
    /// The feed has another revision than the one that was to be read.
    #[error("the feed was changed, or the store opened again, while it was read; read it anew")]
    Outdated,
    /// Another gateway has changed the record of a feed since it was read.
    #[error(
        "the feed {feed} was changed at another gateway meanwhile: nothing was changed here; try again"
    )]
    FeedChanged { feed: FeedName },
    /// What is stored cannot be read.
    #[error(
        "the store in {path} is damaged: {what}; restore it from a copy, or move it away and start anew"
    )]
    Damaged {
        /// The folder.
        path: String,
        /// What was found, and where.
        what: String,
    },
    /// The database has less than a gateway has shown.
    #[error(
        "{database} went back behind what this gateway has shown, as a failover without a synchronous standby may take it: restart every gateway to go on with what is there"
    )]
    WentBack { database: String },
    /// The store has another format than the one that this program writes.
    #[error(
        "the store in {path} has format {found}, this program reads format {known} alone; use the program that wrote it"
    )]
    Format {
        /// The folder.
        path: String,
        /// The format number found.
        found: u32,
        /// The format number of this program.
        known: u32,
    },
    /// The store belongs to another endpoint.
    #[error(
        "this store belongs to the endpoint {stored}, the configuration says {wanted}; an endpoint id cannot change once it was used: set publish.endpoint to {stored}, or use another store"
    )]
    Endpoint {
        /// The endpoint id in the store.
        stored: EndpointId,
        /// The endpoint id in the configuration.
        wanted: EndpointId,
    },
    /// A value exceeds a limit.
    #[error("{what} is {size} bytes, the limit is {limit}")]
    TooLarge {
        /// What it is.
        what: String,
        size: usize,
        /// The named limit.
        limit: usize,
    },
    /// A change contradicts itself or what is stored; nothing of it was stored.
    #[error("a change to the feed {feed} cannot be stored: {what}; this is a fault of the program")]
    Invalid {
        feed: FeedName,
        /// What is wrong with it.
        what: String,
    },
    /// Reading or writing failed.
    #[error("the store could not {doing}")]
    Io {
        /// What it was doing.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There is something in the store already.
    #[error(
        "{path} has feeds already: give the state an empty place (of a database, drop the tables and functions whose names begin with tidegate_), and import again"
    )]
    Occupied {
        /// The folder, or what stands for it.
        path: String,
    },
    /// What another store handed over contradicts itself.
    #[error("what was handed over contradicts itself: {what}; this store is not to be used")]
    Unfit {
        /// What is wrong.
        what: String,
    },
    /// Another store's state was taken in, and not to its end.
    #[error(
        "an import into {path} broke off, so it has a part of what was to be imported: give it an empty place (of a database, drop the tables and functions whose names begin with tidegate_), and import again"
    )]
    PartlyImported {
        /// The folder, or what stands for it.
        path: String,
    },
    /// It stopped after a failure, and is opened again.
    #[error("{0}")]
    Stopped(Box<StoreStop>),
    /// There is too little space for anything new.
    #[error("{0}")]
    LowSpace(String),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// What failed that is no call of the system.
    pub(super) fn failed(
        doing: &'static str,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Io { doing, source: std::io::Error::other(cause) }
    }

    /// What the system said of a place that it does not name.
    pub(super) fn at(doing: &'static str, place: impl Display, error: &io::Error) -> Self {
        let source = io::Error::new(error.kind(), format!("{place}: {error}"));
        Self::Io { doing, source }
    }

    /// Whether the error may pass by itself: the database is away, a feed changed while it was read, or the store is
    /// being opened again or closed.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Stopped(stop) => stop.next_try.is_some(),
            Self::Unseen { .. }
            | Self::Away { .. }
            | Self::Outdated
            | Self::FeedChanged { .. }
            | Self::Closed => true,
            _ => false,
        }
    }
}

/// An error with its causes.
pub fn in_words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
