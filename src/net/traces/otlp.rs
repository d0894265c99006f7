//! Spans as the JSON of the OpenTelemetry protocol (OTLP 1.x, "JSON Protobuf Encoding"): ids in hexadecimal,
//! numbers of 64 bits as texts.

use super::{FinishedSpan, SpanValue};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The body of an `ExportTraceServiceRequest`.
pub(super) fn request(service: &str, spans: &[FinishedSpan]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let resource = [
        attribute("service.name", &json!({ "stringValue": service })),
        attribute("service.version", &json!({ "stringValue": version })),
    ];
    let scope = json!({ "name": "tidegate", "version": version });
    let body = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }],
    });
    body.to_string().into_bytes()
}

fn span(span: &FinishedSpan) -> Value {
    let attributes: Vec<Value> =
        span.attributes.iter().map(|(key, value)| attribute(key, &in_json(value))).collect();
    let mut all = json!({
        "traceId": HEXLOWER.encode(&span.trace),
        "spanId": HEXLOWER.encode(&span.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": span.begun.to_string(),
        "endTimeUnixNano": span.ended.to_string(),
        "attributes": attributes,
        "status": {},
    });
    if let Some(all) = all.as_object_mut() {
        if let Some(parent) = span.parent {
            all.insert("parentSpanId".to_owned(), HEXLOWER.encode(&parent).into());
        }
        if span.has_failed {
            all.insert("status".to_owned(), json!({ "code": ERROR }));
        }
    }
    all
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({ "key": key, "value": value })
}

fn in_json(value: &SpanValue) -> Value {
    match value {
        SpanValue::Text(text) => json!({ "stringValue": text }),
        SpanValue::Number(number) => json!({ "intValue": number.to_string() }),
        SpanValue::Flag(flag) => json!({ "boolValue": flag }),
    }
}
