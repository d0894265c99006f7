//! Fields that come and go.

use super::*;

#[test]
fn a_field_that_comes_and_goes() {
    let with = |more: &str| format!("<title>t</title><description>Words</description>{more}");
    let told = |watch: &mut Watch, hours: u64, shown: &[&str]| -> Vec<bool> {
        shown.iter().map(|more| !watch.after(hours, &with(more)).loud.is_empty()).collect()
    };
    let note = "<note>By us</note>";
    let mut watch = Watch::new(&with(""));
    let shown = [note, "", note, "", note];
    assert_eq!(told(&mut watch, 1, &shown), [true, true, true, false, false]);
    assert!(watch.after(1, &with("")).due.is_some(), "its last state comes out");
    assert_eq!(told(&mut watch, 1, &["<note>By them</note>"]), [true], "other words are news");
    assert_eq!(told(&mut watch, 1, &[""]), [true], "and it is learned anew");
    // One that goes first has no name yet.
    let mut watch = Watch::new(&with(note));
    watch.known.noise.restless.clear();
    let shown = ["", note, "", note, ""];
    assert_eq!(told(&mut watch, 1, &shown), [true, true, true, true, false]);
    let mut watch = Watch::new(&with(""));
    let shown = [note, "", note, "", note, ""];
    assert_eq!(told(&mut watch, 16, &shown), [true; 6], "not within half a day");
    let words = |n: usize| [note, ""][n % 2];
    let mut watch = Watch::new(&with(""));
    for n in 0..6 {
        let edited = with(&format!("{}<other>{n} is {}</other>", words(n), ["a", "b"][n % 2]));
        assert!(!watch.after(1, &edited).loud.is_empty(), "with other words it is an edit");
    }
}

#[test]
fn the_title_and_the_only_text_do_not_come_and_go() {
    let (title, text) = ("<title>t</title>", "<description>Words</description>");
    let (more, category) = ("<content>More</content>", "<category>c</category>");
    for kept in [format!("{title}{category}"), format!("{text}{more}{category}")] {
        let gone = if kept.starts_with(title) { text } else { title };
        let mut watch = Watch::new(&kept);
        for n in 0..9 {
            let shown = [gone, ""][n % 2];
            assert!(!watch.after(1, &format!("{kept}{shown}")).loud.is_empty(), "{n} {gone}");
        }
    }
}
