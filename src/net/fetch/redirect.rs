//! A chain of redirects. Pure; the guard checks every hop before the request.

use super::error::{FetchBlame, FetchError};
use super::guard::shown;
use super::lead::without_credentials;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use url::Url;

/// All of ASCII; an address is read without its tabs.
const KEPT: &AsciiSet = &CONTROLS.remove(b'\t');
/// The most redirects per fetch.
pub const MAX_REDIRECTS: usize = 8;

/// Returns the target of a redirect, as an answer from `url` names it.
pub(super) fn target(location: Option<&[u8]>, url: &Url) -> Option<Url> {
    // Bytes that are no ASCII are taken as they are, whatever their charset.
    let text = percent_encode(location.filter(|bytes| !bytes.is_empty())?, KEPT).to_string();
    url.join(&text).ok()
}

/// The state of a chain of redirects.
pub(super) struct RedirectChain {
    /// The current address, without credentials and fragment.
    pub(super) url: Url,
    /// The number of redirects followed.
    pub(super) hops: usize,
    /// The target of the permanent redirects at its beginning.
    pub(super) moved_to: Option<Url>,
    /// Notes for the operator.
    pub(super) notes: Vec<String>,
    /// Whether an answer on the way set a cookie.
    pub(super) sets_cookies: bool,
    permanent: bool,
}

impl RedirectChain {
    /// Begins a chain at `url`. `moved`: an earlier permanent redirect led there.
    pub(super) fn new(url: &Url, moved: bool) -> Self {
        let url = without_credentials(url.clone());
        let moved_to = moved.then(|| url.clone());
        Self { url, hops: 0, moved_to, notes: Vec::new(), sets_cookies: false, permanent: true }
    }

    /// Follows a redirect.
    pub(super) fn follow(&mut self, code: u16, location: Option<&[u8]>) -> Result<(), FetchError> {
        if self.hops == MAX_REDIRECTS {
            let cookie = if self.sets_cookies { ", and sets a cookie on the way" } else { "" };
            return Err(FetchError::upstream(format!(
                "the publisher sent more than {MAX_REDIRECTS} redirects, which is the limit, the last at {}{cookie}",
                self.url.origin().ascii_serialization()
            )));
        }
        let why = format!("the publisher sent a redirect ({code}) without a usable location");
        let says = Some((FetchBlame::Upstream, why));
        let unusable = FetchError::Status { code, retry_after: None, redirected_to: None, says };
        let target = without_credentials(target(location, &self.url).ok_or(unusable)?);
        let downgrade = self.url.scheme() == "https" && target.scheme() == "http";
        if downgrade {
            self.notes.push(format!(
                "a redirect leads from https to http: {} to {}",
                shown(&self.url),
                shown(&target)
            ));
        }
        // A permanent redirect from HTTPS to HTTP is followed but not remembered.
        self.permanent = self.permanent && matches!(code, 301 | 308) && !downgrade;
        if self.permanent {
            self.moved_to = Some(target.clone());
        }
        self.hops += 1;
        self.url = target;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_chain(url: &str) -> RedirectChain {
        RedirectChain::new(&Url::parse(url).unwrap(), false)
    }

    /// At the end the number of notes, the last address and the one to which the feed moved.
    #[test]
    fn only_permanent_redirects_at_the_beginning_move_a_feed_and_no_downgrade() {
        let (start, moved) = ("https://a.org/feed", Some("https://b.org/x"));
        let permanent = [(301, "/new"), (308, "https://b.org/x#top")];
        let later = [permanent[0], permanent[1], (302, "https://c.org/"), (301, "https://d.org/")];
        for (start, redirects, notes, url, moved) in [
            (start, &permanent[..], 0, "https://b.org/x", moved),
            (start, &later, 0, "https://d.org/", moved),
            (start, &[(307, "https://b.org/")], 0, "https://b.org/", None),
            (start, &[(301, "http://a.org/feed")], 1, "http://a.org/feed", None),
            (start, &[(301, "http://a.org/"), (301, "http://b.org/")], 1, "http://b.org/", None),
            // Neither brings credentials.
            ("http://u:p@a.org/#x", &[], 0, "http://a.org/", None),
            (
                "http://u:p@a.org/",
                &[(301, "http://u:p@b.org/")],
                0,
                "http://b.org/",
                Some("http://b.org/"),
            ),
        ] {
            let mut chain = new_chain(start);
            for (code, location) in redirects {
                chain.follow(*code, Some(location.as_bytes())).unwrap();
            }
            let moved_to = chain.moved_to.as_ref().map(Url::as_str);
            assert_eq!((chain.notes.len(), chain.url.as_str(), moved_to), (notes, url, moved));
        }
    }

    #[test]
    fn a_chain_has_an_end() {
        let mut t = new_chain("http://a.org/");
        for _ in 0..MAX_REDIRECTS {
            t.follow(302, Some(b"/")).unwrap();
        }
        for (sets_cookies, end) in
            [(false, "the last at http://a.org"), (true, "sets a cookie on the way")]
        {
            t.sets_cookies = sets_cookies;
            let said = t.follow(302, Some(b"/")).unwrap_err().to_string();
            assert!(said.ends_with(end), "{said}");
        }
        let mut latin = new_chain("http://a.org/");
        latin.follow(302, Some(b"/caf\xe9")).unwrap();
        assert_eq!(latin.url.as_str(), "http://a.org/caf%E9");
        // A redirect needs a location.
        for bad in [None, Some(b"".as_slice()), Some(b"http://")] {
            let refused = new_chain("http://a.org/").follow(302, bad).unwrap_err();
            assert!(refused.to_string().ends_with("without a usable location"), "{bad:?}");
            assert_eq!(refused.status(), Some(302));
        }
    }
}
