//! What a gateway that runs is asked and told: `tidegate feed`, `item`, `list` and `reader`, each command a
//! request of its API.

mod shown;

use super::args::client::{
    AskArgs, ClientCommand, FeedArg, FeedCommand, FeedsArg, ItemArg, ItemCommand, ListCommand,
    ReaderCommand,
};
use crate::app::{AppError, ErrorContext, RunningGateway, random_reader_token};
use clap::Subcommand;
use http::Method;
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Write};
use std::path::Path;
use tidegate_core::model::{FeedName, SecretSource, SyncId, counted};
use tidegate_core::terminal::{printable, printable_json};
use tidegate_core::xml::address::percent_encoded;
use tidegate_net::fetch;

/// The most pages that are listed.
const PAGES: usize = 1000;
/// The longest answer to a question, in bytes.
const TYPED: usize = 200;

type Pairs<'a> = [(&'a str, &'a str)];

/// Does what was typed.
pub(super) async fn run(command: ClientCommand) -> Result<(), AppError> {
    match command {
        ClientCommand::Feed(args) => {
            let (to, command) = AskedGateway::new(args)?;
            run_feed(&to, command).await
        }
        ClientCommand::Item(args) => {
            let (to, command) = AskedGateway::new(args)?;
            run_item(&to, command).await
        }
        ClientCommand::List(args) => {
            let (to, ListCommand::Subscriptions { feed }) = AskedGateway::new(args)?;
            let pairs: Vec<_> = feed.iter().map(|feed| ("feed", feed.as_str())).collect();
            to.read(("/subscriptions", &pairs), shown::subscriptions).await
        }
        ClientCommand::Reader(AskArgs { command: ReaderCommand::Token, .. }) => {
            print(&format!("{}\n", random_reader_token()?))
        }
        ClientCommand::Reader(args) => {
            let (to, _) = AskedGateway::new(args)?;
            to.read(("/readers", &[]), shown::readers).await
        }
    }
}

/// The gateway that is asked, and how its answers are printed.
struct AskedGateway {
    gateway: RunningGateway,
    is_json: bool,
}

impl AskedGateway {
    /// The gateway that a command is for, and the command.
    fn new<C: Subcommand>(args: AskArgs<C>) -> Result<(Self, C), AppError> {
        let gateway = RunningGateway::find(&args.gateway)?;
        Ok((Self { gateway, is_json: args.json }, args.command))
    }

