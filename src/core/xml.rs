//! XML and HTML as text: characters, names, references, escaping, tags, trees, HTML in pieces, and
//! the dates and addresses in them.
//!
//! What is written here knows nothing of feeds and nothing of the rest of the program. Each byte of
//! a text is looked at a bounded number of times, whatever the text is.

pub mod address;
mod date;
pub mod doc;
pub mod edits;
mod escape;
pub mod html;
pub mod ns;
pub mod plain_address;
pub mod reference;
pub mod tag;
mod text;
pub mod tree;

pub use date::{date, well_formed_date};
pub use escape::{
    plain, plain_value, push_attribute, push_element, push_empty, push_namespace, push_text,
    push_value,
};
pub use text::{
    collapsed, cut, declared_prefix, find_tag, has_units, is_blank, is_char, is_name, is_space,
    shortened, split_name, trim, trimmed,
};
