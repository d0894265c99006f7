//! `tidegate pull`: [pulls](tidegate_format::pull) over the network and keeps the replica in a folder.

mod folder;

use super::{AppError, PullOptions, outgoing, progress};
use folder::ReplicaFolder;
use indicatif::ProgressBar;
use std::time::Duration;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_core::model::counted;
use tidegate_format::parse::sync_markup::bare;
use tidegate_format::pull::{
    self, Answer, Ask, Asked, FetchedBody, PullLimits, PullOutcome, State,
};
use tidegate_net::fetch::{self, Fetch, FetchRequest, Validators};
use tower::ServiceExt as _;
use url::Url;

/// How often the line of progress moves.
const TICK: Duration = Duration::from_millis(120);

/// What a pull did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// What came of it.
    pub outcome: PullOutcome,
    /// How many requests were made.
    pub requests: usize,
    /// Bytes of bodies as they came over the wire.
    pub bytes: u64,
}

/// Brings the replica in a folder up to date, or makes one.
pub async fn pull(options: PullOptions) -> Result<Pulled, AppError> {
    let folder = ReplicaFolder::lock(&options.into)?;
    match pull_into(&folder, options).await {
        Ok(pulled) => Ok(pulled),
        Err(error) => {
            folder.abandon();
            Err(error)
        }
    }
}

async fn pull_into(folder: &ReplicaFolder, options: PullOptions) -> Result<Pulled, AppError> {
    let PullOptions { url, into, max_requests, max_bytes } = options;
    let limits = PullLimits { requests: max_requests, bytes: max_bytes, ..PullLimits::STANDARD };
    let known_as = fetch::bare(&url);
    let held = folder.open(&known_as)?;
    let before = held.saved.as_ref().map(|(_, replica)| replica.clone());
    let failed =
        |error| AppError::run(format!("{} was not brought up to date", into.display()), error);
    let mut line = PublisherLink::new(&url)?;
    let state = held.saved.as_ref().map(|(state, _)| state);
    let fetch = async |ask: &Ask| line.ask(ask, state).await;
    let pulling = pull::pull(bare(url.clone()), limits, held.saved.clone(), fetch);
    let mut outcome = pulling.await.map_err(failed)?;
    line.progress.finish_and_clear();
    outcome.warnings.splice(0..0, held.warning);
    let same = held.saved.is_some_and(|(state, _)| state == outcome.state);
    if !same || outcome.replica.is_some() {
        let replica = outcome.replica.as_deref().or(before.as_deref());
        replica.map_or(Ok(()), |text| folder.save(&known_as, &outcome.state, text))?;
    }
    Ok(Pulled { outcome, requests: line.requests, bytes: line.bytes })
}

/// The way to the publisher.
struct PublisherLink {
    fetch: Fetch,
    /// The address that was given, with its credentials.
    given: Url,
    clock: SystemClock,
    progress: ProgressBar,
    requests: usize,
    bytes: u64,
}

impl PublisherLink {
    fn new(given: &Url) -> Result<Self, AppError> {
        let fetch = outgoing::client_of(given)?;
        let progress = progress::bar("{spinner} {wide_msg}", 0);
        if !progress.is_hidden() {
            progress.enable_steady_tick(TICK);
        }
        let given = given.clone();
        Ok(Self { fetch, given, clock: SystemClock, progress, requests: 0, bytes: 0 })
    }

    async fn ask(&mut self, ask: &Ask, saved: Option<&State>) -> Answer {
        self.requests += 1;
        self.progress.set_message(format!(
            "{}, {}",
            counted(self.requests, "request"),
            fetch::shown(&ask.url)
        ));
        let (validators, deltas) = match (&ask.asked, saved) {
            (Asked::Changes, Some(state)) => {
                let validators = Validators {
                    etag: state.etag.clone(),
                    last_modified: state.last_modified.clone(),
                    answered_by: state.answered_by.clone(),
                    credentials_id: 0,
                };
                (validators, true)
            }
            (Asked::Unless(Some(tag)), _) => {
                let answered_by = Some(ask.url.to_string());
                let etag = Some(tag.clone());
                (Validators { etag, answered_by, ..Validators::default() }, false)
            }
            _ => (Validators::default(), false),
        };
        let request = FetchRequest {
            validators,
            deltas,
            soon: true,
            ..FetchRequest::whole(
                fetch::with_credentials(&ask.url, &self.given).into(),
                self.clock.now(),
            )
        };
        let fetched = match self.fetch.clone().oneshot(request).await {
            Ok(fetched) => fetched,
            Err(error) => return Err(error.to_string()),
        };
        self.bytes = self.bytes.saturating_add(fetched.wire_bytes);
        let fetch::FetchAnswer::Document(document) = fetched.answer else {
            return Ok(None);
        };
        if document.delta && !deltas {
            return Err("the publisher sent a delta that nobody asked for".to_owned());
        }
        let Ok(url) = Url::parse(&fetched.final_url) else {
            return Err("the address that answered is no URL".to_owned());
        };
        Ok(Some(FetchedBody {
            url,
            bytes: document.bytes.to_vec(),
            content_type: document.content_type,
            etag: fetched.validators.etag,
            last_modified: fetched.validators.last_modified,
            is_delta: document.delta,
        }))
    }
}
