//! What the API's description says is what the router does, and the other way round.

use super::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// What the description leaves to others: pages for people, what pages are made of, and what specifications
/// of their own say.
const LEFT_OUT: [&str; 18] = [
    "/",
    "/recent",
    "/subscribe",
    "/add",
    "/add/list",
    "/feeds/{name}/edit",
    "/session",
    "/session/end",
    "/assets/style.css",
    "/assets/icon.svg",
    "/favicon.ico",
    "/feeds/{name}/about",
    "/websub",
    "/rsscloud/pleaseNotify",
    "/websub/callback/{token}",
    "POST /feeds/{name}/conflicts",
    "POST /feeds/{name}/about",
    "POST /feeds/{name}/items/{id}",
];

/// Every route of the router with each of its methods. The source says at which paths something may be, the
/// router itself which of them are there, below which prefix, and with which methods.
async fn routed(site: &Site) -> BTreeSet<String> {
    let source = include_str!("../lib.rs");
    let literal = |written: &str| match written.strip_prefix('"') {
        Some(rest) => rest.split('"').next().unwrap_or_default().to_owned(),
        None => constant(written.split(',').next().unwrap_or_default().trim()).to_owned(),
    };
    let arguments =
        |call: &str| source.split(call).skip(1).map(|it| literal(it.trim_start())).collect();
    let paths: Vec<String> = arguments(".route(");
    let mut prefixes: Vec<String> = arguments(".nest(");
    prefixes.push(String::new());
    assert!(paths.len() > 30 && prefixes.len() > 1, "{paths:?} {prefixes:?}");
    let bearer = format!("Bearer {TOKEN}");
    let mut found = BTreeSet::new();
    for path in &paths {
        let mut is_there = false;
        for prefix in &prefixes {
            let address = format!("{prefix}{path}");
            let asked = address.replace("{name}", "news").replace("{id}", "a");
            let asked = asked.replace("{token}", "x");
            let headers = [("authorization", bearer.as_str())];
            let answer = site.ask(request("BREW", &asked, &headers, "")).await;
            // What has a route there says which methods it has.
            let methods = header(&answer, "allow").to_owned();
            for method in methods.split(',').map(str::trim).filter(|method| !method.is_empty()) {
                is_there = true;
                found.insert(format!("{method} {address}"));
            }
        }
        assert!(is_there, "no route is at {path}");
    }
    found.retain(|route| !route.starts_with("HEAD "));
    found
}

/// The paths that the router has by name.
fn constant(name: &str) -> &'static str {
    match name {
        "html::ICON" => "/assets/icon.svg",
        "address::CLOUD_PATH" => super::super::address::CLOUD_PATH,
        "callback::ROUTE" => super::super::callback::ROUTE,
        "openapi::ROUTE" => super::super::openapi::ROUTE,
        "API" => super::super::API,
        other => panic!("say which path {other:?} is"),
    }
}

async fn described(site: &Site) -> Value {
    let answer = site.get("/api/v1/openapi.json").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "content-type"), "application/json");
    json(answer).await
}

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

#[tokio::test]
async fn every_route_is_described_and_nothing_else() {
    let site = Site::new();
    let document = described(&site).await;
    let mut said = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = METHODS.iter().filter(|method| item.get(*method).is_some());
        said.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    let is_left_out = |route: &&String| {
        let path = route.split_once(' ').unwrap().1;
        LEFT_OUT.contains(&path) || LEFT_OUT.contains(&route.as_str())
    };
    let routed = routed(&site).await;
    let left_out: BTreeSet<String> = routed.iter().filter(is_left_out).cloned().collect();
    assert!(left_out.is_disjoint(&said), "{left_out:?}");
    let mut all = said;
    all.extend(left_out);
    assert_eq!(all, routed);
}

/// No origin and no path of a feed takes requests away from a route.
#[tokio::test]
async fn the_configuration_gives_away_no_path_of_a_route() {
    let routed = routed(&Site::new()).await;
    let paths = routed.iter().filter_map(|route| route.split_once(' ')).map(|(_, path)| path);
    let paths = paths.chain([super::super::audience::TOKEN_PATH]);
    let first = |path: &'_ str| path.split('/').nth(1).unwrap_or_default().to_owned();
    let mut first: BTreeSet<String> = paths.map(first).collect();
    // The overview is at a path that none can have.
    first.remove("");
    let own: BTreeSet<String> =
        tidegate_config::OWN_STEPS.iter().map(|step| (*step).to_owned()).collect();
    assert!(first.is_subset(&own), "add to OWN_STEPS: {:?}", first.difference(&own));
    // Kept for what may come to stand there.
    let free: Vec<&String> = own.difference(&first).collect();
    assert!(
        free.iter().all(|step| ["openapi.json", "subscribe"].contains(&step.as_str())),
        "{free:?}"
    );
}

#[tokio::test]
async fn anybody_may_read_which_version_answers_and_where() {
    let site = Site::new();
    let answer = site.get("/api/v1/openapi.json").await;
    assert_eq!(header(&answer, "access-control-allow-origin"), "*");
    let tag = header(&answer, "etag").to_owned();
    let again = site.get_with("/api/v1/openapi.json", &[("if-none-match", &tag)]).await;
    assert_eq!(again.status(), 304);
    let document = described(&site).await;
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["servers"][0]["url"], "https://feeds.example.org");
}

/// Every schema that is named is there, and every one that is there is named.
#[tokio::test]
async fn the_description_hangs_together() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(to)) = members.get("$ref") {
                    found.insert(to.clone());
                }
                members.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = described(&Site::new()).await;
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    let mut there = BTreeSet::new();
    for kind in ["schemas", "parameters", "responses"] {
        let all = document["components"][kind].as_object().unwrap();
        there.extend(all.keys().map(|name| format!("#/components/{kind}/{name}")));
    }
    // OpenAPI 3.1 cannot say what each line of a body is; the tests of a whole gateway read them so.
    named.insert("#/components/schemas/ChangeLine".to_owned());
    assert_eq!(named, there);
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS.iter().filter_map(|method| item.get(*method)) {
            let name = method["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is there twice");
            let is_open = method.get("security") == Some(&serde_json::json!([]));
            let is_public = !path.starts_with("/api/") || path.ends_with("/openapi.json");
            assert_eq!(is_open, is_public, "{path}");
        }
    }
}
