//! `tidegate demo`: the gateway in front of a small publisher of its own, and what happens as a story.

use super::error::joined;
use super::serve::{Signals, announce, run};
use super::{AppError, ConfigSource, DemoOptions, Gateway, Outside, gateway, token};
use crate::demo::{
    EVENTS_READ, FeedFacts, PILOTS_FEED, PILOTS_ITEM, Script, StoryLine, Storyteller,
    configuration, own_version, publisher, welcome,
};
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::model::{Count, Event, EventKind, FeedName, SyncId};
use tidegate_judge::record::local::{Act, CheckedEntry, ItemChange};
use tidegate_serve::Operator;
use tidegate_store::{Epoch, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often it is looked at what the gateway did.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many versions of an item are looked through for the one that an event made.
const VERSIONS_READ: usize = 16;
/// How many closed epochs are read at a look.
const EPOCHS_READ: usize = 64;

/// Runs the publisher and the gateway, and tells what happens, until SIGTERM or SIGINT.
pub async fn demo(options: DemoOptions) -> Result<(), AppError> {
    let mut signals = Signals::new()?;
    let demo = Demo::start(&options, Outside::default()).await?;
    announce(&format!("listening on {}\n\n{}", demo.address(), demo.welcome))?;
    let Demo { gateway, config, story, publishing, steps, shutdown, .. } = demo;
    let settings = ConfigSource::Fixed(Box::new(config));
    let telling = tell(story, steps, &options);
    let ended = run(gateway, &mut signals, &settings, telling).await;
    end_publisher(publishing, &shutdown).await?;
    ended
}

/// Lets the publisher go on and tells what happens, until there is nobody to tell it to.
async fn tell(
    mut story: Story,
    steps: watch::Sender<u32>,
    options: &DemoOptions,
) -> Result<(), AppError> {
    let mut next_step = Instant::now() + options.every;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if Instant::now() >= next_step {
            next_step += options.every;
            steps.send_modify(|step| *step = step.saturating_add(1));
        }
        for line in story.look().await {
            announce(&line.print(options.has_colour))?;
        }
    }
}

async fn end_publisher(
    publishing: JoinHandle<io::Result<()>>,
    shutdown: &CancellationToken,
) -> Result<(), AppError> {
    shutdown.cancel();
    joined("the demo's publisher failed", publishing.await)
}

/// A publisher and a gateway in front of it.
struct Demo {
    gateway: Gateway,
    config: Config,
    /// What is printed at the start.
    welcome: String,
    story: Story,
    publishing: JoinHandle<io::Result<()>>,
    steps: watch::Sender<u32>,
    shutdown: CancellationToken,
}

impl Demo {
    /// Starts both, the publisher at step 0.
    async fn start(options: &DemoOptions, outside: Outside) -> Result<Self, AppError> {
        let unheard = |error| AppError::run("the demo's publisher cannot listen", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(unheard)?;
        let address = listener.local_addr().map_err(unheard)?;
        let shutdown = CancellationToken::new();
        let (steps, step) = watch::channel(0);
        let script = Script::new(outside.clock.now(), options.every);
        let publishing = tokio::spawn(publisher(listener, script, step, shutdown.clone()));
        // It has no file: its option alone says another address.
        let own = std::net::TcpListener::bind(options.listen);
        let own = own.map_err(|error| gateway::refused(options.listen, "--listen", error))?;
        let outside = Outside { listener: Some(Arc::new(own)), ..outside };
        let (setting, shown) = token::of_demo(options.data.as_deref())?;
        let config = configuration(address, options.listen, options.data.clone(), setting);
        let gateway = Gateway::start(&config, outside).await?;
        let own = format!("http://{}", gateway.address());
        let token = shown.map_or_else(|| token::kept(&config.store.path), Ok)?;
        let welcome = welcome(address, &own, options.every, &token);
        let story = Story::new(&gateway, &config, Storyteller::new(own, token));
        Ok(Self { gateway, config, welcome, story, publishing, steps, shutdown })
    }

    /// The gateway's address: `http://127.0.0.1:8080`.
    fn address(&self) -> String {
        format!("http://{}", self.gateway.address())
    }
}

/// Looks at a gateway and tells what it did.
struct Story {
    store: Arc<Store>,
    operator: Arc<Operator>,
    feeds: Vec<FeedName>,
    teller: Storyteller,
    epoch: Epoch,
    began: Instant,
    has_written: bool,
}

impl Story {
    fn new(gateway: &Gateway, config: &Config, teller: Storyteller) -> Self {
        let feeds = config.feeds.iter().map(|feed| feed.name.clone());
        let epoch = *gateway.store().watch_epochs().borrow();
        Self {
            store: Arc::clone(gateway.store()),
            operator: gateway.operator(),
            feeds: feeds.collect(),
            teller,
            epoch,
            began: Instant::now(),
            has_written: false,
        }
    }

