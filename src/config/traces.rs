//! `[traces]`: traces of what the gateway does, for an OpenTelemetry collector.

use super::External;
use super::access::{Headers, note_sources};
use super::keys::{
    Preset::{Value as Preset, Words},
    section,
};
use super::kinds::{Maybe, Number, Parsed};
use super::section::Section;
use super::web::{WebError, bare_address};
use std::ops::RangeInclusive;
use tidegate_core::model::SecretSource;
use url::Url;

/// Of how many one has a trace.
const RATES: RangeInclusive<u32> = 0..=1_000_000;
/// The longest name of a service, in bytes.
const SERVICE_LIMIT: usize = 100;
/// Where a collector takes traces, where its address says no more than its host (OTLP 1.0, "OTLP/HTTP Request").
const PATH: &str = "/v1/traces";

section! {
    /// Traces of what the gateway does, for an OpenTelemetry collector.
    pub struct TracesConfig {
        /// The collector, by OTLP over HTTP with JSON.
        ///
        /// Where the address has no path, /v1/traces is asked. It may be private, and is reached without
        /// polling.proxy; polling.ca_file is believed. Nothing is traced where nothing is written.
        endpoint: Option<Url> = Maybe(Parsed("an address", endpoint)),
            Words("none", "\"http://collector.example:4318\""), at restart;
        /// What is sent to it with the traces: `{ Authorization = { file = "…" } }`.
        ///
        /// Secrets are read when the gateway starts.
        headers: Vec<(String, SecretSource)> = Headers, Words("none", "{ X-Scope-OrgID = \"feeds\" }"), at restart;
        /// What the gateway is called there, as service.name.
        service: String = Parsed("a name", service), Preset("\"tidegate\""), at restart;
        /// Of so many polls, requests and deliveries one has a trace; 0: none has.
        ///
        /// traceparent of a request is not followed: anybody could have every request of his traced.
        polls: u32 = Number(RATES), Preset("1"), at restart;
        requests: u32 = Number(RATES), Preset("100"), at restart;
        deliveries: u32 = Number(RATES), Preset("1"), at restart;
    }
}

fn endpoint(text: &str) -> Result<Url, String> {
    let mut url = bare_address(text).map_err(|error| match error {
        WebError::Part { part: "credentials" } => {
            "it has credentials in it; write them into headers".to_owned()
        }
        error => error.to_string(),
    })?;
    if url.path() == "/" {
        url.set_path(PATH);
    }
    Ok(url)
}

fn service(text: &str) -> Result<String, String> {
    let is_name = (1..=SERVICE_LIMIT).contains(&text.len()) && !text.chars().any(char::is_control);
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| format!("a name has 1 to {SERVICE_LIMIT} bytes and no control characters"))
}

/// Notes where secrets are to be found.
pub(super) fn check(section: &mut Section<'_, '_, '_>, traces: &mut TracesConfig) {
    let secrets = traces.headers.iter();
    let named = secrets.map(|(name, source)| (format!("headers.{name}"), source)).collect();
    note_sources(section, named, External::Header);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    fn read(text: &str) -> Result<TracesConfig, String> {
        let checked = check("f", &format!("[traces]\n{text}"));
        checked.map(|checked| checked.config.traces).map_err(|faults| faults.to_string())
    }

    #[test]
    fn nothing_is_traced_where_nothing_is_written() {
        let usual = read("").unwrap();
        assert_eq!((usual.endpoint, usual.service.as_str()), (None, "tidegate"));
        assert_eq!((usual.polls, usual.requests, usual.deliveries), (1, 100, 1));
    }

    #[test]
    fn a_collector_has_its_path_where_none_is_written() {
        for (written, asked) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("https://c/", "https://c/v1/traces"),
            ("https://c/otlp/v1/traces", "https://c/otlp/v1/traces"),
        ] {
            let read = read(&format!("endpoint = {written:?}")).unwrap();
            assert_eq!(read.endpoint.unwrap().as_str(), asked);
        }
    }

    #[test]
    fn secrets_are_found_elsewhere() {
        let text = "[traces]\nendpoint = \"http://c:4318\"\n\
                    headers = { Authorization = { env = \"COLLECTOR\" }, X-Org = \"a\" }";
        let checked = check("f", text).unwrap();
        assert_eq!((checked.config.traces.headers.len(), checked.externals.len()), (2, 1));
    }

    #[test]
    fn mistakes_are_named() {
        for (bad, said) in [
            ("endpoint = \"collector:4318\"", "has the scheme \"collector\"; write http or https"),
            ("endpoint = \"http://u:p@c\"", "write them into headers"),
            ("endpoint = \"http://c 4318\"", "white space"),
            ("endpoint = \"http://c/?key=x\"", "a query"),
            ("endpoint = \"http://c\"\nheaders = \"b\"", "a table of names"),
            ("service = \"\"", "1 to 100 bytes"),
            ("requests = -1", "requests"),
            ("request = 1", "did you mean requests?"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }

    #[test]
    fn credentials_in_the_address_are_not_repeated() {
        for scheme in ["ftp", "http", "collector"] {
            let error = read(&format!("endpoint = \"{scheme}://u:hunter2@c:4318/\"")).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = read("endpoint = \"http://u:hunter2@c:99999/\"").unwrap_err();
        assert!(error.contains("not a web address") && !error.contains("hunter2"), "{error}");
    }
}
