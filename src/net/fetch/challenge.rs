//! Recognizes the challenge or block page of a service that protects a publisher. Pure; examines status, headers and
//! the beginning of the body.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, SERVER};

/// How much of a body is searched for marks, in bytes.
pub(super) const LOOKED_AT: usize = 64 * 1024;
/// How much of a body is searched for the start of HTML, in bytes.
const PAGE_START: usize = 1024;

/// Headers that only a challenge or block has, and prefixes of their values.
const BY_HEADER: [(&str, &[&str], &str); 4] = [
    ("cf-mitigated", &["challenge", "block"], "Cloudflare"),
    ("x-amzn-waf-action", &["challenge", "captcha"], "AWS WAF"),
    ("x-vercel-mitigated", &["challenge", "deny"], "Vercel"),
    ("server", &["datadome"], "DataDome"),
];
/// Headers that a service adds to every answer; with a refusal they tell whose it is.
const WITH_REFUSAL: [(&str, &str); 4] = [
    ("x-datadome", "DataDome"),
    ("x-kpsdk-ct", "Kasada"),
    ("x-sucuri-block", "Sucuri"),
    ("x-dd-b", "DataDome"),
];
/// Marks in the pages of the most common services, and the required `Server` if the mark alone is ambiguous.
/// Cloudflare's `/cdn-cgi/challenge-platform/` is no mark: ordinary pages load a script from there.
const BY_PAGE: [(&str, Option<&str>, &str); 9] = [
    ("_cf_chl_opt", None, "Cloudflare"),
    ("<title>just a moment...</title>", Some("cloudflare"), "Cloudflare"),
    ("attention required! | cloudflare", None, "Cloudflare"),
    ("error code: 1020", Some("cloudflare"), "Cloudflare"),
    ("errors.edgesuite.net", None, "Akamai"),
    ("reference&#32;&#35;", None, "Akamai"),
    ("reference #", Some("akamaighost"), "Akamai"),
    ("request blocked", Some("cloudfront"), "AWS WAF"),
    ("awswafcookiedomainlist", None, "AWS WAF"),
];

/// Returns the service that refused a request with a challenge or block; `start` is the beginning of the body.
pub(super) fn recognize(code: u16, headers: &HeaderMap, start: &[u8]) -> Option<&'static str> {
    by_header(headers).or_else(|| {
        if !is_refusal(code) {
            return None;
        }
        let found = WITH_REFUSAL.iter().find(|(name, _)| headers.contains_key(*name));
        found.map(|(_, service)| *service).or_else(|| by_page(headers, start))
    })
}

/// Whether the body is needed to recognize a refusal.
pub(super) fn needs_body(code: u16, headers: &HeaderMap) -> bool {
    is_refusal(code) && by_header(headers).is_none()
}

/// Returns the service whose challenge page came in place of a document; `None` unless it is HTML.
pub(super) fn in_page(headers: &HeaderMap, body: &[u8]) -> Option<&'static str> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let says_html = content_type
        .is_none_or(|text| text.trim_start().to_ascii_lowercase().starts_with("text/html"));
    let start = body.get(..PAGE_START.min(body.len())).unwrap_or_default();
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let is_page = ["<!doctype html", "<html"].iter().any(|tag| start.trim_start().starts_with(tag));
    if !says_html || !is_page {
        return None;
    }
    by_header(headers).or_else(|| by_page(headers, body))
}

/// Whether these services refuse with this status.
const fn is_refusal(code: u16) -> bool {
    matches!(code, 401 | 403 | 405 | 406 | 429 | 503)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn by_header(headers: &HeaderMap) -> Option<&'static str> {
    let is_there = |name: &str, starts: &[&str]| {
        let value = text(headers, name).map(str::to_ascii_lowercase);
        value.is_some_and(|value| starts.iter().any(|start| value.trim_start().starts_with(start)))
    };
    let found = BY_HEADER.iter().find(|(name, starts, _)| is_there(name, starts));
    found.map(|(_, _, service)| *service)
}

fn by_page(headers: &HeaderMap, start: &[u8]) -> Option<&'static str> {
    let start = start.get(..LOOKED_AT.min(start.len())).unwrap_or_default();
    let page = String::from_utf8_lossy(start).to_ascii_lowercase();
    let server = text(headers, SERVER.as_str()).unwrap_or_default().to_ascii_lowercase();
    let is_from = |wanted: &Option<&str>| wanted.is_none_or(|wanted| server.starts_with(wanted));
    let found = BY_PAGE.iter().find(|(mark, from, _)| is_from(from) && page.contains(mark));
    found.map(|(_, _, service)| *service)
}

#[cfg(test)]
mod tests;
