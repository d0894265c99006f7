//! Subscriptions to upstream hubs: requests (one POST, and redirects to other hubs), and the callbacks. Request
//! handlers verify the callbacks here, so that a flood of calls never reaches the polling task.

use bytes::Bytes;
use data_encoding::{BASE32_NOPAD, HEXLOWER};
use http::{HeaderMap, HeaderValue, Method, header};
use moka::sync::Cache;
use std::time::Duration;
use tidegate_core::model::{
    FeedName, HubSubscription, Interruptions, PollState, SubscriptionKeys, Time,
};
use tidegate_core::websub::subscriber::LEASE_ASKED;
use tidegate_core::websub::{FORM_TYPE, HubRequest, Intent, Secret, Verification};
use tidegate_net::fetch::{
    Call, CallBody, CallRequest, FetchBlame, FetchError, LeadScope, read_url,
};
use tower::ServiceExt as _;
use url::Url;

/// The most redirects from one hub to another.
pub const MAX_HUB_REDIRECTS: usize = 3;
/// The most bytes read of an answer from a hub or a callback: more than any challenge, and enough to reuse the
/// connection.
pub const ANSWER_LIMIT: usize = 1024;

/// Separates the random part of a token from the name of its feed.
const TOKEN_SEPARATOR: char = '.';

/// Returns the feed of a callback token. Any gateway may be called with it.
pub fn feed_of_token(token: &str) -> Option<FeedName> {
    FeedName::new(token.split_once(TOKEN_SEPARATOR)?.1).ok()
}

/// Creates unpredictable keys for the subscription of a feed; `None` if the system has no random source.
pub fn mint(feed: &FeedName) -> Option<SubscriptionKeys> {
    let (mut token, mut secret) = ([0; 20], [0; 32]);
    getrandom::fill(&mut token).ok()?;
    getrandom::fill(&mut secret).ok()?;
    let token = BASE32_NOPAD.encode(&token).to_lowercase();
    let token = format!("{token}{TOKEN_SEPARATOR}{feed}");
    Some(SubscriptionKeys { token, secret: HEXLOWER.encode(&secret) })
}

/// Builds the request to subscribe, or to unsubscribe if not `begin`.
pub fn request(subscription: &HubSubscription, begin: bool) -> Option<HubRequest> {
    let keys = &subscription.keys;
    let callback = Url::parse(&format!("{}/{}", subscription.callbacks, keys.token)).ok()?;
    let topic = subscription.topic.clone();
    let (intent, lease, secret) = match begin {
        true => (Intent::Subscribe, Some(LEASE_ASKED.as_secs()), Secret::new(&keys.secret).ok()),
        false => (Intent::Unsubscribe, None, None),
    };
    Some(HubRequest { intent, topic, callback, lease, secret })
}

/// Sends a request to a hub, which accepts it with any 2xx (WebSub section 5.2: 202; old hubs: 204). Redirects that
/// keep the method (307, 308) lead to another hub within the same SSRF checks. The second parameter is the hub and the
/// scope within which it was named.
pub async fn ask(
    call: Call,
    (hub, mut leads): (String, LeadScope),
    request: HubRequest,
    now: Time,
) -> Result<(), FetchError> {
    let mut url = read_url(&hub).map_err(|refusal| FetchError::Refused { hop: 0, refusal })?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(FORM_TYPE));
    let sent = CallBody { headers, body: Bytes::from(request.write()) };
    for _ in 0..=MAX_HUB_REDIRECTS {
        let asked = CallRequest {
            method: Method::POST,
            sent: sent.clone(),
            answer: ANSWER_LIMIT,
            ..CallRequest::get(url.clone(), leads.clone(), now)
        };
        let called = call.clone().oneshot(asked).await?;
        match (called.status, called.location) {
            (200..=299, _) => return Ok(()),
            // A request sent over HTTPS contains a secret and must not be redirected to plain HTTP.
            (307 | 308, Some(next)) if url.scheme() == "http" || next.scheme() == "https" => {
                leads = called.leads;
                url = next;
            }
            (code, _) => {
                let (retry_after, redirected_to) = (called.retry_after, Some(url.into()));
                let says = Some((FetchBlame::Upstream, describe_answer(code, &called.body)));
                return Err(FetchError::Status { code, retry_after, redirected_to, says });
            }
        }
    }
    let why = format!("it sent on to another hub more than {MAX_HUB_REDIRECTS} times");
    Err(FetchError::upstream(why))
}

/// Describes a hub's answer: its status, and the first line of a plain-text body.
fn describe_answer(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let plain = !line.starts_with(['<', '{']) && !line.contains(char::is_control);
    match line {
        "" => format!("it answered {status}"),
        _ if !plain => format!("it answered {status}"),
        line => {
            let line: String = line.chars().take(Interruptions::REASON_LIMIT).collect();
            format!("it answered {status}: {line}")
        }
    }
}

/// How hubs reach this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The base address of callbacks; a slash and a token follow.
    pub callbacks: String,
    /// Whether only hubs at the operator's own hosts can reach it, and are used.
    pub own_hosts: bool,
    /// Whether hubs are given secrets over plain HTTP, where an eavesdropper learns them.
    pub http_secrets: bool,
}

