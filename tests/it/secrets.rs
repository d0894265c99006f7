//! Every kind of secret that an operator can give, and a walk over everything that the gateway says to
//! everybody and to the operator: no page, document, answer, log, metric or export shows one in clear.

use crate::support::gateways::{FORM, Paper, form};
use crate::support::prelude::*;
use crate::support::process::{Process, TOKEN};
use regex::Regex;
use std::ffi::OsStr;

/// Stands in every secret.
const HUSH: &str = "hush-41c7";
const ANN: &str = "0123456789abcdef0123456789abcdef";
const WRONG: &str = "fedcba9876543210fedcba9876543210";
/// The name of the private feed; nothing else has these words.
const NAME: &str = "zebra-diary";
const CLOSED: &str = "Closed title";
const WALK_LIMIT: usize = 3_000;

struct Gate {
    process: Process,
    folder: tempfile::TempDir,
}

impl Gate {
    /// Signs in as the operator, and answers the cookie.
    async fn sign_in(&self) -> String {
        let asked = self.process.client().post(self.process.url("/session"));
        let asked = asked.header("origin", &self.process.address).header("content-type", FORM);
        let signed = asked.body(form(&[("token", TOKEN), ("to", "/")])).send().await.unwrap();
        let cookie = signed.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    /// Starts a gateway, which logs everything.
    async fn start(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.toml"), text).unwrap();
        let environment = [("TIDEGATE_LOG", OsStr::new("debug"))];
        let process = Process::start(folder.path(), &environment).await;
        for feed in ["open", NAME] {
            process.poll(feed).await;
        }
        Self { process, folder }
    }

    /// Asks what it knows of and whatever that leads to; `ask` answers what is said at a path.
    async fn walk(
        &self,
        mut known: Vec<String>,
        mut ask: impl AsyncFnMut(&str) -> Vec<String>,
    ) -> usize {
        let mut at = 0;
        while let Some(path) = known.get(at).cloned() {
            at += 1;
            assert!(at < WALK_LIMIT, "the walk has an end: {known:?}");
            for said in ask(&path).await {
                for found in addresses(&said, &self.process.address) {
                    let found = found.split('#').next().unwrap_or_default().to_owned();
                    if found.starts_with('/') && found != "/events" && !known.contains(&found) {
                        known.push(found);
                    }
                }
            }
        }
        at
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

/// The addresses of this gateway that a text names, as paths.
fn addresses(text: &str, base: &str) -> Vec<String> {
    let start = format!(r#"({}| href=["'])(/[^"'<> )\\;]*)"#, regex::escape(base));
    let found = Regex::new(&start).unwrap();
    found.captures_iter(text).map(|found| found[2].to_owned()).collect()
}

/// The address of a feed with this title.
async fn publisher(title: &str) -> String {
    let text = atom(SITE, &days(1..=3)).replacen("<title>News<", &format!("<title>{title}<"), 1);
    Paper::start("application/atom+xml", &text).await.url
}

fn assert_quiet(path: &str, said: &str) {
    for word in [HUSH, ANN, TOKEN] {
        let place = said.find(word).unwrap_or(said.len());
        let near = said.get(place.saturating_sub(200)..).unwrap_or(said);
        assert!(!said.contains(word), "{path} says {word}: {near:.400}");
    }
}

/// Two feeds of the file with every kind of secret, and one behind a proxy that is not there.
fn configuration(open: &str, closed: &str, hook: &str) -> String {
    let readers =
        format!("[[reader]]\nname = \"ann\"\ntoken = \"{ANN}\"\nfeeds = [\"{NAME}\", \"open\"]\n");
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"{TOKEN}\"\n[store]\npath = \"data\"\n\
         [polling]\nallow_private = true\nhost_spacing = \"0s\"\n\
         [websub]\nprivate_callbacks = true\n[[feed]]\nname = \"open\"\nurl = \"{open}\"\nheaders = {{ X-Api-Key = \"key-{HUSH}\" }}\n\
         cookie = \"session={HUSH}\"\nbasic = {{ user = \"user-{HUSH}\", password = \"{HUSH}\" }}\n\
         webhook = {{ url = \"{hook}\", secret = \"whsec-{HUSH}-long-enough-to-sign\" }}\n\
         [[feed]]\nname = \"{NAME}\"\nurl = \"{closed}?key={HUSH}\"\nsecret = true\nprivate = true\n\
         bearer = \"{HUSH}\"\n\
         [[feed]]\nname = \"behind\"\nurl = \"http://user-{HUSH}:{HUSH}@publisher.example/\"\n\
         proxy = \"http://user-{HUSH}:{HUSH}@127.0.0.1:9/\"\n{readers}"
    )
}

/// Gives the gateway one more feed, by the API, with secrets of its own; and a subscriber with a secret.
async fn act(gate: &Gate, url: &str) {
    let feed = json!({
        "url": url, "title": "Put", "cookie": HUSH,
        "headers": { "Authorization": format!("Token {HUSH}") },
    });
    gate.process.call("PUT", "/feeds/put", feed).await;
    for feed in ["open", "put", "behind"] {
        let path = format!("/feeds/{feed}/poll");
        let report = gate.process.call("POST", &path, Value::Null).await;
        assert_eq!(report["error"].is_null(), feed != "behind", "{report}");
        assert_quiet("the report of a poll", &report.to_string());
    }
    let form = form(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", &gate.process.url("/feeds/open")),
        ("hub.callback", &format!("http://127.0.0.1:9/{HUSH}")),
        ("hub.secret", HUSH),
    ]);
    let hub = gate.process.client().post(gate.process.url("/websub")).header("content-type", FORM);
    assert!(hub.body(form).send().await.unwrap().status().is_success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_the_gateway_says_or_writes_shows_a_secret() {
    let hook = publisher("Nobody signs here").await;
    let urls = [&*publisher("Open title").await, &*publisher(CLOSED).await];
    let gate = Gate::start(&configuration(urls[0], urls[1], &hook)).await;
    act(&gate, urls[0]).await;
    for (token, is_ann) in [(ANN, true), (WRONG, false)] {
        let ask = gate.process.client().get(gate.process.url(&format!("/t/{token}/feeds/{NAME}")));
        assert_eq!(ask.send().await.unwrap().status().is_success(), is_ann);
    }
    let cookie = gate.sign_in().await;
    let places = "/ /recent /add /add/list /session /metrics /sup.json /readyz /subscriptions.opml \
                  /subscriptions.opml?upstream=1 /changes?after=0&wait=0 /websub /api/v1/feeds \
                  /api/v1/subscriptions /api/v1/openapi.json /nothing";
    let mut known: Vec<String> = places.split(' ').map(str::to_owned).collect();
    for feed in ["open", NAME, "behind", "put"] {
        let views = " /sync /complete /about /edit /items /history /conflicts /changes";
        known.extend(views.split(' ').map(|view| format!("/feeds/{feed}{view}")));
        let parts = ["/items", "/conflicts", "/events", "/webhook", "/hold"];
        known.extend(parts.map(|part| format!("/api/v1/feeds/{feed}{part}")));
    }
    let asked = gate.walk(known, async |path: &str| {
        let mut all = Vec::new();
        for (is_operator, is_page) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut ask = gate.process.client().get(gate.process.url(path));
            if is_page {
                ask = ask.header("accept", "text/html").header("sec-fetch-dest", "document");
            }
            match (is_operator, path.starts_with("/api/")) {
                (true, true) => ask = ask.bearer_auth(TOKEN),
                (true, false) => ask = ask.header("cookie", &cookie),
                (false, _) => {}
            }
            let answer = ask.timeout(Duration::from_secs(30)).send().await.unwrap();
            let said = format!("{:?}\n{}", answer.headers().clone(), answer.text().await.unwrap());
            // The one place that has an address with a key in it: the operator's own answers.
            let is_own = is_operator && path.starts_with("/api/");
            let said = if is_own { said.replace(&format!("?key={HUSH}"), "") } else { said };
            assert_quiet(path, &said);
            // Whoever is not told of a private feed does not learn of it.
            let is_named = is_operator || path.contains(NAME);
            assert!(is_named || !said.contains(NAME), "{path} names a private feed");
            assert!(is_operator || !said.contains(CLOSED), "{path} shows a private feed");
            let session = cookie.split('=').nth(1).unwrap();
            assert!(!said.contains(session), "{path} says who is signed in");
            all.push(said);
        }
        all
    });
    assert!(asked.await > 100, "it was a walk");
    let export = gate.process.client().get(gate.process.url("/api/v1/export")).bearer_auth(TOKEN);
    let export = export.send().await.unwrap().bytes().await.unwrap();
    let start = export.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let export = zstd::stream::decode_all(&export[start..]).unwrap();
    let text = String::from_utf8_lossy(&export);
    // What the gateway could not go on without: the address of the feed, what a subscriber gave, and what signs.
    let needed = [
        format!("?key={HUSH}"),
        format!("http://127.0.0.1:9/{HUSH}"),
        format!("whsec-{HUSH}-long-enough-to-sign"),
        format!("\t{HUSH}"),
    ];
    let text = needed.iter().fold(text.into_owned(), |text, needed| {
        // What polling remembers has the feed's address as well, once it is written.
        let most = if needed.starts_with('?') { 2 } else { 1 };
        assert!((1..=most).contains(&text.matches(needed.as_str()).count()), "{needed}");
        text.replace(needed, "")
    });
    assert!(!text.contains(HUSH), "credentials are in the export");
    assert!(text.contains("X-Api-Key") && !text.contains(ANN) && !text.contains(TOKEN));
    let log = gate.log();
    assert!(log.contains("answered") && log.contains("/t/***"), "{log}");
    assert!(!log.contains(WRONG), "the log shows a token that was tried");
    assert_quiet("the log", &log);
}
