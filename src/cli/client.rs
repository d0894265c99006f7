//! What a gateway that runs is asked and told: `tidegate feeds`, `show`, `add`, `remove`, `poll` and the
//! others that are commands of a client.

mod items;
mod settings;
mod shown;

use super::args::client::{
    AddArgs, ClientCommand, FeedArgs, FeedsArgs, GatewayArgs, HoldArgs, ItemsArgs, NamesArgs,
    RemoveArgs, word,
};
use crate::app::{AppError, RunningGateway};
use http::Method;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use tidegate_core::model::FeedName;
use tidegate_core::terminal::{printable, printable_json};

/// How many feeds are asked for at once.
const PAGE: &str = "500";
/// The most pages that are listed.
const PAGES: usize = 1000;
/// The longest answer to a question, in bytes.
const TYPED: usize = 200;

type Pairs<'a> = [(&'a str, &'a str)];

/// Does what was typed.
pub(super) async fn run(command: ClientCommand) -> Result<(), AppError> {
    match command {
        ClientCommand::Feeds(args) => feeds(args).await,
        ClientCommand::Show(args) => show(args).await,
        ClientCommand::Add(args) => add(args).await,
        ClientCommand::Remove(args) => remove(args).await,
        ClientCommand::Poll(args) => poll(args).await,
        ClientCommand::Pause(args) => pause(args, "pause").await,
        ClientCommand::Resume(args) => pause(args, "resume").await,
        ClientCommand::Hold(args) => hold(args).await,
        ClientCommand::Items(args) => items(args).await,
        ClientCommand::Conflicts(args) => conflicts(args).await,
        ClientCommand::Item(args) => items::item(args).await,
        ClientCommand::Resolve(args) => items::resolve(args).await,
        ClientCommand::Delete(args) => items::delete(args).await,
        ClientCommand::Restore(args) => items::restore(args).await,
        ClientCommand::Redact(args) => items::redact(args).await,
        ClientCommand::Edit(args) => settings::edit(args).await,
        ClientCommand::Backfill(args) => settings::backfill(args).await,
        ClientCommand::Webhook(args) => settings::webhook(args).await,
        ClientCommand::Subscriptions(args) => settings::subscriptions(args).await,
        ClientCommand::Readers(args) => settings::readers(args).await,
        ClientCommand::AddList(args) => settings::add_list(args).await,
    }
}

fn find(args: &GatewayArgs) -> Result<RunningGateway, AppError> {
    RunningGateway::find(&args.options())
}

fn print(text: &str) -> Result<(), AppError> {
    super::print_lines(text, &mut std::io::stdout().lock())
}

/// Prints an answer itself.
fn print_json(answer: &str) -> Result<(), AppError> {
    print(&format!("{}\n", printable_json(answer)))
}

/// Prints the answer itself, or what it says.
fn tell(
    is_json: bool,
    answer: &Value,
    said: impl FnOnce(&Value) -> String,
) -> Result<(), AppError> {
    if is_json { print_json(&answer.to_string()) } else { print(&said(answer)) }
}

