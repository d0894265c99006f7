//! A tree in the order of its text.

use super::{Doc, DocElement, NodeId, index};
use std::borrow::Cow;

/// One step of a walk.
#[derive(Debug)]
pub enum WalkStep<'t, 'a> {
    /// An element opened.
    Open(DocElement<'t, 'a>),
    /// Character data, references resolved. It comes in pieces: text, a reference, a CDATA section.
    Text(Cow<'a, str>),
    /// An element closed.
    Close(DocElement<'t, 'a>),
}

/// A walk through an element.
#[derive(Debug)]
pub struct Walk<'t, 'a> {
    doc: &'t Doc<'a>,
    root: NodeId,
    /// The innermost element that is open, once the walk has begun.
    open: Option<DocElement<'t, 'a>>,
    /// The number that the next element in it has, if there is one, and the place of what comes next.
    next: NodeId,
    at: usize,
    place: usize,
    is_over: bool,
}

impl<'t, 'a> DocElement<'t, 'a> {
    /// A walk through the element, which is its first step and its last.
    pub const fn walk(self) -> Walk<'t, 'a> {
        let (doc, root) = (self.doc, self.id);
        Walk { doc, root, open: None, next: root, at: 0, place: 0, is_over: false }
    }
}

impl<'t, 'a> Walk<'t, 'a> {
    /// Where the piece of text begins that was the last step; byte offset into the document.
    pub const fn place(&self) -> usize {
        self.place
    }

    /// Leaves out what is in the element that opened last, and its end.
    pub fn leave_out(&mut self) {
        if let Some(element) = self.open {
            self.leave(element);
        }
    }

    fn leave(&mut self, element: DocElement<'t, 'a>) {
        (self.at, self.next) = (index(element.node.end), element.node.next);
        self.is_over = element.id == self.root;
        self.open = element.parent();
    }
}

impl<'t, 'a> Iterator for Walk<'t, 'a> {
    type Item = WalkStep<'t, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        // Each turn goes behind a piece of text or passes an element's tag.
        while !self.is_over {
            let open = self.open;
            let end = open.map_or(self.next + 1, |open| open.node.next);
            let child = if self.next < end { self.doc.element(self.next) } else { None };
            let text_end = match (child, open) {
                (_, None) => self.at,
                (Some(child), _) => index(child.node.start),
                (None, Some(open)) => index(open.node.content_end),
            };
            if self.at < text_end {
                let (text, behind) = self.doc.piece(self.at..text_end, false);
                (self.place, self.at) = (self.at, behind);
                if !text.is_empty() {
                    return Some(WalkStep::Text(text));
                }
            } else if let Some(child) = child {
                (self.at, self.next) = (index(child.node.content), child.id + 1);
                self.open = Some(child);
                return Some(WalkStep::Open(child));
            } else {
                let open = open?;
                self.leave(open);
                return Some(WalkStep::Close(open));
            }
        }
        None
    }
}
