//! A gateway with a private feed, as a process: nothing public names it, its readers are led on below their
//! token.

use crate::support::gateways::Paper;
use crate::support::process::{Process, TOKEN};
use crate::support::{self, post};
use reqwest::{Client, StatusCode};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

pub const ANN: &str = "0123456789abcdef0123456789abcdef";
const WRONG: &str = "fedcba9876543210fedcba9876543210";
/// The name and the title of the private feed; nothing else has these words.
pub const NAME: &str = "zebra-diary";
const TITLE: &str = "Zebrafish confidential";
const WORDS: [&str; 4] = [NAME, "Zebrafish", ANN, WRONG];
/// The most addresses that a walk may find.
const WALK_LIMIT: usize = 3_000;

pub struct Gate {
    /// It ends with this.
    _process: Process,
    folder: tempfile::TempDir,
    pub public: String,
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
    Paper::start("application/atom+xml", &document(title)).await.url
}

fn configuration(urls: [&str; 2], readers: &str) -> String {
    let [open, closed] = urls;
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"{TOKEN}\"\n[store]\npath = \"data\"\n\
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
        let form = self.client.post(format!("{}/session", self.public));
        let form = form.header("origin", &self.public);
        let signed = with_form(form, &[("token", TOKEN), ("to", "/")]).send().await.unwrap();
        let cookie = signed.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Starts a gateway, which logs everything.
    pub async fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), text);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let environment = [("TIDEGATE_LOG", OsStr::new("debug"))];
        let arguments = ["-c", "t.toml"].map(OsStr::new);
        let process =
            Process::start_in(folder.path(), &arguments, &environment, Stdio::from(log)).await;
        for feed in ["open", NAME] {
            process.poll(feed).await;
        }
        let (public, client) = (process.address.clone(), process.client.clone());
        Self { _process: process, folder, public, client }
    }

    /// Asks what it knows of and whatever that leads to; `ask` answers what is said at a path.
    pub async fn walk(
        &self,
        mut known: Vec<String>,
        mut ask: impl AsyncFnMut(&str) -> Vec<String>,
    ) -> usize {
        let mut at = 0;
        while let Some(path) = known.get(at).cloned() {
            at += 1;
            assert!(at < WALK_LIMIT, "the walk has an end: {known:?}");
            for said in ask(&path).await {
                for found in addresses(&said, &self.public) {
                    let found = found.split('#').next().unwrap_or_default().to_owned();
                    if found.starts_with('/') && found != "/events" && !known.contains(&found) {
                        known.push(found);
                    }
                }
            }
        }
        at
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

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
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
fn addresses(text: &str, base: &str) -> Vec<String> {
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
    let gate = Gate::start(&configuration(urls, &reader(ANN))).await;
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
    let known: Vec<String> = [
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
    let asked = gate.walk(known, async |path: &str| {
        let mut said = Vec::new();
        for html in [false, true] {
            said.push(gate.whole(path, html).await);
        }
        for word in WORDS {
            assert!(said.iter().all(|said| !said.contains(word)), "{path} says {word}: {said:?}");
        }
        said
    });
    assert!(asked.await > 30, "it was a walk");
    // What the operator is told in private is told without the token.
    let subscriptions = gate.client.get(format!("{}/api/v1/subscriptions", gate.public));
    let told = subscriptions.bearer_auth(TOKEN).send().await.unwrap().text().await.unwrap();
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
