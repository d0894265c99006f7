//! Discovers the hubs of a feed and its topic (WebSub section 4).

use super::form::ADDRESS_LIMIT;
use crate::sup::links;
use url::Url;

/// The most hubs of a feed that are tried.
pub const HUBS_LIMIT: usize = 4;

/// The hub links in the headers or the elements of an answer, as absolute addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubLinks {
    /// The targets of `rel=hub`, in order.
    pub hubs: Vec<String>,
    /// The target of the first `rel=self`.
    pub own: Option<String>,
}

impl HubLinks {
    /// Parses the `Link` headers of an answer from `base`.
    pub fn in_headers<'a>(values: impl IntoIterator<Item = &'a str>, base: &str) -> Self {
        let mut found = Self::default();
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return found;
        }
        let Ok(base) = Url::parse(base) else { return found };
        // Absolute addresses stay verbatim: hubs compare topics as text.
        let absolute = |target: &str| {
            let is_absolute = Url::parse(target).is_ok();
            let joined = if is_absolute { None } else { base.join(target).ok().map(String::from) };
            joined.unwrap_or_else(|| target.to_owned())
        };
        for link in values.flat_map(links) {
            if link.is("hub") && found.hubs.len() < HUBS_LIMIT {
                found.hubs.push(absolute(link.target.trim()));
            }
            if link.is("self") && found.own.is_none() {
                found.own = Some(absolute(link.target.trim()));
            }
        }
        found
    }
}

/// A feed's hubs and its topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    /// The hubs in the order of preference; never empty.
    pub hubs: Vec<String>,
    /// The address under which the hubs know the feed.
    pub topic: String,
}

impl Discovery {
    /// Combines the links of an answer from `fetched`; headers take precedence over elements (section 4). One may name
    /// the hub and the other the topic. The feed's own address is believed only if it `belongs` to the feed; otherwise
    /// any feed could make us subscribe to another's. Without a credible one, the topic is `fetched`.
    pub fn from_links(
        headers: &HubLinks,
        elements: &HubLinks,
        fetched: &str,
        belongs: impl Fn(&Url) -> bool,
    ) -> Option<Self> {
        let usable = |links: &HubLinks| {
            let mut hubs: Vec<String> = Vec::new();
            for hub in links.hubs.iter().filter_map(|hub| hub_address(hub)) {
                if hubs.len() < HUBS_LIMIT && !hubs.contains(&hub) {
                    hubs.push(hub);
                }
            }
            hubs
        };
        let mut hubs = usable(headers);
        if hubs.is_empty() {
            hubs = usable(elements);
        }
        if hubs.is_empty() {
            return None;
        }
        let own = headers.own.as_ref().or(elements.own.as_ref());
        let own = own.filter(|own| web(own).is_some_and(|url| belongs(&url)));
        let own = own.cloned().or_else(|| web(fetched).map(|_| fetched.to_owned()))?;
        Some(Self { hubs, topic: own })
    }
}

/// Parses a web address without credentials, within the length limit.
fn web(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let plain = url.username().is_empty() && url.password().is_none();
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && plain && text.len() <= ADDRESS_LIMIT).then_some(url)
}

/// Returns the address of a hub without its fragment; `None` if it has credentials, which a publisher must not choose
/// for us.
fn hub_address(text: &str) -> Option<String> {
    let mut url = web(text.trim())?;
    url.set_fragment(None);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: &str = "https://news.example/feed";

    fn links(hubs: &[&str], own: Option<&str>) -> HubLinks {
        let hubs = hubs.iter().map(|hub| (*hub).to_owned()).collect();
        HubLinks { hubs, own: own.map(str::to_owned) }
    }

    fn of(headers: &HubLinks, elements: &HubLinks) -> Option<Discovery> {
        let belongs = |url: &Url| url.host_str() == Some("news.example");
        Discovery::from_links(headers, elements, FEED, belongs)
    }

    #[test]
    fn headers_are_read_with_several_relations_links_and_quotes() {
        let found = HubLinks::in_headers(
            [
                "<https://hub.example/>; rel=\"hub\", </feed?x=1>; rel=self; title=\"a, <b>\"",
                "<https://other.example/>; title=x; REL='none', </hub>;rel=\"preload HUB\"",
                "<HTTPS://News.example/feed>; rel=\"self\"",
                "<mailto:x>; rel=hub",
            ],
            FEED,
        );
        let hubs = ["https://hub.example/", "https://news.example/hub", "mailto:x"];
        assert_eq!(found, links(&hubs, Some("https://news.example/feed?x=1")));
        assert_eq!(HubLinks::in_headers(["<a>; rel=hub"], "no address"), HubLinks::default());
        // Hubs compare topics as text.
        let found = HubLinks::in_headers(["<HTTPS://News.example>; rel=self"], FEED);
        assert_eq!(found.own.as_deref(), Some("HTTPS://News.example"));
    }

    #[test]
    fn headers_go_before_elements() {
        let (a, b) = ("https://a.example/", "https://b.example/");
        let (at_a, at_b) = ("https://news.example/a", "https://news.example/b");
        let (none, header, element) =
            (HubLinks::default(), links(&[a], Some(at_a)), links(&[b], Some(at_b)));
        // At last a hub in a header, and the own address in the document.
        for (headers, elements, hub, topic) in [
            (&header, &element, a, at_a),
            (&none, &element, b, at_b),
            (&links(&[a], None), &element, a, at_b),
        ] {
            let (hubs, topic) = (vec![hub.to_owned()], topic.to_owned());
            assert_eq!(of(headers, elements), Some(Discovery { hubs, topic }));
        }
        assert_eq!(of(&none, &links(&[], Some(FEED))), None);
    }

    #[test]
    fn somebody_elses_topic_is_not_believed() {
        for own in [
            Some("https://bank.example/feed"),
            Some("https://me:secret@news.example/feed"),
            Some("file:///etc/passwd"),
            Some("tag:news.example,2026:1"),
            None,
        ] {
            let found = of(&links(&["https://hub.example/"], own), &HubLinks::default()).unwrap();
            assert_eq!(found.topic, FEED, "{own:?}");
        }
    }

    #[test]
    fn hubs_are_of_the_web_each_once_and_not_too_many() {
        let long = format!("https://{}.example/", "x".repeat(ADDRESS_LIMIT));
        let odd = ["ftp://a.example/", "urn:x", "http://u:p@a.example/", "hub", &long];
        assert_eq!(of(&links(&odd, None), &HubLinks::default()), None);
        let many: Vec<String> = (0..9).map(|n| format!("https://h{n}.example/#x")).collect();
        let mut named: Vec<&str> = odd.into();
        named.extend(many.iter().chain(&many).map(String::as_str));
        let found = of(&HubLinks::default(), &links(&named, None)).unwrap();
        assert_eq!(found.hubs.len(), HUBS_LIMIT);
        assert_eq!(found.hubs[0], "https://h0.example/");
    }
}
