//! From tags to outlines.

use super::sync::{SyncDraft, value};
use super::tag::{Missing, Read, TORN, TagMarkup, read};
use super::{
    HEAD, OpmlError, OpmlLimits, OpmlProblem, OpmlSharing, Outline, OutlineKind, OutlineList,
    quoted,
};
use std::collections::HashMap;
use tidegate_core::sync_markup::Dialect;
use tidegate_core::xml;
use tidegate_core::xml::cut;
use tidegate_core::xml::html::plain_text_if_html;

/// The most prefixes that are noted.
const PREFIX_LIMIT: usize = 256;

/// An element that is open.
#[derive(Debug)]
struct Open<'a> {
    name: &'a str,
    at: usize,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Outline(usize),
    Sync,
    Other,
}

/// An `sx:conflict` that is open: everything in it is its own.
struct Conflict<'a> {
    attributes: Vec<(&'a str, String)>,
    content: usize,
    depth: usize,
}

pub(super) struct OutlineBuilder<'a> {
    text: &'a str,
    limits: &'a OpmlLimits,
    newlines: Vec<usize>,
    open: Vec<Open<'a>>,
    /// How many outlines are open.
    depth: usize,
    /// How many elements that are neither outlines nor sync markup were noted.
    others: usize,
    prefixes: HashMap<&'a str, String>,
    draft: Option<SyncDraft>,
    conflict: Option<Conflict<'a>>,
    has_root: bool,
    first: Option<&'a str>,
    list: OutlineList,
}

impl<'a> OutlineBuilder<'a> {
    pub(super) fn new(text: &'a str, limits: &'a OpmlLimits) -> Self {
        Self {
            text,
            limits,
            newlines: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
            open: Vec::new(),
            depth: 0,
            others: 0,
            prefixes: HashMap::new(),
            draft: None,
            conflict: None,
            has_root: false,
            first: None,
            list: OutlineList {
                title: None,
                head: Vec::new(),
                sharing: None,
                outlines: Vec::new(),
                problems: Vec::new(),
                invalid: None,
                unnamed: 0,
                namespaces: Vec::new(),
                is_whole: true,
                is_torn: false,
                body: text.len()..text.len(),
            },
        }
    }

    pub(super) fn build(mut self) -> Result<OutlineList, OpmlError> {
        let mut at = 0;
        let mut missing = Missing::new();
        let most = (self.limits.attributes, self.limits.value);
        while let Some(found) =
            memchr::memchr(b'<', self.text.as_bytes().get(at..).unwrap_or_default())
        {
            let start = at + found;
            let Read { markup, end, guesses } = read(self.text, start, most, &mut missing);
            let named = matches!(markup, TagMarkup::Start { .. });
            if named && self.conflict.is_none() {
                for guess in &guesses {
                    self.problem(start, (*guess).to_owned());
                }
            }
            self.list.is_torn |= named && guesses.contains(&TORN);
            at = end;
            match markup {
                TagMarkup::Start { name, attributes, empty } => {
                    self.start(name, attributes, empty, start..end)?;
                }
                TagMarkup::End { name } => self.end(name, start..end),
                TagMarkup::Other => {}
                TagMarkup::Stray => self.problem(start, "a '<' begins no tag".to_owned()),
                TagMarkup::Endless => {
                    // What begins here cannot hide what follows it.
                    self.list.is_whole = false;
                    self.problem(start, "something begins and does not end".to_owned());
                    at = start + 1;
                    if cut(self.text, at..self.text.len()).starts_with('!') {
                        at = self.behind_endless(start);
                    }
                }
            }
        }
        self.finish()
    }

    /// Where reading goes on behind a comment without end: at the next outline's tag.
    fn behind_endless(&self, start: usize) -> usize {
        let rest = self.text.as_bytes().get(start + 1..).unwrap_or_default();
        memchr::memmem::find(rest, b"<outline").map_or(self.text.len(), |n| start + 1 + n)
    }

    fn line(&self, at: usize) -> usize {
        self.newlines.partition_point(|newline| *newline < at) + 1
    }

    fn problem(&mut self, at: usize, message: String) {
        let line = self.line(at);
        self.problem_in(line, message);
    }

    fn problem_in(&mut self, line: usize, message: String) {
        if self.list.problems.len() < self.limits.problems {
            self.list.problems.push(OpmlProblem { line, message });
        } else {
            self.list.unnamed += 1;
        }
    }

    /// Whether a prefix is that of SSE 0.91; one that nothing declares is, by its usual name.
    fn is_sharing(&self, prefix: &str) -> bool {
        match self.prefixes.get(prefix) {
            Some(uri) => Dialect::of(uri) == Some(Dialect::Sse091),
            None => prefix == "sx",
        }
    }

