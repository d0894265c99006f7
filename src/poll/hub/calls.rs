//! Single calls of callbacks: to verify, to deny, to deliver.

use super::subscriptions::{NOT_PUBLIC, Task};
use super::{HubShared, NoHubDocument, TopicRequest, Topics};
use crate::subscribe::ANSWER_LIMIT;
use data_encoding::HEXLOWER;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use std::time::Duration;
use tidegate_core::model::Tick;
use tidegate_core::websub::cloud;
use tidegate_core::websub::{
    CallbackAnswer, CallbackPurpose, Duty, FORM_TYPE, Intent, Manner, SIGNATURE_HEADER,
    Subscription, Verification, webhook,
};
use tidegate_net::fetch::{CallBody, CallRequest, Called, FetchError, LeadScope, Refusal};
use tokio::time::timeout;
use tower::ServiceExt as _;
use url::Url;

/// The largest document that is delivered, in bytes.
const DOCUMENT_LIMIT: usize = 16 * 1024 * 1024;
/// The time limit of a first verification. It is short, because strangers name many callbacks that never answer;
/// retries get the usual time.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// Why a gateway that is not known to live makes no call.
const OTHER_CALLS: &str = "another gateway may own the feed, which calls then";
/// The number of random bytes in a challenge.
const CHALLENGE: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// The callback's answer, and for a delivery a tick that the document includes.
    Answered(CallbackAnswer, Option<Tick>),
    /// The document is temporarily unavailable, or the call cannot be made now; the reason.
    PutOff(String),
    /// The topic's subscriptions end, and why. `of_document`: only those that receive the document itself.
    End { why: String, of_document: bool },
}

pub(super) async fn perform(shared: &HubShared, topics: &Topics, task: &Task) -> CallOutcome {
    if !shared.can_call() {
        return CallOutcome::PutOff(OTHER_CALLS.to_owned());
    }
    match task.duty {
        Duty::Verify(intent) => CallOutcome::Answered(verify(shared, task, intent).await, None),
        Duty::Expire => CallOutcome::PutOff("its lease has ended".to_owned()),
        Duty::Deny => CallOutcome::Answered(deny(shared, task).await, None),
        Duty::Deliver => match prepare(shared, topics, task).await {
            Ok((delivery, tick)) => {
                shared.hosts.note_delivery(&task.host, delivery.body.len());
                CallOutcome::Answered(deliver(shared, task, delivery).await, tick)
            }
            Err(outcome) => outcome,
        },
    }
}

async fn verify(shared: &HubShared, task: &Task, intent: Intent) -> CallbackAnswer {
    let mut random = [0; CHALLENGE];
    if getrandom::fill(&mut random).is_err() {
        let why = "this machine gives no random numbers for a challenge".to_owned();
        return CallbackAnswer::Failed { why, after: None };
    }
    let challenge = HEXLOWER.encode(&random);
    let wanted = task.subscription.pending.as_ref().map(|pending| &pending.wanted);
    let lease = match wanted {
        Some(CallbackPurpose::Subscribe { lease, .. }) => Some(*lease),
        _ => None,
    };
    let topic = task.subscription.topic.clone();
    let callback = &task.subscription.callback;
    let url = match task.subscription.manner {
        Manner::RssCloud => cloud::challenged(callback, &topic, &challenge),
        Manner::WebSub | Manner::Webhook => {
            let challenge = challenge.clone();
            Verification::Intent { intent, topic, challenge, lease }.address(callback)
        }
    };
    let asked = send_get(shared, url);
    let subscription = &task.subscription;
    let answered = match subscription.is_unverified() && !subscription.is_in_trouble() {
        true => timeout(FIRST_ANSWER, asked)
            .await
            .unwrap_or(Err(FetchError::Timeout { what: "answer", limit: FIRST_ANSWER })),
        false => asked.await,
    };
    match answered {
        Ok(called) => {
            let Called { status, body, whole, retry_after, .. } = called;
            CallbackAnswer::to_challenge((status, retry_after), &body, whole, &challenge)
        }
        Err(error) => answer_of_error(&error),
    }
}

async fn deny(shared: &HubShared, task: &Task) -> CallbackAnswer {
    let pending = task.subscription.pending.as_ref().map(|pending| &pending.wanted);
    let reason = match pending {
        Some(CallbackPurpose::Denial { reason }) => Some(reason.clone()),
        _ => None,
    };
    let said = Verification::Denied { topic: task.subscription.topic.clone(), reason };
    match send_get(shared, said.address(&task.subscription.callback)).await {
        Ok(called) if called.status >= 500 => {
            let why = format!("the callback answered {}", called.status);
            CallbackAnswer::Failed { why, after: called.retry_after }
        }
        // The denial was sent; its answer does not matter (section 5.2).
        Ok(_) => CallbackAnswer::Taken,
        Err(error) => answer_of_error(&error),
    }
}

