//! Lists that are brought in behind one another without a gateway, and where their feeds stand then.

use assert_cmd::Command;
use std::path::Path;
use std::sync::Arc;
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_core::clock::SystemClock;
use tidegate_core::model::FeedStanding;
use tidegate_format::parse::opml::read;
use tidegate_store::Store;

fn tidegate(folder: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.current_dir(folder).args(args).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// What a gateway over a store answers at `/subscriptions.opml`. Its feeds are paused first: nobody is
/// polled.
fn proxied(folder: &Path, query: &str) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::on_disk(folder, None, Arc::new(SystemClock)).unwrap();
        for mut record in store.feeds().await.unwrap() {
            record.standing = FeedStanding::Paused;
            store.put_feed(&record).await.unwrap();
        }
        store.close().await.unwrap();
        drop(store);
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nkind = \"sled\"\npath = {folder:?}\n\
             [websub]\nhub = false\nsubscribe = false\n"
        );
        let config = config::check("t.toml", &text).unwrap_or_else(|faults| panic!("{faults}"));
        let gateway = Gateway::start(&config.config, Outside::default()).await.unwrap();
        let address = format!("http://{}/subscriptions.opml{query}", gateway.address());
        let list = reqwest::get(address).await.unwrap().text().await.unwrap();
        gateway.stop().await.unwrap();
        list
    })
}

#[test]
fn a_second_list_comes_behind_the_first_and_export_keeps_the_places() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let feed = |name: &str, host: &str| {
        format!("<outline text='{name}' xmlUrl='https://{host}.example/'/>")
    };
    let write = |file: &str, outlines: &str| {
        let text = format!("<opml version='2.0'><body>{outlines}</body></opml>");
        std::fs::write(at.join(file), text).unwrap();
    };
    let (a, b, c) = (feed("A", "a"), feed("B", "b"), feed("C", "c"));
    write("1.opml", &format!("<outline text='F'>{a}</outline>{b}"));
    write(
        "2.opml",
        &format!(
            "<outline text='G'>{}{c}</outline><outline text='F'>{}</outline>",
            feed("My A", "a"),
            feed("D", "d")
        ),
    );
    assert_eq!(tidegate(at, &["import", "1.opml", "-d", "data"]).0, 0);
    let (_, out) = tidegate(at, &["import", "2.opml", "-d", "data"]);
    assert!(out.contains("2 feeds added, 1 known already, 0 not taken\n"), "{out}");
    let texts = |data: &str| {
        let text = proxied(&at.join(data), "?upstream=1");
        let list = read(&text).unwrap();
        let line = |o: &tidegate_format::parse::opml::Outline| {
            format!("{}{}", " ".repeat(list.folder(o).len()), o.text().unwrap())
        };
        list.outlines.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(texts("data"), ["F", " A", " D", "B", "G", " C"]);
    assert_eq!(tidegate(at, &["export", "state.tg", "-d", "data"]).0, 0);
    assert_eq!(tidegate(at, &["import", "state.tg", "-d", "other"]).0, 0);
    assert_eq!(texts("other"), texts("data"));
    let (_, out) = tidegate(at, &["import", "2.opml", "--rearrange", "-d", "data"]);
    assert!(
        out.contains("0 feeds added, 3 known already") && out.contains("given another place"),
        "{out}"
    );
    assert_eq!(texts("data"), ["G", " My A", " C", "F", " D", "B"]);
}
