//! What is asked about feeds and changed of them: `tidegate feed`.

use super::{AskedGateway, PAGES, Pairs, confirm, path, print, print_json, shown};
use crate::app::AppError;
use crate::cli::args::client::{FeedArg, FeedCommand, FeedsArg};
use http::Method;
use serde_json::{Map, Value, json};
use std::path::Path;
use tidegate_core::model::{FeedName, SecretSource};
use tidegate_net::fetch;

/// How many feeds are asked for at once.
const PAGE: &str = "500";

/// Does what was typed.
pub(super) async fn run(to: &AskedGateway, command: FeedCommand) -> Result<(), AppError> {
    match command {
        FeedCommand::List { show, search, limit } => list(to, [show, search], limit).await,
        FeedCommand::Show(feed) => to.read((&path(&feed, ""), &[]), shown::feed).await,
        FeedCommand::Add { url, name, look } => add(to, &url, name, look).await,
        FeedCommand::Remove { feed, purge, yes } => remove(to, &feed, purge, yes).await,
        FeedCommand::Poll(feeds) => poll(to, feeds).await,
        FeedCommand::Pause(feeds) => {
            act_on_all(to, feeds, "pause", "served as it is, and not polled").await
        }
        FeedCommand::Resume(feeds) => act_on_all(to, feeds, "resume", "polled again").await,
        FeedCommand::Hold { feed, action } => {
            let said = match action == "release" {
                true => "the held document is published",
                false => "the held document was dropped",
            };
            act(to, &feed, ("/hold", &action), said).await
        }
        FeedCommand::Backfill { feed, stop: true } => {
            act(to, &feed, ("/backfill", "stop"), "older documents are not read any more").await
        }
        FeedCommand::Backfill { feed, stop: false } => {
            act(to, &feed, ("/backfill", "start"), "older documents are being read, slowly").await
        }
        FeedCommand::Edit { feed, settings } => edit(to, &feed, settings).await,
        FeedCommand::Webhook { feed, url, secret_file, remove } => {
            let at = path(&feed, "/webhook");
            match (url, remove) {
                (Some(url), _) => {
                    let secret = secret_file.as_deref().map(secret).transpose()?;
                    let mut wanted = json!({ "url": url });
                    if let Some((wanted, secret)) = wanted.as_object_mut().zip(secret) {
                        wanted.insert("secret".to_owned(), secret.into());
                    }
                    to.tell(Method::PUT, &at, Some(wanted), shown::webhook).await
                }
                (None, true) => to.tell(Method::DELETE, &at, None, shown::webhook).await,
                (None, false) => to.read((&at, &[]), shown::webhook).await,
            }
        }
    }
}

/// Has something be done about a feed.
async fn act(
    to: &AskedGateway,
    feed: &FeedArg,
    (below, action): (&str, &str),
    said: &str,
) -> Result<(), AppError> {
    let wanted = json!({ "action": action });
    let said = |_: &Value| format!("{}: {said}\n", feed.name);
    to.tell(Method::POST, &path(feed, below), Some(wanted), said).await
}

/// Pauses or resumes feeds, in their order.
async fn act_on_all(
    to: &AskedGateway,
    feeds: FeedsArg,
    action: &str,
    said: &str,
) -> Result<(), AppError> {
    for name in feeds.names {
        act(to, &FeedArg { name }, ("/pause", action), said).await?;
    }
    Ok(())
}

async fn list(
    to: &AskedGateway,
    [show, search]: [Option<String>; 2],
    limit: Option<u32>,
) -> Result<(), AppError> {
    let limit = limit.map(|limit| limit.to_string());
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    pairs.extend(show.as_deref().map(|show| ("show", show)));
    pairs.extend(search.as_deref().map(|text| ("q", text)));
    pairs.push(("limit", limit.as_deref().unwrap_or(PAGE)));
    let (mut all, mut last) = (json!({}), None::<String>);
    let mut feeds = Vec::new();
    for _ in 0..PAGES {
        let mut pairs = pairs.clone();
        pairs.extend(last.as_deref().map(|last| ("after", last)));
        all = to.gateway.call(Method::GET, ("/feeds", &pairs), None).await?;
        feeds.extend_from_slice(shown::list(&all, "feeds"));
        let next = feeds.last().map(|feed| shown::text(feed, "/name").to_owned());
        last = next.filter(|_| limit.is_none() && !shown::text(&all, "/next").is_empty());
        if last.is_none() {
            break;
        }
    }
    if to.is_json {
        all.as_object_mut().map(|all| all.insert("feeds".to_owned(), feeds.into()));
        return print_json(&all.to_string());
    }
    print(&shown::feeds(&feeds))
}

