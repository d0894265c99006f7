//! Where a document stands in its feed's history (Feed History draft-05, RFC 5005).

/// Which forms of links between archive documents are written (`publish.history_links`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkForms {
    /// Of the draft: `previous`.
    pub draft05: bool,
    /// Of RFC 5005: `prev-archive` and `next-archive`.
    pub rfc5005: bool,
}

impl Default for LinkForms {
    fn default() -> Self {
        Self { draft05: true, rfc5005: true }
    }
}

/// An archive document among its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveDocument {
    /// Its own address, absolute.
    pub own: String,
    /// The address of the archive sealed after it, absolute.
    pub next: Option<String>,
}

/// Where a document stands in its feed's history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryPlace {
    /// Which forms of links are written.
    pub forms: LinkForms,
    /// Whether the document lists every entry of its feed: `fh:complete`.
    pub complete: bool,
    /// The address of the archive of what came before: of the newest archive in the subscription
    /// document, of the one before it in an archive.
    pub previous: Option<String>,
    /// For an archive document.
    pub archive: Option<ArchiveDocument>,
}

impl HistoryPlace {
    /// The links as relation and address; `current` is the address of the subscription document.
    ///
    /// RFC 5005 calls the next older archive `prev-archive`, the draft calls it `previous`, which
    /// RFC 5005 has for paged feeds: both may stand together (READINGS 3, row 1).
    pub fn links<'a>(&'a self, current: &'a str) -> Vec<(&'static str, &'a str)> {
        let LinkForms { draft05, rfc5005 } = self.forms;
        let mut links = Vec::new();
        // Both require it of an archive.
        if self.archive.is_some() {
            links.push(("current", current));
        }
        if let Some(previous) = &self.previous {
            let forms = [(rfc5005, "prev-archive"), (draft05, "previous")];
            let forms = forms.into_iter().filter(|(written, _)| *written);
            links.extend(forms.map(|(_, relation)| (relation, previous.as_str())));
        }
        let next = self.archive.as_ref().and_then(|archive| archive.next.as_deref());
        if let Some(next) = next.filter(|_| rfc5005) {
            links.push(("next-archive", next));
        }
        links
    }

    /// The element that marks the document, where it is marked (section 5 of the draft; RFC 5005
    /// sections 2 and 4).
    pub const fn mark(&self) -> Option<&'static str> {
        match (&self.archive, self.complete) {
            (Some(_), _) => Some("archive"),
            (None, true) => Some("complete"),
            (None, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_its_links() {
        let archive = ArchiveDocument { own: "o".to_owned(), next: Some("n".to_owned()) };
        let mut place = HistoryPlace { previous: Some("p".to_owned()), ..HistoryPlace::default() };
        assert_eq!(place.links("c"), [("prev-archive", "p"), ("previous", "p")]);
        assert_eq!(place.mark(), None);
        place.archive = Some(archive);
        let all =
            [("current", "c"), ("prev-archive", "p"), ("previous", "p"), ("next-archive", "n")];
        assert_eq!(place.links("c"), all);
        assert_eq!(place.mark(), Some("archive"));
        place.forms = LinkForms { draft05: true, rfc5005: false };
        assert_eq!(place.links("c"), [("current", "c"), ("previous", "p")]);
        place.forms = LinkForms { draft05: false, rfc5005: true };
        assert_eq!(
            place.links("c"),
            [("current", "c"), ("prev-archive", "p"), ("next-archive", "n")]
        );
        place.forms = LinkForms { draft05: false, rfc5005: false };
        assert_eq!(place.links("c"), [("current", "c")], "an archive leads to its feed");
        let complete = HistoryPlace { complete: true, ..HistoryPlace::default() };
        assert!(complete.links("c").is_empty(), "no archive links beside fh:complete");
        assert_eq!(complete.mark(), Some("complete"));
    }
}
