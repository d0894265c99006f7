//! The feeds of a subscription list are added to a running gateway.

use super::AdminService;
use crate::app::import::{ExistingFeeds, decide, read_list};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_core::model::FeedRecord;
use tidegate_format::parse::opml::OpmlLimits;
use tidegate_serve::{ImportedList, LIST_LIMIT, OperatorError};

impl AdminService {
    /// Adds the feeds of a list and gives those that are there a place; see [`tidegate_serve::Operator`].
    pub(super) async fn add_list(
        &self,
        list: Bytes,
        rearrange: bool,
    ) -> Result<ImportedList, OperatorError> {
        let (_one, feeds) = self.turn().await?;
        self.store.condition().check_intake()?;
        let config = self.named_config();
        let (endpoint, now) = (self.store.endpoint().clone(), self.clock.now());
        let over = Arc::clone(&feeds);
        let planning = tokio::task::spawn_blocking(move || {
            let stored: Vec<Arc<FeedRecord>> = over.values().cloned().collect();
            let (stored, config, endpoint) = (&*stored, &config, &endpoint);
            let before = ExistingFeeds { stored, config, endpoint, now, rearrange, rules: None };
            let limits = OpmlLimits { bytes: LIST_LIMIT, ..OpmlLimits::default() };
            read_list(&list, &limits).map(|list| decide(&list, &before))
        });
        let planned = planning.await.map_err(|error| OperatorError::Internal(error.to_string()))?;
        let wrong = |why| OperatorError::BadRequest(format!("the list: {why}"));
        let (plan, done) = planned.map_err(wrong)?;
        self.carry_out(&plan, &feeds).await?;
        Ok(done)
    }
}
