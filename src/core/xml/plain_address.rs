//! Addresses as evidence of identity: what stays of a URL when a site moves.

/// Query parameters that say where a reader came from, or in which session, not what it reads.
const TRACKING: [&str; 16] = [
    "fbclid",
    "gclid",
    "dclid",
    "msclkid",
    "mc_cid",
    "mc_eid",
    "igshid",
    "yclid",
    "_hsenc",
    "_hsmi",
    "mkt_tok",
    "ref_src",
    "cmpid",
    "xtor",
    "phpsessid",
    "jsessionid",
];
/// Those that name a session where they have so many hexadecimal digits and are not all of the query.
const SESSIONS: [&str; 2] = ["sid", "s"];
const SESSION_DIGITS: usize = 32;

/// Whether a pair of a query only tracks.
fn tracks(pair: &str, query: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = name.trim_start_matches("amp;");
    let is_session = |value: &str| {
        value.len() >= SESSION_DIGITS && value.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let starts_with =
        |start: &str| name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    starts_with("utm_")
        || starts_with("at_")
        || TRACKING.iter().any(|other| other.eq_ignore_ascii_case(name))
        || SESSIONS.contains(&name) && pair.len() < query.len() && is_session(value)
}

/// The part of an address behind its scheme: `//host/path…`, or nothing where it has none.
fn behind_scheme(address: &str) -> Option<&str> {
    if let Some(rest) = address.strip_prefix("//") {
        return Some(rest);
    }
    let (scheme, rest) = address.split_once(':')?;
    let rest = rest.strip_prefix("//")?;
    let plain =
        scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    plain.then_some(rest)
}

/// A link without what changes while the page stays: scheme, `www.`, tracking parameters, a
/// trailing slash, the case of escapes. Not meant for fetching.
pub fn plain_link(link: &str) -> String {
    let link = link.trim();
    let rest = behind_scheme(link).unwrap_or(link);
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    let (rest, fragment) = match rest.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (rest, None),
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let mut plain = path.trim_end_matches('/').to_owned();
    let mut separator = '?';
    let query = query.unwrap_or_default();
    for pair in query.split('&') {
        if !pair.is_empty() && !tracks(pair, query) {
            plain.push(separator);
            plain.push_str(pair);
            separator = '&';
        }
    }
    if let Some(fragment) = fragment.filter(|f| !f.is_empty()) {
        plain.push('#');
        plain.push_str(fragment);
    }
    match plain.split_once('%') {
        Some((before, rest)) => with_upper_escapes(before, rest),
        None => plain,
    }
}

/// An address with the digits of its escapes in upper case (RFC 3986 section 6.2.2.1). `rest`: what stands
/// behind the first.
fn with_upper_escapes(before: &str, rest: &str) -> String {
    let mut upper = before.to_owned();
    for part in rest.split('%') {
        let escape = part.split_at_checked(2);
        let escape = escape.filter(|(digits, _)| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let (digits, text) = escape.unwrap_or(("", part));
        upper.push('%');
        upper.push_str(&digits.to_ascii_uppercase());
        upper.push_str(text);
    }
    upper
}

/// An id without scheme and host, where it is an address with a path that says something.
///
/// `tag:` URIs lose their authority and date. Ids that are no addresses give nothing.
pub fn hostless(id: &str) -> Option<String> {
    let plain = is_address(id).then(|| plain_link(id));
    telling_part(id, plain.as_deref()).map(str::to_owned)
}

/// The same without a copy. `plain`: the id's [`plain_link`], where it is an address.
pub fn telling_part<'a>(id: &'a str, plain: Option<&'a str>) -> Option<&'a str> {
    match id.trim().strip_prefix("tag:") {
        Some(tag) => telling_path(tag.split_once(':')?.1),
        None => behind_host(plain?),
    }
}

/// Whether an id is an address with a host.
pub fn is_address(id: &str) -> bool {
    behind_scheme(id.trim()).is_some()
}

/// What stands behind the host of a [`plain_link`], where it says something.
pub fn behind_host(plain: &str) -> Option<&str> {
    telling_path(plain.get(plain.find(['/', '?', '#'])?..)?)
}

/// The path of an address without its `/` before, where it says something.
pub fn telling_path(path: &str) -> Option<&str> {
    Some(path.trim_start_matches('/')).filter(|path| path.len() >= 4)
}

/// Endings of programs, whose pages are told apart by the query.
const SCRIPTS: [&str; 9] = ["php", "asp", "aspx", "cgi", "cfm", "jsp", "do", "dll", "pl"];
/// So many digits in a row name a page.
const TELLING_DIGITS: usize = 3;

/// An address without scheme and query, where the path names a page: by a number or a [`slug`]. Nothing for programs,
/// whose query is the name. `plain`: its [`plain_link`].
pub fn path_without_query(address: &str, plain: &str) -> Option<String> {
    let (rest, fragment) = plain.split_once('#').unwrap_or((plain, ""));
    let path = rest.split('?').next()?.trim_end_matches('/');
    let (_, named) = path.split_once('/')?;
    let is_of_script = |part: &str| {
        let ending = part.rsplit_once('.').map(|(_, ending)| ending);
        ending.is_some_and(|own| SCRIPTS.iter().any(|other| own.eq_ignore_ascii_case(other)))
    };
    let is_script = named.split('/').any(is_of_script);
    let mut digits = named.as_bytes().split(|byte| !byte.is_ascii_digit());
    let has_number = digits.any(|digits| digits.len() >= TELLING_DIGITS);
    let names_a_page = !is_script && (has_number || slug(address).is_some());
    names_a_page.then(|| format!("{path}#{fragment}"))
}

/// The fewest characters of a name, and the fewest letters among them.
const NAME_CHARACTERS: usize = 8;
const NAME_LETTERS: usize = 4;

/// The last part of an address's path without its extension: the name that a post keeps when
/// its date or section changes. Nothing where it is shorter than eight characters or a number.
pub fn slug(address: &str) -> Option<String> {
    let end = address.bytes().position(|byte| matches!(byte, b'?' | b'#'));
    let path = address.get(..end.unwrap_or(address.len()))?.trim_end_matches('/');
    let (before, last) = path.rsplit_once('/').unwrap_or(("", path));
    // A host names no post.
    if before.strip_suffix(":/").is_some_and(|scheme| !scheme.contains('/')) {
        return None;
    }
    let stem = match last.rsplit_once('.') {
        // What begins with a digit is of a version.
        Some((stem, ext))
            if ext.len() <= 5
                && ext.chars().all(char::is_alphanumeric)
                && !ext.starts_with(char::is_numeric) =>
        {
            stem
        }
        _ => last,
    };
    // Looks no further into a long one.
    let is_name = stem.chars().nth(NAME_CHARACTERS - 1).is_some()
        && stem.chars().filter(|c| c.is_alphabetic()).nth(NAME_LETTERS - 1).is_some();
    is_name.then(|| stem.to_lowercase())
}

/// So many digits in one part of an address are the number of one page.
const LONG_NUMBER: usize = 5;
/// The most of them that are looked at.
const NUMBERS_LIMIT: usize = 4;

/// The parts of an address behind its host with a long number in them, which a page keeps when the words
/// of its address change. A day is none.
pub fn numbers(address: &str) -> Vec<String> {
    if address.bytes().filter(u8::is_ascii_digit).count() < LONG_NUMBER {
        return Vec::new();
    }
    let rest = behind_scheme(address.trim()).and_then(|rest| rest.split_once('/'));
    let Some((_, path)) = rest else { return Vec::new() };
    let parts = path.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
    let long =
        parts.filter(|part| part.iter().filter(|b| b.is_ascii_digit()).count() >= LONG_NUMBER);
    let long = long.filter_map(|part| std::str::from_utf8(part).ok());
    let numbers = long.filter(|part| day(part).is_none()).take(NUMBERS_LIMIT);
    numbers.map(str::to_ascii_lowercase).collect()
}

/// The day that an id or address is made of, as `20260303`: of `2026-03-03`, `2026/03/03` and
/// `20260303`. Nothing where no such day stands in it.
pub fn day(address: &str) -> Option<String> {
    let bytes = address.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    // Years that count begin so.
    let years = (0..bytes.len()).filter(|at| matches!(bytes.get(*at), Some(b'1' | b'2')));
    let mut starts = years.filter(|at| !at.checked_sub(1).is_some_and(&is_digit));
    starts.find_map(|at| day_at(bytes.get(at..)?))
}

fn day_at(from: &[u8]) -> Option<String> {
    let number = |at: usize, most: usize| {
        let digits = from.get(at..)?.iter().take(most).take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(from.get(at..at + digits)?).ok()?;
        Some((text.parse::<u32>().ok()?, at + digits))
    };
    let (year, at) = number(0, 4).filter(|(_, at)| *at == 4)?;
    let parted = matches!(from.get(at), Some(b'-' | b'/' | b'.' | b'_'));
    let (month, at) = number(at + usize::from(parted), 2)?;
    if parted && from.get(at) != from.get(4) {
        return None;
    }
    let (day, at) = number(at + usize::from(parted), 2)?;
    let whole = parted || at == 8;
    let ends = !from.get(at).is_some_and(u8::is_ascii_digit);
    let real = (1990..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    (whole && ends && real).then(|| format!("{year}{month:02}{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_what_says_which_page_it_is() {
        for (link, plain) in [
            ("https://www.example.org/a/b/?utm_source=rss&id=3#c", "example.org/a/b?id=3#c"),
            ("http://example.org/", "example.org"),
            ("//example.org/a?fbclid=1", "example.org/a"),
            ("example.org/a?utm_x=1&b=2&c=3", "example.org/a?b=2&c=3"),
            ("example.org/a?PHPSESSID=1&b=2", "example.org/a?b=2"),
            ("e.org/a?s=0123456789abcdef0123456789abcdef&t=2", "e.org/a?t=2"),
            // A hash may be the name of the page, and a short value one of a few.
            (
                "e.org/a?sid=0123456789abcdef0123456789abcdef",
                "e.org/a?sid=0123456789abcdef0123456789abcdef",
            ),
            ("e.org/a?t=2&sid=7f", "e.org/a?t=2&sid=7f"),
            ("e.org/%e4%C3%bc%zé%?b=%2f#%ab", "e.org/%E4%C3%BC%zé%?b=%2F#%AB"),
        ] {
            assert_eq!(plain_link(link), plain);
        }
    }

    #[test]
    fn an_id_survives_scheme_host_and_tag_authority() {
        let old = hostless("http://a.example/blog/2020/post.html");
        assert_eq!(old.as_deref(), Some("blog/2020/post.html"));
        assert_eq!(old, hostless("https://b.example:8080/blog/2020/post.html"));
        let tagged = hostless("tag:a.example,2020:/blog/post");
        assert_eq!(tagged, hostless("tag:b.example,2024-01-01:/blog/post"));
        // It has the form of an address, and is none with a host.
        let tag = "tag://a.example,2020:post-123";
        assert_eq!(telling_part(tag, Some(&plain_link(tag))), Some("post-123"));
        assert_eq!(hostless("urn:uuid:1"), None);
        assert_eq!(hostless("https://example.org/"), None);
        assert_eq!(hostless("12345678"), None);
    }

    #[test]
    fn a_day_in_an_address() {
        for (address, expected) in [
            ("http://e.org/news/#2006-03-03%20Problem", Some("20060303")),
            ("/blog/2016/07/30/title", Some("20160730")),
            ("https://e.org/20191116a/", Some("20191116")),
            ("http://e.org/news/#2015-06-9%20branch", Some("20150609")),
            ("https://e.org/2016/07/title", None),
            ("https://e.org/?objectid=12327584", None),
            ("https://e.org/2019-13-01", None),
            ("https://e.org/120200101", None),
        ] {
            assert_eq!(day(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn a_path_without_its_query_names_a_page() {
        let of = |address: &str| path_without_query(address, &plain_link(address));
        let page = of("http://www.e.org/posts/104?s=1");
        assert_eq!(page.as_deref(), Some("e.org/posts/104#"));
        assert_eq!(page, of("https://e.org/posts/104/?s=2&t=3"));
        assert_ne!(page, of("https://e.org/posts/104/?s=2#part"));
        assert_eq!(of("http://e.org/link/some-name?s=1").as_deref(), Some("e.org/link/some-name#"));
        for nameless in [
            "https://e.org/?p=104",
            "https://e.org/view.php?id=104",
            "https://e.org/view.php/104?sid=1",
            "https://e.org/watch?v=104",
        ] {
            assert_eq!(of(nameless), None, "{nameless}");
        }
    }

    #[test]
    fn a_long_number_in_an_address_is_that_of_a_page() {
        let of = |address: &str| numbers(address).join(" ");
        assert_eq!(of("https://e.org/questions/68763717/how-to-2024"), "68763717");
        assert_eq!(of("https://e.org/@a/some-name-72326D4baeb4?source=rss"), "72326d4baeb4");
        assert_eq!(of("https://12345678.example/2024/05/06/20240506/1234"), "");
        assert_eq!(of("urn:uuid:123456789"), "");
    }

    #[test]
    fn a_slug_is_a_name_not_a_number() {
        let slug_of = |a: &str| slug(a).unwrap_or_default();
        assert_eq!(slug_of("https://e.org/2020/03/rails-4-0-released/"), "rails-4-0-released");
        assert_eq!(slug_of("https://e.org/news/Some-Long-Title.html?x=1"), "some-long-title");
        assert_eq!(slug_of("https://e.org/my-project-1.1.1"), "my-project-1.1.1");
        assert_eq!(slug_of("https://e.org/?p=123456789"), "");
        assert_eq!(slug_of("https://e.org/12345678901.html"), "");
    }
}
