//! Which encoding and container, and which of HTML and JSON, a client asks for (RFC 9110 sections 12.4, 12.5).

use super::metrics::MetricsFormat;
use http::{HeaderMap, HeaderName, header};
use tidegate_format::render::Container;

/// The most members of a header list that are looked at; the rest are as if they were not there.
const MEMBERS: usize = 32;

/// A content coding (RFC 9110 section 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Encoding {
    /// As it is.
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// Its token; `None` for identity, which is never named in `Content-Encoding`.
    pub(super) const fn token(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// A weight in thousandths (RFC 9110 section 12.4.2); what cannot be read weighs 1.
fn weight(parameters: &str) -> u16 {
    if parameters.is_empty() {
        return 1000;
    }
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let Some(value) = value else { return 1000 };
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if whole != "0" {
        return 1000;
    }
    let digits = fraction.chars().chain("000".chars()).take(3);
    digits.fold(0, |sum, c| sum * 10 + u16::try_from(c.to_digit(10).unwrap_or(0)).unwrap_or(0))
}

/// The members of a list header with their weights.
pub(super) fn members<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = (&'h str, u16)> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let members = values.flat_map(|value| value.split(','));
    let members = members.take(MEMBERS).map(|member| {
        let (token, parameters) = member.split_once(';').unwrap_or((member, ""));
        (token.trim(), parameters)
    });
    let named = members.filter(|(token, _)| !token.is_empty());
    named.map(|(token, parameters)| (token, weight(parameters)))
}

/// The weight of the first member that is one of these names, in whatever case.
fn weight_of<'h>(mut members: impl Iterator<Item = (&'h str, u16)>, names: &[&str]) -> Option<u16> {
    let is_one = |token: &str| names.iter().any(|name| token.eq_ignore_ascii_case(name));
    members.find(|(token, _)| is_one(token)).map(|(_, weight)| weight)
}

/// The encoding to answer with: the one that weighs most, of equals the smallest body. A client
/// that names none gets none, and one that refuses everything gets identity all the same
/// (section 12.5.3 leaves that to the server).
pub(super) fn encoding(headers: &HeaderMap, has_zstd: bool) -> Encoding {
    let names: [&[&str]; 4] = [&["*"], &["zstd"], &["gzip", "x-gzip"], &["identity"]];
    let mut weights = [None; 4];
    for (token, weight) in members(headers, &header::ACCEPT_ENCODING) {
        let is_one = |names: &[&str]| names.iter().any(|name| token.eq_ignore_ascii_case(name));
        let named = names.iter().zip(&mut weights).find(|(names, _)| is_one(names));
        if let Some((_, first)) = named {
            first.get_or_insert(weight);
        }
    }
    let [any, zstd, gzip, identity] = weights;
    let zstd = zstd.or(any).filter(|_| has_zstd).unwrap_or(0);
    let gzip = gzip.or(any).unwrap_or(0);
    // Identity is acceptable unless it is refused; where it is not named, anything that is
    // named comes before it.
    let identity = identity.unwrap_or(0);
    if zstd > 0 && zstd >= gzip && zstd >= identity {
        Encoding::Zstd
    } else if gzip > 0 && gzip >= identity {
        Encoding::Gzip
    } else {
        Encoding::Identity
    }
}

/// Whether the client would rather have JSON than HTML. A client that takes anything gets HTML.
pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    let of = |name: &str, range: &str| {
        let find = |name: &str| weight_of(members(headers, &header::ACCEPT), &[name]);
        find(name).or_else(|| find(range)).or_else(|| find("*/*")).unwrap_or(0)
    };
    of("application/json", "application/*") > of("text/html", "text/*")
}

/// Whether the client names OpenMetrics, as Prometheus does.
pub(super) fn wants_open_metrics(headers: &HeaderMap) -> bool {
    weight_of(members(headers, &header::ACCEPT), &[MetricsFormat::OPEN]).is_some_and(|it| it > 0)
}

/// Whether the client names HTML and would rather have nothing else: a browser that goes to an address.
pub(super) fn prefers_html(headers: &HeaderMap) -> bool {
    let accepted = || members(headers, &header::ACCEPT);
    let best = accepted().map(|(_, weight)| weight).max().filter(|weight| *weight > 0);
    let first = accepted().find(|(_, weight)| Some(*weight) == best);
    first.is_some_and(|(token, _)| token.eq_ignore_ascii_case("text/html"))
}

/// Ranges that every feed in XML is within; a reader that names one takes the feed as it is.
const WIDE: [&str; 5] = ["application/xml", "text/xml", "application/*", "text/*", "*/*"];

