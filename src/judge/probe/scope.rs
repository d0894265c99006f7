//! Which addresses may be asked: those of the feed's own registrable domain.

use url::{Host, Url};

/// The longest address that is asked, in bytes.
const PAGE_LIMIT: usize = 2048;

/// The part of the web that belongs to a feed: the registrable domain of its configured address
/// (the label below the public suffix, by the list that the crate `psl` carries). Where there is
/// none (an address of the Internet protocol, `localhost`, a name under no known suffix) it is the
/// host alone. What a document calls its site widens nothing: a hostile one could name anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeScope {
    host: String,
    /// Whether hosts below it belong to it.
    is_domain: bool,
    /// The port of the feed's address; pages stand there or at the usual ones.
    port: Option<u16>,
}

impl ProbeScope {
    /// The scope of a feed, by its configured address.
    pub fn from_feed_url(feed_url: &str) -> Option<Self> {
        let url = Url::parse(feed_url.trim()).ok().filter(is_web)?;
        let port = url.port();
        let own = |host: String| Some(Self { host, is_domain: false, port });
        match url.host()? {
            Host::Domain(name) => match registrable(plain(name)) {
                Some(domain) => Some(Self { host: domain.to_owned(), is_domain: true, port }),
                None => own(plain(name).to_owned()),
            },
            address => own(address.to_string()),
        }
    }

    /// Whether an address lies within.
    pub fn admits(&self, url: &Url) -> bool {
        let Some(host) = url.host().map(|host| host.to_string()) else { return false };
        let host = plain(&host);
        let below = || host.strip_suffix(&self.host).is_some_and(|rest| rest.ends_with('.'));
        let is_ours = host == self.host || (self.is_domain && below());
        let is_usual = url.port().is_none() || url.port() == self.port;
        let names_nobody = url.username().is_empty() && url.password().is_none();
        is_web(url) && is_ours && is_usual && names_nobody && url.as_str().len() <= PAGE_LIMIT
    }

    /// The page that an item links to, where it may be asked and says something of the item: not
    /// the site's front page, and no place within a page.
    pub fn page(&self, link: &str) -> Option<Url> {
        if link.len() > PAGE_LIMIT {
            return None;
        }
        let url = Url::parse(link.trim()).ok()?;
        (self.admits(&url) && url.fragment().is_none() && !is_front(&url)).then_some(url)
    }
}