/// Sends a GET to a callback named by a stranger.
async fn send_get(shared: &HubShared, url: Url) -> Result<Called, FetchError> {
    let request = CallRequest::get(url, LeadScope::default(), shared.clock.now());
    let request = CallRequest { answer: ANSWER_LIMIT, ..request };
    shared.call(Manner::WebSub).oneshot(request).await
}

/// Builds the delivery, and returns it with a tick that it includes.
async fn prepare(
    shared: &HubShared,
    topics: &Topics,
    task: &Task,
) -> Result<(CallBody, Option<Tick>), CallOutcome> {
    let Subscription { manner, feed, topic, active, .. } = &task.subscription;
    // Read the tick before the document, so that the document includes it.
    let tick = shared.tick(feed).await.map_err(|error| CallOutcome::PutOff(error.to_string()))?;
    let told = active.as_ref().and_then(|active| active.told);
    let wanted = match manner {
        Manner::WebSub => TopicRequest::Document(topic.clone()),
        Manner::RssCloud => TopicRequest::Exists(topic.clone()),
        Manner::Webhook => TopicRequest::Changes(feed.clone(), told),
    };
    let document = topics(wanted).await.map_err(|none| match none {
        NoHubDocument::Gone(why) => CallOutcome::End { why, of_document: false },
        NoHubDocument::TooLarge(bytes) => too_large(bytes),
        NoHubDocument::Later(why) => CallOutcome::PutOff(why),
    })?;
    let (mut headers, body, tick) = match manner {
        Manner::WebSub => (document.headers, document.body, tick),
        // The cloud announces the change but does not send the document.
        Manner::RssCloud => {
            let form = (CONTENT_TYPE, HeaderValue::from_static(FORM_TYPE));
            (HeaderMap::from_iter([form]), cloud::changed(topic).into(), tick)
        }
        Manner::Webhook => (document.headers, document.body, document.until),
    };
    // Webhooks receive changes, which have their own size limit.
    if *manner == Manner::WebSub && body.len() > DOCUMENT_LIMIT {
        return Err(too_large(u64::try_from(body.len()).unwrap_or(u64::MAX)));
    }
    let secret = active.as_ref().and_then(|active| active.secret.as_ref());
    let signed = match (manner, secret, tick) {
        (Manner::Webhook, Some(secret), Some(tick)) => {
            let (id, now) = (webhook::message_id(feed, told, tick), shared.clock.now());
            let signature = webhook::sign(secret, &id, now, &body);
            let (id_in, at_in) = (webhook::ID_HEADER, webhook::TIMESTAMP_HEADER);
            let at = now.unix().to_string();
            vec![(id_in, id), (at_in, at), (webhook::SIGNATURE_HEADER, signature)]
        }
        (_, Some(secret), _) => vec![(SIGNATURE_HEADER, secret.sign(&body))],
        (_, None, _) => Vec::new(),
    };
    for (name, value) in signed {
        let value = HeaderValue::try_from(value);
        let value = value.map_err(|error| CallOutcome::PutOff(error.to_string()))?;
        headers.insert(name, value);
    }
    // If this gateway was suspended meanwhile, its document may be older than what the next owner delivered.
    match shared.can_call() {
        true => Ok((CallBody { headers, body }, tick)),
        false => Err(CallOutcome::PutOff(OTHER_CALLS.to_owned())),
    }
}

async fn deliver(shared: &HubShared, task: &Task, delivery: CallBody) -> CallbackAnswer {
    let Subscription { manner, callback, .. } = &task.subscription;
    let request = CallRequest::get(callback.clone(), LeadScope::default(), shared.clock.now());
    let (method, sent) = (Method::POST, delivery);
    let request = CallRequest { method, sent, answer: ANSWER_LIMIT, ..request };
    match shared.call(*manner).oneshot(request).await {
        Ok(called) => CallbackAnswer::to_delivery(called.status, called.retry_after),
        Err(error) => CallbackAnswer::Failed { why: describe_error(&error, *manner), after: None },
    }
}

/// Ends the subscription: neither the callback's fault nor temporary.
fn too_large(bytes: u64) -> CallOutcome {
    let why = format!(
        "the document has {bytes} bytes, and this hub delivers at most {DOCUMENT_LIMIT}; read it by its address"
    );
    CallOutcome::End { why, of_document: true }
}

