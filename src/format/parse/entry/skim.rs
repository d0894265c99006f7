//! What of an entry is read at once where it is skimmed: what it means, and none of its text.

use super::{EntryBuilder, FIELD_COST};
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::xml::walker::{
    Interest, OpenElement, SkimLimits, SkimReader, WalkedAttribute, Walker,
};
use url::Url;

impl<'a> EntryBuilder<'a, '_> {
    /// Reads the entry, which has opened, by a skim, and answers where it ends; `None` where the walk has to
    /// go through it. Then this builder is spent.
    pub fn skim(&mut self, walker: &mut Walker<'a>) -> Option<usize> {
        let is_mended = walker.edits.len() > self.first_edit;
        if is_mended || !self.dialect.is_usual() {
            return None;
        }
        // Text of the entry's own is a field, too.
        let fields = self.limits.fields.checked_sub(self.fields.len() + 1)?;
        let skimmed = walker.skim(self, SkimLimits { fields, path: self.limits.path })?;
        self.cost += (skimmed.fields + 1) * FIELD_COST + skimmed.paths;
        self.is_skimmed = true;
        Some(skimmed.end)
    }
}

impl<'a> SkimReader<'a> for EntryBuilder<'a, '_> {
    /// The elements that say something of the entry, by the names that they have in any format.
    fn wants(&self, level: usize, local: &str) -> Interest {
        match (level, local) {
            (1, "author") => Interest::TextAndElements,
            (
                1,
                "id" | "guid" | "link" | "title" | "creator" | "enclosure" | "published"
                | "pubDate" | "issued" | "created" | "date" | "updated" | "modified",
            )
            | (2, "name") => Interest::Text,
            _ => Interest::Nothing,
        }
    }

    fn opened(
        &mut self,
        level: usize,
        frame: &OpenElement<'a>,
        attributes: &[WalkedAttribute<'a>],
        base: Option<&Url>,
    ) {
        self.meaning.open(self.dialect, level, frame, attributes, base);
    }

    fn closed(
        &mut self,
        level: usize,
        frame: &OpenElement<'a>,
        text: Cow<'a, str>,
        place: &(Range<usize>, Range<usize>),
        base: Option<&Url>,
    ) {
        self.meaning.close(self.dialect, level, frame, &text, false, place, base);
    }
}