/// Whether an address is a site's front page.
pub(super) fn is_front(url: &Url) -> bool {
    let index = ["/", "/index.html", "/index.htm", "/index.php"];
    index.contains(&url.path()) && url.query().is_none_or(str::is_empty)
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// A host name without the final dot of a fully qualified one.
fn plain(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn registrable(host: &str) -> Option<&str> {
    let domain = psl::domain(host.as_bytes())?;
    if !domain.suffix().is_known() {
        return None;
    }
    std::str::from_utf8(domain.as_bytes()).ok()
}

/// An address of the same form that nobody ever published: the last step of the path, or the last
/// value of the query where there is one, is made up from `token`.
pub fn made_up(page: &Url, token: u64) -> Url {
    let mut url = page.clone();
    if let Some(query) = page.query().filter(|query| query.contains('=')) {
        let (before, value) = query.rsplit_once('=').unwrap_or((query, ""));
        url.set_query(Some(&format!("{before}={}", alike(value, token))));
        return url;
    }
    let path = page.path();
    let (path, slash) = match path.strip_suffix('/') {
        Some(path) => (path, "/"),
        None => (path, ""),
    };
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() <= 5 => {
            (stem, format!(".{extension}"))
        }
        _ => (name, String::new()),
    };
    url.set_path(&format!("{folder}/{}{extension}{slash}", alike(stem, token)));
    url.set_query(None);
    url
}

/// How many digits stand for a number: more than ids in use have.
const MADE_UP_DIGITS: usize = 12;
/// How many letters the first word has.
const MADE_UP_LETTERS: usize = 12;

/// A name of the same form, so that a site that looks at the form does not refuse it for that alone:
/// digits for digits, letters for letters, and what parts them as it was.
fn alike(name: &str, token: u64) -> String {
    let mut state = token;
    let mut next = |from: u8, count: u8| {
        // The generator of Knuth's MMIX; its upper bits are the better ones.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = u8::try_from((state >> 33) % u64::from(count)).unwrap_or(0);
        char::from(from.saturating_add(drawn))
    };
    // What is percent-encoded has no form to keep.
    let form = if name.contains('%') || name.is_empty() { "a" } else { name };
    let (mut made, mut words, mut before) = (String::new(), 0, ' ');
    for c in form.chars() {
        let begins = c.is_ascii_digit() != before.is_ascii_digit()
            || c.is_ascii_alphabetic() != before.is_ascii_alphabetic();
        match c {
            '0'..='9' if begins => {
                made.push('9');
                made.extend((1..MADE_UP_DIGITS).map(|_| next(b'0', 10)));
            }
            '0'..='9' => {}
            'a'..='z' | 'A'..='Z' => {
                words += usize::from(begins);
                let length = if begins && words == 1 { MADE_UP_LETTERS } else { 1 };
                made.extend((0..length).map(|_| next(b'a', 26)));
            }
            other => made.push(other),
        }
        before = c;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registrable_domain_and_nothing_else() {
        for (feed, page, is_admitted) in [
            ("https://example.org/feed", "https://example.org/a", true),
            ("https://feeds.example.org/feed", "http://www.example.org/a", true),
            ("https://Example.ORG./feed", "https://blog.example.org/a", true),
            ("https://example.co.uk/feed", "https://www.example.co.uk/a", true),
            ("https://me:secret@example.org/feed", "https://example.org/a", true),
            ("http://example.org:8080/feed", "http://example.org:8080/a", true),
            ("http://example.org:8080/feed", "http://www.example.org/a", true),
            ("http://127.0.0.1:8080/feed", "http://127.0.0.1:8080/a", true),
            ("http://[::1]:8080/feed", "http://[::1]:8080/a", true),
            ("http://intranet.internal/feed", "http://intranet.internal/a", true),
            ("https://пример.рф/feed", "https://www.xn--e1afmkfd.xn--p1ai/a", true),
            ("https://example.org/feed", "https://example.com/a", false),
            ("https://example.org/feed", "https://notexample.org/a", false),
            ("https://example.org/feed", "https://example.org.evil.com/a", false),
            ("https://one.github.io/feed", "https://two.github.io/a", false),
            ("https://example.co.uk/feed", "https://other.co.uk/a", false),
            ("https://example.org/feed", "ftp://example.org/a", false),
            ("https://example.org/feed", "https://example.org:22/a", false),
            ("https://example.org/feed", "https://me:secret@example.org/a", false),
            ("http://127.0.0.1:8080/feed", "http://127.0.0.2:8080/a", false),
            // No address at all, which is as good.
            ("http://10.0.0.1/feed", "http://1.10.0.0.1/a", false),
            ("http://one.internal/feed", "http://www.one.internal/a", false),
            ("http://localhost:8080/feed", "http://127.0.0.1:8080/a", false),
        ] {
            let scope = ProbeScope::from_feed_url(feed).unwrap();
            let admits = Url::parse(page).is_ok_and(|url| scope.admits(&url));
            assert_eq!(admits, is_admitted, "{feed} {page}");
        }
        for feed in ["file:///etc/passwd", "feed", ""] {
            assert_eq!(ProbeScope::from_feed_url(feed), None, "{feed}");
        }
    }

    #[test]
    fn pages_that_say_nothing_of_an_item_are_not_asked() {
        let scope = ProbeScope::from_feed_url("https://example.org/feed").unwrap();
        for link in ["https://example.org/a", "https://example.org/?p=7", " http://example.org/a/ "]
        {
            assert!(scope.page(link).is_some(), "{link}");
        }
        let long = format!("https://example.org/{}", "a".repeat(PAGE_LIMIT));
        for link in [
            "https://example.org",
            "https://www.example.org/",
            "https://example.org/index.php",
            "https://example.org/news#a",
            "https://example.com/a",
            "/a",
            "",
            &long,
        ] {
            assert_eq!(scope.page(link), None, "{link}");
        }
    }

    /// A text with every digit as 0 and every letter as a.
    fn form(text: &str) -> String {
        let form = |c: char| match c {
            '0'..='9' => '0',
            'a'..='z' => 'a',
            other => other,
        };
        text.chars().map(form).collect()
    }

    #[test]
    fn made_up_addresses_are_of_the_same_form() {
        for (page, made) in [
            ("https://e.org/2026/story", "/0000/aaaaaaaaaaaaaaaa"),
            ("https://e.org/2026/a-story/", "/0000/aaaaaaaaaaaa-aaaaa/"),
            ("https://e.org/a.html", "/aaaaaaaaaaaa.aaaa"),
            ("https://e.org/p/7", "/a/000000000000"),
            ("https://e.org/77-the-end", "/000000000000-aaaaaaaaaaaaaa-aaa"),
            ("https://e.org/%C3%A9t%C3%A9", "/aaaaaaaaaaaa"),
            ("https://e.org/?p=77", "/?a=000000000000"),
            ("https://e.org/show?in=x&id=abc", "/aaaa?aa=a&aa=aaaaaaaaaaaaaa"),
            ("https://e.org/a?print", "/aaaaaaaaaaaa"),
            ("https://e.org/show?id=", "/aaaa?aa=aaaaaaaaaaaa"),
        ] {
            let page = Url::parse(page).unwrap();
            let (one, two) = (made_up(&page, 255), made_up(&page, 256));
            assert_eq!(form(one.as_str()), format!("aaaaa://a.aaa{made}"), "{page}");
            assert_ne!(one, two, "{page}");
            assert_eq!(one, made_up(&page, 255));
            assert_eq!(one.host(), page.host());
        }
    }
}
