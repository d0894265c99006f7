//! Parses what a response says about its age and about further requests: `Cache-Control`, `Expires`, `Retry-After`,
//! rate limits. Pure.

use crate::origin::words;
use http::HeaderMap;
use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, HeaderName, RETRY_AFTER};
use std::time::Duration;
use tidegate_core::model::Time;

/// The longest freshness or pause that is believed: a year.
pub const MAX_STATED: Duration = Duration::from_secs(365 * 86_400);

/// Returns how long a response is fresh from now on (RFC 9111 section 4.2.1). `None` if it does not say, must not be
/// stored, or is stale.
pub fn freshness(headers: &HeaderMap, now: Time) -> Option<Duration> {
    let mut max_age = None;
    for directive in words(headers, &CACHE_CONTROL) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-cache" | "no-store" => return None,
            "max-age" => max_age = max_age.or(seconds(value.trim().trim_matches('"'))),
            _ => {}
        }
    }
    let age = text(headers, &AGE).and_then(seconds).unwrap_or_default();
    let left = match max_age {
        Some(lifetime) => lifetime.checked_sub(age)?,
        None => {
            let expires = text(headers, &EXPIRES).and_then(date)?;
            let made = text(headers, &DATE).and_then(date).unwrap_or(now);
            expires.since(made).checked_sub(age)?
        }
    };
    (!left.is_zero()).then(|| left.min(MAX_STATED))
}

/// Returns the pause that the publisher asks for (RFC 9110 section 10.2.3).
pub fn retry_after(headers: &HeaderMap, now: Time) -> Option<Duration> {
    let value = text(headers, &RETRY_AFTER)?;
    let wait = seconds(value).or_else(|| date(value).map(|until| until.since(now)))?;
    Some(wait.min(MAX_STATED))
}

/// The field of draft-ietf-httpapi-ratelimit-headers, and the one that describes its window.
static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// The prefixes of fields that each hold one number of a rate limit.
const RATE_FIELDS: [&str; 3] = ["ratelimit", "x-ratelimit", "x-rate-limit"];
/// A reset above this is a Unix time, not a number of seconds from now.
const RESET_IS_TIME: Duration = Duration::from_secs(1_000_000_000);

/// Returns how long a host accepts no more requests, if it says that none is left.
pub fn rate_reset(headers: &HeaderMap, now: Time) -> Option<Duration> {
    // Few answers have any of these fields, and looking for each takes long.
    if !headers.keys().any(|name| name.as_str().contains("rate")) {
        return None;
    }
    let number = |name: &str, short: &str| {
        let field = |begin: &&str| headers.get(format!("{begin}-{name}"))?.to_str().ok();
        let lists = words(headers, &RATE_LIMIT).chain(words(headers, &RATE_LIMIT_POLICY));
        let parameters = lists.flat_map(|item| item.split(';')).filter_map(|it| it.split_once('='));
        let mut parameters = parameters.filter(|(key, _)| [name, short].contains(&key.trim()));
        let text = RATE_FIELDS.iter().find_map(field).or_else(|| Some(parameters.next()?.1))?;
        text.trim().parse::<f64>().ok()
    };
    let is_exhausted = number("remaining", "r")? < 1.0;
    let reset = number("reset", "t").or_else(|| number("window", "w"))?;
    let reset = Duration::try_from_secs_f64(reset.ceil()).ok().filter(|_| is_exhausted)?;
    // Some write a time in milliseconds.
    let reset = if reset > RESET_IS_TIME * 1000 { reset / 1000 } else { reset };
    let wait = match reset > RESET_IS_TIME {
        true => Time::from_unix(i64::try_from(reset.as_secs()).ok()?).since(now),
        false => reset,
    };
    (!wait.is_zero()).then(|| wait.min(MAX_STATED))
}

/// Parses a date in one of the three forms of RFC 9110 section 5.6.7, also with a wrong weekday.
pub(super) fn date(text: &str) -> Option<Time> {
    let read = httpdate::parse_http_date(text).ok().map(httpdate::HttpDate::from);
    let text = read.map_or_else(|| text.to_owned(), |date| date.to_string());
    Time::parse_rfc2822(&text)
}

