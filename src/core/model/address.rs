//! An upstream's address as it may be shown: in documents, on pages, in errors and in logs.
//!
//! The addresses of private podcasts, calendars and newsletters contain the key to them, in the query
//! or as a part of the path. Whoever has the address has the feed, so it is not published.

use serde::{Serialize, Serializer};
use std::borrow::Cow;
use url::Url;

/// Stands for what is not shown.
pub const MASK: &str = "***";
/// The step of a path behind which the token of a reader is (`/t/TOKEN/feeds/NAME`), as somebody may spell it.
const TOKEN_STEPS: [&str; 3] = ["t", "%74", "%54"];
/// What is shorter is no token of a reader: `/feeds/t/items` has none.
const TOKEN_LENGTH: usize = 16;

/// A path or an address as it may be written into a log, without the token of a reader in it.
pub fn mask_token(text: &str) -> Cow<'_, str> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'%';
    let is_token = |step: &str| {
        let step = step.split(['?', '#']).next().unwrap_or_default();
        step.len() >= TOKEN_LENGTH && step.bytes().all(is_plain)
    };
    let is_step = |step: &str| TOKEN_STEPS.iter().any(|known| step.eq_ignore_ascii_case(known));
    let mut behind = false;
    let mut masked = false;
    let steps = text.split('/').map(|step| {
        let hides = std::mem::replace(&mut behind, is_step(step)) && is_token(step);
        masked |= hides;
        if hides { MASK } else { step }
    });
    let shown = steps.collect::<Vec<_>>().join("/");
    if masked { Cow::Owned(shown) } else { Cow::Borrowed(text) }
}
/// Stands for an address that cannot be shown at all.
const UNSHOWN: &str = "about:blank";
/// A shorter value is no key unless its parameter says so, or its looks leave no doubt, in bytes.
const KEY_LENGTH: usize = 16;
/// What is shorter is never taken for a key by its looks.
const SHORT_KEY_LENGTH: usize = 10;
/// As many groups of letters and digits in a row, all of one length, are a key.
const GROUPS: usize = 3;
/// As many letters in a row are a word, with a number before or behind it too.
const WORD_LENGTH: usize = 3;
/// As many digits in a row, and no letters, are a key.
const DIGITS_LENGTH: usize = 20;
/// A value of a parameter that is called a key is one from this length on, in bytes.
const NAMED_KEY_LENGTH: usize = 4;
/// As many changes between letters, digits and cases are no word, and as many in each of several words are none.
const CHANGES: usize = 4;
const MIXED_CHANGES: usize = 2;
/// What parameters are called whose value is a key.
const KEY_NAMES: [&str; 12] = [
    "apikey",
    "auth",
    "authkey",
    "key",
    "passwd",
    "password",
    "pwd",
    "secret",
    "sig",
    "signature",
    "token",
    "accesstoken",
];
/// Parameters that are public, however random their values look: YouTube's.
const PUBLIC_NAMES: [&str; 2] = ["channel_id", "playlist_id"];

/// An upstream's address as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShownAddress {
    text: String,
    /// What relative references may be resolved against; `None` where that would show too much.
    base: Option<String>,
    origin: String,
    is_masked: bool,
}

impl Serialize for ShownAddress {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

impl ShownAddress {
    /// The address as it may be shown. `secret` is what the operator says of it; where that is
    /// nothing, it is secret when a value of its query looks like a key.
    pub fn new(address: &str, secret: Option<bool>) -> Self {
        let unshown = || Self {
            text: UNSHOWN.to_owned(),
            base: None,
            origin: UNSHOWN.to_owned(),
            is_masked: true,
        };
        let Ok(parsed) = Url::parse(address) else { return unshown() };
        let mut url = parsed;
        // `me:secret@host` is an address with the scheme `me`.
        if url.cannot_be_a_base() {
            return unshown();
        }
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user && url.set_username("").and_then(|()| url.set_password(None)).is_err() {
            return unshown();
        }
        let plain = if has_user { url.to_string() } else { address.to_owned() };
        let origin = url.join("/").map_or_else(|_| UNSHOWN.to_owned(), Into::into);
        let has_key = url.query().is_some_and(has_key);
        let path = masked_path(url.path());
        let (is_secret, path) = match secret {
            Some(false) => (false, None),
            Some(true) if path.is_none() && url.query().is_none() => {
                (true, Some(format!("/{MASK}")))
            }
            said => (said == Some(true) || has_key, path),
        };
        if !is_secret && path.is_none() {
            return Self { text: plain.clone(), base: Some(plain), origin, is_masked: false };
        }
        let mut without_query = url.clone();
        without_query.set_query(None);
        without_query.set_fragment(None);
        let query = match url.query() {
            Some(_) if is_secret => format!("?{MASK}"),
            Some(query) => format!("?{query}"),
            None => String::new(),
        };
        let shown = path.as_deref().unwrap_or_else(|| url.path());
        let text = format!("{}{shown}{query}", origin.trim_end_matches('/'));
        let base = match (secret, is_secret, &path) {
            // The last segment and the query matter to no reference but those to the document.
            (None, true, None) => Some(without_query.into()),
            // A mask of ours never changes where links lead.
            (None, false, _) => Some(plain),
            _ => None,
        };
        Self { text, base, origin, is_masked: true }
    }

