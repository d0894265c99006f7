//! The commands that ask a gateway that runs, as they are typed, and its backup while it runs.

use crate::support::gateways::Paper;
use crate::support::process::{Process, TOKEN};
use crate::support::sharing::{document, sync};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

/// What a command says, with its status.
struct Said {
    status: i32,
    out: String,
    err: String,
}

/// A person's terminal, which knows nothing of the gateway but what is typed.
struct Terminal<'a> {
    folder: &'a Path,
    gateway: String,
    token: &'a str,
}

impl Terminal<'_> {
    async fn run(&self, args: &[&str]) -> Said {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .current_dir(self.folder)
            .args(args)
            .env("TIDEGATE_URL", &self.gateway)
            .env("TIDEGATE_ADMIN_TOKEN", self.token)
            .stdin(std::process::Stdio::null())
            .output()
            .await
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said {
            status: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// What a command prints that is done.
    async fn done(&self, args: &[&str]) -> String {
        let said = self.run(args).await;
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
        said.out
    }

    /// What a command complains of, with this status.
    async fn refused(&self, args: &[&str], status: i32) -> String {
        let said = self.run(args).await;
        assert_eq!(said.status, status, "{args:?}: {} {}", said.out, said.err);
        assert!(said.err.starts_with("tidegate: "), "{}", said.err);
        said.err
    }
}

fn rss(numbers: std::ops::RangeInclusive<u32>) -> String {
    let items: String = numbers
        .rev()
        .map(|n| {
            format!(
                "<item><guid>{n}</guid><title>Post {n}</title><link>https://e.org/{n}</link></item>"
            )
        })
        .collect();
    format!(
        "<rss version=\"2.0\"><channel><title>The news</title><link>https://e.org/</link>\
         <description>d</description>{items}</channel></rss>"
    )
}

fn configure(folder: &Path, store: &str, feeds: &str) {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[store]\n{store}\n[polling]\nallow_private = true\n\
         host_spacing = \"0s\"\nmin_interval = \"1d\"\n[websub]\nhub = false\nsubscribe = false\n{feeds}"
    );
    std::fs::write(folder.join("t.toml"), text).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feeds_are_operated_from_a_terminal() {
    let paper = Paper::start("application/rss+xml", &rss(1..=6)).await;
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "kind = \"memory\"", "");
    let gateway = Process::configured(folder.path()).await;
    let terminal =
        Terminal { folder: folder.path(), gateway: gateway.address.clone(), token: TOKEN };
    assert_eq!(terminal.done(&["feed", "list"]).await, "no feeds\n");

    let seen = terminal.done(&["feed", "add", &paper.url, "--look"]).await;
    assert!(seen.contains("The news") && seen.contains("Post 6"), "{seen}");
    assert_eq!(terminal.done(&["feed", "list"]).await, "no feeds\n", "nothing was added by a look");
    let added = terminal.done(&["feed", "add", &paper.url, "--name", "news"]).await;
    assert!(added.starts_with("added news; readers are pointed at http://"), "{added}");
    let again = terminal.refused(&["feed", "add", &paper.url, "--name", "news"], 1).await;
    assert!(again.contains("news"), "{again}");

    terminal.done(&["feed", "poll", "news"]).await;
    paper.print(&rss(2..=7));
    let polled = terminal.done(&["feed", "poll", "news"]).await;
    assert_eq!(polled, "news: changed, 1 created, 1 retired\n");
    let listed = terminal.done(&["feed", "list"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("NAME  STATE   CURRENT  CHANGED (UTC)"), "{listed}");
    assert!(lines[1].starts_with("news  active        6  20"), "{listed}");
    let json: serde_json::Value =
        serde_json::from_str(&terminal.done(&["feed", "list", "--json", "--search", "NEWS"]).await)
            .unwrap();
    assert_eq!((&json["matches"], &json["feeds"][0]["name"]), (&1.into(), &"news".into()));
    let shown = terminal.done(&["feed", "show", "news"]).await;
    for part in
        ["name         news\n", "items        6 current, 1 retired, 0 deleted", "/feeds/news\n"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    let (facts, events) = shown.split_once("what happened:\n").unwrap();
    assert!(facts.contains("last read    20") && !facts.contains("fails since"), "{shown}");
    assert_eq!(events.lines().count(), 9, "a heading, seven that came, one that left: {shown}");
    assert!(
        events.contains("  created  Post 7  ") && events.contains("  retired  Post 1  "),
        "{shown}"
    );
    let items = terminal.done(&["item", "list", "news", "--search", "post 7"]).await;
    assert!(items.lines().count() == 2 && items.contains("current        1  Post 7"), "{items}");
    assert_eq!(terminal.done(&["item", "list", "news", "--show", "deleted"]).await, "no items\n");
    assert_eq!(terminal.done(&["item", "conflicts", "news"]).await, "no conflicts\n");

    // A document that is empty is held until somebody decides.
    let none = terminal.refused(&["feed", "hold", "news", "drop"], 1).await;
    assert!(none.contains("nothing"), "{none}");
    let empty = rss(1..=1).split("<item>").next().unwrap().to_owned() + "</channel></rss>";
    paper.print(&empty);
    assert!(terminal.done(&["feed", "poll", "news"]).await.contains("; a document is held: "));
    assert!(terminal.done(&["feed", "list", "--show", "held"]).await.contains("news  held"));
    assert_eq!(
        terminal.done(&["feed", "hold", "news", "drop"]).await,
        "news: the held document was dropped\n"
    );

    terminal.done(&["feed", "pause", "news"]).await;
    assert!(terminal.done(&["feed", "list", "--show", "paused"]).await.contains("news  paused"));
    assert_eq!(terminal.done(&["feed", "resume", "news"]).await, "news: polled again\n");
    paper.print("nothing that is a feed");
    let failed = terminal.run(&["feed", "poll", "news"]).await;
    assert_eq!(failed.status, 1);
    assert!(
        failed.out.starts_with("news: failed: ") && failed.err.contains("the poll of news failed")
    );

    assert!(terminal.done(&["feed", "show", "news"]).await.contains("fails since  20"));

    // Nobody is at a terminal here.
    assert!(terminal.refused(&["feed", "remove", "news"], 2).await.contains("--yes"));
    terminal.done(&["feed", "remove", "news", "--yes"]).await;
    assert!(terminal.done(&["feed", "list", "--show", "gone"]).await.contains("news  gone"));
    terminal.done(&["feed", "remove", "news", "--yes", "--purge"]).await;
    let gone = terminal.refused(&["feed", "show", "nobody"], 2).await;
    assert_eq!(gone, "tidegate: there is no feed nobody\n");

    let stranger = Terminal { token: "another-token", ..terminal };
    let refused = stranger.refused(&["feed", "list"], 2).await;
    assert!(refused.contains("--token-file") && !refused.contains("another"), "{refused}");
    gateway.stop().await;
    let nobody = stranger.refused(&["feed", "list"], 1).await;
    assert!(nobody.contains("no gateway answers at http://127.0.0.1:"), "{nobody}");
}

/// The value of a key in what a command printed with `--json`.
fn key(said: &str, at: &str) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(said).unwrap_or_else(|_| panic!("{said}"));
    value.pointer(at).cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_changed_from_a_terminal() {
    let paper = Paper::start("application/rss+xml", &rss(1..=3)).await;
    let folder = tempfile::tempdir().unwrap();
    let readers = "[[reader]]\nname = \"ann\"\ntoken = \"0123456789abcdef0123456789abcdef\"\n\
                   feeds = [\"nobody\"]\nall_private = true\n";
    configure(folder.path(), "kind = \"memory\"", readers);
    let config = folder.path().join("t.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("hub = false", "hub = true");
    std::fs::write(&config, text).unwrap();
    let gateway = Process::configured(folder.path()).await;
    let terminal =
        Terminal { folder: folder.path(), gateway: gateway.address.clone(), token: TOKEN };

    let list = format!(
        "<opml><body><outline text='F'><outline text='News' xmlUrl='{}news'/></outline>\n\
         <outline text='Mail' xmlUrl='mailto:a@b'/></body></opml>",
        paper.url
    );
    std::fs::write(folder.path().join("list.opml"), list).unwrap();
    let said = terminal.run(&["import", "list.opml", "--gateway", &terminal.gateway]).await;
    assert!(said.out.ends_with("1 feed added, 0 known already, 1 not taken\n"));
    assert!(said.status == 0 && said.err.starts_with("list.opml:2: not taken: "), "{}", said.err);
    let name = said.out.split_whitespace().nth(1).unwrap().to_owned();
    let again = terminal
        .done(&["import", "list.opml", "--gateway", &terminal.gateway, "--rearrange", "--json"])
        .await;
    assert_eq!((key(&again, "/known"), key(&again, "/not_taken")), (1.into(), 1.into()));
    let missing =
        terminal.refused(&["import", "other.opml", "--gateway", &terminal.gateway], 2).await;
    assert!(missing.contains("other.opml cannot be read"), "{missing}");

    // A pause stays, and so does what is not named.
    terminal.done(&["feed", "pause", &name]).await;
    let edited = terminal.done(&["feed", "edit", &name, "min_interval=1h", "items=5000"]).await;
    assert_eq!(edited, format!("{name}: min_interval, items changed\n"));
    terminal.done(&["feed", "edit", &name, "private=true"]).await;
    let edited = terminal.done(&["feed", "edit", &name, "items=", "--json"]).await;
    let now = ["/options/min_interval", "/options/items", "/options/private", "/standing"];
    let now = now.map(|at| key(&edited, at));
    assert_eq!(now, [json!("1h"), json!(null), json!(true), json!("paused")]);
    let wrong = terminal.refused(&["feed", "edit", &name, "interval=1h"], 2).await;
    assert!(wrong.contains("the key \"interval\" is unknown"), "{wrong}");
    terminal.refused(&["feed", "edit", "nobody", "private=true"], 2).await;
    let twice = terminal.refused(&["feed", "edit", &name, "items=1", "items=2"], 2).await;
    assert!(twice.contains("items is written twice"), "{twice}");

    let readers = terminal.done(&["reader", "list"]).await;
    assert!(readers.contains("ann       1  all private") && readers.contains("not here: nobody"));
    let readers = terminal.done(&["reader", "list", "--json"]).await;
    assert_eq!(key(&readers, "/readers/0/feeds"), json!([name]));
    assert!(!readers.contains("0123456789abcdef"), "{readers}");
    let shown = terminal.done(&["feed", "show", &name]).await;
    let address = format!("for readers  private: for ann, below /t/TOKEN/feeds/{name}\n");
    assert!(shown.contains(&address) && !shown.contains("0123456789abcdef"), "{shown}");
    assert!(terminal.done(&["feed", "list"]).await.contains("paused, private"));
    terminal.done(&["feed", "edit", &name, "private="]).await;
    terminal.done(&["feed", "resume", &name]).await;

    assert_eq!(terminal.done(&["list", "subscriptions"]).await, "no subscriptions\n");
    assert_eq!(terminal.done(&["feed", "webhook", &name]).await, "no webhook\n");
    let hook = format!("{}hook", paper.url);
    let set = terminal.done(&["feed", "webhook", &name, "--url", &hook]).await;
    assert!(set.contains("127.0.0.1") && set.contains("which is not shown again: "), "{set}");
    std::fs::write(folder.path().join("secret"), "a secret of mine\n").unwrap();
    let set = terminal
        .done(&["feed", "webhook", &name, "--url", &hook, "--secret-file", "secret", "--json"])
        .await;
    assert!(key(&set, "/secret").is_null() && !set.contains("of mine"), "{set}");
    let listed = terminal.done(&["list", "subscriptions", "--feed", &name]).await;
    assert!(listed.lines().count() == 2 && listed.contains("127.0.0.1"), "{listed}");
    assert!(terminal.done(&["feed", "webhook", &name]).await.contains("deliveries"));
    terminal.done(&["feed", "webhook", &name, "--remove"]).await;

    let begun = terminal.done(&["feed", "backfill", &name]).await;
    assert_eq!(begun, format!("{name}: older documents are being read, slowly\n"));
    terminal.done(&["feed", "backfill", &name, "--stop"]).await;
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_are_decided_about_from_a_terminal() {
    let paper = Paper::start("application/rss+xml", &rss(1..=6)).await;
    let folder = tempfile::tempdir().unwrap();
    let feeds = format!(
        "[[feed]]\nname = \"news\"\nurl = \"{}\"\n[[feed]]\nname = \"diary\"\nlocal = true\n",
        paper.url
    );
    configure(folder.path(), "kind = \"memory\"", &feeds);
    let gateway = Process::configured(folder.path()).await;
    let terminal =
        Terminal { folder: folder.path(), gateway: gateway.address.clone(), token: TOKEN };
    gateway.poll("news").await;
    let id_of = async |title: &str| {
        let found = terminal.done(&["item", "list", "news", "--search", title, "--json"]).await;
        key(&found, "/items/0/sync_id").as_str().unwrap().to_owned()
    };
    let (second, third) = (id_of("Post 2").await, id_of("Post 3").await);
    let item = terminal.done(&["item", "show", "news", &third]).await;
    assert!(item.contains("Post 3") && item.contains("VERSION  WHEN (UTC)"), "{item}");
    let item = terminal.done(&["item", "show", "news", &third, "--json"]).await;
    assert_eq!(key(&item, "/sync_id"), json!(third));
    assert!(terminal.refused(&["item", "show", "news", "nobody"], 2).await.contains("no item"));
    // No address can name these: it would lead elsewhere.
    for id in [".", ".."] {
        for words in [
            &["item", "show", "news", id][..],
            &["item", "resolve", "news", id],
            &["item", "delete", "news", id],
            &["item", "restore", "diary", id],
            &["item", "redact", "news", id, "--yes"],
        ] {
            let said = terminal.refused(words, 2).await;
            assert!(said.contains("is a step of a path in every address"), "{words:?}: {said}");
        }
    }

    // What is there is not deleted; what is missing is, once.
    terminal.refused(&["item", "delete", "news", &third], 1).await;
    let without: String = {
        let text = rss(1..=6);
        let (before, rest) = text.split_once("<item><guid>3</guid>").unwrap();
        format!("{before}{}", rest.split_once("</item>").unwrap().1)
    };
    paper.print(&without);
    gateway.poll("news").await;
    let deleted = terminal.done(&["item", "delete", "news", &third]).await;
    assert_eq!(deleted, format!("{third} is deleted: subscribers get its tombstone\n"));
    let again = terminal.done(&["item", "delete", "news", &third]).await;
    assert_eq!(again, format!("{third} was deleted before\n"));

    // Nobody is at a terminal here.
    assert!(terminal.refused(&["item", "redact", "news", &second], 2).await.contains("--yes"));
    let gone =
        terminal.done(&["item", "redact", "news", &second, "--reason", "by court", "--yes"]).await;
    assert!(gone.starts_with(&format!("{second}: its text is gone; ")), "{gone}");
    assert!(!gateway.get("/feeds/news/complete").await.contains("Post 2"));

    let entry = json!({ "title": "Dear diary", "content": "today" });
    let made = gateway.call(reqwest::Method::POST, "/feeds/diary/items", Some(entry)).await;
    let own = made["sync_id"].as_str().unwrap();
    terminal.done(&["item", "delete", "diary", own]).await;
    assert_eq!(
        terminal.done(&["item", "restore", "diary", own]).await,
        format!("{own} is restored\n")
    );
    let item = terminal.done(&["item", "show", "diary", own, "--json"]).await;
    assert_eq!((key(&item, "/deleted"), key(&item, "/updates")), (json!(false), json!(3)));

    gateway.stop().await;
}

/// An item with a version in conflict with it.
fn in_conflict(name: &str) -> String {
    let lost = sync(name, 2, "", &[(2, "GPM", 0)], "");
    let lost = format!(
        "<sx:conflicts><entry>{lost}<id>urn:{name}</id><title>Lost {name}</title></entry></sx:conflicts>"
    );
    let sync = sync(name, 2, "", &[(2, "REO", 2)], &lost);
    format!(
        "<entry>{sync}<id>urn:{name}</id><title>Won {name}</title>\
         <updated>2026-01-01T00:00:00Z</updated></entry>"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicts_are_resolved_from_a_terminal() {
    let all = ["x.a", "x.b", "x.c"].map(in_conflict);
    let paper = Paper::start("application/atom+xml", &document("", &all)).await;
    let folder = tempfile::tempdir().unwrap();
    let feed = format!("[[feed]]\nname = \"shared\"\nurl = \"{}\"\n", paper.url);
    configure(folder.path(), "kind = \"memory\"", &feed);
    let gateway = Process::configured(folder.path()).await;
    let terminal =
        Terminal { folder: folder.path(), gateway: gateway.address.clone(), token: TOKEN };
    gateway.poll("shared").await;
    assert_eq!(terminal.done(&["item", "conflicts", "shared"]).await.lines().count(), 4);
    for typed in [&["x.a", "--keep", "mine"][..], &["x.a", "--all"], &[]] {
        let said = terminal.run(&[&["item", "resolve", "shared"], typed].concat()).await;
        assert!(said.status == 2 && said.err.starts_with("error: "), "{}", said.err);
    }
    let resolved = terminal.done(&["item", "resolve", "shared", "x.a", "--keep", "0"]).await;
    assert_eq!(resolved, "x.a: version 3, no conflict is left\n");
    let reader = gateway.get("/feeds/shared").await;
    assert!(reader.contains("Lost x.a") && !reader.contains("Won x.a"), "{reader}");
    let resolved = terminal.done(&["item", "resolve", "shared", "--all"]).await;
    assert_eq!(resolved, "shared: the winners of 2 items were kept\n");
    assert_eq!(terminal.done(&["item", "conflicts", "shared"]).await, "no conflicts\n");
    let reader = gateway.get("/feeds/shared").await;
    assert!(reader.contains("Won x.b") && reader.contains("Won x.c"), "{reader}");
    let none = terminal.done(&["item", "resolve", "shared", "--all"]).await;
    assert_eq!(none, "shared: the winners of 0 items were kept\n");
    terminal.refused(&["item", "resolve", "shared", "x.b"], 1).await;
    gateway.stop().await;
}

/// The configuration says where the gateway is and with which token, as for the gateway itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_found_by_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "kind = \"sled\"\npath = \"data\"", "");
    let gateway = Process::configured(folder.path()).await;
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let address = gateway.address.strip_prefix("http://").unwrap().to_owned();
    let run = |token_file: Option<&'static str>| {
        let text = std::fs::read_to_string(folder.path().join("t.toml")).unwrap();
        let text = text.replace("127.0.0.1:0", &address);
        std::fs::write(folder.path().join("client.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.current_dir(folder.path()).args(["feed", "list", "-c", "client.toml"]);
        command.args(token_file.map(|file| ["--token-file", file]).into_iter().flatten());
        command.env_remove("TIDEGATE_URL").env_remove("TIDEGATE_ADMIN_TOKEN");
        async move { command.output().await.unwrap() }
    };
    assert_eq!(run(None).await.status.code(), Some(2), "it knows no token");
    assert_eq!(run(Some("token")).await.stdout, b"no feeds\n");
    std::fs::rename(&token, folder.path().join("data/admin-token")).unwrap();
    assert_eq!(run(None).await.stdout, b"no feeds\n", "the token of the data folder");
    gateway.stop().await;
}

/// A backup is made while feeds change, and has every feed whole.
async fn a_backup_while_it_runs(store: &str) {
    let paper = Paper::start("application/rss+xml", &rss(1..=8)).await;
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..6).map(|n| format!("f{n}")).collect();
    let feeds: String = names
        .iter()
        .map(|name| format!("[[feed]]\nname = \"{name}\"\nurl = \"{}{name}\"\n", paper.url))
        .collect();
    configure(folder.path(), store, &feeds);
    let gateway = Process::configured(folder.path()).await;
    for name in &names {
        gateway.poll(name).await;
    }
    let terminal = Terminal { folder: folder.path(), gateway: String::new(), token: TOKEN };
    let named = Terminal { gateway: gateway.address.clone(), folder: folder.path(), token: TOKEN };
    let polling = async {
        for round in 0..12_u32 {
            paper.print(&rss(1..=9 + round));
            for name in &names {
                gateway.poll(name).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let exporting = async {
        let mut written = Vec::new();
        for number in 0..3 {
            let file = format!("b{number}.tg");
            let said = named.done(&["export", &file, "--gateway", &named.gateway]).await;
            assert!(said.contains(&format!("written to {file}")), "{said}");
            written.push(file);
        }
        written
    };
    let ((), written) = tokio::join!(polling, exporting);
    assert!(
        named
            .refused(&["export", "b0.tg", "--gateway", &named.gateway], 2)
            .await
            .contains("is there already")
    );
    if !store.contains("memory") {
        // Where the folder is in use, its gateway is asked, as far as it is known.
        named.done(&["export", "x.tg", "-c", "t.toml"]).await;
        let locked = terminal.refused(&["export", "y.tg", "-c", "t.toml"], 1).await;
        assert!(locked.contains("was asked for it") && locked.contains("--gateway"), "{locked}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.map(|name| name.into_string().unwrap()).any(|name| name.ends_with(".new")));
    gateway.stop().await;

    // No feed: copies that poll take in nothing.
    paper.print("");
    for file in written {
        let there = tempfile::tempdir().unwrap();
        std::fs::copy(folder.path().join(&file), there.path().join(&file)).unwrap();
        configure(there.path(), "kind = \"sled\"\npath = \"copy\"", &feeds);
        let terminal = Terminal { folder: there.path(), gateway: String::new(), token: TOKEN };
        let said = terminal.done(&["import", &file, "-c", "t.toml"]).await;
        assert!(said.starts_with("6 feeds with "), "{said}");
        let copy = Process::configured(there.path()).await;
        for name in &names {
            let shown = copy.call(reqwest::Method::GET, &format!("/feeds/{name}"), None).await;
            let living = shown["state"]["counts"]["living"].as_u64().unwrap();
            let items =
                copy.call(reqwest::Method::GET, &format!("/feeds/{name}/items"), None).await;
            assert_eq!(items["matches"].as_u64(), Some(living), "{file} {name}");
            assert!((8..=20).contains(&living), "{file} {name}: {living}");
            let complete = copy.get(&format!("/feeds/{name}/complete")).await;
            assert_eq!(complete.matches("<guid").count() as u64, living, "{file} {name}");
        }
        copy.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_on_sled_is_backed_up_while_it_runs() {
    a_backup_while_it_runs("kind = \"sled\"\npath = \"data\"").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_in_memory_is_backed_up_while_it_runs() {
    a_backup_while_it_runs("kind = \"memory\"").await;
}
