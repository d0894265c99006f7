//! An operator that notes what it was asked.

use super::*;
use tidegate_core::model::{Interruption, InterruptionKind};

/// Answers for the feeds of [`TestStore::with_news`] that are served, and for `fresh`; `file` stands in the configuration file.
#[derive(Default)]
pub(in crate::tests) struct TestOperator {
    pub(in crate::tests) asked: Mutex<Vec<String>>,
    /// An export breaks off before its end.
    pub(in crate::tests) breaks_off: AtomicBool,
    /// How many polls failed beside the usual ones.
    pub(in crate::tests) failed: AtomicUsize,
    /// An action gives way this often before it is done.
    pub(in crate::tests) slow: AtomicUsize,
    /// How long it takes to tell how all feeds are, how often it was asked, and by how many at once at
    /// most.
    pub(in crate::tests) list_takes: Mutex<Duration>,
    pub(in crate::tests) lists: AtomicUsize,
    pub(in crate::tests) most_listing: AtomicUsize,
    listing: AtomicUsize,
    /// What is said of `news`, where that is not the usual.
    pub(in crate::tests) said: Mutex<Option<FeedStatus>>,
    /// The feeds that this gateway polls, where these are not all.
    pub(in crate::tests) own: Mutex<Option<Vec<&'static str>>>,
}

impl TestOperator {
    /// All feeds are told of.
    async fn listed(&self) {
        let now = self.listing.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_listing.fetch_max(now, Ordering::SeqCst);
        self.lists.fetch_add(1, Ordering::SeqCst);
        let takes = *self.list_takes.lock().unwrap();
        tokio::time::sleep(takes).await;
        self.listing.fetch_sub(1, Ordering::SeqCst);
    }

    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    fn of(&self, feed: &str) -> FeedStatus {
        let said = self.said.lock().unwrap().clone();
        let mut said = said.unwrap_or_else(|| status(feed));
        // Of the others, no item that waits is in the store.
        if feed != "news" {
            said.pending.clear();
        }
        said
    }

    /// How the polling of `news` stands, in short.
    fn summary(&self) -> FeedSummary {
        let status = self.of("news");
        let polling = status.polling;
        FeedSummary {
            last_poll: polling.polls.front().map(|poll| poll.at),
            next_poll: polling.next.map(|next| next.at),
            is_in_flight: false,
            is_elsewhere: false,
            read: polling.last_read,
            stale_after: polling
                .last_read
                .map(|read| FeedSummary::stale_after(read, Duration::ZERO)),
            failures: polling.failures,
            error: polling
                .polls
                .front()
                .and_then(|poll| Some(poll.failure.as_ref()?.error.clone())),
            gaps: polling.gaps,
            moved_to: polling.moved_to,
            is_hub_distrusted: status.hub.is_some_and(|hub| hub.distrusted_until.is_some()),
            gathered: status.gathered,
        }
    }

    fn known(feed: &FeedName) -> Result<(), OperatorError> {
        match feed.as_str() {
            "file" => Err(OperatorError::ConfiguredByFile(feed.clone())),
            "news" | "fresh" | "radio" | "new" | "still" | "hidden-diary" => Ok(()),
            _ => Err(OperatorError::UnknownFeed(feed.clone())),
        }
    }
}

