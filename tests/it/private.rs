//! A gateway with a private feed, as a process: nothing public names it, its readers are led on below their
//! token, a revoked token ends what is open, and administration may have a listener of its own.

use crate::support::{self, post};
use reqwest::{Client, StatusCode};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

pub const ADMIN: &str = "a-token-for-tests";
pub const ANN: &str = "0123456789abcdef0123456789abcdef";
const WRONG: &str = "fedcba9876543210fedcba9876543210";
/// The name and the title of the private feed; nothing else has these words.
pub const NAME: &str = "zebra-diary";
const TITLE: &str = "Zebrafish confidential";
const WORDS: [&str; 4] = [NAME, "Zebrafish", ANN, WRONG];
/// How long something is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Gate {
    child: Child,
    folder: tempfile::TempDir,
    pub public: String,
    pub admin: String,
    pub client: Client,
}

fn document(title: &str) -> String {
    let posts: Vec<_> = (1..=3).map(post).collect();
    let text = support::atom("https://publisher.example/", &posts);
    let head = text.find("<title>").unwrap();
    let end = text.find("</title>").unwrap();
    format!("{}<title>{title}{}", &text[..head], &text[end..])
}

pub async fn publisher(title: &str) -> String {
    crate::support::gateways::Paper::start("application/atom+xml", &document(title)).await.url
}

fn configuration(urls: [&str; 2], readers: &str, server: &str) -> String {
    let [open, closed] = urls;
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"{ADMIN}\"\n{server}\n[store]\npath = \"data\"\n\
         [polling]\nallow_private = true\nhost_spacing = \"0s\"\n\
         [websub]\nprivate_callbacks = true\n[[feed]]\nname = \"open\"\nurl = \"{open}\"\n\
         [[feed]]\nname = \"{NAME}\"\nurl = \"{closed}\"\nprivate = true\n{readers}"
    )
}

pub fn reader(token: &str) -> String {
    format!("[[reader]]\nname = \"ann\"\ntoken = \"{token}\"\nfeeds = [\"{NAME}\", \"open\"]\n")
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("t.toml"), text).unwrap();
}

impl Gate {
    /// Signs in as the operator, and answers the cookie.
    pub async fn sign_in(&self) -> String {
        let form = self.client.post(format!("{}/session", self.admin));
        let form = form.header("origin", &self.admin);
        let signed = with_form(form, &[("token", ADMIN), ("to", "/")]).send().await.unwrap();
        let cookie = signed.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Starts a gateway, which logs everything.
    pub async fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), text);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "-c", "t.toml"])
            .env("TIDEGATE_LOG", "debug")
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = async || {
            let line = tokio::time::timeout(PATIENCE, lines.next_line());
            line.await.expect("it answers in time").unwrap().expect("it says where")
        };
        let public = next().await.strip_prefix("listening on ").unwrap().to_owned();
        let admin = match text.contains("admin_listen") {
            true => next().await.strip_prefix("administration on ").unwrap().to_owned(),
            false => public.clone(),
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirect = reqwest::redirect::Policy::none();
        let client = Client::builder().no_proxy().redirect(redirect).build().unwrap();
        let gate = Self { child, folder, public, admin, client };
        for feed in ["open", NAME] {
            let path = format!("{}/api/v1/feeds/{feed}/poll", gate.admin);
            let answer = gate.client.post(path).bearer_auth(ADMIN).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{feed}");
        }
        gate
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        self.client.get(format!("{}{path}", self.public)).send().await.unwrap()
    }

    async fn status(&self, path: &str) -> u16 {
        self.get(path).await.status().as_u16()
    }

    /// Headers and body as one text.
    async fn whole(&self, path: &str, html: bool) -> String {
        let ask = self.client.get(format!("{}{path}", self.public));
        let ask = match html {
            true => ask.header("accept", "text/html").header("sec-fetch-dest", "document"),
            false => ask,
        };
        let answer = ask.send().await.unwrap();
        let head = format!("{} {:?}\n", answer.status(), answer.headers());
        head + &answer.text().await.unwrap()
    }

    /// Makes it read another configuration, and waits until it has.
    async fn reload(&self, text: &str) {
        let read = || self.log().matches("the configuration was read again").count();
        let before = read();
        write(self.folder.path(), text);
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().await.unwrap().success());
        for _ in 0..PATIENCE.as_millis() / 20 {
            if read() > before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it was not read: {}", self.log());
    }

    pub fn log(&self) -> String {
        let path: PathBuf = self.folder.path().join("log");
        std::fs::read_to_string(path).unwrap()
    }
}

/// A form, as a browser sends it.
pub fn with_form<K: AsRef<str>, V: AsRef<str>>(
    request: reqwest::RequestBuilder,
    pairs: &[(K, V)],
) -> reqwest::RequestBuilder {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    request.header("content-type", "application/x-www-form-urlencoded").body(body)
}

