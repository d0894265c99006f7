//! The commands as they are typed: each session of `terminal/` is what a person types and sees.
//!
//! A line `$ …` is a command of `tidegate`, with variables of the environment before it (`NAME=` takes one away) and
//! behind it its status, `[0]` where none stands there. The lines below it are what it prints, on standard output and
//! then on standard error; `…` stands for any text, and alone in its line for any lines. Lines `> …` are what happens
//! elsewhere ([`Terminal::act`]), with the lines below them. `{KEY}` is a value of the session.

use crate::support::gateways::Paper;
use crate::support::prelude::*;
use crate::support::process::{Process, TOKEN};
use crate::support::sharing::{document, sync};
use regex::Regex;
use tokio::process::Command;

/// The token of a reader in the sessions, and part of a secret. No command says any of these.
const HIDDEN: [&str; 3] = [TOKEN, "0123456789abcdef", "of mine"];

struct Terminal {
    folder: tempfile::TempDir,
    paper: Paper,
    gateway: Option<Process>,
    values: BTreeMap<String, String>,
}

impl Terminal {
    async fn new() -> Self {
        let paper = Paper::start("application/xml", &posts(1..=6, 0)).await;
        let root = env!("CARGO_MANIFEST_DIR").to_owned();
        let values = [("root".to_owned(), root), ("url".to_owned(), paper.url.clone())];
        Self { folder: tempfile::tempdir().unwrap(), paper, gateway: None, values: values.into() }
    }

    fn fill(&self, text: &str) -> String {
        let fill = |text: String, (key, value): (&String, &String)| {
            text.replace(&format!("{{{key}}}"), value)
        };
        self.values.iter().fold(text.to_owned(), fill)
    }

    async fn run(&self, typed: &str, expected: &[&str]) {
        let (command, status) = match typed.strip_suffix(']').and_then(|it| it.rsplit_once('[')) {
            Some((command, status)) => (command, status.parse().unwrap()),
            None => (typed, 0),
        };
        let words: Vec<String> = words(command).iter().map(|word| self.fill(word)).collect();
        let is_variable = |word: &&String| word.starts_with("TIDEGATE_");
        let (variables, arguments) = words.split_at(words.iter().take_while(is_variable).count());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.current_dir(self.folder.path()).args(arguments).stdin(std::process::Stdio::null());
        // What tests read is no setting of the program.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TIDEGATE_")) {
            command.env_remove(name);
        }
        if let Some(gateway) = &self.gateway {
            command.env("TIDEGATE_URL", &gateway.address).env("TIDEGATE_ADMIN_TOKEN", TOKEN);
        }
        for (name, value) in variables.iter().map(|said| said.split_once('=').unwrap()) {
            match value {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        let output = command.output().await.unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(status), "$ {typed}\n{said}");
        self.compare(&format!("$ {typed}"), &said, expected);
        assert!(HIDDEN.iter().all(|hidden| !said.contains(hidden)), "$ {typed}\n{said}");
    }

    fn compare(&self, what: &str, said: &str, expected: &[&str]) {
        let line = |line: &&str| match *line {
            "…" => r"(.*\n)*".to_owned(),
            line => regex::escape(&self.fill(line)).replace('…', ".*") + r"\n",
        };
        let expected: String = expected.iter().map(line).collect();
        let lines: String = said.lines().map(|line| format!("{line}\n")).collect();
        let is_expected = Regex::new(&format!("^{expected}$")).unwrap().is_match(&lines);
        assert!(is_expected, "{what}\n{said}\nis not\n{expected}");
    }

