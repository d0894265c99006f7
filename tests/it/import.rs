//! `tidegate import` and `tidegate export` as they are typed.
//!
//! The real lists are those of the folder `opml/` of the corpus that `TIDEGATE_CORPUS` names, where
//! it is set.

use crate::support;
use assert_cmd::Command;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_core::clock::SystemClock;
use tidegate_core::model::{FeedRecord, FeedSource, FeedStanding, ListPlace, ShownAddress};
use tidegate_format::parse::opml::{OpmlLimits, OutlineKind, OutlineList, read};
use tidegate_format::parse::{Limits, characters, decode};
use tidegate_store::{Store};

fn tidegate(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    let output = command.current_dir(folder).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const LIST: &str = "<opml version='1.0'><body>
<outline text='News & more'>
<outline title='One' xmlUrl='https://one.example/feed'/>
<outline title='Two' xmlUrl='https://one.example/feed?b'/>
<outline title='Again' xmlUrl='https://one.example/feed'/>
<outline title='Bad' xmlUrl='gopher://two.example/'/>
</outline></body></opml>";

/// The records of a store, read by the library.
fn records(folder: &Path) -> Vec<FeedRecord> {
    let store = Store::on_disk(folder, None, Arc::new(SystemClock)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let records = store.feeds().await.unwrap();
        store.close().await.unwrap();
        records
    })
}

#[test]
fn a_list_is_taken_in_and_what_is_not_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("l.opml"), LIST).unwrap();
    let (status, out, err) = tidegate(folder.path(), &["import", "l.opml", "-d", "data"]);
    assert_eq!(status, 0, "{err}");
    assert_eq!(
        err,
        "l.opml:2: a bare '&' is taken for itself\n\
         l.opml:5: not taken: https://one.example/feed: it stands in line 3 already\n\
         l.opml:6: not taken: gopher://two.example/: the address has the scheme \"gopher\"; write http or https\n"
    );
    assert!(
        out.contains("added     one-example-feed\nadded     one-example-feed-7kzhwyo5\n"),
        "{out}"
    );
    assert!(out.ends_with("2 feeds added, 0 known already, 2 not taken, 1 problems in the list\n"));
    let stored = records(&folder.path().join("data"));
    assert_eq!(stored.len(), 2);
    assert!(stored.iter().all(|record| record.source == FeedSource::Api));
    assert_eq!(stored[0].enrolment.title.as_deref(), Some("One"));
    let (status, out, _) = tidegate(folder.path(), &["import", "l.opml", "-d", "data"]);
    assert_eq!(status, 0);
    assert!(out.starts_with("0 feeds added, 2 known already, 2 not taken"), "{out}");
    assert_eq!(records(&folder.path().join("data")), stored, "nothing was written");
}