    /// What happened since the last look. What cannot be read now is told later.
    async fn look(&mut self) -> Vec<StoryLine> {
        let mut lines = Vec::new();
        let at = self.began.elapsed();
        for feed in self.feeds.clone() {
            if let Ok(Some(facts)) = self.facts(&feed).await {
                lines.extend(self.teller.tell(at, &feed, &facts));
            }
        }
        let epochs = self.store.epochs_after(self.epoch, EPOCHS_READ).await.unwrap_or_default();
        for closed in epochs {
            self.epoch = closed.epoch;
            for change in closed.changes {
                lines.extend(self.teller.tell_of_log(at, &change.feed, closed.epoch.0));
            }
        }
        if !self.has_written {
            self.has_written = self.write_own_version().await.unwrap_or(false);
        }
        lines
    }

    /// What the gateway says of a feed now; `None` before there is anything.
    async fn facts(&self, feed: &FeedName) -> Result<Option<FeedFacts>, StoreError> {
        let Ok(status) = self.operator.status(feed).await else { return Ok(None) };
        let Some(state) = self.store.state(feed).await? else { return Ok(None) };
        let events = self.store.events(feed, EVENTS_READ).await?;
        let contested = self.store.contested(feed).await?;
        let mut versions = HashMap::new();
        for event in self.teller.new_events(feed, &events) {
            if let Some(pair) = self.versions_of(feed, event).await {
                versions.insert((event.id.clone(), event.tick), pair);
            }
        }
        Ok(Some(FeedFacts { polling: status.polling, state, events, versions, contested }))
    }

    /// Which version an edit took the place of, and which one it made. Of an item that others change as well neither
    /// has a number of its own.
    async fn versions_of(&self, feed: &FeedName, event: &Event) -> Option<(Count, Count)> {
        let known = self.store.known(feed, &event.id).await.ok()??;
        if event.kind != EventKind::Updated || known.origin.is_shared() {
            return None;
        }
        let notes = self.store.versions(feed, &event.id, VERSIONS_READ).await.ok()?;
        notes.windows(2).find_map(|pair| match pair {
            [now, before] if Some(now.tick) == event.tick && !before.deleted => {
                Some((before.updates, now.updates))
            }
            _ => None,
        })
    }

    /// Changes the item that another endpoint shares, as soon as it is there in its first version; whether
    /// that is done, or will never be.
    async fn write_own_version(&self) -> Option<bool> {
        let feed = FeedName::new(PILOTS_FEED).ok()?;
        let id = SyncId::new(PILOTS_ITEM).ok()?;
        let known = self.store.known(&feed, &id).await.ok()??;
        if known.updates > Count::ONE {
            return Some(true);
        }
        let entry = CheckedEntry::fields(&own_version()).ok()?;
        let act = Act::Change { id, how: ItemChange::Update(entry), expected: Some(known.updates) };
        Some(self.operator.item(&feed, act).await.is_ok())
    }
}
