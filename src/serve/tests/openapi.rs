//! What the API's description says is what the router does, and the other way round.

use super::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the description leaves to others: pages for people, what pages are made of, and what specifications
/// of their own say; with the methods of each.
const LEFT_OUT: [(&str, &str); 17] = [
    ("/", "GET"),
    ("/recent", "GET"),
    ("/subscribe", "GET POST"),
    ("/add", "GET POST"),
    ("/add/list", "GET POST"),
    ("/feeds/{name}/edit", "GET POST"),
    ("/session", "GET POST"),
    ("/session/end", "POST"),
    ("/assets/style.css", "GET"),
    ("/assets/icon.svg", "GET"),
    ("/favicon.ico", "GET"),
    ("/feeds/{name}/about", "GET POST"),
    ("/websub", "POST"),
    ("/rsscloud/pleaseNotify", "POST"),
    ("/websub/callback/{token}", "GET POST"),
    ("/feeds/{name}/conflicts", "POST"),
    ("/feeds/{name}/items/{id}", "POST"),
];

async fn described(site: &Site) -> Value {
    let answer = site.get("/api/v1/openapi.json").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "content-type"), "application/json");
    json(answer).await
}

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// The methods of each path that is described or left out.
async fn paths(site: &Site) -> BTreeMap<String, BTreeSet<String>> {
    let document = described(site).await;
    let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = METHODS.iter().filter(|method| item.get(*method).is_some());
        let methods = methods.map(|method| method.to_uppercase()).collect();
        paths.insert(path.clone(), methods);
    }
    for (path, methods) in LEFT_OUT {
        let described = paths.entry(path.to_owned()).or_default();
        for method in methods.split(' ') {
            assert!(described.insert(method.to_owned()), "{method} {path} is described");
        }
    }
    paths
}

/// The router has each path with the methods that are described or left out, and no other method.
#[tokio::test]
async fn what_is_described_is_what_the_router_has() {
    let site = Site::new();
    let bearer = format!("Bearer {TOKEN}");
    for (path, described) in paths(&site).await {
        let asked = path.replace("{name}", "news").replace("{id}", "a").replace("{token}", "x");
        let headers = [("authorization", bearer.as_str())];
        // What has a route there says which methods it has.
        let answer = site.ask(request("BREW", &asked, &headers, "")).await;
        let allowed = header(&answer, "allow").split(',').map(|method| method.trim().to_owned());
        let allowed: BTreeSet<String> = allowed.filter(|method| method != "HEAD").collect();
        assert_eq!(allowed, described, "{path}");
    }
}

/// No origin and no path of a feed takes requests away from a route.
#[tokio::test]
async fn the_configuration_gives_away_no_path_of_a_route() {
    let mut paths: Vec<String> = paths(&Site::new()).await.into_keys().collect();
    paths.push(super::super::audience::TOKEN_PATH.to_owned());
    let first = |path: &String| path.split('/').nth(1).unwrap_or_default().to_owned();
    let mut first: BTreeSet<String> = paths.iter().map(first).collect();
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
    for kind in ["schemas", "responses"] {
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
