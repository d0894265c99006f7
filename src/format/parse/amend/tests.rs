use super::*;
use crate::golden;
use crate::parse::{Limits, decode, document, own};

/// What comes of a new text, what of another one after that, and what of what an outline can say.
#[test]
fn all_that_is_not_amended_stays_in_every_format() {
    let first = Amendment {
        title: Some("New & \"title\"".to_owned()),
        text: Some(("<p>new</p>".to_owned(), true)),
        updated: Some(Time::from_unix(1_000_000_000)),
        ..Amendment::default()
    };
    let second = Amendment { text: Some(("a < b".to_owned(), false)), ..Amendment::default() };
    let other = Amendment {
        title: Some("New".to_owned()),
        link: Some("http://h/new".to_owned()),
        summary: Some("what it is".to_owned()),
        ..Amendment::default()
    };
    golden::each("amend", 5, |bytes| {
        let decoded = decode(bytes, None, &Limits::default()).unwrap();
        let document = document(&decoded.text, None, &Limits::default()).unwrap();
        let before = own(&document, &document.entries[0]);
        let after = amended_markup(&before, &first).unwrap();
        let twice = amended_markup(&after, &second).unwrap();
        let [one, two, three] = [after, twice, amended_markup(&before, &other).unwrap()]
            .map(|made| format!("{:?}\n{}\n{:#?}\n", made.format, made.xml, made.card));
        format!("{one}\n{two}\n{three}\n{:#?}", before.context)
    });
}
