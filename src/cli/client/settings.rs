//! What is asked and changed of feeds: `tidegate edit`, `backfill`, `webhook`, `subscriptions`,
//! `readers`, `add-list`.

use super::{find, path, print, print_json, read, shown, tell};
use crate::app::{self, AppError};
use crate::cli::args::client::{
    AddListArgs, BackfillArgs, EditArgs, ReadersArgs, SubscriptionsArgs, WebhookArgs,
};
use crate::cli::print_lines;
use http::Method;
use serde_json::{Map, Value, json};
use std::path::Path;
use tidegate_core::model::SecretSource;
use tidegate_net::fetch;
use tidegate_serve::LIST_LIMIT;

/// `tidegate edit`.
pub(super) async fn edit(args: EditArgs) -> Result<(), AppError> {
    let keys: Vec<&str> = args.settings.iter().map(|(key, _)| key.as_str()).collect();
    let keys = keys.join(", ");
    let mut wanted: Map<String, Value> = Map::new();
    for (key, value) in args.settings {
        if wanted.contains_key(&key) {
            return Err(AppError::Input(format!("{key} is written twice; write one of the two")));
        }
        wanted.insert(key, value);
    }
    let (to, wanted) = (path(&args.name, ""), Value::Object(wanted));
    let feed = find(&args.gateway)?.call(Method::PATCH, (&to, &[]), Some(&wanted)).await?;
    tell(args.json, &feed, |_| format!("{}: {keys} changed\n", args.name))
}

/// `tidegate backfill`.
pub(super) async fn backfill(args: BackfillArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let wanted = json!({ "action": if args.stop { "stop" } else { "start" } });
    let to = path(&args.name, "/backfill");
    let feed = gateway.call(Method::POST, (&to, &[]), Some(&wanted)).await?;
    tell(args.json, &feed, |_| match args.stop {
        true => format!("{}: older documents are not read any more\n", args.name),
        false => format!("{}: older documents are being read, slowly\n", args.name),
    })
}

/// `tidegate webhook`.
pub(super) async fn webhook(args: WebhookArgs) -> Result<(), AppError> {
    let to = path(&args.name, "/webhook");
    let (method, body) = match (&args.url, args.remove) {
        (Some(url), _) => {
            let wanted = match &args.secret_file {
                Some(file) => json!({ "url": url, "secret": secret(file)? }),
                None => json!({ "url": url }),
            };
            (Method::PUT, Some(wanted))
        }
        (None, true) => (Method::DELETE, None),
        (None, false) => return read(&args.gateway, args.json, (&to, &[]), shown::webhook).await,
    };
    let done = find(&args.gateway)?.call(method, (&to, &[]), body.as_ref()).await?;
    tell(args.json, &done, shown::webhook)
}

/// The secret in a file, without the end of its line.
fn secret(file: &Path) -> Result<String, AppError> {
    fetch::find_secret(&SecretSource::File(file.display().to_string())).map_err(AppError::Input)
}

/// What a file has, which is at most `limit` bytes.
fn contents(file: &Path, limit: usize) -> Result<Vec<u8>, AppError> {
    let failed = |error| AppError::Input(format!("{} cannot be read: {error}", file.display()));
    let bytes = app::read_bounded(file, limit).map_err(failed)?;
    if bytes.len() > limit {
        let said = format!("{} has more than {limit} bytes, which is the limit", file.display());
        return Err(AppError::Input(said));
    }
    Ok(bytes)
}

/// `tidegate subscriptions`.
pub(super) async fn subscriptions(args: SubscriptionsArgs) -> Result<(), AppError> {
    let feed = args.feed.as_ref().map(|feed| ("feed", feed.as_str()));
    let pairs: Vec<(&str, &str)> = feed.into_iter().collect();
    read(&args.gateway, args.json, ("/subscriptions", &pairs), shown::subscriptions).await
}

/// `tidegate readers`.
pub(super) async fn readers(args: ReadersArgs) -> Result<(), AppError> {
    read(&args.gateway, args.json, ("/readers", &[]), shown::readers).await
}

/// `tidegate add-list`; a list of which something was not taken is no failure.
pub(super) async fn add_list(args: AddListArgs) -> Result<(), AppError> {
    let list = contents(&args.file, LIST_LIMIT)?;
    let gateway = find(&args.gateway)?;
    let pairs: &[(&str, &str)] = if args.rearrange { &[("rearrange", "true")] } else { &[] };
    let done = gateway.upload(("/import", pairs), ("text/x-opml", list)).await?;
    if args.json {
        return print_json(&done.to_string());
    }
    let (said, wrong) = shown::added_list(&args.file.display().to_string(), &done);
    // Nobody is left to be told when standard error itself is gone.
    let _ = print_lines(&wrong, &mut std::io::stderr());
    print(&said)
}
