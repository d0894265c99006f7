//! Which of two a gateway is over a database that several share: the one that writes, or a standby. Both answer readers
//! and poll their part of the feeds; a gateway goes from one to the other on the same sockets.

use super::{Gateway, Outside, open};
use crate::app::AppError;
use crate::app::disk::{self, LastingStore};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Config, StoreKind};
use tidegate_core::clock::Clock;
use tidegate_store::{EmbeddedStore, FreeSpace, Store, StoreError};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

/// How often it is tried to follow another gateway, which may only just have begun, and the pause between.
const FOLLOW_TRIES: (u32, Duration) = (6, Duration::from_millis(500));

/// The store of a configuration; where another gateway has it, as a standby.
pub(super) async fn open_or_follow(
    config: &Config,
    clock: &Arc<dyn Clock>,
    space: Option<Arc<FreeSpace>>,
) -> Result<Arc<dyn Store>, AppError> {
    if config.store.require_standby == Some(true) {
        check_standby(config).await?;
    }
    let opened = open(config, Arc::clone(clock), space).await;
    let Some(said) = opened.as_ref().err().and_then(other_writer) else { return opened };
    if config.store.require_standby.is_none() {
        check_standby(config).await?;
    }
    tracing::info!("{said}");
    follow(config, clock).await
}

/// An error where the database has no standby that commits wait for. As a gateway starts: one that runs goes on while
/// the database fails over.
async fn check_standby(config: &Config) -> Result<(), AppError> {
    let Some(LastingStore::Postgres(request)) = disk::request(config)? else { return Ok(()) };
    let checked = request.check_standby().await;
    checked.map_err(|error| AppError::run("this gateway is not started", error))
}

/// What of the store failed.
fn of_store(error: &AppError) -> Option<&StoreError> {
    let AppError::Run { source, .. } = error else { return None };
    source.downcast_ref()
}

/// That another gateway writes, where an error says no more than that: as it is to be, with several of them.
fn other_writer(error: &AppError) -> Option<String> {
    match of_store(error) {
        Some(StoreError::Leased { owner, .. }) => {
            Some(format!("the gateway {owner} writes; this one follows"))
        }
        _ => None,
    }
}

/// Whether a store may be opened later that could not be opened now.
const fn may_open_later(error: &StoreError) -> bool {
    matches!(error, StoreError::Leased { .. } | StoreError::Io { .. }) || error.is_passing()
}

