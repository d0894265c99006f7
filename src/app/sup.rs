//! `tidegate sup`: watches a SUP document and prints what changes.
//!
//! A SUP document has ids alone. Which feeds a gateway's ids mean is said by its list of subscriptions,
//! which stands beside the document; other publishers have none, and their ids stay ids.

use super::serve::{Signals, announce};
use super::{AppError, SupOptions, outgoing};
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_core::model::{OUTLINE_SUP, SupId, Time};
use tidegate_core::sup::UpdateMember;
use tidegate_core::terminal::{printable, printable_json};
use tidegate_format::parse::opml::{OutlineKind, read};
use tidegate_format::parse::{self, Limits};
use tidegate_net::fetch::{self, Fetch, FetchAnswer, FetchRequest, LeadScope};
use tidegate_poll::{SupNews, SupReader};
use tokio::time::Instant;
use tower::ServiceExt as _;
use url::Url;

/// The shortest pause between two requests.
const PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How many failures in a row lengthen the pause, each to twice as long.
const DOUBLINGS: u32 = 5;
/// Watches until SIGTERM or SIGINT; with `once`, reads it a single time.
pub async fn sup(options: SupOptions) -> Result<(), AppError> {
    let mut signals = Signals::new()?;
    let fetch = outgoing::client_of(&options.url)?;
    let mut reader = SupReader::new(options.url.as_str(), LeadScope::default());
    let mut names = FeedNames::beside(&options.url);
    let shown = fetch::shown(&options.url);
    let (mut period, mut failures, mut is_first) = (60, 0_u32, true);
    loop {
        match reader.read(&fetch, SystemClock.now()).await {
            Ok(news) => {
                failures = 0;
                if let Some(news) = news {
                    period = news.period;
                    names.learn(news.updates.iter().map(|(update, _)| &update.id), &fetch).await;
                    print_news(&news, &names, options.json)?;
                    if let Some(error) = news.unread {
                        let missing = "the document of a longer period is missing";
                        complain(&AppError::run(missing, error));
                    }
                }
            }
            Err(error) => {
                let error = AppError::run(format!("{shown} cannot be read"), error);
                if is_first {
                    return Err(error);
                }
                failures = failures.saturating_add(1);
                complain(&error);
            }
        }
        if options.once {
            return Ok(());
        }
        is_first = false;
        let usual = options.every.unwrap_or(Duration::from_secs(u64::from(period)));
        let pause = usual.max(PAUSE_LEAST).saturating_mul(1 << failures.min(DOUBLINGS));
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Prints what the documents tell.
fn print_news(news: &SupNews, names: &FeedNames, json: bool) -> Result<(), AppError> {
    for (UpdateMember { id, update }, updated) in &news.updates {
        let named = names.known.get(id);
        announce(&if json {
            let line = json!({
                "sup_id": id.as_str(),
                "update_id": &**update,
                "updated_time": updated.to_string(),
                "title": named.map(|named| &named.title),
                "feed": named.map(|named| &named.address),
            });
            printable_json(&line.to_string())
        } else {
            let name = named.map(|named| format!(" {}", named.title)).unwrap_or_default();
            printable(&format!("{updated} {id} {update}{name}"))
        })?;
    }
    match news.missed {
        Some((known, updated)) => announce(&gap(known, updated, json)),
        None => Ok(()),
    }
}

fn gap(known: Time, updated: Time, json: bool) -> String {
    if json {
        return json!({"missed_after": known.to_string(), "updated_time": updated.to_string()})
            .to_string();
    }
    format!("{updated} changes after {known} may be missing: no document reaches back that far")
}

fn complain(error: &AppError) {
    // Nobody is left to be told when standard error itself is gone.
    let _ = writeln!(std::io::stderr(), "tidegate: {}", printable(&error.report()));
}

/// Where the list stands, beside the SUP document.
const LIST: &str = "subscriptions.opml";
/// How long after it was read it is read again for an id that it did not have.
const AGAIN: Duration = Duration::from_secs(300);
/// The most characters of a title.
const TITLE: usize = 100;

/// A feed of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFeed {
    /// What it is called: one line without control characters.
    pub(super) title: String,
    /// Where it is.
    pub(super) address: String,
}

/// What is known of ids.
#[derive(Debug, Default)]
pub(super) struct FeedNames {
    /// Where the list stands; `None` where there is none.
    list: Option<Url>,
    known: HashMap<SupId, NamedFeed>,
    read: Option<Instant>,
}

impl FeedNames {
    /// Nothing yet, of the publisher of this SUP document.
    pub(super) fn beside(document: &Url) -> Self {
        Self { list: document.join(LIST).ok(), ..Self::default() }
    }

    /// Reads the list where one of these ids is unknown: at first, and not often again. That it cannot be
    /// had is no error, for most publishers have none.
    pub(super) async fn learn(&mut self, ids: impl Iterator<Item = &SupId>, fetch: &Fetch) {
        let mut ids = ids;
        let is_due = self.read.is_none_or(|read| read.elapsed() >= AGAIN);
        if !is_due || ids.all(|id| self.known.contains_key(id)) {
            return;
        }
        let Some(list) = self.list.clone() else { return };
        self.read = Some(Instant::now());
        let request = FetchRequest::whole(list.into(), SystemClock.now());
        let fetched = fetch.clone().oneshot(request).await;
        let bytes = match fetched.map(|fetched| fetched.answer) {
            Ok(FetchAnswer::Document(document)) => document.bytes,
            // Who has no list at first has none.
            _ if self.known.is_empty() => {
                self.list = None;
                return;
            }
            _ => return,
        };
        // One of many feeds takes a while.
        let named = tokio::task::spawn_blocking(move || named(&bytes)).await;
        self.known = named.unwrap_or_default();
    }
}

/// The feeds of a list by their SUP ids.
fn named(bytes: &[u8]) -> HashMap<SupId, NamedFeed> {
    let Ok(text) = parse::characters(bytes, None, &Limits::default()) else {
        return HashMap::new();
    };
    let Ok(list) = read(&text.text) else { return HashMap::new() };
    let mut known = HashMap::new();
    for outline in &list.outlines {
        let OutlineKind::Feed(address) = outline.kind() else { continue };
        let Some(id) = list.ours(outline, OUTLINE_SUP) else { continue };
        let Ok(id) = SupId::new(id) else { continue };
        let title = outline.text().or_else(|| outline.title()).unwrap_or_default();
        let title = printable(title).chars().take(TITLE).collect();
        // One that stands in several folders is called as in the first.
        known.entry(id).or_insert(NamedFeed { title, address: address.to_owned() });
    }
    known
}
