//! The body of `PUT /api/v1/feeds/NAME`, read and checked.

use super::ignore;
use super::operator::PutFeed;
use super::problem::Problem;
use crate::model::{ConflictPolicy, Deletions, FeedName, FeedOptions, Order, SharingOptions};
use serde_json::{Map, Value};
use std::time::Duration;
use url::Url;

/// The longest upstream address, in bytes.
const URL_LIMIT: usize = 4096;
/// The longest interval between polls.
const INTERVAL_LIMIT: Duration = Duration::from_secs(366 * 86_400);

/// Reads a body; a mistake names its key.
pub(super) fn read(body: &[u8]) -> Result<PutFeed, Problem> {
    let mut url = None;
    let mut options = FeedOptions::default();
    for (key, value) in object(body)? {
        match key.as_str() {
            "url" if value.is_null() => {}
            "url" => url = Some(address(&value)?),
            "local" => options.sharing.local = boolean("local", &value)?,
            "title" => options.sharing.title = title(&value)?,
            "shares_with" => options.sharing.shares_with = names("shares_with", &value)?,
            "conflicts" => options.sharing.conflicts = policy(&value)?,
            "complete" => options.complete = boolean("complete", &value)?,
            "deletions" => options.deletions = deletions(&value)?,
            "order" => options.order = order(&value)?,
            "probe" => options.probe = boolean("probe", &value)?,
            "backfill" => options.backfill = boolean("backfill", &value)?,
            "secret" if value.is_null() => options.secret = None,
            "secret" => options.secret = Some(boolean("secret", &value)?),
            "ignore" => options.ignore = ignore::read(&value)?,
            "min_interval" => options.min_interval = interval("min_interval", &value)?,
            "max_interval" => options.max_interval = interval("max_interval", &value)?,
            _ => return Err(unknown_key(&key)),
        }
    }
    if let (Some(min), Some(max)) = (options.min_interval, options.max_interval)
        && min > max
    {
        let said = "min_interval is longer than max_interval";
        return Err(Problem::parameter("min_interval", said));
    }
    let missing = || {
        let said = "url, the feed to poll, is missing; only a feed with local = true needs none";
        Problem::parameter("url", said)
    };
    let url = match url {
        Some(url) => url,
        None if options.sharing.local => String::new(),
        None => return Err(missing()),
    };
    Ok(PutFeed { url, options })
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

/// A key that means nothing here is a mistake that must not pass in silence.
pub(super) fn unknown_key(key: &str) -> Problem {
    let key: String = key.chars().take(64).collect();
    Problem::parameter(&key, format!("the key {key:?} is unknown"))
}

fn address(value: &Value) -> Result<String, Problem> {
    let wrong = |said: &str| Problem::parameter("url", said);
    let text = value.as_str().ok_or_else(|| wrong("url is a string"))?;
    if text.len() > URL_LIMIT {
        return Err(wrong(&format!("url is {} bytes long, the limit is {URL_LIMIT}", text.len())));
    }
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        Ok(_) => Err(wrong("url is an http or https address")),
        Err(error) => Err(wrong(&format!("url is no absolute address: {error}"))),
    }
}

fn boolean(key: &str, value: &Value) -> Result<bool, Problem> {
    let said = || Problem::parameter(key, format!("{key} is true or false"));
    value.as_bool().ok_or_else(said)
}

fn title(value: &Value) -> Result<Option<String>, Problem> {
    if value.is_null() {
        return Ok(None);
    }
    let text = value.as_str().ok_or_else(|| Problem::parameter("title", "title is a text"))?;
    let read = SharingOptions::title(text);
    read.map(Some).map_err(|said| Problem::parameter("title", said))
}

fn policy(value: &Value) -> Result<ConflictPolicy, Problem> {
    let text = value.as_str().unwrap_or_default();
    text.parse().map_err(|error| Problem::parameter("conflicts", format!("conflicts: {error}")))
}

/// A list of names of feeds, each once.
fn names(key: &str, value: &Value) -> Result<Vec<FeedName>, Problem> {
    let limit = SharingOptions::SHARES_LIMIT;
    let said = || Problem::parameter(key, format!("{key} is a list of at most {limit} feed names"));
    let list = value.as_array().filter(|list| list.len() <= limit).ok_or_else(said)?;
    let mut names = Vec::with_capacity(list.len());
    for value in list {
        let name = FeedName::new(value.as_str().ok_or_else(said)?);
        let name = name.map_err(|error| Problem::parameter(key, format!("{key}: {error}")))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn order(value: &Value) -> Result<Order, Problem> {
    let word = value.as_str();
    let found = Order::ALL.into_iter().find(|order| Some(order.name()) == word);
    found.ok_or_else(|| {
        let words = Order::ALL.map(Order::name).join(", ");
        Problem::parameter("order", format!("order is one of {words}"))
    })
}

fn deletions(value: &Value) -> Result<Deletions, Problem> {
    match value.as_str() {
        Some("safe") => Ok(Deletions::Safe),
        Some("eager") => Ok(Deletions::Eager),
        Some("off") => Ok(Deletions::Off),
        _ => Err(Problem::parameter("deletions", "deletions is one of safe, eager and off")),
    }
}

fn interval(key: &str, value: &Value) -> Result<Option<Duration>, Problem> {
    if value.is_null() {
        return Ok(None);
    }
    let read = value.as_str().and_then(duration);
    match read {
        Some(read) if !read.is_zero() && read <= INTERVAL_LIMIT => Ok(Some(read)),
        _ => Err(Problem::parameter(
            key,
            format!("{key} is a duration of at most 366d such as 90s, 5m, 24h or 30d"),
        )),
    }
}

/// Reads a duration as the contract writes them: `90s`, `5m`, `24h`, `30d`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert!(put.options.probe && put.options.backfill);
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

    proptest! {
        #[test]
        fn no_text_breaks_the_duration_reader(text in "\\PC{0,12}") {
            let _ = duration(&text);
        }

        #[test]
        fn durations_mean_what_they_say(number in 0_u64..1_000_000, unit in 0_usize..4) {
            let (suffix, seconds) = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)][unit];
            let read = duration(&format!("{number}{suffix}"));
            prop_assert_eq!(read, Some(Duration::from_secs(number * seconds)));
        }
    }
}
