//! Taking the text of an item out of everything that is kept.

use super::AdminService;
use tidegate_core::model::{FeedName, LedgerEntry, SyncId, Tick};
use tidegate_judge::record::{self, Redaction};
use tidegate_serve::{OperatorError, Redacted};
use tidegate_store::VERSIONS_LIMIT;

/// The reason that is shown where the operator gives none.
const REASON: &str = "its text was removed by the operator";

impl AdminService {
    /// Redacts an item.
    pub(super) async fn take_out(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError> {
        let record = self.record(feed).await?;
        let why = reason.as_deref().unwrap_or(REASON);
        // What left the complete view is in archives still.
        let names = [item.to_string()];
        // Nothing is read once the text is gone: a store that fails then would make that look undone.
        let kept = self.store.versions(feed, item, VERSIONS_LIMIT).await?.len();
        let unknown = || OperatorError::UnknownItem(feed.clone());
        let redacted = |ledger: &[LedgerEntry], tick: Option<Tick>| {
            let known = ledger.iter().find(|known| known.id == *item)?;
            let (published_id, native_id) =
                (known.published_id.clone(), known.native_shown.clone());
            // A tombstone is a version, too.
            let versions = kept.saturating_add(usize::from(tick.is_some())).min(VERSIONS_LIMIT);
            Some(Redacted { published_id, native_id, tick, versions, before: false })
        };
        self.decide_and_commit(&record, &names, |round| match record::redact(round, item, why) {
            Redaction::Unknown => Err(unknown()),
            Redaction::Before => {
                let known = round.snapshot.and_then(|snapshot| redacted(&snapshot.known, None));
                let known = known.ok_or_else(unknown)?;
                Ok((None, Redacted { before: true, ..known }))
            }
            Redaction::Commit(verdict) => {
                let change = verdict.change.ok_or_else(unknown)?;
                let done = redacted(&change.known, change.tick).ok_or_else(unknown)?;
                Ok((Some(change), done))
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Config;
    use tidegate_judge::record::local::{Act, CheckedEntry, EntryFields};
    use tidegate_poll::testing::double::{StoreDouble, name, record};
    use tidegate_poll::testing::gateway::{Gateway, Publisher};
    use tidegate_store::Store as _;

    /// Of this store nothing is read of an item once the text is gone.
    #[tokio::test]
    async fn what_is_stored_is_answered() {
        let gateway = Gateway::start(&StoreDouble::new(&[]), &Publisher::new("one")).await;
        let desk = AdminService::of_gateway(&gateway, &Config::default());
        let mut local = record("a");
        local.options.sharing.local = true;
        gateway.store.put_feed(&local).await.unwrap();
        let (title, content) = ("A secret".to_owned(), Some("It is one.".to_owned()));
        let fields = EntryFields { title, content, ..EntryFields::default() };
        let entry = CheckedEntry::fields(&fields).unwrap();
        let act = Act::Create { entry, noconflicts: None };
        let made = desk.act(&name("a"), &act).await.unwrap();
        let done = desk.take_out(&name("a"), &made.id, None).await.unwrap();
        assert!(!done.before && done.tick > Some(made.tick), "{done:?}");
        assert_eq!(done.versions, 1);
        let again = desk.take_out(&name("a"), &made.id, None).await.unwrap();
        let ids = |redacted: &Redacted| (redacted.published_id.clone(), redacted.native_id.clone());
        assert!(again.before && again.tick.is_none() && ids(&again) == ids(&done), "{again:?}");
        let nothing = SyncId::new("nothing").unwrap();
        let unknown = desk.take_out(&name("a"), &nothing, None).await.unwrap_err();
        assert_eq!(unknown, OperatorError::UnknownItem(name("a")));
    }
}
