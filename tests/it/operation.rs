//! The program as its operator runs it: what it says at the start, what a reload changes, settings of the
//! environment, and what a service manager hears.

use crate::support::gateways::until;
use crate::support::prelude::*;
use crate::support::process::{Process, TOKEN, run};
use std::ffi::OsStr;
use std::os::unix::net::UnixDatagram;

const WAIT: Duration = Duration::from_secs(30);

/// The lines of the log when it has one with these words; it is waited for.
async fn logged(folder: &Path, words: &str, times: usize) -> String {
    let log = || std::fs::read_to_string(folder.join("log")).unwrap();
    until(words, async || log().matches(words).count() >= times).await;
    log()
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("t.toml"), format!("[server]\nlisten = \"127.0.0.1:0\"\n{text}"))
        .unwrap();
}

#[tokio::test]
async fn the_start_is_one_line_and_a_reload_says_what_needs_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let feed = "[[feed]]\nname = \"news\"\nlocal = true\n";
    write(folder, &format!("admin_token = {TOKEN:?}\n[store]\nkind = \"sled\"\n{feed}"));
    // A token of the environment would stay.
    let process = Process::start(folder, &[("TIDEGATE_ADMIN_TOKEN", "".as_ref())]).await;
    let log = logged(folder, "the gateway has started", 1).await;
    let line = log.lines().find(|line| line.contains("the gateway has started")).unwrap();
    for said in [
        concat!("version=\"", env!("CARGO_PKG_VERSION"), "\""),
        "config=\"t.toml\"",
        "feeds=1",
        "store=\"sled\"",
        "data=\"tidegate-data\"",
        &format!("listen={}", process.address),
    ] {
        assert!(line.contains(said), "{said}: {line}");
    }

    // The token takes effect, the kind of store is said to need a restart.
    let changed = "admin_token = \"another-token-of-this-test\"\n[store]\nkind = \"memory\"\n";
    write(folder, &format!("{changed}[websub]\nhub = false\n{feed}"));
    process.signal("HUP").await;
    let log = logged(folder, "the configuration was read again", 1).await;
    let said = "t.toml:5: store.kind: was changed and needs a restart; until then what it was stays in force";
    assert!(log.contains(said) && log.contains("restart=1"), "{log}");
    let feeds = process.url("/api/v1/feeds");
    for (token, status) in [(TOKEN, 401), ("another-token-of-this-test", 200)] {
        let answer = process.client().get(&feeds).bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.status(), status);
    }

    // A faulty file changes nothing and says all of its faults.
    write(folder, "admin_token = 1\n[store]\nkind = \"tape\"\n");
    process.signal("HUP").await;
    let log = logged(folder, "the configuration was not taken", 1).await;
    for said in ["t.toml:3: server.admin_token: ", "t.toml:5: store.kind: \\\"tape\\\" is unknown"]
    {
        assert!(log.contains(said), "{said}: {log}");
    }
    let answer = process.client().get(&feeds).bearer_auth("another-token-of-this-test").send();
    let answer = answer.await.unwrap().text().await.unwrap();
    assert!(answer.contains("\"news\"") && answer.contains("\"active\""), "{answer}");
    process.stop().await;
}

/// The next message to a service manager with this line; those before it are skipped.
fn hear(manager: &UnixDatagram, wanted: &str) -> String {
    let mut buffer = [0; 4096];
    for _ in 0..100 {
        let length = manager.recv(&mut buffer).unwrap_or_else(|error| panic!("{wanted}: {error}"));
        let said = String::from_utf8(buffer[..length].to_vec()).unwrap();
        if said.lines().any(|line| line == wanted) {
            return said;
        }
    }
    panic!("{wanted} was not among a hundred messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_manager_hears_of_start_reload_life_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "[store]\nkind = \"memory\"\n");
    let path = folder.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(WAIT)).unwrap();
    let hear = |wanted: &str| hear(&manager, wanted);
    // In microseconds.
    let watchdog = OsStr::new("800000");
    let environment = [("NOTIFY_SOCKET", path.as_os_str()), ("WATCHDOG_USEC", watchdog)];
    let process = Process::start(folder, &environment).await;
    let ready = hear("READY=1");
    let status = format!("STATUS=listening on {}, 0 feeds", process.address);
    assert!(ready.contains(&status), "{ready}");
    let began = tokio::time::Instant::now();
    for _ in 0..4 {
        hear("WATCHDOG=1");
    }
    assert!(began.elapsed() < Duration::from_millis(4 * 400 + 1000), "{:?}", began.elapsed());
    write(folder, "[store]\nkind = \"memory\"\n[[feed]]\nname = \"notes\"\nlocal = true\n");
    process.signal("HUP").await;
    let reloading = hear("RELOADING=1");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
    assert!(since.parse::<u64>().unwrap() > 0);
    assert!(hear("READY=1").contains(", 1 feeds"));
    process.signal("TERM").await;
    hear("STOPPING=1");
    process.stop_when_asked().await;
}