/// Returns the secret with which a hub signs its pushes to the callback of `token`. `Some(None)`: the hub was given none,
/// because it is reached over plain HTTP. `None`: the feed in this state has another token, or its secret is invalid, so
/// that no push could be verified.
pub fn find_secret(state: &PollState, token: &str) -> Option<Option<Secret>> {
    let keys = &state.subscription.as_ref()?.keys;
    match keys.secret.as_str() {
        _ if keys.token != token => None,
        "" => Some(None),
        text => Secret::new(text).ok().map(Some),
    }
}

/// The topics of subscriptions being ended, by token, for as long as a hub may verify. At most 64: of others the end is
/// not confirmed, and their leases expire.
#[derive(Debug)]
pub struct EndingCallbacks(Cache<String, String>);

impl Default for EndingCallbacks {
    fn default() -> Self {
        let wait = Duration::from_secs(10 * 60);
        Self(Cache::builder().max_capacity(64).time_to_live(wait).build())
    }
}

impl EndingCallbacks {
    pub fn is_known(&self, token: &str) -> bool {
        self.0.contains_key(token)
    }

    /// Returns the challenge if a hub verifies the end of a subscription that is being ended.
    pub fn confirm_end(&self, token: &str, said: &Verification) -> Option<String> {
        let ending = self.0.get(token)?;
        match said {
            Verification::Intent { intent: Intent::Unsubscribe, topic, challenge, .. }
                if *topic == ending =>
            {
                Some(challenge.clone())
            }
            _ => None,
        }
    }

    /// Remembers a subscription being ended, so that its hub's verification is confirmed for 10 minutes.
    pub(super) fn leave(&self, token: &str, topic: &str) {
        self.0.insert(token.to_owned(), topic.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{NOW, hub_subscription, name};
    use std::sync::{Arc, Mutex};
    use tidegate_net::fetch::Called;

    fn answer(status: u16, body: &'static str, location: Option<&str>) -> Called {
        let location = location.map(|to| Url::parse(to).unwrap());
        let body = Bytes::from_static(body.as_bytes());
        Called { status, body, whole: true, location, ..Called::default() }
    }

    /// Asks a hub that answers by `script`; returns the result and the addresses asked.
    async fn asked(
        script: impl Fn(&str) -> Called + Send + Sync + 'static,
    ) -> (Result<(), FetchError>, Vec<String>) {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&calls), Arc::new(script));
        let call = Call::new(tower::service_fn(move |request: CallRequest| {
            seen.lock().unwrap().push(request.url.to_string());
            let called = script(request.url.as_str());
            let sent = request.sent;
            assert_eq!(sent.headers["content-type"], FORM_TYPE);
            assert!(sent.body.starts_with(b"hub.mode=unsubscribe&"));
            async move { Ok(called) }
        }));
        let hub = ("https://hub.example/a".to_owned(), LeadScope::default());
        let callback = Url::parse("https://gateway.example/").unwrap();
        let (intent, topic) = (Intent::Unsubscribe, "t".to_owned());
        let request = HubRequest { intent, topic, callback, lease: None, secret: None };
        let result = ask(call, hub, request, NOW).await;
        let calls = calls.lock().unwrap().clone();
        (result, calls)
    }

    #[tokio::test]
    async fn a_hub_has_taken_it_or_says_why_not() {
        for status in [200, 202, 204] {
            assert_eq!(asked(move |_| answer(status, "fine", None)).await.0, Ok(()));
        }
        for (status, body, why) in [
            (400, "\n no such topic \r\nmore", "it answered 400: no such topic"),
            (500, "<html>boom", "it answered 500"),
            (403, "", "it answered 403"),
            (301, "moved", "it answered 301: moved"),
            (307, "no address", "it answered 307: no address"),
        ] {
            let failed = asked(move |_| answer(status, body, None)).await.0.unwrap_err();
            assert_eq!(failed.to_string(), why);
        }
    }

    #[tokio::test]
    async fn a_redirect_leads_to_another_hub_but_not_out_of_encryption_nor_in_a_circle() {
        let (result, calls) = asked(|url| match url {
            "https://hub.example/a" => answer(307, "", Some("https://other.example/b")),
            _ => answer(202, "", None),
        })
        .await;
        assert_eq!((result, calls.len()), (Ok(()), 2));
        let (result, calls) = asked(|_| answer(308, "", Some("http://other.example/b"))).await;
        assert_eq!((result.is_err(), calls.len()), (true, 1));
        let (result, calls) = asked(|url| answer(307, "", Some(url))).await;
        assert!(result.unwrap_err().to_string().contains("more than 3 times"));
        assert_eq!(calls.len(), MAX_HUB_REDIRECTS + 1);
    }

    #[test]
    fn keys_are_long_and_never_the_same_and_never_shown() {
        let feed = name("news");
        let (one, other) = (mint(&feed).unwrap(), mint(&feed).unwrap());
        assert_eq!(feed_of_token(&one.token), Some(feed));
        assert!(one.token != other.token && one.secret != other.secret);
        assert_eq!((one.token.len(), one.secret.len()), (32 + ".news".len(), 64));
        assert!(!format!("{one:?}").contains(&one.secret));
        let subscription = hub_subscription("news", one.clone());
        let text = request(&subscription, true).unwrap().write();
        assert_eq!(HubRequest::read(text.as_bytes()), Ok(request(&subscription, true).unwrap()));
        assert!(text.contains(&one.token) && text.contains("hub.lease_seconds=864000"), "{text}");
        let end = request(&subscription, false).unwrap();
        assert_eq!(end.intent, Intent::Unsubscribe);
    }
}
