//! What the hub is told of topics below tokens.

use super::private::{ANN, BOB, SECRET, readers, site};
use crate::{NoTopic, SiteReaders, SiteTopics};
use tidegate_store::KnownGateway;

/// Those of an older file than the one that another gateway has lack a reader, and a feed of another.
#[tokio::test]
async fn no_topic_of_a_reader_has_gone_while_another_gateway_has_other_readers() {
    let site = site();
    let topics = SiteTopics::new(site.room.clone());
    let known = SiteReaders::new(site.room.clone());
    let at = |path: &str| format!("https://feeds.example.org{path}/feeds/{SECRET}");
    let missing = [ANN, BOB].map(|token| at(&format!("/t/{token}")));
    let public = topics.stands(&at("")).await;
    assert!(matches!(public, Err(NoTopic::Gone(_))), "{public:?}");
    let bob = || vec![readers().remove(1)];
    known.replace(bob());
    let other = KnownGateway { differing: vec!["reader".to_owned()], ..KnownGateway::default() };
    let others = |all: &[KnownGateway]| {
        site.store.condition.lock().unwrap().gateways = all.into();
    };
    others(&[other]);
    for topic in &missing {
        let found = topics.stands(topic).await;
        assert!(matches!(found, Err(NoTopic::Later(_))), "{found:?}");
        assert!(matches!(topics.document(topic).await, Err(NoTopic::Later(_))));
    }
    assert_eq!(topics.stands(&at("")).await, public, "no reader's");
    // The operator has the other one read a file that has no more readers, or this one a file that has them.
    others(&[]);
    for topic in &missing {
        let found = topics.stands(topic).await;
        assert!(matches!(found, Err(NoTopic::Gone(_))), "{found:?}");
    }
    known.replace(readers());
    assert_eq!(topics.stands(&missing[0]).await, Ok(()));
}
