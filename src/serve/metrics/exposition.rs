//! The two text formats in which metrics are told. They are written in OpenMetrics; whoever does not ask
//! for that gets Prometheus' older format, which every scraper reads and every browser shows.

use std::fmt::Write as _;

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    OpenMetrics,
    /// Prometheus' text format, 0.0.4.
    Prometheus,
}

impl MetricsFormat {
    /// The name of OpenMetrics in `Accept`.
    pub(crate) const OPEN: &'static str = "application/openmetrics-text";

    /// What `Content-Type` says.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// OpenMetrics in Prometheus' format. There, the name of a counter ends in `_total` in its description
/// too, an info is a gauge, and units and the end are not told.
pub(super) fn in_prometheus_format(text: &str) -> String {
    let mut older = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# HELP ") {
            help = about.split_once(' ');
        } else if let Some((name, kind)) = described(line) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            // Writing to a string cannot fail.
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                let _ = writeln!(older, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(older, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            older.push_str(line);
            older.push('\n');
        }
    }
    older
}

/// The name and the type of which a line tells.
fn described(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("# TYPE ")?.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_infos_are_described_by_their_whole_names() {
        let open = "# HELP a_bytes What, in bytes.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n\
                    a_bytes_total{of=\"x # y\"} 3\n\
                    # HELP build About.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n\
                    # HELP g Of \\n two lines.\n# TYPE g gauge\ng 1\n# EOF\n";
        let older = "# HELP a_bytes_total What, in bytes.\n# TYPE a_bytes_total counter\n\
                     a_bytes_total{of=\"x # y\"} 3\n\
                     # HELP build_info About.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
                     # HELP g Of \\n two lines.\n# TYPE g gauge\ng 1\n";
        assert_eq!(in_prometheus_format(open), older);
    }
}