pub(in crate::tests) fn status(feed: &str) -> FeedStatus {
    let record = record(feed, FeedStanding::Active);
    FeedStatus {
        name: record.name,
        url: record.url,
        source: record.source,
        standing: record.standing,
        options: record.options,
        access: None,
        private: false,
        adds_feeds: false,
        feeds_of_list: None,
        list: None,
        polling: PollStatus {
            polls: [FinishedPoll {
                at: at(-60),
                took: Duration::from_millis(1234),
                outcome: PollEnding::Failed,
                asked_for: false,
                bytes: 99,
                committed: false,
                is_apart: false,
                entries: None,
                rewritten: 1,
                counts: [(EventKind::Created, 2)].into(),
                failure: Some(PollFailure {
                    error: "<script>alert('upstream')</script>".to_owned(),
                    blame: FetchBlame::Upstream,
                    status: Some(503),
                }),
                notes: vec!["<em>an odd redirect</em>".to_owned()],
            }]
            .into(),
            probes: [FinishedProbe {
                at: at(-30),
                requests: 3,
                said: vec!["https://example.org/<kbd>a</kbd> is gone (404)".to_owned()],
                counts: EventCounts::new(),
            }]
            .into(),
            next: Some(ScheduledPoll { at: at(300), reason: "the feed's ttl".to_owned() }),
            failures: 3,
            moved_to: Some("https://me:secret@elsewhere.example/".to_owned()),
            document: Some(ParsedNote {
                at: at(-600),
                entries: 9,
                partial: Some("it breaks off <b>here</b>".to_owned()),
                warnings: vec!["at byte 7: <q>odd</q>".to_owned()],
            }),
            same: 2,
            gaps: PollGaps { count: 2, last: Some(at(-7200)) },
            interruptions: [(-7 * 86_400, Some(-5 * 86_400)), (-3600, None)]
                .map(|(since, until)| Interruption {
                    kind: InterruptionKind::Failed,
                    since: at(since),
                    until: until.map(at),
                    reason: "it answered <b>503</b>".to_owned(),
                })
                .into_iter()
                .collect(),
            backfill: Some(Backfill {
                trail: Some(ArchiveLayout::Pages),
                next: Some("https://me:secret@upstream.example/?page=3".to_owned()),
                documents: 2,
                items: 17,
                note: Some("it answered <dfn>503</dfn>".to_owned()),
                ..Backfill::begin(at(-30))
            }),
            ..PollStatus::default()
        },
        held: Some("<u>empty</u>".to_owned()),
        pending: vec![PendingAbsence {
            id: id("a"),
            native_id: "urn:<s>a</s>".to_owned(),
            title: "<u>A</u>".to_owned(),
            evidence: Evidence::Hole,
            seen: "gone while <tt>older</tt> items stay".to_owned(),
            since: at(-3600),
            observations: 2,
            needed: 3,
            decides_at: at(23 * 3600),
            would: Conclusion::Delete,
            probe: Some(Probe {
                asked: 2,
                last: at(-30),
                heard: Some(ProbeAnswer { gone: true, status: 404, first: at(-60), last: at(-60) }),
                silence: Some("it answered <var>503</var>".to_owned()),
            }),
            answered: Some("its own address answered <samp>404</samp>".to_owned()),
        }],
        pending_absences: 1,
        hub: Some(HubNote {
            state: "subscribed",
            words: "the hub delivers: <code>no</code>".to_owned(),
            hub: ShownAddress::new("https://hub.example/?<i>", None),
            others: Vec::new(),
            topic: ShownAddress::new("https://upstream.example/?<b>", None),
            until: Some(at(900)),
            next: at(600),
            missed: 0,
            distrusted_until: Some(at(3600)),
            pushes: 7,
            last_push: Some(at(-90)),
            disbelieved: RejectedPushes {
                count: 2,
                last: Some(RejectedPush {
                    at: at(-80),
                    why: "the <cite>signature</cite>".to_owned(),
                }),
            },
        }),
        polled_by: None,
        gathered: None,
    }
}

/// What polling knows of a subscription under this topic; one of the hubs has a key in its address.
pub(in crate::tests) fn hub_report(topic: &str) -> HubReport {
    let hubs = ["https://hub.example/", "https://hub.example/?key=4fJ9xQ2mLp7Rk1Zt"];
    let subscription = HubSubscription {
        topic: topic.to_owned(),
        hubs: hubs.map(str::to_owned).to_vec(),
        hub: 0,
        keys: SubscriptionKeys { token: String::new(), secret: String::new() },
        callbacks: String::new(),
        standing: SubscriptionStanding::Waiting,
        next: at(0),
        lease: None,
        failures: 0,
        attempts: 0,
        day: at(0),
        note: None,
        trust: PushTrust::default(),
        last_push: None,
        pushes: 0,
    };
    HubReport { subscription, disbelieved: RejectedPushes::default() }
}

