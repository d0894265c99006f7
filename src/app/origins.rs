//! Sites that the gateway stands in front of: what serving is told of them, and feeds that are let go.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, Time};
use tidegate_net::origin::OriginSite;
use tidegate_serve::{Operator, OperatorError, OriginSettings};
use tokio_util::sync::CancellationToken;
use url::Url;

/// How far what is written down of when a feed was asked for may be behind.
const NOTED_EVERY: Duration = Duration::from_secs(86_400);
/// How often feeds are looked at, and how soon after a start.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
const FIRST_LOOK: Duration = Duration::from_secs(60);
/// After how long a feed is let go whose site left the configuration.
const IDLE: Duration = Duration::from_secs(30 * 86_400);

/// What serving is told of the sites of a configuration.
pub(super) fn settings(config: &Config, public_url: &str) -> OriginSettings {
    let own = |feed: &tidegate_config::FeedConfig| Some((feed.name.clone(), feed.path.clone()?));
    let paths = config.feeds.iter().filter_map(own).collect();
    OriginSettings { sites: sites(config, public_url), allow: config.allow.clone(), paths }
}

/// The origins of a configuration, in its order.
pub(super) fn sites(config: &Config, public_url: &str) -> Vec<Arc<OriginSite>> {
    let Ok(public) = Url::parse(public_url) else { return Vec::new() };
    let sites = config.origins.iter().map(|site| OriginSite::new(site.clone(), &public));
    sites.map(Arc::new).collect()
}

/// After how long feeds of each site are let go.
fn idle_times(config: &Config) -> HashMap<String, Duration> {
    let origins = config.origins.iter().map(|site| (site.url.to_string(), site.idle));
    let allowed = config.allow.iter().map(|site| (site.url.to_string(), site.idle));
    // Where two admit the same, the longer time counts.
    let mut all = HashMap::new();
    for (url, idle) in origins.chain(allowed) {
        let known = all.entry(url).or_insert(idle);
        *known = idle.max(*known);
    }
    all
}

/// What becomes of a feed that a request made, by when it was asked for.
#[derive(Debug, PartialEq, Eq)]
enum OnDemandStep {
    Nothing,
    /// That it was asked for is written down.
    Noted,
    LetGo,
    /// It was let go, and asked for again since.
    Resumed,
}

fn step(
    record: &FeedRecord,
    asked: Option<Time>,
    idle: &HashMap<String, Duration>,
    now: Time,
) -> OnDemandStep {
    let Some(made) = record.on_demand.as_ref() else { return OnDemandStep::Nothing };
    if record.is_let_go() && asked.is_some_and(|asked| asked > made.asked) {
        return OnDemandStep::Resumed;
    }
    if record.standing != FeedStanding::Active {
        return OnDemandStep::Nothing;
    }
    let last = asked.map_or(made.asked, |asked| asked.max(made.asked));
    let idle = idle.get(&made.site).copied().unwrap_or(IDLE);
    if now.since(last) >= idle {
        OnDemandStep::LetGo
    } else if last.since(made.asked) >= NOTED_EVERY {
        OnDemandStep::Noted
    } else {
        OnDemandStep::Nothing
    }
}

/// Lets feeds go that are not asked for any more, and resumes those that are asked for again.
pub(super) async fn maintain(
    desk: Arc<Operator>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
) {
    let mut wait = FIRST_LOOK;
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(wait) => wait = LOOK_EVERY,
            () = desk.demand.wanted() => {}
        }
        if let Err(error) = let_go_idle(&desk, clock.now()).await {
            tracing::warn!(%error, "feeds that requests made could not be let go or resumed");
        }
    }
}

