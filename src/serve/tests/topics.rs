//! What the hub is told of topics below tokens.

use super::private::{ANN, BOB, SECRET, announcing, readers, store};
use super::{ServeSettings, Site};
use tidegate_poll::hub::{NoHubDocument, TopicRequest};
use tidegate_store::KnownGateway;

/// Those of an older file than the one that another gateway has lack a reader, and a feed of another.
#[tokio::test]
async fn no_topic_of_a_reader_has_gone_while_another_gateway_has_other_readers() {
    let site = Site::with(store().shared(), announcing());
    let exists = async |site: &Site, topic: &str| {
        site.room.hub_document(TopicRequest::Exists(topic.to_owned())).await
    };
    let at = |path: &str| format!("https://feeds.example.org{path}/feeds/{SECRET}");
    let missing = [ANN, BOB].map(|token| at(&format!("/t/{token}")));
    let public = exists(&site, &at("")).await;
    assert!(matches!(public, Err(NoHubDocument::Gone(_))), "{public:?}");
    let bob = ServeSettings { readers: vec![readers().remove(1)], ..announcing() };
    let site = site.followed_by(bob);
    let other = KnownGateway { differing: vec!["reader".to_owned()], ..KnownGateway::default() };
    let others = |all: &[KnownGateway]| {
        site.store.confirm(all);
    };
    others(&[other]);
    for topic in &missing {
        let found = exists(&site, topic).await;
        assert!(matches!(found, Err(NoHubDocument::Later(_))), "{found:?}");
        let document = site.room.hub_document(TopicRequest::Document(topic.clone())).await;
        assert!(matches!(document, Err(NoHubDocument::Later(_))), "{document:?}");
    }
    assert_eq!(exists(&site, &at("")).await, public, "no reader's");
    // The operator has the other one read a file that has no more readers, or this one a file that has them.
    others(&[]);
    for topic in &missing {
        let found = exists(&site, topic).await;
        assert!(matches!(found, Err(NoHubDocument::Gone(_))), "{found:?}");
    }
    let site = site.followed_by(announcing());
    assert!(exists(&site, &missing[0]).await.is_ok());
}