    /// The address with what is secret masked.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether something of it is masked.
    pub const fn is_masked(&self) -> bool {
        self.is_masked
    }

    /// The address as a link to the publisher's document, where it is not secret.
    pub fn link(&self) -> Option<&str> {
        (!self.is_masked).then_some(self.text.as_str())
    }

    /// What relative references of the document are resolved against: where the address is secret, the
    /// channel's own page, or scheme and host.
    pub fn base(&self, channel: Option<&str>) -> String {
        let page = || channel.filter(|page| Url::parse(page).is_ok_and(|url| url.has_host()));
        match &self.base {
            Some(base) => base.clone(),
            None => page().unwrap_or(&self.origin).to_owned(),
        }
    }

    /// A message without the address that this one is shown for.
    pub fn hide_in(&self, address: &str, message: &str) -> String {
        if !self.is_masked || address.is_empty() {
            return message.to_owned();
        }
        let mut hidden = message.replace(address, &self.text);
        if let Ok(url) = Url::parse(address) {
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            let place = format!("{}{query}", url.path());
            if place.len() > 1 {
                hidden = hidden.replace(&place, &format!("/{MASK}"));
            }
        }
        hidden
    }
}

/// A path with what looks like a key masked; `None` where nothing does.
fn masked_path(path: &str) -> Option<String> {
    let mut found = false;
    // A key may stand in several steps.
    let is_spread = has_groups(path);
    let masked: Vec<&str> = path
        .split('/')
        .map(|segment| {
            let is_key = looks_random(segment) || (is_spread && groups(segment).any(is_mixed));
            found |= is_key;
            if is_key { MASK } else { segment }
        })
        .collect();
    found.then(|| masked.join("/"))
}

/// Whether a value of a query is a key.
fn has_key(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, value)| {
        let name: String = name.to_ascii_lowercase();
        let bare: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        // A query may be nothing but the key.
        (value.is_empty() && looks_random(&name))
            || (value.len() >= NAMED_KEY_LENGTH && KEY_NAMES.contains(&bare.as_str()))
            || (!PUBLIC_NAMES.contains(&name.as_str()) && looks_random(&value))
    })
}

/// Whether a part of an address was made by a machine to be guessed by nobody: a hexadecimal number, a
/// UUID, groups of letters and digits, or letters and digits that change more often than in words.
fn looks_random(text: &str) -> bool {
    has_groups(text)
        || text.split(['.', ',', '~', ':', '@', '=', '%']).any(|part| {
            let bytes = part.as_bytes();
            let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
            let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
            if letters + digits < SHORT_KEY_LENGTH {
                return false;
            }
            let joined = || part.split(['-', '_']);
            let (words, changes) = (joined().count(), joined().map(changes).sum::<usize>());
            let is_mixed_throughout =
                joined().all(is_mixed) && changes >= CHANGES.max(words * MIXED_CHANGES);
            if is_mixed_throughout || joined().any(has_every_kind) {
                return true;
            }
            if letters + digits < KEY_LENGTH {
                return false;
            }
            let is_hex = bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
            if letters == 0 {
                return digits >= DIGITS_LENGTH && words == 1;
            }
            if digits > 0 && is_hex {
                return true;
            }
            // Of letters alone, those of a key are capitals as often as not, and those of words seldom.
            let capitals = bytes.iter().filter(|byte| byte.is_ascii_uppercase()).count();
            if digits == 0 && capitals * 3 < letters {
                return false;
            }
            // Between words stand dashes, and within a word the kind of character seldom changes.
            changes >= CHANGES && changes >= words
        })
}