/// Of a page with one feed that feed is added; where it has more, they are named and none is added.
async fn add(
    to: &AskedGateway,
    url: &str,
    name: Option<FeedName>,
    only_look: bool,
) -> Result<(), AppError> {
    let look = async |url: &str| {
        let wanted = json!({ "url": url });
        to.gateway.call(Method::POST, ("/preview", &[]), Some(&wanted)).await
    };
    let mut seen = look(url).await?;
    if shown::text(&seen, "/kind") == "page" && !only_look {
        seen = match shown::list(&seen, "feeds") {
            [] => return Err(AppError::Input(shown::page(&seen))),
            [one] => look(shown::text(one, "/url")).await?,
            _ => {
                let said = shown::page(&seen);
                return Err(AppError::Input(format!("name one of them\n{}", said.trim_end())));
            }
        };
    }
    if only_look {
        return to.print(&seen, shown::preview);
    }
    let wanted = json!({ "url": shown::text(&seen, "/url"), "name": name });
    to.tell(Method::POST, "/feeds", Some(wanted), shown::added).await
}

async fn remove(to: &AskedGateway, feed: &FeedArg, purge: bool, yes: bool) -> Result<(), AppError> {
    let name = feed.name.as_str();
    if !yes {
        let what = if purge { " with all that is kept of it" } else { "" };
        let asked = format!("Remove the feed {name}{what} for good? Type its name: ");
        confirm(&asked, name, "removed")?;
    }
    let pairs: &Pairs<'_> = if purge { &[("purge", "true")] } else { &[] };
    to.gateway.call(Method::DELETE, (&path(feed, ""), pairs), None).await?;
    print(&match purge {
        true => format!("the feed {name} and all that was kept of it were removed\n"),
        false => format!("the feed {name} was removed: its address answers 410 from now on\n"),
    })
}

/// A poll that failed is a failure, once all were made.
async fn poll(to: &AskedGateway, feeds: FeedsArg) -> Result<(), AppError> {
    let mut failed = Vec::new();
    for name in feeds.names {
        let feed = FeedArg { name };
        let came = to.gateway.call(Method::POST, (&path(&feed, "/poll"), &[]), None).await?;
        to.print(&came, |came| shown::poll(&feed.name, came))?;
        if shown::text(&came, "/outcome") == "failed" {
            failed.push(feed.name.to_string());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => {
            let said = format!("the poll of {} failed", failed.join(", "));
            Err(AppError::run(said, "see above"))
        }
    }
}

async fn edit(
    to: &AskedGateway,
    feed: &FeedArg,
    settings: Vec<(String, Value)>,
) -> Result<(), AppError> {
    let keys: Vec<&str> = settings.iter().map(|(key, _)| key.as_str()).collect();
    let keys = keys.join(", ");
    let mut wanted: Map<String, Value> = Map::new();
    for (key, value) in settings {
        if wanted.contains_key(&key) {
            return Err(AppError::Input(format!("{key} is written twice; write one of the two")));
        }
        wanted.insert(key, value);
    }
    let said = |_: &Value| format!("{}: {keys} changed\n", feed.name);
    to.tell(Method::PATCH, &path(feed, ""), Some(wanted.into()), said).await
}

/// The secret in a file, without the end of its line.
fn secret(file: &Path) -> Result<String, AppError> {
    fetch::find_secret(&SecretSource::File(file.display().to_string())).map_err(AppError::Input)
}
