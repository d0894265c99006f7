//! The hub between the module that takes requests and the module that keeps and delivers.

use crate::hub::{AskError, Hub, HubDocument, NoHubDocument, Topics};
use crate::model::FeedName;
use crate::serve::{self, HubError, HubTotals, NoTopic};
use crate::store::StoreError;
use crate::websub::{HubRequest, Subscription};
use async_trait::async_trait;
use url::Url;

/// The hub as the side that serves sees it.
pub(super) struct HubAccess(pub(super) Hub);

#[async_trait]
impl serve::HubService for HubAccess {
    async fn ask(&self, feed: &FeedName, request: HubRequest) -> Result<(), HubError> {
        self.0.ask(feed, request).await.map_err(|error| refused(&error))
    }

    async fn register(
        &self,
        feed: &FeedName,
        topic: String,
        callback: Url,
    ) -> Result<(), HubError> {
        self.0.register(feed, topic, callback).await.map_err(|error| refused(&error))
    }

    fn subscriptions(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        self.0.subscriptions(feed, limit)
    }

    fn check_topics(&self) {
        self.0.check_topics();
    }

    fn totals(&self) -> HubTotals {
        let count = self.0.count();
        HubTotals {
            active: count.active,
            pending: count.pending,
            delivered: count.delivered,
            failed: count.failed,
        }
    }
}

fn refused(error: &AskError) -> HubError {
    match error {
        AskError::Callback(_) | AskError::Mode(_) => HubError::BadRequest(error.to_string()),
        AskError::Unknown => HubError::Unknown(error.to_string()),
        AskError::Pending | AskError::Full { .. } => HubError::Full(error.to_string()),
        AskError::Store(StoreError::LowSpace { .. } | StoreError::Stopped(_)) => {
            HubError::Later(error.to_string())
        }
        AskError::Store(_) => HubError::Internal(error.to_string()),
    }
}

/// The documents of the side that serves, as the hub sees them.
pub(super) struct Served(pub(super) serve::SiteTopics);

fn absent(missing: NoTopic) -> NoHubDocument {
    match missing {
        NoTopic::Gone(why) => NoHubDocument::Gone(why),
        NoTopic::Later(why) => NoHubDocument::Later(why),
    }
}

#[async_trait]
impl Topics for Served {
    async fn stands(&self, topic: &str) -> Result<(), NoHubDocument> {
        self.0.stands(topic).await.map_err(absent)
    }

    async fn document(&self, topic: &str) -> Result<HubDocument, NoHubDocument> {
        let pushed = self.0.document(topic).await.map_err(absent)?;
        Ok(HubDocument { headers: pushed.headers, body: pushed.body })
    }
}