/// Letters and digits with nothing else between them.
fn groups(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|group| !group.is_empty())
}

/// Whether several groups in a row have letters and digits mixed and one length, as `zq7-x9k-p2m-w4v`.
fn has_groups(text: &str) -> bool {
    let (mut count, mut length) = (0, 0);
    groups(text).any(|group| {
        let goes_on = group.len() == length;
        length = group.len();
        count = usize::from(is_mixed(group)) * if goes_on { count + 1 } else { 1 };
        count >= GROUPS && count * length >= SHORT_KEY_LENGTH
    })
}

/// Whether a group has letters and digits, and is neither a word with a number, as `html5`, nor one that is shortened
/// to a number between two letters, as `i18n`.
fn is_mixed(group: &str) -> bool {
    let letters = group.bytes().filter(u8::is_ascii_alphabetic).count();
    let digits = group.bytes().filter(u8::is_ascii_digit).count();
    let changes = changes(&group.to_ascii_lowercase());
    let is_word = letters >= WORD_LENGTH && changes < 2;
    let begins_so = group.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_shortened = begins_so && (letters, changes) == (2, 2) && digits >= 2;
    letters > 0 && digits > 0 && !is_word && !is_shortened
}

/// Whether a text has digits and letters of both cases, is long enough for a key, and is not made of words and
/// numbers, as `WordPress2024`.
fn has_every_kind(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
    // Behind each capital stands the rest of a word.
    let are_words = |letters: &str| {
        let words = letters.split(|c: char| c.is_ascii_uppercase()).enumerate();
        words
            .into_iter()
            .all(|(at, rest)| rest.len() + 1 >= WORD_LENGTH || at == 0 && rest.is_empty())
    };
    let mut letters = text.split(|c: char| !c.is_ascii_alphabetic());
    text.len() >= SHORT_KEY_LENGTH
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && !letters.all(are_words)
}