#[test]
fn wrong_input_is_status_2_and_a_store_in_use_is_1() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("feed.xml"), "<rss><channel/></rss>").unwrap();
    std::fs::write(at.join("l.opml"), LIST).unwrap();
    std::fs::write(at.join("memory.toml"), "[store]\nkind = \"memory\"\n").unwrap();
    for (args, said) in [
        (&["import", "nothing.opml"][..], "nothing.opml cannot be read"),
        (&["import", "feed.xml"], "feed.xml: it is a feed and no OPML list"),
        (&["import", "l.opml", "-c", "memory.toml"], "store.kind is \"memory\""),
        (&["export", "f", "-d", "nowhere"], "there is no data folder nowhere"),
        (&["import"], "Usage"),
    ] {
        let (status, out, err) = tidegate(at, args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
    assert!(!at.join("tidegate-data").exists(), "nothing was made");
    let store = Store::on_disk(&at.join("data"), None, Arc::new(SystemClock)).unwrap();
    // The gateway that runs there is asked, or another one that is named; nothing listens at these ports.
    std::fs::write(at.join("t.toml"), "[server]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let nobody = ["export", "f", "-d", "data", "--gateway", "http://127.0.0.1:1"];
    for (args, said) in [
        (
            &["import", "l.opml", "-c", "t.toml", "-d", "data"][..],
            "the gateway that runs with this store was to take it: no gateway answers at http://127.0.0.1:1",
        ),
        (&nobody[..], "no gateway answers at http://127.0.0.1:1"),
    ] {
        let (status, _, err) = tidegate(at, args);
        assert_eq!(status, 1, "{err}");
        assert!(err.contains(said), "{err}");
    }
    drop(store);
}

#[test]
fn a_gateway_is_carried_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("l.opml"), LIST).unwrap();
    assert_eq!(tidegate(at, &["import", "l.opml", "-d", "data"]).0, 0);
    let (status, out, err) = tidegate(at, &["export", "state.tg", "-d", "data"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("2 feeds with 0 items written to state.tg, "), "{out}");
    let (status, _, err) = tidegate(at, &["export", "state.tg", "-d", "data"]);
    assert!(status == 2 && err.contains("is there already"), "{err}");

    // A folder with a token alone is as good as none, and the token stays.
    std::fs::create_dir(at.join("other")).unwrap();
    std::fs::write(at.join("other/admin-token"), "token").unwrap();
    let (status, out, err) = tidegate(at, &["import", "state.tg", "-d", "other"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("2 feeds with 0 items brought in, "), "{out}");
    assert_eq!(records(&at.join("other")), records(&at.join("data")));
    assert_eq!(std::fs::read_to_string(at.join("other/admin-token")).unwrap(), "token");

    for into in ["other", "data"] {
        let (status, _, err) = tidegate(at, &["import", "state.tg", "-d", into]);
        assert!(status == 2 && err.contains("has a store or something else in it"), "{err}");
    }
    std::fs::write(at.join("t.toml"), "[publish]\nendpoint = \"mine\"\n").unwrap();
    let (status, _, err) = tidegate(at, &["import", "state.tg", "-d", "third", "-c", "t.toml"]);
    assert!(status == 2 && err.contains("publish.endpoint says mine"), "{err}");

    // Cut anywhere, or with one byte that is another, it is refused and leaves nothing.
    let whole = std::fs::read(at.join("state.tg")).unwrap();
    let mut other = whole.clone();
    let middle = whole.len() / 2;
    other[middle] ^= 0x40;
    for broken in [&whole[..whole.len() - 1], &whole[..middle], &whole[..20], &other] {
        std::fs::write(at.join("broken.tg"), broken).unwrap();
        let (status, _, err) = tidegate(at, &["import", "broken.tg", "-d", "third"]);
        assert!(status == 2 && err.contains("damaged or cut off"), "{err}");
        let left: Vec<PathBuf> =
            std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()).collect();
        assert!(!left.iter().any(|path| path.to_string_lossy().contains("third")), "{left:?}");
    }
}

#[test]
fn two_lists_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let list = |outline: &str| {
        format!(
            "<opml version='2.0' xmlns:sx='http://www.microsoft.com/schemas/rss/sse'><body>{outline}</body></opml>"
        )
    };
    let shared = |id: &str| {
        format!(
            "<outline text='{id}' xmlUrl='http://{id}/'><sx:sync id='{id}' version='1'><sx:history by='A'/></sx:sync></outline>"
        )
    };
    std::fs::write(at.join("a.opml"), list(&shared("a"))).unwrap();
    std::fs::write(at.join("b.opml"), list(&shared("b"))).unwrap();
    std::fs::write(at.join("c.opml"), list("<outline><sx:sync id='x'/></outline>")).unwrap();
    let (status, out, err) = tidegate(at, &["merge", "a.opml", "b.opml"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("xmlUrl=\"http://a/\"") && out.contains("xmlUrl=\"http://b/\""), "{out}");
    let (status, out, err) = tidegate(at, &["merge", "a.opml", "c.opml"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.contains("c.opml: line 1: an sx:sync is not taken"), "{err}");
}

/// The lists of the corpus, where it is at hand.
fn real_lists() -> Option<Vec<PathBuf>> {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else {
        println!("skipped: TIDEGATE_CORPUS is not set");
        return None;
    };
    let entries = std::fs::read_dir(PathBuf::from(corpus).join("opml")).unwrap();
    let lists = entries.map(|entry| entry.unwrap().path());
    let mut lists: Vec<_> = lists.filter(|p| p.extension().is_some_and(|e| e == "opml")).collect();
    lists.sort();
    assert!(lists.len() >= 48);
    Some(support::sample(lists, 4))
}

#[test]
fn every_address_of_real_lists_is_added_or_named() {
    let Some(lists) = real_lists() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut added, mut refused) = (0, 0);
    for (number, list) in lists.iter().enumerate() {
        let bytes = std::fs::read(list).unwrap();
        let text = decode(&bytes, None, &Limits::default()).unwrap().text.into_owned();
        let outlines = read(&text, &OpmlLimits::default()).unwrap().outlines;
        let addresses =
            outlines.iter().filter(|o| matches!(o.kind(), OutlineKind::Feed(_))).count();
        let data = format!("data{number}");
        let path = list.to_str().unwrap();
        let (status, out, err) = tidegate(folder.path(), &["import", path, "-d", &data]);
        assert_eq!(status, 0, "{path}: {err}");
        let said = out.lines().last().unwrap();
        let new: usize = said.split(' ').next().unwrap().parse().unwrap();
        // An address that was not taken stands before its reason.
        let with_address = |line: &&str| {
            let what = line.split_once("not taken: ").map(|(_, what)| what);
            what.is_some_and(|what| !what.starts_with("the outline "))
        };
        let again = said.split(", ").find_map(|part| part.strip_suffix(" in a further folder"));
        let again: usize = again.map_or(0, |number| number.parse().unwrap());
        let links = |line: &&str| line.contains("another list") || line.contains("no feed");
        let not = err.lines().filter(with_address).filter(|line| !links(line)).count();
        assert_eq!(new + again + not, addresses, "{path}: {said}\n{err}");
        assert_eq!(records(&folder.path().join(&data)).len(), new);
        (added, refused) = (added + new, refused + not);
    }
    println!("{added} feeds added, {refused} addresses named that could not be");
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

/// A line for each outline: how deep it stands, what it is called, and what else is kept of it. `keep`
/// answers of a feed whether it is there: what it is called where the list does not say.
fn shape(list: &OutlineList, keep: impl Fn(usize) -> Option<String>) -> Vec<String> {
    // A folder stands where a feed stands in it.
    let mut kept = vec![false; list.outlines.len()];
    for at in (0..list.outlines.len()).rev() {
        let is_feed =
            matches!(list.outlines[at].kind(), OutlineKind::Feed(_)) && keep(at).is_some();
        kept[at] = kept[at] || is_feed;
        if let (true, Some(parent)) = (kept[at], list.outlines[at].parent) {
            kept[parent] = true;
        }
    }
    let line = |(at, outline): (usize, &tidegate_format::parse::opml::Outline)| {
        let unnamed = keep(at).unwrap_or_default();
        // Names are cut at a limit, and the space around them goes.
        let said = |name: &str| {
            let said = outline.attribute(name).map(str::trim).filter(|said| said.len() < 400);
            said.filter(|said| !said.is_empty()).map(str::to_owned)
        };
        let text = outline.text().unwrap_or(&unnamed);
        let named = (text.len() < 400).then_some(text);
        let is_feed = matches!(outline.kind(), OutlineKind::Feed(_));
        // What looks like a key in an address is masked, and a masked address is no link.
        let site = outline.site().filter(|site| site.starts_with("http"));
        let site = site.filter(|site| ShownAddress::new(site, None).link().is_some());
        let title = is_feed.then(|| outline.title().unwrap_or(&unnamed).to_owned());
        format!(
            "{}{is_feed} {named:?} {:?} {:?} {:?} {:?}",
            " ".repeat(list.folder(outline).len()),
            title.filter(|title| title.len() < 400),
            said("category"),
            said("description"),
            site.map(|site| site.trim_end_matches('/').to_owned()),
        )
    };
    let all = list.outlines.iter().enumerate().filter(|(at, _)| kept[*at]);
    all.map(line).collect()
}

/// A list goes in and comes out in its shape, and so does what came out at another gateway.
fn comes_out_as_it_went_in(folder: &Path, path: &Path) -> usize {
    let data = |name: &str| {
        let data = folder.join(name);
        let _ = std::fs::remove_dir_all(&data);
        data
    };
    let (first, second) = (data("first"), data("second"));
    let into = first.to_str().unwrap();
    let (status, _, err) = tidegate(folder, &["import", path.to_str().unwrap(), "-d", into]);
    assert_eq!(status, 0, "{err}");
    let bytes = std::fs::read(path).unwrap();
    let text = characters(&bytes, None, &Limits::default()).unwrap().text.into_owned();
    let own = read(&text, &OpmlLimits::default()).unwrap();
    let stored = records(&first);
    let refused = err.lines().filter(|line| line.contains("not taken: "));
    let refused: Vec<&str> = refused.collect();
    let address = |at: usize| match own.outlines[at].kind() {
        OutlineKind::Feed(written) => url::Url::parse(written.trim()).ok().map(|mut url| {
            url.set_fragment(None);
            url.to_string()
        }),
        _ => None,
    };
    // What stands twice in a folder is taken once, and the rest of what is not taken is named.
    let mut seen = HashSet::new();
    let taken: Vec<Option<String>> = (0..own.outlines.len())
        .map(|at| {
            let address = address(at)?;
            let record = stored.iter().find(|record| record.url == address)?;
            let is_first = seen.insert((own.outlines[at].parent, address));
            is_first.then(|| record.name.to_string())
        })
        .collect();
    let listed = proxied(&first, "");
    let out = read(&listed, &OpmlLimits::default()).unwrap();
    assert!(out.problems.is_empty(), "{:?}", out.problems);
    let outlines = shape(&out, |_| Some(String::new()));
    assert_eq!(outlines, shape(&own, |at| taken[at].clone()), "{path:?}: {refused:?}");
    // And on from there.
    std::fs::write(folder.join("out.opml"), &listed).unwrap();
    let into = second.to_str().unwrap();
    let (status, _, err) = tidegate(folder, &["import", "out.opml", "-d", into]);
    assert!(status == 0 && err.is_empty(), "{err}");
    let again = read(&proxied(&second, ""), &OpmlLimits::default()).unwrap();
    let said = |list: &OutlineList| {
        let own = |name: &str| name != "xmlUrl" && !name.contains(':');
        let line = |outline: &tidegate_format::parse::opml::Outline| {
            let attributes: Vec<_> =
                outline.attributes.iter().filter(|(name, _)| own(name)).cloned().collect();
            (list.folder(outline).len(), attributes)
        };
        list.outlines.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(said(&again), said(&out), "{path:?}");
    outlines.len()
}

#[test]
fn the_proxied_list_has_the_shape_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.opml");
    std::fs::write(
        &path,
        "<?xml version='1.0'?>\n<opml version='2.0'><body>\n\
         <outline text='Zebra' xmlUrl='https://z.example/feed' type='rss' description='All &lt;of&gt; it'/>\n\
         <outline text='News' title='The news'><outline text='B' title='My B' category='/a/b,c'\n\
         xmlUrl='https://b.example/' htmlUrl='https://b.example/page'/><outline text='Empty'/>\n\
         <outline text='Deep'><outline title='Only a title' xmlUrl='https://c.example/'/></outline>\n\
         <outline text='A' xmlUrl='https://a.example/'/></outline>\n\
         <outline text='News'><outline text='B elsewhere' xmlUrl='https://b.example/'/></outline>\n\
         <outline text='Parent' xmlUrl='https://p.example/'><outline text='Child'\n\
         xmlUrl='https://q.example/'/></outline>\n</body></opml>",
    )
    .unwrap();
    assert_eq!(comes_out_as_it_went_in(folder.path(), &path), 10);
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
    let (_, out, _) = tidegate(at, &["import", "2.opml", "-d", "data"]);
    assert!(out.ends_with("2 feeds added, 1 known already, 0 not taken\n"), "{out}");
    let texts = |data: &str| {
        let text = proxied(&at.join(data), "?upstream=1");
        let list = read(&text, &OpmlLimits::default()).unwrap();
        let line = |o: &tidegate_format::parse::opml::Outline| {
            format!("{}{}", " ".repeat(list.folder(o).len()), o.text().unwrap())
        };
        list.outlines.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(texts("data"), ["F", " A", " D", "B", "G", " C"]);
    assert_eq!(tidegate(at, &["export", "state.tg", "-d", "data"]).0, 0);
    assert_eq!(tidegate(at, &["import", "state.tg", "-d", "other"]).0, 0);
    assert_eq!(texts("other"), texts("data"));
    let (_, out, _) = tidegate(at, &["import", "2.opml", "--rearrange", "-d", "data"]);
    assert!(
        out.contains("0 feeds added, 3 known already") && out.contains("given another place"),
        "{out}"
    );
    assert_eq!(texts("data"), ["G", " My A", " C", "F", " D", "B"]);
}

#[test]
fn real_lists_keep_their_shape() {
    let Some(lists) = real_lists() else { return };
    let folder = tempfile::tempdir().unwrap();
    let outlines: usize =
        lists.iter().map(|list| comes_out_as_it_went_in(folder.path(), list)).sum();
    println!(
        "{outlines} outlines of {} lists, at most {} folders deep",
        lists.len(),
        ListPlace::DEPTH
    );
}

/// What a running gateway makes of a list is what the command makes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_gateway_takes_a_list_as_the_command_does() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("l.opml"), LIST).unwrap();
    assert_eq!(tidegate(folder.path(), &["import", "l.opml", "-d", "data"]).0, 0);
    let by_command = records_in(folder.path().join("data")).await;

    let text = "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"a-token-for-the-list\"\n\
                [store]\nkind = \"memory\"\n";
    let config = config::check("test", text).unwrap().config;
    let gateway = Gateway::start(&config, Outside::default()).await.unwrap();
    let operator = gateway.operator();
    let done = operator.import_list(LIST.into(), false).await.unwrap();
    assert_eq!((done.added.len(), done.known, done.not_taken, done.repaired), (2, 0, 2, 1));
    assert_eq!(done.refused.iter().map(|line| line.line).collect::<Vec<_>>(), [5, 6]);
    let stored = gateway.store().feeds().await.unwrap();
    let said = |records: &[FeedRecord]| -> Vec<_> {
        let one = |record: &FeedRecord| {
            (
                record.name.clone(),
                record.url.clone(),
                record.source,
                record.enrolment.places.clone(),
            )
        };
        records.iter().map(one).collect()
    };
    assert_eq!(said(&stored), said(&by_command));
    // They are polled, and the list says so.
    let list = reqwest::Client::builder().no_proxy().build().unwrap();
    let list = list.get(format!("http://{}/subscriptions.opml", gateway.address())).send().await;
    let list = list.unwrap().text().await.unwrap();
    assert!(
        list.contains("News &amp; more") && list.contains("/feeds/one-example-feed\""),
        "{list}"
    );
    assert_eq!(operator.summaries().await.unwrap().len(), 2);
    let again = operator.import_list(LIST.into(), false).await.unwrap();
    assert_eq!((again.added.len(), again.known), (0, 2));
    assert_eq!(gateway.store().feeds().await.unwrap(), stored, "nothing was written");
    for wrong in ["<rss><channel/></rss>".to_owned(), " ".repeat(tidegate_serve::LIST_LIMIT + 1)] {
        assert!(operator.import_list(wrong.into(), false).await.is_err());
    }
    gateway.stop().await.unwrap();
}

async fn records_in(folder: PathBuf) -> Vec<FeedRecord> {
    tokio::task::spawn_blocking(move || records(&folder)).await.unwrap()
}
