//! A certificate of the gateway's own from an authority, by ACME (RFC 8555). Each name is proved by a handshake
//! that the authority makes with the gateway (tls-alpn-01, RFC 8737).
//!
//! The protocol is a crate's; here is what is asked for, and in which order. What is absent: when a certificate is due,
//! where it is kept, sockets.

mod client;

use self::client::AuthorityClient;
use crate::fetch::{ApiClient, FetchError};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How long one step of the authority is waited for: that it has looked at the names, that it has signed.
const STEP_TIME: Duration = Duration::from_secs(180);
/// The pause before it is first asked whether a step is done; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// What the kinds of problems begin with (RFC 8555 section 6.7).
const PROBLEMS: &str = "urn:ietf:params:acme:error:";

/// What proves names, by name: SHA-256 of the key authorization (RFC 8737 section 3).
pub type NameDigests = HashMap<String, [u8; 32]>;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The authority is not reached, or refuses.
    #[error("the authority {doing}")]
    Authority {
        /// What it did not do.
        doing: &'static str,
        /// In its own words, or why it was not reached.
        #[source]
        source: Error,
    },
    /// It did not find the gateway at these names.
    #[error("the authority has no proof that {} this gateway's: {why}", are(names))]
    Unproved {
        names: Vec<String>,
        /// In its own words, for each.
        why: String,
    },
    /// It knows no challenge that the gateway answers.
    #[error(
        "the authority does not take tls-alpn-01 as proof of {name}, which is all that is answered here"
    )]
    NoChallenge { name: String },
    /// What proves the names cannot be shown.
    #[error("what proves the names cannot be shown: {0}")]
    NotShown(String),
    /// The order came to another end than a certificate.
    #[error("the order ended as {0:?}")]
    Ended(OrderStatus),
    /// What was kept of the account cannot be read.
    #[error("the account is damaged")]
    Account(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl AcmeError {
    /// Whether the authority says that it was asked too often (RFC 8555 section 6.6).
    pub fn is_rate_limited(&self) -> bool {
        self.is_problem("rateLimited")
    }

    /// Whether it does not know the account (RFC 8555 section 7.3.1).
    pub fn is_unknown_account(&self) -> bool {
        self.is_problem("accountDoesNotExist")
    }

    /// Whether the authority answered with a problem of this kind (RFC 8555 section 6.7).
    fn is_problem(&self, kind: &str) -> bool {
        let Self::Authority { source: Error::Api(problem), .. } = self else {
            return false;
        };
        let said = problem.r#type.as_deref().and_then(|said| said.strip_prefix(PROBLEMS));
        said == Some(kind)
    }
}

fn are(names: &[String]) -> String {
    match names {
        [name] => format!("{name} is"),
        names => format!("{} are", names.join(", ")),
    }
}

fn failed(doing: &'static str) -> impl Fn(Error) -> AcmeError {
    move |source| AcmeError::Authority { doing, source }
}

/// An authority.
pub struct Authority {
    directory: String,
    client: Arc<ApiClient>,
}

impl Authority {
    /// The one with this directory. `ca_file`: certificates that are believed beside the system's.
    pub fn new(directory: &Url, ca_file: Option<PathBuf>) -> Result<Self, FetchError> {
        let client = Arc::new(ApiClient::new(directory, None, ca_file)?);
        Ok(Self { directory: directory.to_string(), client })
    }

    fn client(&self) -> Box<AuthorityClient> {
        Box::new(AuthorityClient(Arc::clone(&self.client)))
    }

    /// Makes an account, whose owner agrees to the terms of service; and what is to be kept of it, a secret.
    /// `contact`: an address of mail.
    pub async fn new_account(
        &self,
        contact: Option<&str>,
    ) -> Result<(AcmeAccount, String), AcmeError> {
        let contact = contact.map(|address| format!("mailto:{address}"));
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        let asked = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let made =
            Account::builder_with_http(self.client()).create(&asked, self.directory.clone(), None);
        let (account, credentials) = made.await.map_err(failed("made no account"))?;
        let kept = serde_json::to_string(&credentials);
        let kept = kept.map_err(|error| AcmeError::Account(error.into()))?;
        Ok((AcmeAccount(account), kept))
    }

    /// An account as it was kept.
    pub async fn account(&self, kept: &str) -> Result<AcmeAccount, AcmeError> {
        let credentials: Result<AccountCredentials, _> = serde_json::from_str(kept);
        let credentials = credentials.map_err(|error| AcmeError::Account(error.into()))?;
        let opened = Account::builder_with_http(self.client()).from_credentials(credentials).await;
        opened.map(AcmeAccount).map_err(|error| match error {
            error @ (Error::KeyRejected | Error::Crypto) => AcmeError::Account(error.into()),
            error => failed("does not answer")(error),
        })
    }
}

/// An account with an authority.
pub struct AcmeAccount(Account);

impl AcmeAccount {
    /// Gets a certificate for these names, in PEM: its key, it, and those that lead to its root. `show` has handshakes
    /// prove these names from then on.
    pub async fn order(
        &self,
        names: &[String],
        show: &(dyn Fn(NameDigests) -> Result<(), String> + Send + Sync),
    ) -> Result<String, AcmeError> {
        let names: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
        let ordered = self.0.new_order(&NewOrder::new(&names)).await;
        let mut order = ordered.map_err(failed("took no order"))?;
        let steps = RetryPolicy::new().initial_delay(FIRST_PAUSE).timeout(STEP_TIME);
        // What was proved lately is not asked for again.
        if order.state().status == OrderStatus::Pending {
            prove(&mut order, show).await?;
            let looked = order.poll_ready(&steps).await;
            match (looked, order.state().status) {
                (Ok(OrderStatus::Ready), _) => {}
                (_, OrderStatus::Invalid) => return Err(unproved(&mut order).await),
                (Ok(other), _) => return Err(AcmeError::Ended(other)),
                (Err(error), _) => return Err(failed("did not look at the names")(error)),
            }
        }
        let key = order.finalize().await.map_err(failed("does not sign"))?;
        let chain = order.poll_certificate(&steps).await.map_err(failed("has not signed"))?;
        Ok(key + &chain)
    }
}

/// Shows what proves the names of an order, and says that it may be looked at.
async fn prove(
    order: &mut Order,
    show: &(dyn Fn(NameDigests) -> Result<(), String> + Send + Sync),
) -> Result<(), AcmeError> {
    let unlisted = failed("does not say what is to be proved");
    // Everything is shown before anything is looked at.
    let mut digests = NameDigests::new();
    let mut names = order.authorizations();
    while let Some(name) = names.next().await {
        let mut name = name.map_err(&unlisted)?;
        if name.status != AuthorizationStatus::Pending {
            continue;
        }
        let shown = name.identifier().to_string();
        let Some(challenge) = name.challenge(ChallengeType::TlsAlpn01) else {
            return Err(AcmeError::NoChallenge { name: shown });
        };
        let digest = challenge.key_authorization().digest();
        let digest = <[u8; 32]>::try_from(digest.as_ref());
        let digest = digest.map_err(|error| AcmeError::NotShown(error.to_string()))?;
        digests.insert(shown.to_ascii_lowercase(), digest);
    }
    show(digests).map_err(AcmeError::NotShown)?;
    let mut names = order.authorizations();
    while let Some(name) = names.next().await {
        let mut name = name.map_err(&unlisted)?;
        if name.status == AuthorizationStatus::Pending
            && let Some(mut challenge) = name.challenge(ChallengeType::TlsAlpn01)
        {
            challenge.set_ready().await.map_err(failed("does not look at a name"))?;
        }
    }
    Ok(())
}

/// Which names an authority found no proof of, and why.
async fn unproved(order: &mut Order) -> AcmeError {
    let (mut unproved, mut why) = (Vec::new(), Vec::new());
    let mut names = order.authorizations();
    while let Some(name) = names.next().await {
        let Ok(mut name) = name else { break };
        // What it found stands in the authorization as it is now.
        if name.refresh().await.is_err() {
            break;
        }
        let error = name.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(error) = error {
            why.push(error.to_string());
            unproved.push(name.identifier().to_string());
        }
    }
    match unproved.is_empty() {
        true => AcmeError::Ended(OrderStatus::Invalid),
        false => AcmeError::Unproved { names: unproved, why: why.join("; ") },
    }
}

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used)]
impl AcmeError {
    /// A refusal of this kind.
    pub fn refused(kind: &str) -> Self {
        let problem = format!("{{\"type\": \"{PROBLEMS}{kind}\", \"detail\": \"no\"}}");
        let source = Error::Api(serde_json::from_str(&problem).unwrap());
        Self::Authority { doing: "took no order", source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_authority_refuses_for_is_known() {
        assert!(AcmeError::refused("rateLimited").is_rate_limited());
        assert!(!AcmeError::refused("rateLimited").is_unknown_account());
        assert!(AcmeError::refused("accountDoesNotExist").is_unknown_account());
        for other in [AcmeError::refused("malformed"), AcmeError::Ended(OrderStatus::Invalid)] {
            assert!(!other.is_rate_limited() && !other.is_unknown_account());
        }
    }

    #[tokio::test]
    async fn an_authority_on_this_machine_is_asked_and_a_damaged_account_is_told() {
        // Nothing listens there.
        let directory = Url::parse("https://127.0.0.1:1/directory").unwrap();
        let authority = Authority::new(&directory, None).unwrap();
        let made = authority.new_account(None).await.err().unwrap();
        let AcmeError::Authority { doing: "made no account", source: Error::Other(source) } = made
        else {
            panic!("{made:?}")
        };
        let refused = source.downcast_ref::<FetchError>();
        assert!(matches!(refused, Some(FetchError::Connect { .. })), "{refused:?}");
        for kept in ["half of a", r#"{"id": "a", "key_pkcs8": "AAAA", "directory": null}"#] {
            let opened = authority.account(kept).await;
            assert!(matches!(opened, Err(AcmeError::Account(_))), "{kept}");
        }
    }
}
