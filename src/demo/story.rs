//! The lines of the story: what they are about, and how they are printed.

mod teller;

pub use teller::Storyteller;

use std::fmt::Write;
use std::time::Duration;

/// The width of the column of kinds.
const KIND_WIDTH: usize = 10;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoryKind {
    /// A feed was read for the first time.
    Read,
    New,
    Edit,
    /// A change that nobody sees.
    Noise,
    Rename,
    /// An item left at the end of its publisher's window.
    ScrollOff,
    Deletion,
    /// An item is back, or came or went in another way.
    Other,
    /// A document of which only a part counts, or none at all.
    Broken,
    /// The publisher is well again.
    Mended,
    Held,
    Released,
    Conflict,
    Resolved,
    /// The change stands in the stream of events.
    Events,
    /// The change stands in the SUP document.
    Sup,
    /// Everything was told once.
    All,
}

impl StoryKind {
    /// What every run shows.
    pub const PROMISED: [Self; 12] = [
        Self::New,
        Self::Edit,
        Self::Noise,
        Self::Rename,
        Self::ScrollOff,
        Self::Deletion,
        Self::Broken,
        Self::Held,
        Self::Released,
        Self::Conflict,
        Self::Events,
        Self::Sup,
    ];

    /// The word in front of the sentence.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::New => "new",
            Self::Edit => "edit",
            Self::Noise => "noise",
            Self::Rename => "rename",
            Self::ScrollOff => "scroll-off",
            Self::Deletion => "deletion",
            Self::Other => "item",
            Self::Broken => "broken",
            Self::Mended => "mended",
            Self::Held => "held",
            Self::Released => "hold over",
            Self::Conflict => "conflict",
            Self::Resolved => "resolved",
            Self::Events => "events",
            Self::Sup => "sup",
            Self::All => "all seen",
        }
    }

    /// Its colour on a terminal (ECMA-48, SGR).
    const fn colour(self) -> &'static str {
        match self {
            Self::New | Self::Mended | Self::Released | Self::Resolved | Self::All => "32",
            Self::Edit | Self::Rename | Self::Other => "36",
            Self::Deletion | Self::Broken => "31",
            Self::Held | Self::Conflict => "33",
            Self::Events | Self::Sup => "35",
            Self::Read | Self::Noise | Self::ScrollOff => "2",
        }
    }
}

/// A line of the story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryLine {
    /// How long after the start.
    pub at: Duration,
    pub kind: StoryKind,
    pub sentence: String,
    /// The address that shows it.
    pub address: String,
    /// What a visitor may type.
    pub command: Option<String>,
}

impl StoryLine {
    /// The line as it is printed, without its end; a command stands below it.
    pub fn print(&self, has_colour: bool) -> String {
        let Self { kind, sentence, address, .. } = self;
        let seconds = self.at.as_secs();
        let time = format!("{}:{:02}", seconds / 60, seconds % 60);
        let word = format!("{:KIND_WIDTH$}", kind.word());
        let word = match has_colour {
            true => format!("\x1b[{}m{word}\x1b[0m", kind.colour()),
            false => word,
        };
        let mut line = format!("{time:>5}  {word}  {sentence}  {address}");
        if let Some(command) = &self.command {
            // Writing to a string cannot fail.
            let _ = write!(line, "\n       {:KIND_WIDTH$}  {command}", "");
        }
        line
    }
}

#[cfg(test)]
mod tests;