fn answer_of_error(error: &FetchError) -> CallbackAnswer {
    let why = describe_error(error, Manner::WebSub);
    match error {
        FetchError::Refused { .. } => CallbackAnswer::Refused(why),
        _ => CallbackAnswer::Failed { why, after: None },
    }
}

/// Describes a failed call from the callback's point of view; client errors speak of publishers.
fn describe_error(error: &FetchError, manner: Manner) -> String {
    match error {
        FetchError::Timeout { limit, .. } => {
            format!("the callback did not answer within {} s", limit.as_secs_f32())
        }
        FetchError::Refused { refusal: Refusal::Address { .. }, .. }
            if manner != Manner::Webhook =>
        {
            NOT_PUBLIC.to_owned()
        }
        FetchError::CutOff { .. } => "the connection to the callback broke".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{memory, open, topics_of_size};
    use super::super::{Calling, HubSettings};
    use super::*;
    use crate::domains::host_group;
    use crate::testing::gateway::gateway;
    use std::sync::Arc;
    use tidegate_core::model::FeedName;
    use tidegate_net::fetch::{AllowPrivate, Call};

    fn delivery() -> Task {
        let (feed, topic) = (FeedName::new("news").unwrap(), "https://gate.example/feeds/news");
        let callback = Url::parse("https://reader.example/").unwrap();
        let subscription = Subscription::new(Manner::WebSub, feed, topic.to_owned(), callback);
        Task { subscription, host: "reader.example".into(), duty: Duty::Deliver }
    }

    fn gone() -> CallOutcome {
        let why = "the callback answered 410".to_owned();
        CallOutcome::Answered(CallbackAnswer::Refused(why), None)
    }
    fn answers(status: u16) -> Call {
        Call::new(tower::service_fn(move |_: CallRequest| {
            std::future::ready(Ok(Called { status, whole: true, ..Called::default() }))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_called_at_a_bounded_rate() {
        let (hub, mut task) = (open(memory(), answers(204)).await, delivery());
        for (callback, bytes, expected) in [
            ("https://small.example/", 0, 400),
            ("https://large.example/", DOCUMENT_LIMIT, 400 + 30_000),
            ("http://127.0.0.1:81/", DOCUMENT_LIMIT, 0),
        ] {
            task.host = host_group(&Url::parse(callback).unwrap()).into();
            hub.0.hosts.note_call(&task.host);
            perform(&hub.0, &topics_of_size(move || bytes), &task).await;
            let left = hub.0.hosts.call_at(&task.host) - tokio::time::Instant::now();
            assert!((expected..expected + 20).contains(&left.as_millis()), "{callback}: {left:?}");
        }
    }

    #[tokio::test]
    async fn what_strangers_name_is_never_called_as_what_the_operator_names() {
        let hub = open(memory(), answers(204)).await;
        let (callbacks, webhooks) = (answers(410), answers(204));
        let calling = Calling { callbacks, webhooks, allow_private: AllowPrivate::No };
        hub.reconfigure(calling, HubSettings::default());
        for manner in [Manner::WebSub, Manner::RssCloud, Manner::Webhook] {
            let mut task = delivery();
            task.subscription.manner = manner;
            let outcome = perform(&hub.0, &topics_of_size(|| 1), &task).await;
            let taken = CallOutcome::Answered(CallbackAnswer::Taken, None);
            let expected = if manner == Manner::Webhook { taken } else { gone() };
            assert_eq!(outcome, expected, "{manner:?}");
        }
        // A document that is too large is no failure of the callback.
        let (hub, task) = (open(memory(), answers(410)).await, delivery());
        let outcome = perform(&hub.0, &topics_of_size(|| DOCUMENT_LIMIT + 1), &task).await;
        let CallOutcome::End { why, of_document: true } = outcome else { panic!("{outcome:?}") };
        assert!(why.contains("at most 16777216"), "{why}");
        assert_eq!(perform(&hub.0, &topics_of_size(|| DOCUMENT_LIMIT), &task).await, gone());
    }

    #[tokio::test]
    async fn a_gateway_that_is_not_known_to_live_calls_nobody() {
        let call = tower::service_fn(async |request: CallRequest| -> Result<Called, FetchError> {
            panic!("{} was called", request.url)
        });
        let mut shared = Arc::into_inner(open(memory(), Call::new(call)).await.0).unwrap();
        shared.gateways = Some(gateway(1));
        for duty in [Duty::Deliver, Duty::Deny, Duty::Verify(Intent::Subscribe)] {
            let task = Task { duty, ..delivery() };
            let outcome = perform(&shared, &topics_of_size(|| 1), &task).await;
            assert!(matches!(outcome, CallOutcome::PutOff(_)), "{duty:?}: {outcome:?}");
        }
    }
}