#[tokio::test]
async fn a_folder_at_its_limit_takes_nothing_new_in_until_the_limit_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = |size: &str| format!("[store]\nmax_size = \"{size}\"\n");
    write(folder, &text("1GiB"));
    let process = Process::start(folder, &[]).await;
    let put = async |path: &str| process.admin("PUT", path, json!({ "local": true })).await;
    assert_eq!(put("/feeds/first").await.0, 201);
    std::fs::write(folder.join("tidegate-data/more"), [7; 4096]).unwrap();
    write(folder, &text("1KiB"));
    process.signal("HUP").await;
    let is_full = async || process.text("/readyz").await.contains("store.max_size");
    until("the folder was measured", is_full).await;
    let (status, said) = put("/feeds/second").await;
    let said = said["detail"].as_str().unwrap();
    let is_said = said.contains("store.max_size") && said.contains("may take 1.0 KiB");
    assert!(status == 507 && is_said, "{status} {said}");
    assert!(process.text("/").await.contains("store.max_size"), "the overview says so");
    let metrics = process.text("/metrics").await;
    assert!(metrics.contains("tidegate_store_max_size_bytes 1024"), "{metrics}");
    let log = logged(folder, "status=507", 1).await;
    let line = log.lines().find(|line| line.contains("status=507")).unwrap();
    let is_said = line.contains("answered") && line.contains("reason=\"");
    assert!(is_said && line.contains("store.max_size"), "{line}");
    // What takes nothing in goes on.
    assert_eq!(process.admin("DELETE", "/feeds/first?purge=true", Value::Null).await.0, 204);
    write(folder, "");
    process.signal("HUP").await;
    logged(folder, "the configuration was read again", 2).await;
    assert_eq!(put("/feeds/second").await.0, 201);
    assert_eq!(process.text("/readyz").await, "ready\n");
    process.stop().await;
}

/// A certificate for localhost and its key, in the files of a folder; the certificate as PEM.
fn certify(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("chain.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.pem()
}

#[tokio::test]
async fn https_is_spoken_with_a_certificate_that_is_changed_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = certify(folder);
    let text =
        "tls_cert_file = \"chain.pem\"\ntls_key_file = \"key.pem\"\n[store]\nkind = \"memory\"\n";
    write(folder, text);
    let process = Process::start(folder, &[]).await;
    let port = process.address.strip_prefix("https://127.0.0.1:").expect("it says https");
    let ask = async |certificate: &str| {
        let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate]);
        let asked = client.build().unwrap().get(format!("https://localhost:{port}/healthz"));
        asked.send().await.is_ok_and(|answer| answer.status() == 200)
    };
    assert!(ask(&first).await);
    // What it makes of its own address is HTTPS.
    assert!(process.text("/sup.json").await.contains("https://127.0.0.1:"));
    // A container's health check knows the scheme from the configuration.
    let health = async |listen: &str| run(folder, &["health", "-l", listen, "-c", "t.toml"]).await;
    let alive = health(&format!("0.0.0.0:{port}")).await;
    assert_eq!(alive, (0, String::new()));
    let (status, said) = health("127.0.0.1:1").await;
    assert!(status == 1 && said.contains("/healthz does not answer"), "{said}");

    let second = certify(folder);
    process.signal("HUP").await;
    logged(folder, "the configuration was read again", 1).await;
    assert!(!ask(&first).await, "the first certificate is not shown any more");
    assert!(ask(&second).await);

    process.stop().await;
}