/// Lets go of feeds that were not asked for any more, writes down which were, and resumes those that are again.
async fn let_go_idle(desk: &Operator, now: Time) -> Result<(), OperatorError> {
    let idle = idle_times(&desk.active_config().config);
    let asked = desk.demand.all();
    let is_followed = |name: &FeedName| desk.has_subscribers(name);
    desk.change_on_demand(|record| {
        // Who is told of changes asks for them.
        let asked = match is_followed(&record.name) {
            true => Some(now),
            false => asked.get(&record.name).copied(),
        };
        match step(record, asked, &idle, now) {
            OnDemandStep::Nothing => return false,
            OnDemandStep::Noted => record.ask_for(asked.unwrap_or(now)),
            OnDemandStep::Resumed => {
                tracing::info!(feed = %record.name, "asked for again: it is polled again");
                record.ask_for(now);
            }
            OnDemandStep::LetGo => {
                tracing::info!(feed = %record.name, "not asked for any more: not polled, and still served");
                // Only a request after the last one resumes it.
                record.ask_for(asked.unwrap_or(Time::MIN));
                record.let_go();
            }
        }
        true
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::gateway::tests::operator_of;
    use tidegate_poll::testing::double::{NOW, name, store_of};
    use tidegate_poll::testing::gateway::{Gateway, Publisher, eventually};

    #[tokio::test(start_paused = true)]
    async fn a_feed_that_was_let_go_keeps_its_history_until_it_is_asked_for_again() {
        let (store, publisher) = (store_of(&[]), Publisher::new("one"));
        let gateway = Gateway::start(&store, &publisher).await;
        let desk = Arc::new(operator_of(&gateway, &Config::default()));
        let feed = name("made");
        let site = "http://site.example/";
        let made = FeedRecord::on_demand(feed.clone(), &format!("{site}feed"), site, NOW);
        store.put_feed(&made).await.unwrap();
        gateway.poller.put_and_poll(made).await.unwrap().finish().await.unwrap();
        let cancel = CancellationToken::new();
        let clock: Arc<dyn Clock> = Arc::new(gateway.clock.clone());
        let upkeep = tokio::spawn(maintain(Arc::clone(&desk), clock, cancel.clone()));
        let record = || store.record(&feed).unwrap();
        let asked = || record().on_demand.unwrap().asked;
        let day = |days: u64| NOW.plus(Duration::from_secs(days * 86_400));
        let look = || tokio::time::sleep(LOOK_EVERY + Duration::from_secs(1));

        gateway.clock.set(day(2));
        desk.demand.note(&feed, day(2));
        look().await;
        eventually(|| asked() == day(2)).await;
        gateway.clock.set(day(31));
        look().await;
        assert_eq!(record().standing, FeedStanding::Active, "it was asked for since");

        gateway.clock.set(day(32));
        look().await;
        eventually(|| record().is_let_go()).await;
        let (kept, polls) = (store.state_of("made").revision, publisher.requests());
        gateway.clock.set(day(60));
        look().await;
        assert_eq!((record().is_let_go(), publisher.requests()), (true, polls), "it is left alone");

        publisher.says("two", "2");
        desk.demand.want(&feed, day(60));
        eventually(|| !record().is_let_go()).await;
        assert_eq!((record().standing, asked()), (FeedStanding::Active, day(60)));
        gateway.clock.set(day(61));
        eventually(|| store.state_of("made").revision > kept).await;
        cancel.cancel();
        upkeep.await.unwrap();
    }

    #[test]
    fn a_feed_is_let_go_when_nobody_asked_for_long() {
        let at = Time::from_unix;
        let day = 86_400;
        let name = FeedName::new("a").unwrap();
        let mut feed = FeedRecord::on_demand(name, "http://a/f", "http://a/", at(0));
        let idle = HashMap::from([("http://a/".to_owned(), Duration::from_secs(10 * 86_400))]);
        let step = |feed: &FeedRecord, asked: Option<i64>, now: i64| {
            super::step(feed, asked.map(|d| at(d * day)), &idle, at(now * day))
        };
        assert_eq!(step(&feed, None, 9), OnDemandStep::Nothing);
        assert_eq!(step(&feed, None, 10), OnDemandStep::LetGo);
        assert_eq!(step(&feed, Some(5), 10), OnDemandStep::Noted);
        assert_eq!(step(&feed, Some(5), 15), OnDemandStep::LetGo);
        let elsewhere = HashMap::new();
        assert_eq!(super::step(&feed, None, &elsewhere, at(29 * day)), OnDemandStep::Nothing);
        assert_eq!(super::step(&feed, None, &elsewhere, at(30 * day)), OnDemandStep::LetGo);
        feed.let_go();
        assert_eq!(step(&feed, None, 20), OnDemandStep::Nothing);
        assert_eq!(step(&feed, Some(20), 20), OnDemandStep::Resumed);
        feed.pause_by_hand();
        assert_eq!(step(&feed, Some(99), 99), OnDemandStep::Nothing);
        assert_eq!(step(&feed, None, 99), OnDemandStep::Nothing);
        feed.standing = FeedStanding::Active;
        feed.on_demand = None;
        assert_eq!(step(&feed, None, 99), OnDemandStep::Nothing);
    }
}
