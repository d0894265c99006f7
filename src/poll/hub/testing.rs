//! A hub in memory, and what it delivers.

#![allow(clippy::unwrap_used)]

use super::{Calling, Hub, HubConfig, HubDocument, HubSettings, Topics};
use crate::host_queue::HostQueue;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_core::model::EndpointId;
pub(super) use tidegate_core::model::testing::NOW;
use tidegate_core::websub::Leases;
use tidegate_net::fetch::{AllowPrivate, Call};
use tidegate_store::Store;

impl Default for HubSettings {
    fn default() -> Self {
        let day = Duration::from_secs(86_400);
        let leases = Leases { usual: 10 * day, least: Duration::from_secs(300), most: 30 * day };
        let private_callbacks = AllowPrivate::No;
        Self { leases, subscriptions: 100_000, per_host: 10_000, private_callbacks }
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::at(NOW))
}

pub fn memory() -> Arc<Store> {
    Arc::new(Store::in_memory(EndpointId::own("gate").ok(), clock()).unwrap())
}

/// A hub over a store, which is not run: nobody is called by itself.
pub async fn open(store: Arc<Store>, call: Call) -> Hub {
    let (callbacks, webhooks) = (call.clone(), call);
    let config = HubConfig {
        store,
        clock: clock(),
        hosts: HostQueue::new(),
        settings: HubSettings::default(),
        calling: Calling { callbacks, webhooks, allow_private: AllowPrivate::No },
    };
    Hub::open(config).await.unwrap()
}

pub fn topics_of_size(bytes: impl Fn() -> usize + Send + Sync + 'static) -> Topics {
    Arc::new(move |_| {
        let body = vec![b' '; bytes()].into();
        Box::pin(async { Ok(HubDocument { body, ..HubDocument::default() }) })
    })
}