async fn follow(config: &Config, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, AppError> {
    let what = "the store of another gateway could not be followed";
    let Some(LastingStore::Postgres(request)) = disk::request(config)? else {
        return Err(AppError::run(what, StoreError::Closed));
    };
    let mut tries = 1;
    loop {
        let (request, clock) = (request.clone(), Arc::clone(clock));
        let following = move || EmbeddedStore::follow_on_postgres(request, clock);
        let followed = tokio::task::spawn_blocking(following).await;
        match followed.map_err(|error| AppError::run(what, error))? {
            Ok(store) => return Ok(Arc::new(store)),
            // The other one may be about to make its tables, or to begin to write.
            Err(error) if may_open_later(&error) && tries < FOLLOW_TRIES.0 => tries += 1,
            Err(error) => return Err(AppError::run(what, error)),
        }
        sleep(FOLLOW_TRIES.1).await;
    }
}

/// For how long connections that were accepted may still ask, before the one role ends.
const HANDOVER_PAUSE: Duration = Duration::from_millis(200);
/// The first pause before another role is tried again, and the longest: each try of a standby takes the database from
/// whoever has it.
const ROLE_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// What another role goes on with, where there may be another: the sockets stay open between the two, so that
/// nobody who connects meanwhile is refused.
pub(super) fn kept(
    config: &Config,
    outside: &Outside,
    (listener, operators): (&TcpListener, Option<&TcpListener>),
) -> Result<Option<Outside>, AppError> {
    if config.store.kind != StoreKind::Postgres {
        return Ok(None);
    }
    let twice = |listener: &TcpListener| {
        let socket = listener.as_fd().try_clone_to_owned().map(std::net::TcpListener::from);
        socket.map(Arc::new).map_err(|error| AppError::run("a socket could not be kept", error))
    };
    Ok(Some(Outside {
        listener: Some(twice(listener)?),
        admin_listener: operators.map(twice).transpose()?,
        ..outside.clone()
    }))
}

impl Gateway {
    /// Whether another gateway writes, and this one answers readers and polls its part of the feeds.
    pub const fn is_standby(&self) -> bool {
        self.is_standby
    }

    /// Whether it is to go on as the other: a standby whose gateway is gone, or a gateway that has lost its
    /// database to another one.
    pub async fn may_change_role(&mut self) -> bool {
        if self.next_try.is_some_and(|(at, _)| Instant::now() < at) {
            return false;
        }
        // It saw that the database went back behind what it has shown, or is of an older program than the tables.
        if self.is_standby && self.store.condition().stop.is_some() {
            return false;
        }
        if !self.is_standby && !self.store.answers_from_memory() {
            // A gateway that was paused learns whether it still writes.
            let _ = self.store.catch_up().await;
        }
        let is_gone = || self.store.condition().owner.map(|owner| owner.is_gone);
        match is_gone() {
            Some(false) if self.is_standby => {
                self.next_try = None;
                false
            }
            Some(_) if self.kept.is_none() => false,
            // As of now, and only where the database answers: taking it would wait for that.
            Some(true) if self.is_standby => {
                self.store.catch_up().await.is_ok() && is_gone() == Some(true)
            }
            Some(_) => !self.is_standby,
            None => false,
        }
    }

    /// Goes on as the other one, with the configuration that was accepted last: its file may be broken by now. The other
    /// one is started first: both are on the same sockets until this one ends. Where that fails for a while, or another
    /// standby was sooner, it stays what it is and is tried again later; any other failure of the store ends it.
    pub async fn change_role(mut self) -> Result<Self, AppError> {
        let accepted = self.desk.accepted();
        let (Some(outside), Some(config)) = (self.kept.clone(), accepted.whole.clone()) else {
            return Ok(self);
        };
        let opened = match self.is_standby {
            true => open(&config, Arc::clone(&outside.clock), outside.space.clone()).await,
            false => follow(&config, &outside.clock).await,
        };
        let store = match opened {
            Ok(store) => store,
            Err(error) if of_store(&error).is_some_and(may_open_later) => {
                self.put_off(&error);
                return Ok(self);
            }
            Err(error) => {
                if let Err(ended) = self.stop().await {
                    tracing::warn!(why = ended.report(), "what went on until now ended badly");
                }
                return Err(error);
            }
        };
        let parts = (Arc::clone(&store), accepted);
        let next = match Self::start_over(&config, outside, parts, true).await {
            Ok(next) => next,
            Err(error) => {
                // The database is given back.
                let _ = store.close().await;
                self.put_off(&error);
                return Ok(self);
            }
        };
        tracing::warn!(is_standby = next.is_standby, "this gateway goes on in another role");
        tokio::spawn(self.hand_over());
        Ok(next)
    }

    /// Notes that another role could not be begun: the next try is later than the last one was.
    fn put_off(&mut self, why: &AppError) {
        let last = self.next_try.map_or(Duration::ZERO, |(_, pause)| pause);
        let pause = last.saturating_mul(2).clamp(ROLE_PAUSES.0, ROLE_PAUSES.1);
        self.next_try = Some((Instant::now() + pause, pause));
        match other_writer(why).filter(|_| self.is_standby) {
            // It was sooner.
            Some(said) => tracing::info!("{said}"),
            None => {
                let why = why.report();
                tracing::warn!(why, ?pause, "this gateway could not go on in another role");
            }
        }
    }

    /// Ends once another one has begun on the same sockets: who has connected is answered, who connects from now
    /// on asks the other one.
    async fn hand_over(self) {
        self.polling.cancel();
        self.accepting.cancel();
        sleep(HANDOVER_PAUSE).await;
        // It lost its store, or had none.
        if let Err(error) = self.end().await {
            tracing::warn!(why = error.report(), "what went on until now ended badly");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_another_gateway_writes_asks_nothing_of_the_operator() {
        let (path, owner) = ("the database".to_owned(), "east-1".to_owned());
        let error = AppError::run("it failed", StoreError::Leased { path, owner });
        let said = "the gateway east-1 writes; this one follows";
        assert_eq!(other_writer(&error).as_deref(), Some(said));
        assert_eq!(other_writer(&AppError::run("it failed", StoreError::Closed)), None);
    }
}

#[cfg(test)]
mod on_postgres {
    //! These tests need a database: `tests/scripts/postgres.sh` chooses them by the name of their module.

    use super::*;
    use std::path::Path;
    use tidegate_config::check;
    use tidegate_core::clock::{ManualClock, SystemClock};
    use tidegate_core::model::{FeedStanding, SecretSource, SecretText, Time};
    use tidegate_store::testing::TestSchema;

    /// A configuration over a database for tests, in which commits wait for no standby.
    fn config(schema: &TestSchema, folder: &Path) -> Config {
        let mut config = Config::default();
        config.store.kind = StoreKind::Postgres;
        config.store.path = folder.to_owned();
        config.store.url = Some(SecretSource::Literal(SecretText::new(&schema.url).unwrap()));
        config
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_on_postgres_without_a_standby_is_alone_unless_that_is_allowed() {
        let Some(schema) = TestSchema::new() else { return };
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SystemClock));
        let clock: Arc<dyn Clock> = clock;
        let open = async |require_standby: Option<bool>| {
            let mut config = config(&schema, folder.path());
            config.store.require_standby = require_standby;
            open_or_follow(&config, &clock, None).await
        };
        let is_refused = async |require_standby: Option<bool>| {
            let error = open(require_standby).await.err();
            matches!(error.as_ref().and_then(of_store), Some(StoreError::NoStandby { .. }))
        };
        assert!(is_refused(Some(true)).await);
        let first = open(None).await.unwrap();
        assert!(first.condition().owner.is_none());
        // Beside another one.
        assert!(is_refused(None).await && is_refused(Some(true)).await);
        let second = open(Some(false)).await.unwrap();
        assert!(second.condition().owner.is_some());
        second.close().await.unwrap();
        first.close().await.unwrap();
        let alone = open(Some(false)).await.unwrap();
        assert!(alone.condition().owner.is_none());
        alone.close().await.unwrap();
    }

    /// A standby once it writes.
    async fn writes(mut gateway: Gateway) -> Gateway {
        for _ in 0..100 {
            if !gateway.is_standby() {
                break;
            }
            gateway = gateway.change_role().await.unwrap();
            sleep(Duration::from_millis(100)).await;
        }
        assert!(!gateway.is_standby());
        gateway
    }

    /// While it did not reach the database, another gateway wrote and ended. What this one knew from before, such as
    /// who subscribes, is old.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_writer_that_another_gateway_overtook_and_left_begins_anew() {
        let Some(schema) = TestSchema::new() else { return };
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(&schema, folder.path());
        config.store.require_standby = Some(false);
        config.server.listen = "127.0.0.1:0".parse().unwrap();
        let mut first = Gateway::start(&config, Outside::default()).await.unwrap();
        assert!(!first.is_standby());
        schema.sql("UPDATE tidegate_shard SET owner = NULL, fence = fence + 1 WHERE shard = 0");
        // Its store stops, and is tried to be opened again.
        let now = Time::from_unix(1_795_191_605);
        assert!(first.store().note_running_time(now).await.is_err());
        let began = Instant::now();
        while first.store().condition().stop.is_some_and(|stop| stop.failed_tries == 0) {
            assert!(began.elapsed() < Duration::from_secs(30));
            sleep(Duration::from_millis(50)).await;
        }
        assert!(first.may_change_role().await);
        let next = first.change_role().await.unwrap();
        assert!(next.is_standby());
        let next = writes(next).await;
        assert!(next.store().condition().stop.is_none());
        next.store().note_running_time(now).await.unwrap();
        next.stop().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_takes_over_has_what_it_accepted_and_pauses_no_newer_feed() {
        let Some(schema) = TestSchema::new() else { return };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let clock = ManualClock::at(Time::from_unix(1_795_191_605));
        let outside = || Outside { clock: Arc::new(clock.clone()), ..Outside::default() };
        let with = |gateway: usize, names: &[&str]| {
            let table = |name: &&str| {
                format!("[[feed]]\nname = {name:?}\nurl = \"https://{name}.example/\"\n")
            };
            let text = names.iter().map(table).collect::<String>();
            let mut config = config(&schema, folders[gateway].path());
            config.store.require_standby = Some(false);
            config.server.listen = "127.0.0.1:0".parse().unwrap();
            config.feeds = check("t.toml", &text).unwrap().config.feeds;
            config
        };
        let shown = async |gateway: &Gateway| {
            let feeds = gateway.store().feed_list().await.unwrap();
            let active = feeds.values().filter(|feed| feed.standing == FeedStanding::Active);
            active.map(|feed| feed.name.to_string()).collect::<Vec<_>>()
        };
        let later = || clock.set(clock.now().plus(Duration::from_secs(10)));

        let first = Gateway::start(&with(0, &["a"]), outside()).await.unwrap();
        let second = Gateway::start(&with(1, &["a"]), outside()).await.unwrap();
        assert!(!first.is_standby() && second.is_standby());
        later();
        first.reload(&with(0, &["a", "b"])).await.unwrap();
        first.stop().await.unwrap();
        let second = writes(second).await;
        assert_eq!(shown(&second).await, ["a", "b"]);
        // Whoever has the writer read an older file wants it.
        later();
        second.reload(&with(1, &["a"])).await.unwrap();
        assert_eq!(shown(&second).await, ["a"]);
        let applied = second.store().applied().await.unwrap();
        assert_eq!(applied.feeds.map(|feeds| feeds.at), Some(clock.now()));
        // A gateway that follows goes on with what it read last.
        let third = Gateway::start(&with(0, &["a"]), outside()).await.unwrap();
        assert!(third.is_standby());
        later();
        third.reload(&with(0, &["b", "c"])).await.unwrap();
        second.stop().await.unwrap();
        let third = writes(third).await;
        assert_eq!(shown(&third).await, ["b", "c"]);
        third.stop().await.unwrap();
    }
}
