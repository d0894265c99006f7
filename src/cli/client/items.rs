//! What is asked and decided about items: `tidegate item show`.

use super::{AskedGateway, PAGES, confirm, path, print, print_json, shown};
use crate::app::AppError;
use crate::cli::args::client::{FeedArg, ItemArg, ItemCommand};
use http::Method;
use serde_json::{Value, json};
use tidegate_core::model::{SyncId, counted};
use tidegate_core::xml::address::percent_encoded;

/// Does what was typed.
pub(super) async fn run(to: &AskedGateway, command: ItemCommand) -> Result<(), AppError> {
    match command {
        ItemCommand::List { feed, show, search, page } => {
            let page = page.to_string();
            let mut pairs: Vec<(&str, &str)> = vec![("page", &page)];
            pairs.extend(show.as_deref().map(|show| ("show", show)));
            pairs.extend(search.as_deref().map(|text| ("q", text)));
            to.read((&path(&feed, "/items"), &pairs), shown::items).await
        }
        ItemCommand::Show(item) => {
            to.read((&item_path(&item.feed, &item.id, "")?, &[]), shown::item).await
        }
        ItemCommand::Conflicts(feed) => {
            to.read((&path(&feed, "/conflicts"), &[]), shown::conflicts).await
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
    Ok(path(feed, &format!("/items/{}{below}", percent_encoded(id.as_str()))))
}

/// Keeps the winner of each item that is listed, as it was listed. One that changed since is left as it is.
async fn keep_winners(to: &AskedGateway, feed: &FeedArg) -> Result<(), AppError> {
    let (mut kept, mut left) = (0_usize, 0_usize);
    let (list, mut after) = (path(feed, "/conflicts"), None::<String>);
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
    let feed = to.gateway.call(Method::GET, (&path(&item.feed, ""), &[]), None).await?;
    let is_local = feed.pointer("/options/local") == Some(&Value::Bool(true));
    let (method, below) = if is_local { (Method::DELETE, "") } else { (Method::POST, "/delete") };
    let said = |done: &Value| match done["was_deleted"] == true {
        true => format!("{} was deleted before\n", item.id),
        false => format!("{} is deleted: subscribers get its tombstone\n", item.id),
    };
    to.tell(method, &item_path(&item.feed, &item.id, below)?, None, said).await
}