/// The container for a client that names none in the address, of a feed whose own is `own`: that one
/// wherever the client admits it at all, and another only where the client names it and does not admit
/// the own one. So nobody gets another format for an order of preference, and nobody is refused.
pub(super) fn container(headers: &HeaderMap, own: Container) -> Container {
    let accepted = || members(headers, &header::ACCEPT);
    let named = |container: Container| weight_of(accepted(), &[container.media_range()]);
    let is_wide = |token: &str| WIDE.iter().any(|range| token.eq_ignore_ascii_case(range));
    let wide = || accepted().any(|(token, q)| q > 0 && is_wide(token));
    let admitted = named(own).map_or_else(wide, |weight| weight > 0);
    if accepted().next().is_none() || admitted {
        return own;
    }
    let others = [Container::Opml, Container::JsonFeed, Container::Rss, Container::Atom];
    let others = others.into_iter().filter_map(|other| Some((named(other)?, other)));
    let best = others.filter(|(weight, _)| *weight > 0).max_by_key(|(weight, _)| *weight);
    best.map_or(own, |(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_net::testing::headers;

    #[test]
    fn pages_are_for_who_names_html_before_all_else_and_json_for_who_asks() {
        for (asked, is_page, is_json) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true, false),
            ("text/html, */*;q=0.1", true, false),
            ("TEXT/HTML", true, false),
            ("*/*", false, false),
            ("", false, false),
            ("text/*", false, false),
            ("application/rss+xml, text/html", false, false),
            ("text/html;q=0.9, application/atom+xml", false, false),
            ("text/html;q=0", false, false),
            // Pages are HTML unless JSON is asked for.
            ("application/json", false, true),
            ("application/*", false, true),
            ("text/html;q=0.5, application/json", false, true),
            ("application/json;q=0", false, false),
        ] {
            let asking = headers(&[("accept", asked)]);
            let found = (prefers_html(&asking), wants_json(&asking));
            assert_eq!(found, (is_page, is_json), "{asked:?}");
        }
        let none = HeaderMap::new();
        assert!(!prefers_html(&none) && !wants_json(&none));
    }

    #[test]
    fn the_own_container_unless_it_is_not_admitted() {
        use Container::{Atom, JsonFeed, Opml, Rss};
        for (asked, own, chosen) in [
            ("", Atom, Atom),
            ("*/*", Rss, Rss),
            ("application/rss+xml, application/atom+xml;q=0.1", Atom, Atom),
            ("application/feed+json, application/atom+xml;q=0.9, */*;q=0.1", Rss, Rss),
            ("application/rss+xml;q=0.9, application/xml;q=0.1", Atom, Atom),
            ("application/rss+xml, text/xml;q=0.1", Atom, Atom),
            ("application/feed+json, text/*;q=0.001", Rss, Rss),
            ("application/rss+xml", Atom, Rss),
            ("application/atom+xml;type=feed, application/feed+json;q=0.9", Rss, Atom),
            ("application/rss+xml;q=0.5, application/feed+json", Atom, JsonFeed),
            ("application/atom+xml, application/feed+json", Rss, Atom),
            ("application/atom+xml;q=0, application/rss+xml, */*", Atom, Rss),
            ("application/feed+json;q=0", Atom, Atom),
            ("text/x-opml", Atom, Opml),
            ("text/xml", Opml, Opml),
            ("application/rss+xml", Opml, Rss),
            // Nothing that there is: the feed as it is, rather than a refusal.
            ("text/html, image/png", Rss, Rss),
            ("*/*;q=0", Atom, Atom),
        ] {
            assert_eq!(container(&headers(&[("accept", asked)]), own), chosen, "{asked:?}");
        }
        assert_eq!(container(&HeaderMap::new(), Rss), Rss);
    }

    #[test]
    fn encodings_are_chosen_by_weight() {
        for (asked, chosen) in [
            ("", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("x-gzip", Encoding::Gzip),
            ("GZIP", Encoding::Gzip),
            ("gzip, deflate, br, zstd", Encoding::Zstd),
            ("gzip;q=1.0, zstd;q=0.5", Encoding::Gzip),
            ("zstd;q=0, gzip", Encoding::Gzip),
            ("zstd;q=0.001", Encoding::Zstd),
            ("gzip;q=0", Encoding::Identity),
            ("*", Encoding::Zstd),
            ("*;q=0", Encoding::Identity),
            ("*, zstd;q=0", Encoding::Gzip),
            ("identity;q=0.5, gzip;q=0.3", Encoding::Identity),
            ("identity;q=0, *;q=0", Encoding::Identity),
            ("deflate", Encoding::Identity),
            ("br, gzip ; q=0.8", Encoding::Gzip),
            (",,;q=,=;", Encoding::Identity),
        ] {
            let headers = headers(&[("accept-encoding", asked)]);
            assert_eq!(encoding(&headers, true), chosen, "{asked:?}");
        }
        assert_eq!(encoding(&HeaderMap::new(), true), Encoding::Identity);
    }
}
