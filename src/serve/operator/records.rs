//! The records of feeds: read, checked as they are wanted, written, and opened.

use super::{Operator, OperatorError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::{
    Change, FeedAccess, FeedName, FeedRecord, FeedSource, FeedStanding, ProxyRoute, SecretSource,
    SharingOptions, Time,
};
use tidegate_judge::record::{Observation, local};
use tidegate_net::fetch;
use tidegate_store::{CommitError, FeedList, StoreError, in_words};
use tokio::sync::MutexGuard;
use url::Url;

impl Operator {
    /// Decides over the newest snapshot of a feed and commits; answers what was decided.
    pub(super) async fn decide_and_commit<T, E: From<StoreError> + From<CommitError>>(
        &self,
        record: &FeedRecord,
        names: &[String],
        decide: impl Fn(&Observation<'_>) -> Result<(Option<Change>, T), E>,
    ) -> Result<T, E> {
        self.poller.decisions().decide_and_commit(record, self.clock.as_ref(), names, decide).await
    }

    pub(crate) async fn record(&self, feed: &FeedName) -> Result<FeedRecord, OperatorError> {
        find_record(&*self.store.feed_list().await?, feed)
    }

    /// The time of the next change of the list of subscriptions.
    pub(super) fn next_change(&self, feeds: &FeedList) -> Time {
        FeedRecord::next_change(feeds.values().map(Arc::as_ref), self.clock.now())
    }

    /// Locks the list of feeds for a change. Returns the guard and the list, with all that other gateways committed.
    pub async fn lock_feeds(&self) -> Result<(MutexGuard<'_, ()>, Arc<FeedList>), StoreError> {
        let guard = self.changing.lock().await;
        self.store.catch_up().await?;
        Ok((guard, self.store.feed_list().await?))
    }

    /// Writes a record that was decided over a list.
    pub(super) async fn write(
        &self,
        record: &FeedRecord,
        feeds: &Arc<FeedList>,
    ) -> Result<(), StoreError> {
        self.write_all(std::slice::from_ref(record), feeds).await
    }

    /// Writes records that were decided over a list, and has the hub look at its topics: a feed that became private is
    /// none any more.
    async fn write_all(
        &self,
        records: &[FeedRecord],
        feeds: &Arc<FeedList>,
    ) -> Result<(), StoreError> {
        let written = self.store.put_feeds(records, feeds).await;
        // Even what failed may have been stored.
        if let Some(hub) = &self.active_config().hub {
            hub.check_topics();
        }
        written
    }

    /// Notes the titles that feeds have now. Their records stay as they are otherwise, and nothing
    /// of it concerns polling.
    pub async fn update_titles(
        &self,
        titles: BTreeMap<FeedName, String>,
    ) -> Result<usize, StoreError> {
        let (_guard, feeds) = self.lock_feeds().await?;
        let when = self.next_change(&feeds);
        let mut changed = Vec::new();
        for (name, title) in titles {
            let Some(before) = feeds.get(&name) else { continue };
            let mut record = FeedRecord::clone(before);
            record.enrolment.title = Some(title);
            if record.follow(Some(before), when, self.store.endpoint()) {
                changed.push(record);
            }
        }
        self.store.put_feeds(&changed, &feeds).await?;
        // Polling that has stopped has none of them.
        let _ = self.poller.share(self.stored_records(&changed).await?).await;
        Ok(changed.len())
    }

    /// These records as the store has them.
    async fn stored_records(
        &self,
        records: &[FeedRecord],
    ) -> Result<Vec<Arc<FeedRecord>>, StoreError> {
        let feeds = self.store.feed_list().await?;
        Ok(records.iter().filter_map(|record| feeds.get(&record.name)).cloned().collect())
    }

    /// Writes records that were decided over a list. Those that are new, paused or resumed are polled accordingly; of
    /// the others polling learns how they are now.
    pub(super) async fn apply(
        &self,
        changed: Vec<FeedRecord>,
        feeds: &Arc<FeedList>,
    ) -> Result<(), OperatorError> {
        if changed.is_empty() {
            return Ok(());
        }
        let before = |record: &FeedRecord| feeds.get(&record.name).map(|before| before.standing);
        if changed.iter().any(|record| before(record).is_none()) {
            self.store.condition().check_intake()?;
        }
        self.write_all(&changed, feeds).await?;
        let (same, moved): (Vec<FeedRecord>, Vec<FeedRecord>) =
            changed.into_iter().partition(|record| before(record) == Some(record.standing));
        if !same.is_empty() {
            let same = self.stored_records(&same).await?;
            self.poller.share(same).await?;
        }
        for record in moved {
            self.poller.put(record).await?;
        }
        Ok(())
    }

    /// Opens a local feed or an aggregate, so that it is served before it has an item. Nothing for
    /// others, and for one that is open.
    pub(super) async fn open(&self, record: &FeedRecord) -> Result<(), OperatorError> {
        let sharing = &record.options.sharing;
        let is_ours = sharing.local || sharing.is_aggregate();
        if !is_ours || record.standing != FeedStanding::Active {
            return Ok(());
        }
        let decide = |observation: &Observation<'_>| Ok((local::open(observation).change, ()));
        match self.decide_and_commit(record, &[], decide).await {
            Err(CommitError::Conflict(_)) => Ok(()),
            done => Ok(done?),
        }
    }

    /// The same for every feed; what cannot be opened now is opened with its first item.
    pub async fn open_all(&self) {
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

    /// What is wanted for a feed, with the secrets that are stored already in their places. Those go
    /// where they went: whoever may change a feed must not learn by it what he was not shown.
    pub(super) fn wanted_access(
        &self,
        access: FeedAccess,
        url: &str,
        before: Option<&FeedRecord>,
    ) -> Result<Option<Box<FeedAccess>>, OperatorError> {
        let bad = |detail: String| Err(OperatorError::bad_request(detail));
        let active_config = self.active_config();
        let config = &active_config.config;
        let is_named = |(_, source): &(String, &SecretSource)| {
            matches!(source, SecretSource::File(_) | SecretSource::Env(_))
        };
        if let (false, Some((name, _))) =
            (config.polling.api_secrets, access.secrets().into_iter().find(is_named))
        {
            return bad(format!(
                "{name}: a file or a variable can be named here only where the configuration says \
                 polling.api_secrets = true; give the secret itself, or put the feed into the \
                 configuration"
            ));
        }
        let known_route = before.and_then(|before| before.access.as_ref()?.route.as_ref());
        if let Some(ProxyRoute::Proxy(proxy)) = &access.route {
            let is_named = config.polling.proxy.as_ref().is_some_and(|own| own.url == proxy.url)
                || matches!(known_route, Some(ProxyRoute::Proxy(known)) if known.url == proxy.url);
            if !is_named && !fetch::admits_proxy(&proxy.url, &config.polling.allow_private) {
                return bad(
                    "proxy: one that is named here is at a public address, written as such, or at a \
                     host and port that polling.allow_private lists; or put the feed into the \
                     configuration"
                        .to_owned(),
                );
            }
        }
        if !access.lacks_secrets() {
            return Ok(access.or_none());
        }
        let before = before.filter(|before| before.standing != FeedStanding::Gone);
        let known = before.and_then(|before| before.access.as_deref());
        if let Some(before) = before {
            let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
            if origin(&before.url) != origin(url) {
                return bad("url is of another origin than the secrets that are stored are for; \
                            give them again"
                    .to_owned());
            }
        }
        let mut filled = access;
        if let Err(name) = filled.fill_in(known) {
            return bad(format!("{name}: none is stored; give it"));
        }
        if known.is_some_and(|known| known.route != filled.route) {
            return bad("proxy is another one, which would see the secrets that are stored; give \
                        them again"
                .to_owned());
        }
        Ok(filled.or_none())
    }
}

/// Checks that there are the feeds that one is to share with.
pub(super) fn check_shared_feeds(
    feed: &FeedName,
    sharing: &SharingOptions,
    feeds: &FeedList,
) -> Result<(), OperatorError> {
    let is_there =
        |name: &FeedName| feeds.get(name).is_some_and(|it| it.standing != FeedStanding::Gone);
    match sharing.shares_with.iter().find(|name| *name == feed || !is_there(name)) {
        Some(name) => {
            let detail = format!("shares_with: there is no other feed {name}");
            Err(OperatorError::bad_request(detail))
        }
        None => Ok(()),
    }
}

/// Whether a feed stands in the configuration: one that left it is not polled.
pub(crate) fn is_filed(record: &FeedRecord) -> bool {
    record.standing == FeedStanding::Active && record.source != FeedSource::Api
}

/// A feed of the configuration is changed there.
pub(crate) fn refuse_if_filed(record: &FeedRecord) -> Result<(), OperatorError> {
    match is_filed(record) {
        true => Err(OperatorError::conflict(format!(
            "the feed {} stands in the configuration file, which wins over this; change it there",
            record.name
        ))),
        false => Ok(()),
    }
}

/// The record of a feed in a list.
pub(super) fn find_record(feeds: &FeedList, feed: &FeedName) -> Result<FeedRecord, OperatorError> {
    let found = feeds.get(feed).map(|record| FeedRecord::clone(record));
    found.ok_or_else(|| OperatorError::unknown_feed(feed))
}

/// Why no new feed can have the name of this one.
pub(super) fn name_taken(before: &FeedRecord) -> OperatorError {
    let name = &before.name;
    OperatorError::conflict(match before.standing {
        FeedStanding::Gone => format!(
            "a feed {name} was deleted here; choose another name, or bring that one back by PUT /api/v1/feeds/{name}"
        ),
        _ => format!("there is a feed {name} already; choose another name"),
    })
}
