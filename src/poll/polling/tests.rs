use super::*;
use crate::testing::double::{name, record, store_of};
use crate::testing::gateway::{Gateway, Publisher, eventually, fetched};
use tidegate_core::model::{FeedOptions, ListMember, MemberStanding};
use tidegate_status::WalkOrder;

const CONFIGURED: &str = "https://news.example/configured";

fn feed(secret: Option<bool>) -> FeedRecord {
    let (options, url) = (FeedOptions { secret, ..FeedOptions::default() }, CONFIGURED.to_owned());
    FeedRecord { options, url, ..record("news") }
}

fn not_modified(own: &str) -> Fetched {
    let links = HubLinks { hubs: vec!["https://hub.example/".into()], own: Some(own.into()) };
    Fetched { links, ..fetched(CONFIGURED, FetchAnswer::NotModified) }
}

#[test]
fn no_hub_is_told_of_a_feed_that_is_secret_whatever_address_it_gives_itself() {
    for own in [CONFIGURED, "https://news.example/letters/marion"] {
        let told = |secret| find_hub(&feed(secret), &not_modified(own), &HubLinks::default());
        assert_eq!(told(None).unwrap().topic, own);
        assert_eq!(told(Some(false)).unwrap().topic, own);
        assert_eq!(told(Some(true)), None, "{own}");
    }
    let keyed = "https://news.example/feed?token=4f8a1c9be27d4f8a1c9be27d";
    assert_eq!(find_hub(&feed(None), &not_modified(keyed), &HubLinks::default()), None);
}

/// The address could be a private one whose name does not show it.
#[tokio::test(start_paused = true)]
async fn a_feed_that_a_list_added_is_asked_for_on_the_word_of_the_list() {
    let (store, publisher) = (store_of(&["list"]), Publisher::new("one"));
    let gateway = Gateway::start(&store, &publisher).await;
    let member = |feed: &str, standing| {
        let list = ListMember { list: name("list"), standing, placed: 0 };
        FeedRecord { list: Some(list), ..record(feed) }
    };
    gateway.poller.put(member("member", MemberStanding::Listed)).await.unwrap();
    gateway.poller.put(member("own", MemberStanding::Own)).await.unwrap();
    // A member that the operator took over counts as added by the operator.
    for feed in ["list", "member", "own"] {
        gateway.polls(feed, 1).await;
        let asked = publisher.asked.lock().unwrap();
        let request = asked.iter().find(|request| request.url == record(feed).url).unwrap();
        let named = LeadScope::of_feed(&record(feed)).added_by(&record("list"));
        let scope = if feed == "member" { named } else { LeadScope::Own };
        assert_eq!(request.leads, scope, "{feed}");
    }
    // The same scope applies to addresses it names, such as older documents.
    gateway.poller.walk(&name("member"), WalkOrder::Start).await.unwrap();
    eventually(|| publisher.requests() == 4).await;
    let asked = publisher.asked.lock().unwrap();
    let scope = LeadScope::of_feed(&record("member")).added_by(&record("list"));
    assert_eq!(asked.last().unwrap().leads, scope);
}
