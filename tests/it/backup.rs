//! A gateway is backed up while it runs and its feeds change: the file has every feed whole.

use crate::support::gateways::{Paper, complete};
use crate::support::process::{Process, run};
use reqwest::Method;
use std::time::Duration;

fn rss(posts: u32) -> String {
    let item = |n| format!("<item><guid>{n}</guid><title>Post {n}</title></item>");
    let items: String = (1..=posts).rev().map(item).collect();
    format!("<rss version=\"2.0\"><channel><title>The news</title>{items}</channel></rss>")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_backed_up_while_it_runs() {
    let paper = Paper::start("application/rss+xml", &rss(8)).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let names = ["f0", "f1", "f2", "f3", "f4", "f5"];
    let feed = |name| format!("[[feed]]\nname = \"{name}\"\nurl = \"{}{name}\"\n", paper.url);
    let config = format!("[store]\npath = \"data\"\n{}", names.map(feed).concat());
    let gateway = Process::configured(folder, &config).await;
    for name in names {
        gateway.poll(name).await;
    }
    // Its credentials are in no copy.
    let keyed = serde_json::json!({ "url": format!("{}keyed", paper.url), "bearer": "hush-7d1f" });
    gateway.call(Method::PUT, "/feeds/keyed", Some(keyed)).await;
    let polling = async {
        for round in 0..12 {
            paper.print(&rss(9 + round));
            for name in names {
                gateway.poll(name).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let files = ["b0.tg", "b1.tg", "b2.tg"];
    let exporting = async {
        for file in files {
            let (status, said) =
                run(folder, &["export", file, "--gateway", &gateway.address]).await;
            assert!(status == 0 && said.contains(&format!("written to {file}")), "{said}");
            assert!(said.contains("after an import give them again to keyed\n"), "{said}");
        }
    };
    tokio::join!(polling, exporting);
    // Where the folder is in use, its gateway is asked, as far as it is known where that listens.
    let (status, said) = run(folder, &["export", "y.tg", "-c", "t.toml"]).await;
    assert!(
        status == 1 && said.contains("was asked for it") && said.contains("--gateway"),
        "{said}"
    );
    let left = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.map(|name| name.into_string().unwrap()).any(|name| name.ends_with(".new")));
    gateway.stop().await;

    // No feed: copies that poll take in nothing.
    paper.print("");
    for file in files {
        let there = tempfile::tempdir().unwrap();
        let there = there.path();
        std::fs::copy(folder.join(file), there.join(file)).unwrap();
        std::fs::write(there.join("t.toml"), complete(&config)).unwrap();
        let (status, said) = run(there, &["import", file, "-c", "t.toml"]).await;
        assert!(status == 0 && said.starts_with("7 feeds with "), "{said}");
        assert!(said.contains("give them again to keyed\n") && !said.contains("hush"), "{said}");
        let copy = Process::configured(there, &config).await;
        for name in names {
            let shown = copy.call(Method::GET, &format!("/feeds/{name}"), None).await;
            let living = shown["state"]["counts"]["living"].as_u64().unwrap();
            assert!((8..=20).contains(&living), "{file} {name}: {living}");
            let complete = copy.get(&format!("/feeds/{name}/complete")).await;
            assert_eq!(complete.matches("<guid").count() as u64, living, "{file} {name}");
        }
        copy.stop().await;
    }
}
