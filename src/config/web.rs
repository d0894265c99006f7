//! Web addresses: of this gateway, and of upstreams.

use super::access::take_login;
use url::Url;

/// The longest address that is taken, in bytes.
const ADDRESS_LIMIT: usize = 4096;

/// Checks that a text is an address of the web; otherwise says what is wrong, without repeating credentials in it.
fn web(text: &str) -> Result<Url, String> {
    if text.len() > ADDRESS_LIMIT {
        let length = text.len();
        return Err(format!("the address is {length} bytes long, the limit is {ADDRESS_LIMIT}"));
    }
    // The parser would quietly drop these; in a file they are a slip of the pen.
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let said =
            "the address has white space or a control character; write those as %20 and the like";
        return Err(said.to_owned());
    }
    let url = Url::parse(text).map_err(|why| {
        let text = hidden(text);
        format!(
            "{text:?} is not a web address ({why}); write one like \"https://example.org/feed.xml\""
        )
    })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(format!("the address has the scheme {scheme:?}; write http or https")),
    }
}

/// The text without what may be credentials.
fn hidden(text: &str) -> String {
    match (text.split_once("//"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}//…@{rest}"),
        _ => text.to_owned(),
    }
}

/// Checks the address of an upstream: `http` or `https`, perhaps with credentials. A fragment is cut off,
/// since it is never sent.
pub fn feed_address(text: &str) -> Result<Url, String> {
    let mut url = web(text)?;
    take_login(&mut url.clone()).map_err(|why| format!("the address {why}"))?;
    url.set_fragment(None);
    Ok(url)
}

/// Checks the address under which the gateway is reached: no credentials, query or fragment. A
/// slash at its end is cut off, so that `{public_url}/feeds/NAME` is well made.
pub fn public_address(text: &str) -> Result<String, String> {
    bare_address(text).map(|url| url.as_str().trim_end_matches('/').to_owned())
}

/// Checks an address that may have a scheme, a host, a port and a path, and nothing else.
pub(super) fn bare_address(text: &str) -> Result<Url, String> {
    let url = web(text)?;
    let parts = [
        ("credentials", !url.username().is_empty() || url.password().is_some()),
        ("a query", url.query().is_some()),
        ("a fragment", url.fragment().is_some()),
    ];
    match parts.into_iter().find(|(_, there)| *there) {
        Some((part, _)) => {
            Err(format!("the address has {part}; write only scheme, host, port and path"))
        }
        None => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_are_on_the_web_and_public_addresses_ready_to_be_lengthened() {
        for good in
            ["http://a/", "https://[::1]:8443/x?y=z", "HTTPS://Example.ORG", "http://u:p@h/f.xml"]
        {
            assert!(feed_address(good).is_ok(), "{good}");
        }
        let bad = "|feed.xml|//host/x|ftp://h/x|file:///etc/passwd|data:,x|http://|http://h:99999/|\
                   javascript:1| http://a/|http://a/\n|http://a b/";
        for bad in bad.split('|') {
            assert!(feed_address(bad).is_err(), "{bad:?} was taken");
        }
        // A fragment is not sent.
        let url = feed_address("https://example.org/feed#top").map(String::from);
        assert_eq!(url, Ok("https://example.org/feed".to_owned()));
        let long = feed_address(&format!("http://h/{}", "x".repeat(ADDRESS_LIMIT)));
        assert_eq!(long.unwrap_err(), "the address is 4105 bytes long, the limit is 4096");
        let said = feed_address("https://user:hunter2@h:99999/").unwrap_err();
        assert!(said.starts_with("\"https://…@h:99999/\" is not a web address"), "{said}");
        // Public addresses are ready to be lengthened.
        for (text, expected) in [
            ("https://feeds.example.org", "https://feeds.example.org"),
            ("https://feeds.example.org/", "https://feeds.example.org"),
            ("http://example.org/tidegate/", "http://example.org/tidegate"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ] {
            assert_eq!(public_address(text), Ok(expected.to_owned()), "{text}");
        }
        // What else it must not have is shown with the addresses of origins.
        for text in ["https://user:hunter2@h/", "https://u@h/", "https://:p@h/"] {
            assert!(public_address(text).unwrap_err().contains("has credentials;"), "{text}");
        }
        let said = public_address("https://user:hunter2@h:99999/").unwrap_err();
        assert!(!said.contains("hunter2"), "{said}");
    }
}