    async fn act(&mut self, act: &str, block: &[&str]) {
        let text: String = block.iter().map(|line| format!("{}\n", self.fill(line))).collect();
        let folder = self.folder.path().to_owned();
        let gateway = self.gateway.as_ref();
        match *words(act) {
            // A gateway runs with these lines in its configuration.
            ["serve"] => {
                let gateway = Process::configured(&folder, &text).await;
                let listens = gateway.address.trim_start_matches("http://").to_owned();
                self.values.insert("listens".to_owned(), listens);
                self.gateway = Some(gateway);
            }
            ["stop"] => self.gateway.take().unwrap().stop().await,
            // The publisher has these posts, or this document.
            ["posts", first, last, ref without @ ..] => {
                let without = without.last().map_or(0, |one| one.parse().unwrap());
                self.paper.print(&posts(first.parse().unwrap()..=last.parse().unwrap(), without));
            }
            ["conflicts"] => {
                self.paper.print(&document("", &["x.a", "x.b", "x.c"].map(in_conflict)));
            }
            ["document"] => self.paper.print(&text),
            ["write", file] => {
                let file = folder.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            ["move", from, to] => std::fs::rename(folder.join(from), folder.join(to)).unwrap(),
            // A copy of a file but for its end, or with another byte in the middle.
            ["break", file, to, left] => {
                let mut bytes = std::fs::read(folder.join(file)).unwrap();
                let middle = bytes.len() / 2;
                match left.parse() {
                    Ok(left) => bytes.truncate(bytes.len() - usize::min(left, middle)),
                    Err(_) => bytes[middle] ^= 0x40,
                }
                std::fs::write(folder.join(to), bytes).unwrap();
            }
            ["none", path] => assert!(!folder.join(path).exists(), "{path} is there"),
            ["see", path] => {
                let said = gateway.unwrap().text(path).await;
                self.compare(path, &said, block);
            }
            // A key of the session is the value at a place of what the API says.
            [key, "is", at, "of", path] => {
                let said = gateway.unwrap().call("GET", path, Value::Null).await;
                let found =
                    said.pointer(at).and_then(Value::as_str).unwrap_or_else(|| panic!("{said}"));
                self.values.insert(key.to_owned(), found.to_owned());
            }
            [key, "is", "made", "in", feed] => {
                let path = format!("/feeds/{feed}/items");
                let entry = json!({ "title": "Dear diary" });
                let made = gateway.unwrap().call("POST", &path, entry).await;
                self.values.insert(key.to_owned(), made["sync_id"].as_str().unwrap().to_owned());
            }
            _ => panic!("{act} is not known"),
        }
    }

    async fn play(&mut self, session: &str) {
        let mut lines = session.lines().filter(|line| !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            let mut block = Vec::new();
            while let Some(next) = lines.next_if(|next| !next.starts_with(['$', '>'])) {
                block.push(next);
            }
            while block.last() == Some(&"") {
                block.pop();
            }
            match line.split_at_checked(2) {
                Some(("$ ", typed)) => self.run(typed, &block).await,
                Some(("> ", act)) => self.act(act, &block).await,
                _ => assert_eq!(line, ""),
            }
        }
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
    }
}

/// The words of a line; what stands between `'` is one.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect()
}

/// A feed of posts, but for one of them.
fn posts(numbers: std::ops::RangeInclusive<u32>, without: u32) -> String {
    let item = |n| {
        let link = format!("<link>https://e.org/{n}</link>");
        format!("<item><guid>{n}</guid><title>Post {n}</title>{link}</item>")
    };
    channel("The news", numbers.rev().filter(|n| *n != without).map(item))
}

/// An item with a version in conflict with it.
fn in_conflict(name: &str) -> String {
    let lost = sync(name, 2, &[(2, "GPM", 0)], "");
    let lost = format!(
        "<sx:conflicts><entry>{lost}<id>urn:{name}</id><title>Lost {name}</title></entry></sx:conflicts>"
    );
    let sync = sync(name, 2, &[(2, "REO", 2)], &lost);
    format!(
        "<entry>{sync}<id>urn:{name}</id><title>Won {name}</title>\
         <updated>2026-01-01T00:00:00Z</updated></entry>"
    )
}

async fn play(name: &str) {
    let path = format!("{}/tests/it/terminal/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    Terminal::new().await.play(&std::fs::read_to_string(path).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_session_says_what_is_written() {
    let names =
        ["arguments", "configuration", "conflicts", "feeds", "files", "items", "lists", "settings"];
    futures_util::future::join_all(names.map(play)).await;
}