/// Reads, and prints the answer itself or what it says.
async fn read(
    args: &GatewayArgs,
    is_json: bool,
    to: (&str, &Pairs<'_>),
    said: impl FnOnce(&Value) -> String,
) -> Result<(), AppError> {
    let gateway = find(args)?;
    if is_json {
        return print_json(&gateway.text(to).await?);
    }
    print(&said(&gateway.call(Method::GET, to, None).await?))
}

fn path(name: &FeedName, below: &str) -> String {
    format!("/feeds/{name}{below}")
}

/// `tidegate feeds`.
async fn feeds(args: FeedsArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let show = args.show.as_ref().map(word);
    let limit = args.limit.map(|limit| limit.to_string());
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    pairs.extend(show.as_deref().map(|show| ("show", show)));
    pairs.extend(args.search.as_deref().map(|text| ("q", text)));
    pairs.push(("limit", limit.as_deref().unwrap_or(PAGE)));
    let (mut all, mut last) = (json!({}), None::<String>);
    let mut feeds = Vec::new();
    for _ in 0..PAGES {
        let mut pairs = pairs.clone();
        pairs.extend(last.as_deref().map(|last| ("after", last)));
        all = gateway.call(Method::GET, ("/feeds", &pairs), None).await?;
        feeds.extend_from_slice(shown::list(&all, "feeds"));
        let next = feeds.last().map(|feed| shown::text(feed, "/name").to_owned());
        last = next.filter(|_| limit.is_none() && !shown::text(&all, "/next").is_empty());
        if last.is_none() {
            break;
        }
    }
    if args.json {
        all.as_object_mut().map(|all| all.insert("feeds".to_owned(), feeds.into()));
        return print_json(&all.to_string());
    }
    let rows: Vec<_> = feeds.iter().map(shown::feed_row).collect();
    print(&shown::feeds(&rows))
}

/// `tidegate show`.
async fn show(args: FeedArgs) -> Result<(), AppError> {
    read(&args.gateway, args.json, (&path(&args.name, ""), &[]), shown::feed).await
}

/// `tidegate items`.
async fn items(args: ItemsArgs) -> Result<(), AppError> {
    let (show, page) = (args.show.as_ref().map(word), args.page.to_string());
    let mut pairs: Vec<(&str, &str)> = vec![("page", &page)];
    pairs.extend(show.as_deref().map(|show| ("show", show)));
    pairs.extend(args.search.as_deref().map(|text| ("q", text)));
    read(&args.gateway, args.json, (&path(&args.name, "/items"), &pairs), shown::items).await
}

/// `tidegate conflicts`.
async fn conflicts(args: FeedArgs) -> Result<(), AppError> {
    let to = path(&args.name, "/conflicts");
    read(&args.gateway, args.json, (&to, &[]), shown::conflicts).await
}

/// `tidegate add`: of a page with one feed that feed; where it has more, they are named and none is added.
async fn add(args: AddArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let look = |url: String| {
        let gateway = &gateway;
        async move { gateway.call(Method::POST, ("/preview", &[]), Some(&json!({ "url": url }))).await }
    };
    let mut seen = look(args.url.clone()).await?;
    if shown::text(&seen, "/kind") == "page" && !args.look {
        seen = match shown::list(&seen, "feeds") {
            [] => return Err(AppError::Input(shown::page(&seen))),
            [one] => look(shown::text(one, "/url").to_owned()).await?,
            _ => {
                let said = shown::page(&seen);
                return Err(AppError::Input(format!("name one of them\n{}", said.trim_end())));
            }
        };
    }
    if args.look {
        return tell(args.json, &seen, shown::preview);
    }
    let wanted = json!({ "url": shown::text(&seen, "/url"), "name": args.name });
    let feed = gateway.call(Method::POST, ("/feeds", &[]), Some(&wanted)).await?;
    tell(args.json, &feed, shown::added)
}

/// `tidegate remove`.
async fn remove(args: RemoveArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let name = args.name.as_str();
    if !args.yes {
        let what = if args.purge { " with all that is kept of it" } else { "" };
        let asked = format!("Remove the feed {name}{what} for good? Type its name: ");
        confirm(&asked, name, "removed")?;
    }
    let purge: &Pairs<'_> = if args.purge { &[("purge", "true")] } else { &[] };
    gateway.call(Method::DELETE, (&path(&args.name, ""), purge), None).await?;
    print(&match args.purge {
        true => format!("the feed {name} and all that was kept of it were removed\n"),
        false => format!("the feed {name} was removed: its address answers 410 from now on\n"),
    })
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
        .map_err(|error| AppError::run("standard input cannot be read", error))?;
    match typed.trim() == name {
        true => Ok(()),
        false => Err(AppError::Input(format!("that is not its name; nothing was {done}"))),
    }
}

/// `tidegate poll`; a poll that failed is a failure, once all were made.
async fn poll(args: NamesArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let mut failed = Vec::new();
    for name in &args.names {
        let came = gateway.call(Method::POST, (&path(name, "/poll"), &[]), None).await?;
        tell(args.json, &came, |came| shown::poll(name, came))?;
        if shown::text(&came, "/outcome") == "failed" {
            failed.push(name.to_string());
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

/// `tidegate pause` and `tidegate resume`.
async fn pause(args: NamesArgs, action: &str) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    for name in &args.names {
        let wanted = json!({ "action": action });
        let feed = gateway.call(Method::POST, (&path(name, "/pause"), &[]), Some(&wanted)).await?;
        tell(args.json, &feed, |_| match action {
            "pause" => format!("{name} is served as it is, and not polled\n"),
            _ => format!("{name} is polled again\n"),
        })?;
    }
    Ok(())
}

/// `tidegate hold`.
async fn hold(args: HoldArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let action = word(&args.action);
    let wanted = json!({ "action": action });
    let to = path(&args.name, "/hold");
    let feed = gateway.call(Method::POST, (&to, &[]), Some(&wanted)).await?;
    tell(args.json, &feed, |_| match action.as_str() {
        "release" => format!("{}: the held document is published\n", args.name),
        _ => format!("{}: the held document was dropped\n", args.name),
    })
}