    fn start(
        &mut self,
        name: &'a str,
        attributes: Vec<(&'a str, String)>,
        empty: bool,
        span: std::ops::Range<usize>,
    ) -> Result<(), OpmlError> {
        if let Some(conflict) = &mut self.conflict {
            conflict.depth += usize::from(!empty);
            return Ok(());
        }
        self.first.get_or_insert(name);
        for (name, value) in &attributes {
            let prefix =
                name.strip_prefix("xmlns").map(|rest| rest.strip_prefix(':').unwrap_or(rest));
            if let Some(prefix) = prefix
                && self.prefixes.len() < PREFIX_LIMIT
            {
                self.prefixes.insert(prefix, value.trim().to_owned());
            }
        }
        let (prefix, local) = name.rsplit_once(':').unwrap_or(("", name));
        let mut what = What::Other;
        if !prefix.is_empty() && self.is_sharing(prefix) {
            what = self.sharing(local, attributes, empty, &span);
            if self.conflict.is_some() {
                return Ok(());
            }
        } else if local.eq_ignore_ascii_case("outline") {
            what = What::Outline(self.outline(attributes, empty, &span)?);
        } else if local.eq_ignore_ascii_case("opml") {
            self.has_root = true;
        } else if local.eq_ignore_ascii_case("body") {
            self.list.body = span.end..self.text.len();
        } else if local.eq_ignore_ascii_case("title")
            && self.list.title.is_none()
            && self.depth == 0
        {
            self.list.title = self.plain(span.end);
        } else if let Some(name) = HEAD.into_iter().find(|name| local.eq_ignore_ascii_case(name))
            && self.depth == 0
            && !self.list.head.iter().any(|(known, _)| *known == name)
        {
            self.list.head.extend(self.plain(span.end).map(|text| (name, text)));
        } else if self.depth > 0
            && let Some(number) = self.innermost()
            && self.open.last().is_some_and(|open| open.what == What::Outline(number))
            && let Some(outline) = self.list.outlines.get_mut(number)
        {
            // Its end is set where the element closes.
            if self.others < self.limits.others {
                self.others += 1;
                outline.other.push(span.clone());
            }
        }
        if !empty {
            if self.open.len() >= self.limits.depth.saturating_mul(2) {
                return Err(self.limit(
                    "elements inside each other",
                    self.limits.depth,
                    span.start,
                ));
            }
            self.open.push(Open { name, at: span.start, what });
        }
        Ok(())
    }

    fn limit(&self, what: &'static str, limit: usize, at: usize) -> OpmlError {
        OpmlError::Limit { what, limit, line: self.line(at) }
    }

    fn innermost(&self) -> Option<usize> {
        self.open.iter().rev().find_map(|open| match open.what {
            What::Outline(number) => Some(number),
            _ => None,
        })
    }

    fn outline(
        &mut self,
        attributes: Vec<(&'a str, String)>,
        empty: bool,
        span: &std::ops::Range<usize>,
    ) -> Result<usize, OpmlError> {
        let number = self.list.outlines.len();
        if number >= self.limits.outlines {
            return Err(self.limit("outlines", self.limits.outlines, span.start));
        }
        if self.depth >= self.limits.depth {
            return Err(self.limit("outlines inside each other", self.limits.depth, span.start));
        }
        self.depth += usize::from(!empty);
        let parent = self.innermost();
        let line = self.line(span.start);
        let own = attributes.into_iter().filter(|(name, _)| !name.starts_with("xmlns"));
        let attributes = own.map(|(name, value)| (name.to_owned(), value)).collect();
        self.list.outlines.push(Outline {
            parent,
            attributes,
            sync: None,
            has_invalid_sync: false,
            other: Vec::new(),
            line,
            closed: empty,
        });
        Ok(number)
    }

    /// An element of SSE 0.91.
    fn sharing(
        &mut self,
        local: &str,
        attributes: Vec<(&'a str, String)>,
        empty: bool,
        span: &std::ops::Range<usize>,
    ) -> What {
        match (local, &mut self.draft) {
            ("sharing", _) if self.list.sharing.is_none() => {
                let value = |name| value(&attributes, name).map(str::to_owned);
                let version = value("version").unwrap_or_default();
                let (since, until) = (value("since"), value("until"));
                self.list.sharing = Some(OpmlSharing { version, since, until, complete: None });
            }
            ("related", None) => {
                if let Some(sharing) = &mut self.list.sharing
                    && value(&attributes, "type") == Some("complete")
                {
                    let link = value(&attributes, "link").map(str::to_owned);
                    sharing.complete = sharing.complete.take().or(link);
                }
            }
            ("sync", None) => {
                let draft = SyncDraft::begin(&attributes, self.line(span.start));
                self.draft = Some(draft);
                if empty {
                    self.synced();
                }
                return What::Sync;
            }
            ("history", Some(draft)) => draft.history(&attributes),
            ("update", Some(draft)) => draft.update(&attributes),
            ("conflict", Some(draft)) if empty => draft.conflict(&attributes, ""),
            ("conflict", Some(_)) => {
                self.conflict = Some(Conflict { attributes, content: span.end, depth: 0 });
            }
            _ => {}
        }
        What::Other
    }

    /// The `sx:sync` is over.
    fn synced(&mut self) {
        let Some(draft) = self.draft.take() else { return };
        let line = draft.line;
        let outline = self.innermost().and_then(|number| self.list.outlines.get_mut(number));
        match (draft.finish(), outline) {
            (Ok(sync), Some(outline)) if outline.sync.is_none() => outline.sync = Some(sync),
            (Ok(_), Some(_)) => {
                self.problem_in(line, "an outline has a second sx:sync, which is left out".into());
            }
            (Ok(_), None) => self.problem_in(line, "an sx:sync stands in no outline".to_owned()),
            (Err(error), outline) => {
                if let Some(outline) = outline {
                    outline.has_invalid_sync = true;
                }
                let message = format!("an sx:sync is not taken: {error}");
                self.list.invalid.get_or_insert(OpmlProblem { line, message: message.clone() });
                self.problem_in(line, message);
            }
        }
    }

    fn end(&mut self, name: &'a str, span: std::ops::Range<usize>) {
        if let Some(conflict) = &mut self.conflict {
            if conflict.depth > 0 {
                conflict.depth -= 1;
                return;
            }
            let Some(Conflict { attributes, content, .. }) = self.conflict.take() else { return };
            let markup = cut(self.text, content..span.start);
            if let Some(draft) = &mut self.draft {
                draft.conflict(&attributes, markup);
            }
            return;
        }
        if name.eq_ignore_ascii_case("body") {
            self.list.body.end = span.start;
        }
        let same = |open: &Open<'_>| open.name.eq_ignore_ascii_case(name);
        let Some(found) = self.open.iter().rposition(same) else {
            let shown = quoted(name).to_owned();
            self.problem(span.start, format!("the end tag </{shown}> closes nothing"));
            return;
        };
        while self.open.len() > found + 1 {
            self.close(None);
        }
        self.close(Some(span.end));
    }

    /// Closes the innermost element; `end` where its own end tag ends.
    fn close(&mut self, end: Option<usize>) {
        let Some(open) = self.open.pop() else { return };
        if end.is_none() {
            let (name, line) = (quoted(open.name), self.line(open.at));
            self.problem_in(line, format!("the element <{name}> is not closed"));
        }
        match open.what {
            What::Outline(number) => {
                self.depth = self.depth.saturating_sub(1);
                if let Some(outline) = self.list.outlines.get_mut(number) {
                    outline.closed = end.is_some();
                }
            }
            What::Sync => {
                self.open.push(open);
                self.synced();
                self.open.pop();
            }
            What::Other => {
                let around = self.open.last().map(|around| around.what);
                if let (Some(What::Outline(number)), Some(end)) = (around, end)
                    && let Some(outline) = self.list.outlines.get_mut(number)
                    && let Some(other) = outline.other.last_mut()
                    && other.start == open.at
                {
                    other.end = end;
                }
            }
        }
    }

    /// The character data behind `at`, up to the next tag.
    fn plain(&self, at: usize) -> Option<String> {
        let rest = cut(self.text, at..self.text.len());
        let raw = match rest.trim_start().strip_prefix("<![CDATA[") {
            Some(inner) => inner.split("]]>").next().unwrap_or_default().to_owned(),
            None => plain_text_if_html(rest.split('<').next().unwrap_or_default()),
        };
        let title = xml::shortened(raw.trim(), self.limits.value).to_owned();
        (!title.is_empty()).then_some(title)
    }

    fn finish(mut self) -> Result<OutlineList, OpmlError> {
        let cut_off = self.open.iter().any(|open| open.what != What::Other);
        self.list.is_whole &= self.open.is_empty() && !self.list.is_torn;
        while !self.open.is_empty() {
            self.close(None);
        }
        if self.list.outlines.is_empty() && !self.has_root {
            let what = match self.first.map(str::to_ascii_lowercase).as_deref() {
                Some("html") => "a web page",
                Some("rss" | "feed" | "rdf:rdf") => "a feed",
                Some(_) => "some other XML",
                None => "no XML",
            };
            return Err(OpmlError::NotAList(what));
        }
        if cut_off {
            let line = self.newlines.len() + 1;
            self.problem_in(line, "the list is cut off before its end".to_owned());
        }
        self.lift();
        let mut namespaces: Vec<(String, String)> =
            self.prefixes.into_iter().map(|(prefix, uri)| (prefix.to_owned(), uri)).collect();
        namespaces.sort();
        self.list.namespaces = namespaces;
        self.list.body.end = self.list.body.end.max(self.list.body.start);
        self.list.problems.sort_by_key(|problem| problem.line);
        Ok(self.list)
    }

    /// A feed that is not closed is no folder of what follows it.
    fn lift(&mut self) {
        for number in 0..self.list.outlines.len() {
            let mut parent = self.list.outlines.get(number).and_then(|outline| outline.parent);
            // Those before were lifted already, so their parents are final: one step is enough but
            // where several feeds in a row are not closed.
            while let Some(around) = parent.and_then(|at| self.list.outlines.get(at))
                && !around.closed
                && matches!(around.kind(), OutlineKind::Feed(_))
            {
                parent = around.parent;
            }
            if let Some(outline) = self.list.outlines.get_mut(number) {
                outline.parent = parent;
            }
        }
    }
}