#[async_trait]
impl Operator for TestOperator {
    fn totals(&self) -> PollTotals {
        let durations = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let failed = 11 + self.failed.load(Ordering::SeqCst) as u64;
        PollTotals { failed, commits: 12, durations, ..PollTotals::default() }
    }
    async fn summaries(&self) -> Result<BTreeMap<FeedName, FeedSummary>, OperatorError> {
        self.listed().await;
        Ok([(name("news"), self.summary())].into())
    }
    fn own_summary(&self, feed: &FeedName) -> Option<FeedSummary> {
        let own = self.own.lock().unwrap();
        let own = own.as_deref().unwrap_or(&["news", "radio", "new", "still"]);
        let summary = match feed.as_str() {
            "news" => self.summary(),
            "fresh" => {
                FeedSummary { failures: 1, next_poll: Some(at(60)), ..FeedSummary::default() }
            }
            _ => FeedSummary::default(),
        };
        own.contains(&feed.as_str()).then_some(summary)
    }
    async fn statuses(&self, feeds: &[FeedName]) -> Result<Vec<FeedStatus>, OperatorError> {
        let mut all = Vec::new();
        for feed in feeds {
            all.extend(self.status(feed).await.ok());
        }
        Ok(all)
    }
    async fn preview(&self, url: &str) -> Result<AddressPreview, OperatorError> {
        if url.contains("site") {
            let found = "https://site.example/<b>/feed".to_owned();
            let found = FoundFeed { url: found, title: "<i>Posts</i>".to_owned() };
            return Ok(AddressPreview::Page { url: url.to_owned(), feeds: vec![found] });
        }
        if url.contains("nothing") {
            return Err(OperatorError::BadRequest("the upstream sent <s>nothing</s>".to_owned()));
        }
        Ok(AddressPreview::Feed(FeedPreview {
            url: url.to_owned(),
            name: name("fresh"),
            format: "An Atom feed",
            is_list: false,
            title: "<u>News</u>".to_owned(),
            entries: 12,
            first_entries: [("<b>One</b>", Some(at(0))), ("", None)]
                .map(|(title, time)| PreviewedEntry { title: title.to_owned(), time })
                .to_vec(),
            remarks: vec!["at byte 7: <q>odd</q>".to_owned()],
        }))
    }
    async fn import_list(
        &self,
        list: Bytes,
        rearrange: bool,
    ) -> Result<ImportedList, OperatorError> {
        self.note(format!("import {} {rearrange}", list.len()));
        if !list.starts_with(b"<opml") {
            return Err(OperatorError::BadRequest("the list: it is no <i>list</i>".to_owned()));
        }
        let line = ListLine { line: 7, said: "javascript:<b>: no".to_owned() };
        Ok(ImportedList {
            added: vec![name("fresh")],
            not_taken: 1,
            refused: vec![line],
            ..ImportedList::default()
        })
    }
    async fn export(&self) -> Result<ExportStream, OperatorError> {
        self.note("export".to_owned());
        let (sender, stream) = tokio::sync::mpsc::channel(4);
        for piece in ["tide", "gate"] {
            sender.try_send(Ok(piece.into())).unwrap();
        }
        if self.breaks_off.load(Ordering::SeqCst) {
            sender.try_send(Err(std::io::Error::other("the disk failed"))).unwrap();
        }
        Ok(stream)
    }
    async fn name_for(&self, _: &str) -> Result<FeedName, OperatorError> {
        Ok(name("fresh"))
    }
    async fn pause(&self, feed: &FeedName, paused: bool) -> Result<(), OperatorError> {
        self.note(format!("{} {feed}", if paused { "pause" } else { "resume" }));
        Self::known(feed)
    }
    async fn status(&self, feed: &FeedName) -> Result<FeedStatus, OperatorError> {
        Self::known(feed)?;
        Ok(self.of(feed.as_str()))
    }
    async fn put(&self, feed: &FeedName, put: PutFeed) -> Result<Put, OperatorError> {
        if put.must_be_new && feed.as_str() != "fresh" {
            return Err(OperatorError::Conflict(format!("there is a feed {feed} already")));
        }
        self.note(format!("put {feed} {} {:?}", put.url, put.options.deletions));
        match feed.as_str() {
            "fresh" => Ok(Put::Created),
            _ => Self::known(feed).map(|()| Put::Changed),
        }
    }
    async fn delete(&self, feed: &FeedName, purge: bool) -> Result<(), OperatorError> {
        for _ in 0..self.slow.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        self.note(format!("delete {feed} {purge}"));
        Self::known(feed)
    }
    async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, OperatorError> {
        Self::known(feed)?;
        Ok(PollResponse {
            outcome: PollEnding::NotModified,
            counts: [(EventKind::Updated, 3)].into(),
            held: None,
            until: Some(tick(-10)),
            error: None,
        })
    }
    async fn item(&self, feed: &FeedName, act: Act) -> Result<Acted, OperatorError> {
        Self::known(feed)?;
        let id = act.id().cloned().unwrap_or_else(|| id("made"));
        self.note(format!("item {feed} {act:?}"));
        if id.as_str() == "nothing" {
            return Err(OperatorError::Item(ActError::Unknown(feed.clone())));
        }
        let updates = Count::new(3).unwrap();
        Ok(Acted { id, updates, tick: tick(0), deleted: false, conflicts: 1 })
    }
    async fn redact(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError> {
        Self::known(feed)?;
        self.note(format!("redact {feed} {item} {reason:?}"));
        if item.as_str() == "nothing" {
            return Err(OperatorError::UnknownItem(feed.clone()));
        }
        Ok(Redacted {
            published_id: "urn:a".to_owned(),
            native_id: "urn:a".to_owned(),
            tick: Some(tick(0)),
            versions: 3,
            before: false,
        })
    }
    async fn delete_missing(
        &self,
        feed: &FeedName,
        item: &SyncId,
    ) -> Result<Option<Tick>, OperatorError> {
        Self::known(feed)?;
        self.note(format!("delete_missing {feed} {item}"));
        match item.as_str() {
            "nothing" => Err(OperatorError::UnknownItem(feed.clone())),
            "listed" => Err(OperatorError::Conflict("it is listed".to_owned())),
            "gone" => Ok(None),
            _ => Ok(Some(tick(0))),
        }
    }
    async fn backfill(&self, feed: &FeedName, action: WalkOrder) -> Result<(), OperatorError> {
        self.note(format!("backfill {feed} {action:?}"));
        Self::known(feed)
    }
    async fn is_callback(&self, token: &str) -> bool {
        token.starts_with("known")
    }
    async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, OperatorError> {
        self.note(format!("called {token} {said:?}"));
        Ok(match said {
            Verification::Intent { topic, challenge, .. } => (topic == "t").then_some(challenge),
            Verification::Denied { .. } => Some(String::new()),
        })
    }
    async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushResult {
        self.note(format!("pushed {token} {signature:?} {}", body.len()));
        if signature.is_some() { PushResult::Taken } else { PushResult::Disbelieved }
    }
    async fn hold(&self, feed: &FeedName, action: Decision) -> Result<(), OperatorError> {
        Self::known(feed)?;
        match action {
            Decision::Release => Ok(()),
            Decision::Drop => Err(OperatorError::Conflict("nothing is held".to_owned())),
        }
    }
}
