//! The readable form of an entry, as JSON: the views of the database have a column for each field. It has no
//! credentials.

use crate::engine::Class;
use crate::record::{StateRecord, decode};
use crate::{GatewayId, LoggedChange};
use serde_json::{Value, json};
use tidegate_core::model::{FeedRecord, PollState};
use tidegate_core::websub::Subscription;

/// Removes the user and password from an address.
fn address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let host_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(host_end).unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The readable form of an entry; `None` for classes without a view.
pub(super) fn of_entry(
    class: Class,
    key: &[u8],
    value: &[u8],
    gateway: GatewayId,
) -> Option<String> {
    let shown = match class {
        Class::Feeds => {
            let record: FeedRecord = decode(value).ok()?;
            let standing = format!("{:?}", record.standing).to_lowercase();
            json!({ "feed": record.name.as_str(), "url": address(&record.url), "standing": standing })
        }
        Class::States => {
            let StateRecord { state, .. } = decode(value).ok()?;
            let feed = key.strip_suffix(&[0]).map(String::from_utf8_lossy);
            json!({
                "feed": feed,
                "revision": state.revision.0,
                "until": state.tick.map(|tick| tick.to_string()),
                "updated": state.updated_at.to_string(),
                "items": state.living,
                "held": state.hold.is_some(),
            })
        }
        Class::Polls => {
            let state: PollState = decode(value).ok()?;
            json!({
                "feed": state.feed.as_str(),
                "url": address(&state.url),
                "polled": state.schedule.map(|schedule| schedule.polled.to_string()),
                "due": state.not_before.map(|at| at.to_string()),
                "failures": state.failures,
                "error": state.last_error,
                "gateway": gateway.0,
            })
        }
        Class::Subscriptions => {
            let one: Subscription = decode(value).ok()?;
            json!({
                "feed": one.feed.as_str(),
                // An address may be a secret of the subscriber.
                "subscriber": one.callback.host_str(),
                "until": one.active.as_ref().map(|active| active.until.to_string()),
                "failures": one.active.as_ref().map(|active| active.failures),
            })
        }
        // The closing time of its epoch comes first.
        Class::Log => return of_change(value.get(size_of::<i64>()..)?),
        _ => return None,
    };
    Some(text(shown))
}

/// The readable form of a change in the log.
pub(super) fn of_change(value: &[u8]) -> Option<String> {
    let LoggedChange { feed, tick, revision, versions } = decode(value).ok()?;
    Some(text(json!({
        "feed": feed.as_str(),
        "until": tick.to_string(),
        "revision": revision.0,
        "versions": versions,
    })))
}

/// Removes zero characters, which the JSON of the database cannot have.
fn text(mut shown: Value) -> String {
    for value in shown.as_object_mut().into_iter().flat_map(|of| of.values_mut()) {
        if let Value::String(text) = value {
            text.retain(|character| character != '\0');
        }
    }
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::{address, text};
    use serde_json::json;

    #[test]
    fn an_address_is_shown_without_credentials() {
        assert_eq!(address("https://a:b@c.example/d@e?f"), "https://c.example/d@e?f");
        assert_eq!(address("https://c.example?x=@"), "https://c.example?x=@");
        assert_eq!(address(""), "");
    }

    #[test]
    fn a_zero_character_is_left_out_and_what_looks_like_one_stays() {
        let shown = text(json!({ "feed": "a\0b", "error": "c\\u0000d", "items": 3 }));
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, json!({ "feed": "ab", "error": "c\\u0000d", "items": 3 }));
    }
}
