//! The body of `PUT /api/v1/feeds/NAME`, read and checked.

use super::extract::JsonFields;
use super::operator::PutFeed;
use super::problem::Problem;
use serde_json::{Map, Value};
use tidegate_config::{self as config, FeedSettings};

/// Reads the settings of a feed; a mistake names its key.
pub(super) fn settings(settings: &Map<String, Value>) -> Result<PutFeed, Problem> {
    let table = config::feed_settings(settings);
    let FeedSettings { url, options, access, private, adds_feeds, .. } =
        table.map_err(|(key, said)| Problem::parameter(&key, said))?;
    if url.is_none() && !options.sharing.local {
        let said = "url, the feed to poll, is missing; only a feed with local = true needs none";
        return Err(Problem::parameter("url", said));
    }
    Ok(PutFeed {
        url: url.map(String::from).unwrap_or_default(),
        options,
        must_be_new: false,
        keeps_paused: false,
        access,
        private,
        adds_feeds,
    })
}

/// The object that a body must be.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let bad = |said: String| Problem::new(http::StatusCode::BAD_REQUEST, said);
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(bad("the body is JSON, but not an object".to_owned())),
        Err(error) => Err(bad(format!("the body is not JSON: {error}"))),
    }
}

/// The word that `action` says, of two; `usual` where it is absent.
pub(super) fn action<T: Copy>(
    mut fields: JsonFields,
    usual: Option<T>,
    words: [(&str, T); 2],
) -> Result<T, Problem> {
    let wanted = words.map(|(word, _)| word).join(" or ");
    let read =
        |value: Value| words.iter().find(|(word, _)| value == *word).map(|(_, action)| *action);
    let action = fields.take("action", &wanted, read)?;
    fields.finish()?;
    let missing = || Problem::parameter("action", format!("action is {wanted}"));
    action.or(usual).ok_or_else(missing)
}

/// A key that means nothing here is a mistake that must not pass in silence.
pub(super) fn unknown_key(key: &str) -> Problem {
    let key: String = key.chars().take(64).collect();
    Problem::parameter(&key, format!("the key {key:?} is unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<PutFeed, Problem> {
        settings(&object(body)?)
    }
    use std::time::Duration;
    use tidegate_core::model::{Deletions, Order, Probing};

    #[test]
    fn a_whole_body_is_read() {
        let body = br#"{"url":"https://example.org/a.xml","complete":true,"deletions":"eager",
                        "min_interval":"90s","max_interval":"30d","order":"oldest-first",
                        "probe":true,"backfill":true,"ignore":["media:keywords",{"field":"description",
                        "pattern":"[0-9]+ views"}]}"#;
        let put = read(body).unwrap();
        assert_eq!(put.url, "https://example.org/a.xml");
        assert!(put.options.complete);
        assert_eq!(put.options.deletions, Deletions::Eager);
        assert_eq!(put.options.min_interval, Some(Duration::from_secs(90)));
        assert_eq!(put.options.max_interval, Some(Duration::from_secs(30 * 86_400)));
        assert_eq!(put.options.order, Order::OldestFirst);
        assert!(put.options.probe == Probing::All && put.options.backfill);
        let ignored = [("media:keywords", None), ("description", Some("[0-9]+ views"))];
        assert!(put.options.ignore.iter().map(|i| (i.field(), i.pattern())).eq(ignored));
    }

    #[test]
    fn mistakes_name_their_key() {
        for (body, key) in [
            ("{}", "url"),
            (r#"{"url":7}"#, "url"),
            (r#"{"url":"feed.xml"}"#, "url"),
            (r#"{"url":"file:///etc/passwd"}"#, "url"),
            (r#"{"url":"http://x/","interval":"5m"}"#, "interval"),
            (r#"{"url":"http://x/","deletions":"never"}"#, "deletions"),
            (r#"{"url":"http://x/","complete":"yes"}"#, "complete"),
            (r#"{"url":"http://x/","probe":1}"#, "probe"),
            (r#"{"url":"http://x/","backfill":null}"#, "backfill"),
            (r#"{"url":"http://x/","order":"newest"}"#, "order"),
            (r#"{"url":"http://x/","order":null}"#, "order"),
            (r#"{"url":"http://x/","ignore":"title"}"#, "ignore"),
            (r#"{"url":"http://x/","min_interval":5}"#, "min_interval"),
            (r#"{"url":"http://x/","max_interval":"0s"}"#, "max_interval"),
            (r#"{"url":"http://x/","max_interval":"99999d"}"#, "max_interval"),
            (r#"{"url":"http://x/","min_interval":"2h","max_interval":"1h"}"#, "min_interval"),
        ] {
            let problem = serde_json::to_value(read(body.as_bytes()).unwrap_err()).unwrap();
            assert_eq!(problem["parameter"], key, "{body}");
            assert_eq!(problem["status"], 400);
        }
        for body in ["", "[]", "{", "null", "\"url\""] {
            assert!(read(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
