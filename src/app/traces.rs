//! The collector of traces, as the configuration names it.

use super::{AppError, translate};
use http::HeaderMap;
use tidegate_config::Config;
use tidegate_net::fetch::{self, AllowPrivate, FetchSettings};
use tidegate_net::traces::{CollectorConfig, SampleRates, SpanExporter, Traces};

/// The exporter, where there is a collector, and where spans begin.
pub(super) fn open(config: &Config) -> Result<(Option<SpanExporter>, Traces), AppError> {
    let Some(url) = config.traces.endpoint.clone() else { return Ok((None, Traces::default())) };
    // The collector is the operator's own: it may be private, and no proxy leads to it.
    let settings = FetchSettings {
        user_agent: Some(config.polling.user_agent.clone()),
        allow_private: AllowPrivate::host_of(&url),
        ca_file: config.polling.ca_file.clone(),
        ..FetchSettings::default()
    };
    let traces = &config.traces;
    let (exporter, begun) = SpanExporter::new(CollectorConfig {
        url,
        headers: headers(config)?,
        service: traces.service.clone(),
        rates: SampleRates {
            polls: traces.polls,
            requests: traces.requests,
            deliveries: traces.deliveries,
        },
        call: translate::services(settings)?.call,
    });
    Ok((Some(exporter), begun))
}

fn headers(config: &Config) -> Result<HeaderMap, AppError> {
    let mut headers = HeaderMap::new();
    for (name, source) in &config.traces.headers {
        let wrong =
            |why: String| AppError::Input(format!("traces.headers.{name} cannot be sent: {why}"));
        let (name, value) = fetch::secret_header(name, source).map_err(wrong)?;
        headers.insert(name, value);
    }
    Ok(headers)
}