/// The addresses of this gateway that a text names, as paths.
pub fn addresses(text: &str, base: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, skip) in [(base, base.len()), (" href=\"/", 7), (" href='/", 7)] {
        for (at, _) in text.match_indices(start) {
            let rest = &text[at + skip..];
            let end = rest.find(['"', '\'', '<', '>', ' ', ')', '\\', ';']).unwrap_or(rest.len());
            found.push(rest[..end].replace("&amp;", "&"));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_over_all_that_is_public_meets_no_private_feed() {
    let urls = [&*publisher("Open title").await, &*publisher(TITLE).await];
    let gate = Gate::start(&configuration(urls, &reader(ANN), "")).await;
    // The reader reads, so that there is something to find.
    for path in ["", "/sync", "/about"] {
        assert_eq!(gate.status(&format!("/t/{ANN}/feeds/{NAME}{path}")).await, 200);
    }
    assert_eq!(gate.status(&format!("/t/{WRONG}/feeds/{NAME}")).await, 404);
    let basic =
        gate.client.get(format!("{}/feeds/{NAME}", gate.public)).basic_auth("ann", Some(ANN));
    let basic = basic.send().await.unwrap();
    assert_eq!(basic.status(), 200);
    let text = basic.text().await.unwrap();
    assert!(text.contains(TITLE) && !text.contains(ANN));
    let topic = format!("{}/feeds/{NAME}", gate.public);
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &*topic),
        ("hub.callback", "http://127.0.0.1:9/callback"),
    ];
    let hub = || gate.client.post(format!("{}/websub", gate.public));
    let refused = with_form(hub(), &form).send().await.unwrap();
    assert_eq!(refused.status(), 404);
    let own = form.map(|(key, value)| match key {
        "hub.topic" => (key, format!("{}/t/{ANN}/feeds/{NAME}", gate.public)),
        _ => (key, value.to_owned()),
    });
    let taken = with_form(hub(), &own).send().await.unwrap();
    assert_eq!(taken.status(), StatusCode::ACCEPTED);
    // From everything that has an address, as far as it leads.
    let mut known: Vec<String> = [
        "/",
        "/recent",
        "/subscriptions.opml",
        "/subscriptions.opml?upstream=1",
        "/sup.json",
        "/sup.json?seconds=86400",
        "/changes?after=0&wait=0",
        "/metrics",
        "/readyz",
        "/healthz",
        "/feeds/open",
        "/feeds/open/sync",
        "/feeds/open/complete",
        "/feeds/nothing",
        "/t/",
        "/websub",
        "/api/v1/feeds",
        "/api/v1/subscriptions",
        "/session",
        "/add",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut at = 0;
    while let Some(path) = known.get(at).cloned() {
        at += 1;
        assert!(at < 2_000, "the walk has an end: {known:?}");
        for html in [false, true] {
            let said = gate.whole(&path, html).await;
            for word in WORDS {
                assert!(!said.contains(word), "{path} says {word}: {said}");
            }
            for found in addresses(&said, &gate.public) {
                let found = found.split('#').next().unwrap_or_default().to_owned();
                if found.starts_with('/') && found != "/events" && !known.contains(&found) {
                    known.push(found);
                }
            }
        }
    }
    assert!(at > 30, "it was a walk: {known:?}");
    // What the operator is told in private is told without the token.
    let subscriptions = gate.client.get(format!("{}/api/v1/subscriptions", gate.public));
    let told = subscriptions.bearer_auth(ADMIN).send().await.unwrap().text().await.unwrap();
    assert!(told.contains(&format!("/t/***/feeds/{NAME}")) && !told.contains(ANN), "{told}");
    let log = gate.log();
    assert!(log.contains("answered") && log.contains("/t/***"), "{log}");
    for token in [ANN, WRONG] {
        assert!(!log.contains(token), "the log has no token");
    }
    // No cache of this gateway has taken one for the other.
    let (open, own) = ("/feeds/open", format!("/t/{ANN}/feeds/open"));
    for _ in 0..3 {
        let (public, private) = (gate.get(open).await, gate.get(&own).await);
        assert_eq!(private.headers()["cache-control"], "private, no-cache");
        assert_ne!(public.headers()["etag"], private.headers()["etag"]);
        assert!(!public.text().await.unwrap().contains(ANN));
        let base = format!("{}/t/{ANN}/", gate.public);
        let text = private.text().await.unwrap();
        assert!(text.contains(&base));
        let strays = text.matches(&gate.public).count() - text.matches(&base).count();
        assert_eq!(strays, 0, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_streams_polls_and_documents() {
    let urls = [&*publisher("Open title").await, &*publisher(TITLE).await];
    let gate = Gate::start(&configuration(urls, &reader(ANN), "")).await;
    let own = format!("/t/{ANN}");
    let before = gate.get(&format!("{own}/feeds/{NAME}")).await;
    let tag = before.headers()["etag"].clone();
    let again = gate.client.get(format!("{}{own}/feeds/{NAME}", gate.public));
    let again = again.header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(again.headers()["cache-control"], "private, no-cache");
    let mut stream = gate.get(&format!("{own}/events")).await;
    assert_eq!(stream.status(), 200);
    let place = gate.get(&format!("{own}/changes")).await.headers()["x-tidegate-after"].clone();
    let place = place.to_str().unwrap().to_owned();
    let poll = format!("{}{own}/changes?after={place}&wait=25", gate.public);
    let poll = tokio::spawn(gate.client.get(poll).send());
    tokio::time::sleep(Duration::from_millis(300)).await;
    gate.reload(&configuration(urls, &reader(WRONG), "")).await;
    let ended = async { while stream.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(5), ended).await.expect("the stream ends");
    let poll = tokio::time::timeout(Duration::from_secs(5), poll).await.expect("the poll ends");
    assert_eq!(poll.unwrap().unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(gate.status(&format!("{own}/feeds/{NAME}")).await, 404);
    assert_eq!(gate.status(&format!("/t/{WRONG}/feeds/{NAME}")).await, 200);
    // A token that cannot be read leaves all as it was.
    write(gate.folder.path(), &configuration(urls, &reader("short"), ""));
    let id = gate.child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().await.unwrap().success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(gate.status(&format!("/t/{WRONG}/feeds/{NAME}")).await, 200);
    assert!(gate.log().contains("openssl rand -hex 16"), "{}", gate.log());
}
