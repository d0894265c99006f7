//! `tidegate sup`: watches a SUP document and prints what changes.
//!
//! A SUP document has ids alone. Which feeds a gateway's ids mean is said by its list of subscriptions,
//! which stands beside the document; other publishers have none, and their ids stay ids.

mod names;

use super::serve::{Signals, announce};
use super::{AppError, SupOptions};
use names::FeedNames;
use serde_json::json;
use std::io::Write;
use std::time::Duration;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_core::model::Time;
use tidegate_core::sup::{Follower, FollowerStatus, SupDocument};
use tidegate_core::terminal::{printable, printable_json};
use tidegate_net::fetch::{self, AllowPrivate, Fetch, FetchSettings, LeadScope};
use tidegate_poll::{Question, SupError};
use url::Url;

/// The shortest pause between two requests.
const PAUSE_LEAST: Duration = Duration::from_secs(1);
/// How many failures in a row lengthen the pause, each to twice as long.
const DOUBLINGS: u32 = 5;
/// How often a document of a longer period is asked for in one look; each is of a longer one.
const LONGER: usize = 16;

/// Watches until SIGTERM or SIGINT; with `once`, reads it a single time.
pub async fn sup(options: SupOptions) -> Result<(), AppError> {
    let mut signals = Signals::new()?;
    let fetch = client(&options.url)?;
    let mut question = Question::new(options.url.as_str(), LeadScope::default());
    let mut follower = Follower::new();
    let mut names = FeedNames::beside(&options.url);
    let shown = fetch::shown(&options.url);
    let unread = |error: SupError| AppError::run(format!("{shown} cannot be read"), error);
    let first = question.ask(&fetch, SystemClock.now()).await.map_err(unread)?;
    let mut period = first.as_ref().map_or(60, |document| document.period);
    if let Some(document) = first {
        print_updates((&mut follower, &mut names), document, &fetch, options.json).await?;
    }
    if options.once {
        return Ok(());
    }
    let mut failures = 0_u32;
    loop {
        let usual = options.every.unwrap_or(Duration::from_secs(u64::from(period)));
        let pause = usual.max(PAUSE_LEAST).saturating_mul(1 << failures.min(DOUBLINGS));
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        match question.ask(&fetch, SystemClock.now()).await {
            Ok(document) => {
                failures = 0;
                if let Some(document) = document {
                    period = document.period;
                    print_updates((&mut follower, &mut names), document, &fetch, options.json)
                        .await?;
                }
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                complain(&unread(error));
            }
        }
    }
}

/// The client: any address that it is given, and elsewhere public ones only (CONTRACT, Command line).
fn client(url: &Url) -> Result<Fetch, AppError> {
    let settings =
        FetchSettings { allow_private: AllowPrivate::host_of(url), ..FetchSettings::default() };
    fetch::services(settings)
        .map(|services| services.fetch)
        .map_err(|error| AppError::run("the HTTP client could not be made", error))
}

/// Prints what a document tells, and reads those of longer periods where it does not reach back.
async fn print_updates(
    (follower, names): (&mut Follower, &mut FeedNames),
    document: SupDocument,
    fetch: &Fetch,
    json: bool,
) -> Result<(), AppError> {
    let mut document = document;
    for _ in 0..LONGER {
        let news = follower.apply_document(&document);
        names.learn(news.updates.iter().map(|update| &update.id), fetch).await;
        for update in &news.updates {
            let (id, update, updated) = (&update.id, &*update.update, document.updated);
            let named = names.by_id(id);
            announce(&if json {
                let line = json!({
                    "sup_id": id.as_str(),
                    "update_id": update,
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
        let known = match news.standing {
            FollowerStatus::Complete => return Ok(()),
            FollowerStatus::Missed { known } => known,
            FollowerStatus::Ask { address, .. } => {
                let mut longer = Question::new(address, LeadScope::default());
                match longer.ask(fetch, SystemClock.now()).await {
                    Ok(Some(longer)) => {
                        document = longer;
                        continue;
                    }
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        // The next look finds the same gap and asks again.
                        complain(&AppError::run(
                            "the document of a longer period is missing",
                            error,
                        ));
                        return Ok(());
                    }
                }
            }
        };
        return announce(&gap(known, document.updated, json));
    }
    Ok(())
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