    /// Reads, and prints the answer itself or what it says.
    async fn read(
        &self,
        to: (&str, &Pairs<'_>),
        said: impl FnOnce(&Value) -> String,
    ) -> Result<(), AppError> {
        match self.is_json {
            true => print_json(&self.gateway.text(to).await?),
            false => print(&said(&self.gateway.call(Method::GET, to, None).await?)),
        }
    }

    /// Tells, and prints likewise.
    async fn tell(
        &self,
        method: Method,
        to: &str,
        body: Option<Value>,
        said: impl FnOnce(&Value) -> String,
    ) -> Result<(), AppError> {
        let answer = self.gateway.call(method, (to, &[]), body.as_ref()).await?;
        self.print(&answer, said)
    }

    fn print(&self, answer: &Value, said: impl FnOnce(&Value) -> String) -> Result<(), AppError> {
        if self.is_json { print_json(&answer.to_string()) } else { print(&said(answer)) }
    }
}

fn print(text: &str) -> Result<(), AppError> {
    super::print_lines(text, &mut std::io::stdout().lock())
}

/// Prints an answer itself.
fn print_json(answer: &str) -> Result<(), AppError> {
    print(&format!("{}\n", printable_json(answer)))
}

fn path(feed: &FeedName, below: &str) -> String {
    format!("/feeds/{feed}{below}")
}

/// Asks on a terminal for a name to be typed; elsewhere nothing is `done` that `--yes` does not say.
fn confirm(asked: &str, name: &str, done: &str) -> Result<(), AppError> {
    if !std::io::stdin().is_terminal() {
        let said = format!("nobody can be asked here, so nothing was {done}; say --yes");
        return Err(AppError::Input(said));
    }
    let mut err = std::io::stderr();
    let asked = write!(err, "{}", printable(asked));
    asked.and_then(|()| err.flush()).map_err(AppError::output)?;
    let mut typed = String::new();
    let read = std::io::Read::take(std::io::stdin(), u64::try_from(TYPED).unwrap_or(u64::MAX));
    std::io::BufRead::read_line(&mut std::io::BufReader::new(read), &mut typed)
        .context("standard input cannot be read")?;
    match typed.trim() == name {
        true => Ok(()),
        false => Err(AppError::Input(format!("that is not its name; nothing was {done}"))),
    }
}

/// How many feeds are asked for at once.
const PAGE: &str = "500";

/// Does what `tidegate feed` says.
async fn run_feed(to: &AskedGateway, command: FeedCommand) -> Result<(), AppError> {
    match command {
        FeedCommand::List { show, search, limit } => {
            list(to, [show.as_deref(), search.as_deref()], limit).await
        }
        FeedCommand::Show(feed) => to.read((&path(&feed.name, ""), &[]), shown::feed).await,
        FeedCommand::Add { url, name, look } => add(to, &url, name.as_ref(), look).await,
        FeedCommand::Remove { feed, purge, yes } => remove(to, &feed, purge, yes).await,
        FeedCommand::Poll(feeds) => poll(to, feeds).await,
        FeedCommand::Pause(feeds) => {
            let said = "served as it is, and not polled";
            act(to, &feeds.names, ("/pause", "pause"), said).await
        }
        FeedCommand::Resume(feeds) => {
            act(to, &feeds.names, ("/pause", "resume"), "polled again").await
        }
        FeedCommand::Hold { feed, action } => {
            let said = match action == "release" {
                true => "the held document is published",
                false => "the held document was dropped",
            };
            act(to, &[feed.name], ("/hold", &action), said).await
        }
        FeedCommand::Backfill { feed, stop } => {
            let (action, said) = match stop {
                true => ("stop", "older documents are not read any more"),
                false => ("start", "older documents are being read, slowly"),
            };
            act(to, &[feed.name], ("/backfill", action), said).await
        }
        FeedCommand::Edit { feed, settings } => edit(to, &feed, settings).await,
        FeedCommand::Webhook { feed, url, secret_file, remove } => {
            let at = path(&feed.name, "/webhook");
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

/// Has something be done about feeds, in their order.
async fn act(
    to: &AskedGateway,
    feeds: &[FeedName],
    (below, action): (&str, &str),
    said: &str,
) -> Result<(), AppError> {
    for feed in feeds {
        let said = |_: &Value| format!("{feed}: {said}\n");
        let wanted = json!({ "action": action });
        to.tell(Method::POST, &path(feed, below), Some(wanted), said).await?;
    }
    Ok(())
}

async fn list(
    to: &AskedGateway,
    [show, search]: [Option<&str>; 2],
    limit: Option<u32>,
) -> Result<(), AppError> {
    let limit = limit.map(|limit| limit.to_string());
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    pairs.extend(show.map(|show| ("show", show)));
    pairs.extend(search.map(|text| ("q", text)));
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
    name: Option<&FeedName>,
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
    to.gateway.call(Method::DELETE, (&path(&feed.name, ""), pairs), None).await?;
    print(&match purge {
        true => format!("the feed {name} and all that was kept of it were removed\n"),
        false => format!("the feed {name} was removed: its address answers 410 from now on\n"),
    })
}

/// A poll that failed is a failure, once all were made.
async fn poll(to: &AskedGateway, feeds: FeedsArg) -> Result<(), AppError> {
    let mut failed = Vec::new();
    for feed in feeds.names {
        let came = to.gateway.call(Method::POST, (&path(&feed, "/poll"), &[]), None).await?;
        to.print(&came, |came| shown::poll(&feed, came))?;
        if shown::text(&came, "/outcome") == "failed" {
            failed.push(feed.to_string());
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
    to.tell(Method::PATCH, &path(&feed.name, ""), Some(wanted.into()), said).await
}

/// The secret in a file, without the end of its line.
fn secret(file: &Path) -> Result<String, AppError> {
    fetch::find_secret(&SecretSource::File(file.display().to_string())).map_err(AppError::Input)
}

/// Does what `tidegate item` says.
async fn run_item(to: &AskedGateway, command: ItemCommand) -> Result<(), AppError> {
    match command {
        ItemCommand::List { feed, show, search, page } => {
            let page = page.to_string();
            let mut pairs: Vec<(&str, &str)> = vec![("page", &page)];
            pairs.extend(show.as_deref().map(|show| ("show", show)));
            pairs.extend(search.as_deref().map(|text| ("q", text)));
            to.read((&path(&feed.name, "/items"), &pairs), shown::items).await
        }
        ItemCommand::Show(item) => {
            to.read((&item_path(&item.feed, &item.id, "")?, &[]), shown::item).await
        }
        ItemCommand::Conflicts(feed) => {
            to.read((&path(&feed.name, "/conflicts"), &[]), shown::conflicts).await
        }
        ItemCommand::Resolve { feed, id: Some(id), keep, .. } => {
            let at = item_path(&feed, &id, "/resolve")?;
            to.tell(Method::POST, &at, Some(json!({ "keep": keep })), shown::resolved).await
        }
        ItemCommand::Resolve { feed, id: None, .. } => keep_winners(to, &feed).await,
        ItemCommand::Delete(item) => delete(to, item).await,
        ItemCommand::Restore(item) => {
            let said = |_: &Value| format!("{} is restored\n", item.id);
            to.tell(Method::POST, &item_path(&item.feed, &item.id, "/restore")?, None, said).await
        }
        ItemCommand::Redact { item, reason, yes } => {
            let id = item.id.as_str();
            if !yes {
                let asked = format!(
                    "Take the text of {id} out of everything, for good? Type the sync id: "
                );
                confirm(&asked, id, "redacted")?;
            }
            let wanted = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
            let at = item_path(&item.feed, &item.id, "/redact")?;
            to.tell(Method::POST, &at, Some(wanted), shown::redacted).await
        }
    }
}

/// The path of an item; a sync id may hold what has a meaning in one. Two that are steps of a path however they are
/// written (URL Standard, "double-dot URL path segment") are refused.
fn item_path(feed: &FeedArg, id: &SyncId, below: &str) -> Result<String, AppError> {
    if matches!(id.as_str(), "." | "..") {
        let said = format!(
            "the item {id} cannot be named to the API: {id} is a step of a path in every address"
        );
        return Err(AppError::Input(said));
    }
    Ok(path(&feed.name, &format!("/items/{}{below}", percent_encoded(id.as_str()))))
}

/// Keeps the winner of each item that is listed, as it was listed. One that changed since is left as it is.
async fn keep_winners(to: &AskedGateway, feed: &FeedArg) -> Result<(), AppError> {
    let (mut kept, mut left) = (0_usize, 0_usize);
    let (list, mut after) = (path(&feed.name, "/conflicts"), None::<String>);
    for _ in 0..PAGES {
        let pairs: Vec<(&str, &str)> =
            after.iter().map(|after| ("after", after.as_str())).collect();
        let page = to.gateway.call(Method::GET, (&list, &pairs), None).await?;
        for item in shown::list(&page, "conflicts") {
            let Ok(id) = SyncId::new(shown::text(item, "/sync_id")) else { continue };
            let wanted = json!({ "keep": "winner", "etag": shown::text(item, "/etag") });
            let Ok(at) = item_path(feed, &id, "/resolve") else {
                left += 1;
                continue;
            };
            match to.gateway.call(Method::POST, (&at, &[]), Some(&wanted)).await {
                Ok(done) => {
                    kept += 1;
                    if to.is_json {
                        print_json(&done.to_string())?;
                    }
                }
                Err(AppError::Refused { status: 400..=499, .. }) => left += 1,
                Err(error) => return Err(error),
            }
        }
        after = Some(shown::text(&page, "/next").to_owned()).filter(|next| !next.is_empty());
        if after.is_none() {
            break;
        }
    }
    if to.is_json {
        return Ok(());
    }
    let left = match left {
        0 => String::new(),
        left => format!("; {} changed meanwhile, or need nothing", counted(left, "item")),
    };
    print(&format!("{}: the winners of {} were kept{left}\n", feed.name, counted(kept, "item")))
}

/// Of a local feed an item that is there is deleted, of others one that is missing.
async fn delete(to: &AskedGateway, item: ItemArg) -> Result<(), AppError> {
    let feed = to.gateway.call(Method::GET, (&path(&item.feed.name, ""), &[]), None).await?;
    let is_local = feed.pointer("/options/local") == Some(&Value::Bool(true));
    let (method, below) = if is_local { (Method::DELETE, "") } else { (Method::POST, "/delete") };
    let said = |done: &Value| match done["was_deleted"] == true {
        true => format!("{} was deleted before\n", item.id),
        false => format!("{} is deleted: subscribers get its tombstone\n", item.id),
    };
    to.tell(method, &item_path(&item.feed, &item.id, below)?, None, said).await
}
