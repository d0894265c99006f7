//! The commands that ask a gateway that runs, as they are typed, and its backup while it runs.

use crate::support::gateways::Paper;
use crate::support::process::{Process, TOKEN};
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
    assert_eq!(terminal.done(&["feeds"]).await, "no feeds\n");

    let seen = terminal.done(&["add", &paper.url, "--look"]).await;
    assert!(seen.contains("The news") && seen.contains("Post 6"), "{seen}");
    assert_eq!(terminal.done(&["feeds"]).await, "no feeds\n", "nothing was added by a look");
    let added = terminal.done(&["add", &paper.url, "--name", "news"]).await;
    assert!(added.starts_with("added news; readers are pointed at http://"), "{added}");
    let again = terminal.refused(&["add", &paper.url, "--name", "news"], 1).await;
    assert!(again.contains("news"), "{again}");

    terminal.done(&["poll", "news"]).await;
    paper.print(&rss(2..=7));
    let polled = terminal.done(&["poll", "news"]).await;
    assert_eq!(polled, "news: changed, 1 created, 1 retired\n");
    let listed = terminal.done(&["feeds"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("NAME  STATE  ITEMS  CHANGED (UTC)"), "{listed}");
    assert!(lines[1].starts_with("news  good       7  20"), "{listed}");
    let json: serde_json::Value =
        serde_json::from_str(&terminal.done(&["feeds", "--json", "--search", "NEWS"]).await)
            .unwrap();
    assert_eq!((&json["matches"], &json["feeds"][0]["name"]), (&1.into(), &"news".into()));
    let shown = terminal.done(&["show", "news"]).await;
    for part in
        ["name         news\n", "items        6 current, 1 retired, 0 deleted", "/feeds/news\n"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    let items = terminal.done(&["items", "news", "--search", "post 7"]).await;
    assert!(items.lines().count() == 2 && items.contains("current        1  Post 7"), "{items}");
    assert_eq!(terminal.done(&["items", "news", "--show", "deleted"]).await, "no items\n");
    assert_eq!(terminal.done(&["conflicts", "news"]).await, "no conflicts\n");

    // A document that is empty is held until somebody decides.
    let none = terminal.refused(&["hold", "news", "drop"], 1).await;
    assert!(none.contains("nothing"), "{none}");
    let empty = rss(1..=1).split("<item>").next().unwrap().to_owned() + "</channel></rss>";
    paper.print(&empty);
    assert!(terminal.done(&["poll", "news"]).await.contains("; a document is held: "));
    assert!(terminal.done(&["feeds", "--show", "held"]).await.contains("news  held"));
    assert_eq!(
        terminal.done(&["hold", "news", "drop"]).await,
        "news: the held document was dropped\n"
    );

    terminal.done(&["pause", "news"]).await;
    assert!(terminal.done(&["feeds", "--show", "paused"]).await.contains("news  paused"));
    assert_eq!(terminal.done(&["resume", "news"]).await, "news is polled again\n");
    paper.print("nothing that is a feed");
    let failed = terminal.run(&["poll", "news"]).await;
    assert_eq!(failed.status, 1);
    assert!(
        failed.out.starts_with("news: failed: ") && failed.err.contains("the poll of news failed")
    );

    // Nobody is at a terminal here.
    assert!(terminal.refused(&["remove", "news"], 2).await.contains("--yes"));
    terminal.done(&["remove", "news", "--yes"]).await;
    assert!(terminal.done(&["feeds", "--show", "gone"]).await.contains("news  gone"));
    terminal.done(&["remove", "news", "--yes", "--purge"]).await;
    let gone = terminal.refused(&["show", "nobody"], 2).await;
    assert_eq!(gone, "tidegate: there is no feed nobody\n");

    let stranger = Terminal { token: "another-token", ..terminal };
    let refused = stranger.refused(&["feeds"], 2).await;
    assert!(refused.contains("--token-file") && !refused.contains("another"), "{refused}");
    gateway.stop().await;
    let nobody = stranger.refused(&["feeds"], 1).await;
    assert!(nobody.contains("no gateway answers at http://127.0.0.1:"), "{nobody}");
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
        command.current_dir(folder.path()).args(["feeds", "-c", "client.toml"]);
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
        let moved = terminal.refused(&["export", "y.tg", "-c", "t.toml", "--move"], 1).await;
        assert!(moved.contains("stop it first"), "{moved}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.map(|name| name.into_string().unwrap()).any(|name| name.ends_with(".new")));
    gateway.stop().await;

    for file in written {
        let there = tempfile::tempdir().unwrap();
        std::fs::copy(folder.path().join(&file), there.path().join(&file)).unwrap();
        configure(there.path(), "kind = \"fjall\"\npath = \"copy\"", &feeds);
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
async fn a_gateway_on_fjall_is_backed_up_while_it_runs() {
    a_backup_while_it_runs("kind = \"fjall\"\npath = \"data\"").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_in_memory_is_backed_up_while_it_runs() {
    a_backup_while_it_runs("kind = \"memory\"").await;
}
