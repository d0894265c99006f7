//! Items that are made here, and conflicts that are resolved.

use super::AdminService;
use tidegate_config as config;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use tidegate_judge::record::Observation;
use tidegate_judge::record::local::{self, Act, Acted};
use tidegate_serve::{OperatorError, PutFeed};
use tidegate_store::{CommitError, in_words};

impl AdminService {
    /// Does what is asked of an item. Durable on return.
    pub(super) async fn act(&self, feed: &FeedName, act: &Act) -> Result<Acted, OperatorError> {
        let record = self.record(feed).await?;
        if record.standing == FeedStanding::Gone {
            return Err(OperatorError::Conflict(format!("the feed {feed} was deleted")));
        }
        if record.options.sharing.is_aggregate() && matches!(act, Act::Create { .. }) {
            let said =
                format!("the feed {feed} is an aggregate: make the item in one of its sources");
            return Err(OperatorError::Conflict(said));
        }
        self.decide_and_commit(&record, &[], |round| {
            let (verdict, acted) = local::act(round, act).map_err(OperatorError::Item)?;
            Ok((verdict.change, acted))
        })
        .await
    }

    /// The address that is wanted for a feed, checked, and the feeds that it is to share with; empty
    /// where a local feed has none.
    pub(super) async fn wanted(
        &self,
        feed: &FeedName,
        put: &PutFeed,
    ) -> Result<String, OperatorError> {
        let sharing = &put.options.sharing;
        let url = if sharing.local && put.url.is_empty() {
            String::new()
        } else {
            let url = config::feed_address(&put.url);
            url.map_err(|error| OperatorError::BadRequest(format!("url: {error}")))?.to_string()
        };
        let all = self.store.feed_list().await?;
        let is_there =
            |name: &FeedName| all.get(name).is_some_and(|r| r.standing != FeedStanding::Gone);
        let unknown = |name: &&FeedName| *name == feed || !is_there(name);
        if let Some(name) = sharing.shares_with.iter().find(unknown) {
            let said = format!("shares_with: there is no other feed {name}");
            return Err(OperatorError::BadRequest(said));
        }
        Ok(url)
    }

    /// Opens a local feed or an aggregate, so that it is served before it has an item. Nothing for
    /// others, and for one that is open.
    pub(super) async fn open(&self, record: &FeedRecord) -> Result<(), OperatorError> {
        let sharing = &record.options.sharing;
        let is_ours = sharing.local || sharing.is_aggregate();
        if !is_ours || record.standing != FeedStanding::Active {
            return Ok(());
        }
        let decide = |round: &Observation<'_>| Ok((local::open(round).change, ()));
        match self.decide_and_commit(record, &[], decide).await {
            Err(CommitError::Conflict(_)) => Ok(()),
            done => Ok(done?),
        }
    }

    /// The same for every feed; what cannot be opened now is opened with its first item.
    pub(in crate::app) async fn open_all(&self) {
        let feeds = match self.store.feed_list().await {
            Ok(feeds) => feeds,
            Err(error) => {
                return tracing::warn!(error = in_words(&error), "local feeds could not be opened");
            }
        };
        for record in feeds.values() {
            if let Err(error) = self.open(record).await {
                tracing::warn!(feed = %record.name, %error, "a local feed could not be opened");
            }
        }
    }
}
