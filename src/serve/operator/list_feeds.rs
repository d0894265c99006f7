//! The feeds of subscription lists that this gateway polls follow what the lists say.

use super::import::{ListRules, read_list};
use super::notes::NoteBoard;
use super::{Operator, OperatorError};
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, Format, Revision};
use tidegate_format::parse::opml::BYTES_LIMIT;
use tidegate_format::render;
use tidegate_net::fetch::LeadScope;
use tidegate_status::{ListNote, MemberNote, RefusedFeed};
use tidegate_store::FeedList;

/// What a list and the feeds of the gateway were when the list was looked at: the same again needs no look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenList {
    /// Of the list; `None` before its first document.
    revision: Option<Revision>,
    rules: ListRules,
    feeds: Arc<FeedList>,
}

impl NoteBoard<ListNote> {
    /// Notes why a list could not be taken over; says whether that is news.
    pub fn failed(&self, name: &FeedName, error: String) -> bool {
        self.change(name, |note| note.error.replace(error.clone()) != Some(error))
    }
}

impl Operator {
    /// Takes over what a list says; `None` where neither it nor the feeds have changed since `seen`.
    pub async fn follow_list(
        &self,
        list: &FeedName,
        seen: Option<&SeenList>,
    ) -> Result<Option<SeenList>, OperatorError> {
        let (_guard, feeds) = self.lock_feeds().await?;
        // The operator may have changed it since it was found.
        let Some(list) = feeds.get(list).filter(|list| list.is_followed()).map(Arc::clone) else {
            return Ok(None);
        };
        let state = self.store.state(&list.name).await?;
        let revision = state.as_ref().map(|state| state.revision);
        let allow = self.active_config().config.polling.allow_private.clone();
        let (name, lead_scope) = (list.name.clone(), LeadScope::of_feed(&list));
        let rules = ListRules { list: name, private: list.private, allow, lead_scope };
        let now = SeenList { revision, rules, feeds };
        if seen == Some(&now) {
            return Ok(None);
        }
        let Some(reader) = self.store.pin(&list.name).await? else { return Ok(Some(now)) };
        let Some(view) = reader.whole_view().await? else { return Ok(Some(now)) };
        if view.state.format != Format::Opml {
            let detail = "its document is no subscription list (OPML), so it adds no feeds";
            self.lists.change(&list.name, |note| note.error = Some(detail.to_owned()));
            return Ok(Some(now));
        }
        let read = move || {
            let text = render::living_outlines(&view.state, &view.skeleton, &view.items);
            read_list(text.as_bytes(), BYTES_LIMIT)
        };
        let rules = Some(now.rules.clone());
        let planned = self.plan_over(&now.feeds, (false, rules), read);
        let broken = |why| OperatorError::internal(format!("the list cannot be read: {why}"));
        let plan = planned.await?.map_err(broken)?;
        self.apply(plan.changed(), &now.feeds).await?;
        let refused = plan.refused.iter().take(ListNote::LIMIT);
        let note = ListNote {
            known: plan.done.known,
            not_taken: plan.refused.len(),
            refused: refused
                .map(|one| RefusedFeed { address: one.address.clone(), why: one.why.clone() })
                .collect(),
            ..ListNote::default()
        };
        self.lists.change(&list.name, |before| *before = note);
        Ok(Some(now))
    }

    /// Detaches the feeds of a deleted list, so that they stay as they are and a later list of that name does not own
    /// them.
    pub(super) async fn release_members(
        &self,
        list: &FeedName,
        feeds: &Arc<FeedList>,
    ) -> Result<(), OperatorError> {
        let members = feeds.values().filter(|record| record.is_member_of(list));
        let mut left: Vec<FeedRecord> = members.map(|record| FeedRecord::clone(record)).collect();
        left.iter_mut().for_each(FeedRecord::leave_list);
        self.apply(left, feeds).await
    }

    /// What came of the feeds of a list, and which they are.
    pub(super) fn list_note(&self, list: &FeedRecord, feeds: &FeedList) -> Option<ListNote> {
        if !list.adds_feeds {
            return None;
        }
        let mut note = self.lists.get(&list.name).unwrap_or_default();
        for record in feeds.values().filter(|record| record.is_member_of(&list.name)) {
            if record.standing == FeedStanding::Gone {
                continue;
            }
            note.following += 1;
            note.dropped += usize::from(record.is_dropped());
            // What the operator made private is not named where the list is shown to everybody.
            if note.feeds.len() < ListNote::LIMIT && (list.private || !record.private) {
                note.feeds.push(record.name.clone());
            }
        }
        Some(note)
    }
}

/// The list that added a feed, where that is still here.
pub(super) fn member_note(record: &FeedRecord, feeds: &FeedList) -> Option<MemberNote> {
    let member = record.list.as_ref()?;
    let list = feeds.get(&member.list);
    Some(MemberNote {
        list: member.list.clone(),
        standing: member.standing,
        is_followed: list.is_some_and(|list| list.is_followed()),
        is_private: list.is_none_or(|list| list.private),
    })
}
