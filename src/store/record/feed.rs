//! Feeds as operators configure them, on disk.

use super::place::PlacesRecord;
use super::sharing::StampRecord;
use super::{Record, RecordError, fields_and, newest};
use crate::model::{
    Count, Deletions, Enrolment, FeedName, FeedOptions, FeedRecord, FeedSource, FeedStanding,
    Ignore, Order, SharingOptions, Stamp, Without,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A [`FeedRecord`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct FeedRow {
    name: String,
    url: String,
    source: SourceRecord,
    standing: StandingRecord,
    complete: bool,
    deletions: DeletionsRecord,
    min_interval: Option<Duration>,
    max_interval: Option<Duration>,
    order: OrderWord,
    probe: bool,
    ignore: Vec<(String, Option<String>)>,
    backfill: bool,
    enrolment: EnrolmentRecord,
    sharing: SharingRow,
    secret: Option<bool>,
    places: PlacesRecord,
}

/// The [`SharingOptions`] of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SharingRow {
    local: bool,
    title: Option<String>,
    sources: Vec<String>,
    shares_with: Vec<String>,
    conflicts: String,
}

impl From<&SharingOptions> for SharingRow {
    fn from(sharing: &SharingOptions) -> Self {
        let names = |names: &[FeedName]| names.iter().map(|n| n.as_str().to_owned()).collect();
        Self {
            local: sharing.local,
            title: sharing.title.clone(),
            sources: names(&sharing.sources),
            shares_with: names(&sharing.shares_with),
            conflicts: sharing.conflicts.to_string(),
        }
    }
}

impl TryFrom<SharingRow> for SharingOptions {
    type Error = RecordError;

    fn try_from(row: SharingRow) -> Result<Self, RecordError> {
        let names = |names: &[String]| {
            names.iter().map(|name| FeedName::new(name)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            local: row.local,
            title: row.title,
            sources: names(&row.sources)?,
            shares_with: names(&row.shares_with)?,
            conflicts: row.conflicts.parse()?,
        })
    }
}

/// An [`Enrolment`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct EnrolmentRecord {
    title: Option<String>,
    version: u32,
    history: Vec<StampRecord>,
}

/// What earlier layouts have of the list of subscriptions: nothing.
const UNLISTED: EnrolmentRecord = EnrolmentRecord { title: None, version: 1, history: Vec::new() };

/// No noise of the operator's own.
const NOTHING: Vec<(String, Option<String>)> = Vec::new();

/// Nothing said of whether the address is secret.
const UNSAID: Option<bool> = None;

/// No place in a list.
const UNPLACED: PlacesRecord = PlacesRecord::NONE;

/// A feed that takes no part in sharing.
fn unshared() -> SharingRow {
    SharingRow::from(&SharingOptions::default())
}

impl Record for FeedRow {
    const VERSION: u8 = 7;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        match version {
            1 => {
                let listed = (UNLISTED, unshared(), UNSAID, UNPLACED);
                fields_and(payload, &(OrderWord::Auto, false, NOTHING, false, listed))
            }
            2 => fields_and(payload, &(false, UNLISTED, unshared(), UNSAID, UNPLACED)),
            3 => fields_and(payload, &(UNLISTED, unshared(), UNSAID, UNPLACED)),
            4 => fields_and(payload, &(unshared(), UNSAID, UNPLACED)),
            5 => fields_and(payload, &(UNSAID, UNPLACED)),
            6 => fields_and(payload, &UNPLACED),
            _ => newest(version, payload),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum SourceRecord {
    File,
    CommandLine,
    Api,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StandingRecord {
    Active,
    Paused,
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum DeletionsRecord {
    Safe,
    Eager,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum OrderWord {
    Auto,
    NewestFirst,
    OldestFirst,
    Updated,
    None,
}

impl From<&FeedRecord> for FeedRow {
    fn from(feed: &FeedRecord) -> Self {
        Self {
            name: feed.name.as_str().to_owned(),
            url: feed.url.clone(),
            source: match feed.source {
                FeedSource::File => SourceRecord::File,
                FeedSource::CommandLine => SourceRecord::CommandLine,
                FeedSource::Api => SourceRecord::Api,
            },
            standing: match feed.standing {
                FeedStanding::Active => StandingRecord::Active,
                FeedStanding::Paused => StandingRecord::Paused,
                FeedStanding::Gone => StandingRecord::Gone,
            },
            complete: feed.options.complete,
            deletions: match feed.options.deletions {
                Deletions::Safe => DeletionsRecord::Safe,
                Deletions::Eager => DeletionsRecord::Eager,
                Deletions::Off => DeletionsRecord::Off,
            },
            min_interval: feed.options.min_interval,
            max_interval: feed.options.max_interval,
            order: match feed.options.order {
                Order::Auto => OrderWord::Auto,
                Order::NewestFirst => OrderWord::NewestFirst,
                Order::OldestFirst => OrderWord::OldestFirst,
                Order::Updated => OrderWord::Updated,
                Order::None => OrderWord::None,
            },
            probe: feed.options.probe,
            backfill: feed.options.backfill,
            sharing: SharingRow::from(&feed.options.sharing),
            secret: feed.options.secret,
            ignore: (feed.options.ignore.iter())
                .map(|ignore| (ignore.field().to_owned(), ignore.pattern().map(str::to_owned)))
                .collect(),
            enrolment: EnrolmentRecord {
                title: feed.enrolment.title.clone(),
                version: feed.enrolment.version.value(),
                history: feed.enrolment.history.iter().map(StampRecord::from).collect(),
            },
            places: PlacesRecord::of(&feed.enrolment),
        }
    }
}

impl TryFrom<FeedRow> for FeedRecord {
    type Error = RecordError;

    fn try_from(row: FeedRow) -> Result<Self, RecordError> {
        let (places, next_place) = row.places.read();
        Ok(Self {
            name: FeedName::new(&row.name)?,
            url: row.url,
            source: match row.source {
                SourceRecord::File => FeedSource::File,
                SourceRecord::CommandLine => FeedSource::CommandLine,
                SourceRecord::Api => FeedSource::Api,
            },
            standing: match row.standing {
                StandingRecord::Active => FeedStanding::Active,
                StandingRecord::Paused => FeedStanding::Paused,
                StandingRecord::Gone => FeedStanding::Gone,
            },
            options: FeedOptions {
                complete: row.complete,
                deletions: match row.deletions {
                    DeletionsRecord::Safe => Deletions::Safe,
                    DeletionsRecord::Eager => Deletions::Eager,
                    DeletionsRecord::Off => Deletions::Off,
                },
                min_interval: row.min_interval,
                max_interval: row.max_interval,
                order: match row.order {
                    OrderWord::Auto => Order::Auto,
                    OrderWord::NewestFirst => Order::NewestFirst,
                    OrderWord::OldestFirst => Order::OldestFirst,
                    OrderWord::Updated => Order::Updated,
                    OrderWord::None => Order::None,
                },
                probe: row.probe,
                without: Without::default(),
                backfill: row.backfill,
                ignore: (row.ignore.iter())
                    .map(|(field, pattern)| Ignore::new(field, pattern.as_deref()))
                    .collect::<Result<_, _>>()?,
                sharing: row.sharing.try_into()?,
                secret: row.secret,
            },
            enrolment: Enrolment {
                title: row.enrolment.title,
                version: Count::new(row.enrolment.version)?,
                history: (row.enrolment.history.into_iter())
                    .map(Stamp::try_from)
                    .collect::<Result<_, _>>()?,
                places,
                next_place,
            },
        })
    }
}
