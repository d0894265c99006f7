//! What is asked and decided about items: `tidegate item`, `resolve`, `delete`, `restore`, `redact`.

use super::{PAGES, confirm, find, path, print, print_json, read, shown, tell};
use crate::app::{AppError, RunningGateway};
use crate::cli::args::items::{ItemArgs, KeptVersionArg, RedactArgs, ResolveArgs};
use http::Method;
use serde_json::{Value, json};
use tidegate_core::model::{FeedName, SyncId, counted};
use tidegate_core::xml::address::percent_encoded;

/// The path of an item; a sync id may hold what has a meaning in one. Two that are steps of a path however they are
/// written (URL Standard, "double-dot URL path segment") are refused.
fn item_path(name: &FeedName, id: &SyncId, below: &str) -> Result<String, AppError> {
    if matches!(id.as_str(), "." | "..") {
        let said = format!(
            "the item {id} cannot be named to the API: {id} is a step of a path in every address"
        );
        return Err(AppError::Input(said));
    }
    Ok(path(name, &format!("/items/{}{below}", percent_encoded(id.as_str()))))
}

/// `tidegate item`.
pub(super) async fn item(args: ItemArgs) -> Result<(), AppError> {
    let to = item_path(&args.name, &args.id, "")?;
    read(&args.gateway, args.json, (&to, &[]), shown::item).await
}

/// `tidegate resolve`.
pub(super) async fn resolve(args: ResolveArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let Some(id) = &args.id else { return keep_winners(&gateway, &args).await };
    let keep = match args.keep {
        KeptVersionArg::Winner => json!("winner"),
        KeptVersionArg::Conflict(number) => json!(number),
    };
    let to = item_path(&args.name, id, "/resolve")?;
    let wanted = json!({ "keep": keep });
    let done = gateway.call(Method::POST, (&to, &[]), Some(&wanted)).await?;
    tell(args.json, &done, shown::resolved)
}

/// Keeps the winner of each item that is listed, as it was listed. One that changed since is left as it is.
async fn keep_winners(gateway: &RunningGateway, args: &ResolveArgs) -> Result<(), AppError> {
    let (mut kept, mut left) = (0_usize, 0_usize);
    let (list, mut after) = (path(&args.name, "/conflicts"), None::<String>);
    for _ in 0..PAGES {
        let pairs: Vec<(&str, &str)> =
            after.iter().map(|after| ("after", after.as_str())).collect();
        let page = gateway.call(Method::GET, (&list, &pairs), None).await?;
        for item in shown::list(&page, "conflicts") {
            let Ok(id) = SyncId::new(shown::text(item, "/sync_id")) else { continue };
            let wanted = json!({ "keep": "winner", "etag": shown::text(item, "/etag") });
            let Ok(to) = item_path(&args.name, &id, "/resolve") else {
                left += 1;
                continue;
            };
            match gateway.call(Method::POST, (&to, &[]), Some(&wanted)).await {
                Ok(done) => {
                    kept += 1;
                    if args.json {
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
    if args.json {
        return Ok(());
    }
    let left = match left {
        0 => String::new(),
        left => format!("; {} changed meanwhile, or need nothing", counted(left, "item")),
    };
    print(&format!("{}: the winners of {} were kept{left}\n", args.name, counted(kept, "item")))
}

/// `tidegate delete`: of a local feed an item that is there, of others one that is missing.
pub(super) async fn delete(args: ItemArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let feed = gateway.call(Method::GET, (&path(&args.name, ""), &[]), None).await?;
    let is_local = feed.pointer("/options/local") == Some(&Value::Bool(true));
    let (method, below) = match is_local {
        true => (Method::DELETE, ""),
        false => (Method::POST, "/delete"),
    };
    let to = item_path(&args.name, &args.id, below)?;
    let done = gateway.call(method, (&to, &[]), None).await?;
    tell(args.json, &done, |done| match done.get("was_deleted") == Some(&Value::Bool(true)) {
        true => format!("{} was deleted before\n", args.id),
        false => format!("{} is deleted: subscribers get its tombstone\n", args.id),
    })
}

/// `tidegate restore`.
pub(super) async fn restore(args: ItemArgs) -> Result<(), AppError> {
    let gateway = find(&args.gateway)?;
    let to = item_path(&args.name, &args.id, "/restore")?;
    let done = gateway.call(Method::POST, (&to, &[]), None).await?;
    tell(args.json, &done, |_| format!("{} is restored\n", args.id))
}

/// `tidegate redact`.
pub(super) async fn redact(args: RedactArgs) -> Result<(), AppError> {
    let RedactArgs { item, reason, yes } = args;
    let gateway = find(&item.gateway)?;
    let id = item.id.as_str();
    if !yes {
        let asked =
            format!("Take the text of {id} out of everything, for good? Type the sync id: ");
        confirm(&asked, id, "redacted")?;
    }
    let wanted = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
    let to = item_path(&item.name, &item.id, "/redact")?;
    let done = gateway.call(Method::POST, (&to, &[]), Some(&wanted)).await?;
    tell(item.json, &done, shown::redacted)
}
