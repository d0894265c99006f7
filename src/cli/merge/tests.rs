//! What the command prints.

use super::*;

const SHARED: &str = "<rss xmlns:sx=\"http://www.microsoft.com/schemas/sse\"><channel>\n<item><sx:sync id=\"i\" \
                      updates=\"1\"><sx:history sequence=\"1\" by=\"A\"/></sx:sync><title>TITLE</title></item>\
                      </channel></rss>";

/// What is printed on standard output and standard error; the files are local.xml and incoming.xml.
fn printed(local: &str, incoming: &str) -> Result<(String, String), AppError> {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["local.xml", "incoming.xml"].map(|name| folder.path().join(name));
    std::fs::write(&paths[0], local).unwrap();
    std::fs::write(&paths[1], incoming).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    merge(&paths[0], &paths[1], &mut out, &mut err)?;
    Ok((String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap()))
}

#[test]
fn the_merged_feed_is_printed_and_what_was_odd_is_warned_of() {
    let local = "<rss><channel></channel></rss>";
    let (out, err) = printed(local, &SHARED.replace("TITLE", "R&D")).unwrap();
    assert!(out.contains("<title>R&amp;D</title>"), "{out}");
    assert!(
        err.starts_with("warning: ") && err.contains("incoming.xml: line 2: a bare '&'"),
        "{err}"
    );
}

#[test]
fn what_is_wrong_is_named_by_file_and_line() {
    for (local, incoming, wanted) in [
        (
            SHARED.replace("\"1\" by", "\"x\" by"),
            SHARED.to_owned(),
            "local.xml: line 2: sx:history has",
        ),
        (SHARED.to_owned(), "<html/>".to_owned(), "incoming.xml: line 1: the document is neither"),
    ] {
        let error = printed(&local, &incoming).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(error.exit_status(), 2);
    }
    let nowhere = Path::new("no-such-file.xml");
    let error = merge(nowhere, nowhere, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("no-such-file.xml: the file cannot be read: "));
    assert_eq!(error.exit_status(), 2);
}