/// How often a text goes from letters to digits or back, or from lower to upper case.
fn changes(text: &str) -> usize {
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let pairs = text.as_bytes().windows(2);
    pairs
        .filter(|pair| match pair {
            // A word may begin with a capital.
            [before, after] => kind(before) != kind(after) && (kind(before), kind(after)) != (1, 2),
            _ => false,
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "a8f3c1d94be27760";

    #[test]
    fn keys_are_masked() {
        for (address, shown) in [
            ("https://a.example/feed?token=hunter2", "https://a.example/feed?***"),
            ("https://a.example/feed?id=2&u=Zk3vQ9xT1mLp8RwY", "https://a.example/feed?***"),
            ("https://a.example/p/Zk3vQ9xT1mLp8RwY/rss.xml", "https://a.example/p/***/rss.xml"),
            ("https://a/6f9619ff-8b86-d011-b42d-00cf4fc964ff.ics?x=1", "https://a/***?x=1"),
            ("https://me:hunter2@a.example/feed?a8f3c1d94be27760", "https://a.example/feed?***"),
            ("https://a.example/p/k3Jx9QzLw8Vt/f", "https://a.example/p/***/f"),
            ("https://a.example/p/Qf7bcdefgh.xml", "https://a.example/p/***"),
            ("https://a.example/p/x7k2m9q4w1/f", "https://a.example/p/***/f"),
            ("https://a.example/p/zq7-x9k-p2m-w4v/f", "https://a.example/p/***/f"),
            ("https://a.example/p/feed_ab12_cd34_ef56.xml", "https://a.example/p/***"),
            ("https://a.example/p/zq7.x9k.p2m.w4v", "https://a.example/p/***"),
            ("https://a.example/p/x7k2-m9q-4w1p8/f", "https://a.example/p/***/f"),
            ("https://a.example/p/0b4a6f/9c2d11/e88f03/f", "https://a.example/p/***/***/***/f"),
            // What cannot be read is not shown.
            ("https://me:secret@", "about:blank"),
            ("me:secret@a.example", "about:blank"),
            ("secret", "about:blank"),
            ("", "about:blank"),
        ] {
            assert_eq!(ShownAddress::new(address, None).text(), shown);
        }
    }

    #[test]
    fn what_is_no_key_is_shown() {
        for address in [
            "https://a.example/feed.xml",
            "https://a.example/feed?id=2&format=atom",
            "https://a.example/2024/10/the-ten-best-things-of-a-long-year-2024.xml",
            "https://a.example/feeds/internationalization-and-localization",
            "https://www.youtube.com/feeds/videos.xml?channel_id=UCXuqSBlHAE6Xw-yeJA0Tunw",
            "https://a.example/WordsInCamelCaseAreNoKeys/Feed.xml?tag=c%2B%2B",
            "http://a.example/feed?x=1#y",
            "https://a.example/WordPress2024/RustConf2025Talks/News24.xml",
            "https://a.example/tag/html5-css3-vue3/feed",
            "https://a.example/v2/rss2/2024/week46/mp3s?v=1.2.3",
            "https://a.example/Best-Of-2024-Music/covid19-and-windows11",
            "https://a.example/s01e05-1080p-x264.xml",
            "https://a.example/mp3-128k-44k1/feed",
            "https://a.example/tag/a11y-i18n-l10n/feed",
            "https://a.example/v2/3d/mp4/h264x",
            "https://a.example/b2b/k8s/mp3/720p/feed",
        ] {
            let shown = ShownAddress::new(address, None);
            assert_eq!((shown.text(), shown.link()), (address, Some(address)), "{address}");
        }
        let said = ShownAddress::new("https://a.example/feed?token=public", Some(false));
        assert!(!said.is_masked());
    }

    #[test]
    fn a_secret_address_shows_nothing_in_base_and_link() {
        let page = Some("https://a.example/show/");
        for address in [format!("https://a.example/{KEY}/x"), "https://a.example/x?b".to_owned()] {
            let shown = ShownAddress::new(&address, Some(true));
            assert_eq!(shown.link(), None);
            assert_eq!(shown.base(page), "https://a.example/show/");
            assert_eq!(shown.base(None), "https://a.example/");
            assert!(shown.text().contains(MASK) && !shown.text().contains(KEY));
        }
        let shown = ShownAddress::new("https://a.example/my/x", Some(true));
        assert_eq!(shown.text(), "https://a.example/***");
    }

    #[test]
    fn a_mask_of_ours_changes_no_reference() {
        for address in [
            format!("https://a.example/p/feed?token={KEY}"),
            format!("https://a.example/p/{KEY}/feed?x=1"),
            format!("https://a.example/p/feed?{KEY}#a"),
        ] {
            let (real, shown) = (Url::parse(&address).unwrap(), ShownAddress::new(&address, None));
            let base = Url::parse(&shown.base(Some("https://b.example/"))).unwrap();
            for reference in ["a.html", "../b", "/c", "//d.example/", "?e"] {
                assert_eq!(base.join(reference), real.join(reference), "{address} {reference}");
            }
        }
        // Both in one: the query is secret, so nothing is shown of the path.
        let both = ShownAddress::new(&format!("https://a.example/{KEY}/f?token={KEY}"), None);
        assert_eq!(both.base(None), "https://a.example/");
    }

    #[test]
    fn a_message_does_not_repeat_it() {
        let address = format!("https://a.example/p?token={KEY}");
        let shown = ShownAddress::new(&address, None);
        let said = shown.hide_in(&address, &format!("{address} answered 404 (/p?token={KEY})"));
        assert_eq!(said, "https://a.example/p?*** answered 404 (/***)");
    }

    #[test]
    fn tokens_are_masked_wherever_they_are() {
        const TOKEN: &str = "0123456789abcdef0123456789abcdef";
        for (before, behind) in [
            ("/t/", "/feeds/x"),
            ("https://h/p/t/", "?a=b"),
            ("//t/", ""),
            ("/%74/", "/"),
            ("/T/", "/"),
        ] {
            let shown = mask_token(&format!("{before}{TOKEN}{behind}")).into_owned();
            assert!(!shown.contains("0123") && shown.starts_with(before), "{shown}");
        }
        for other in ["/feeds/t/items", "/feeds/t/archive", "/tt/0123456789abcdef0123", "/t/x", ""]
        {
            assert_eq!(mask_token(other), other);
        }
    }
}
