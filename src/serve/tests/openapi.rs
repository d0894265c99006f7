use super::*;
use crate::routes::ROUTES;
use serde_json::Value;
use std::collections::BTreeSet;

/// What the description leaves to others: pages for people and their forms, what pages are made of, and what
/// specifications of their own say.
const LEFT_OUT: &str = "/ /recent /robots.txt /subscribe /add /add/list /feeds/{name}/edit /session \
                        /session/end /assets/style.css /assets/icon.svg /favicon.ico \
                        /feeds/{name}/about /websub /rsscloud/pleaseNotify \
                        /websub/callback/{token} /feeds/{name}/conflicts /feeds/{name}/items/{id}";

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];
#[test]
fn the_configuration_gives_away_no_path_of_a_route() {
    let paths = ROUTES.iter().map(|route| &*route.path).chain([crate::audience::TOKEN_PATH]);
    // The overview is at a path that none can have.
    let first = paths.filter_map(|path| path.split('/').nth(1)).filter(|step| !step.is_empty());
    let first: BTreeSet<&str> = first.collect();
    let own: BTreeSet<&str> = tidegate_config::OWN_STEPS.iter().copied().collect();
    assert!(first.is_subset(&own), "add to OWN_STEPS: {:?}", first.difference(&own));
    // Kept for what may come to stand there.
    let mut free = own.difference(&first);
    assert!(free.all(|step| ["openapi.json", "subscribe"].contains(step)), "{own:?}");
}

#[tokio::test]
async fn anybody_may_read_the_description_which_hangs_together() {
    let site = Site::new();
    let answer = site.get("/api/v1/openapi.json").await;
    assert_eq!(header(&answer, "access-control-allow-origin"), "*");
    assert_eq!(header(&answer, "content-type"), "application/json");
    let again = [("if-none-match", header(&answer, "etag"))];
    assert_eq!(site.get_with("/api/v1/openapi.json", &again).await.status(), 304);
    let document = json(answer).await;
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["servers"][0]["url"], "https://feeds.example.org");
    // What the API has is described.
    let with_operations: Vec<_> =
        ROUTES.iter().filter(|route| route.operations.is_some()).collect();
    for route in &with_operations {
        assert!(document["paths"].get(&route.path).is_some(), "{}", route.path);
    }
    assert_eq!(document["paths"].as_object().unwrap().len(), with_operations.len());
    let left_out = ROUTES.iter().filter(|route| route.operations.is_none());
    let left_out: BTreeSet<&str> = left_out.map(|route| &*route.path).collect();
    assert_eq!(left_out, LEFT_OUT.split(' ').collect());
    // Every schema that is named is there, and every one that is there is named.
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