/// Parses delta-seconds; a number too large for the type counts as [`MAX_STATED`] (RFC 9111 section 1.2.2).
fn seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().map_or(MAX_STATED, Duration::from_secs))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    const NOW: Time = Time::from_unix(1_795_191_605);

    #[test]
    fn freshness_as_the_cache_specification_has_it() {
        let secs = |n| Some(Duration::from_secs(n));
        for (lines, expected) in [
            (vec![], None),
            (vec![("cache-control", "max-age=600")], secs(600)),
            (vec![("cache-control", "public, Max-Age=\"600\"")], secs(600)),
            (vec![("cache-control", "max-age=600"), ("age", "100")], secs(500)),
            (vec![("cache-control", "max-age=600"), ("age", "600")], None),
            (vec![("cache-control", "max-age=600"), ("age", "9999")], None),
            (vec![("cache-control", "max-age=600, no-cache")], None),
            (vec![("cache-control", "no-store"), ("cache-control", "max-age=1")], None),
            (vec![("cache-control", "max-age=-1")], None),
            (vec![("cache-control", "max-age=99999999999999999999999")], Some(MAX_STATED)),
            (vec![("expires", "Fri, 20 Nov 2026 16:30:05 GMT")], secs(600)),
            (vec![("expires", "Mon, 20 Nov 2026 16:30:05 GMT")], secs(600)),
            (vec![("expires", "Friday, 20-Nov-26 16:30:05 GMT")], secs(600)),
            (vec![("expires", "Fri Nov 20 16:30:05 2026")], secs(600)),
            (vec![("expires", "0")], None),
            (vec![("expires", "Fri, 20 Nov 2026 16:00:00 GMT")], None),
            // The lifetime is measured by the server's own clock, even if that is wrong.
            (
                vec![
                    ("date", "Fri, 20 Nov 2020 16:00:00 GMT"),
                    ("expires", "Fri, 20 Nov 2020 16:10:00 GMT"),
                ],
                secs(600),
            ),
            (
                vec![("cache-control", "max-age=60"), ("expires", "Fri, 20 Nov 2026 16:30:05 GMT")],
                secs(60),
            ),
        ] {
            assert_eq!(freshness(&headers(&lines), NOW), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_host_says_when_it_takes_requests_again() {
        let minute = Some(Duration::from_secs(60));
        let until = (NOW.unix() + 60).to_string();
        let until_millis = format!("{until}000");
        for (lines, expected) in [
            (vec![("x-ratelimit-remaining", "0.0"), ("x-ratelimit-reset", "60")], minute),
            (vec![("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", &*until)], minute),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &*until_millis)], minute),
            (vec![("ratelimit", "\"default\";r=0;t=60")], minute),
            (vec![("ratelimit", "limit=10, remaining=0, reset=60")], minute),
            (vec![("ratelimit", "\"a\";r=0"), ("ratelimit-policy", "\"a\";q=1;w=60")], minute),
            (vec![("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "60")], None),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "soon")], None),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "-60")], None),
            (vec![("x-ratelimit-reset", "60")], None),
        ] {
            assert_eq!(rate_reset(&headers(&lines), NOW), expected, "{lines:?}");
        }
        // Retry-After is seconds or a date.
        for (value, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Fri, 20 Nov 2026 16:22:05 GMT", Some(120)),
            ("Fri, 20 Nov 2020 16:22:05 GMT", Some(0)),
            ("soon", None),
            ("2099-12-31", None),
            ("-5", None),
            ("1.5", None),
        ] {
            let found = retry_after(&headers(&[("retry-after", value)]), NOW);
            assert_eq!(found, expected.map(Duration::from_secs), "{value}");
        }
        let huge = retry_after(&headers(&[("retry-after", "99999999999999999999")]), NOW);
        assert_eq!(huge, Some(MAX_STATED));
    }
}
