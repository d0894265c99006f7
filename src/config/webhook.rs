//! `webhook` of a feed: where its changes are delivered, and what they are signed with.

use super::access::secret;
use super::kinds::Kind;
use super::value::ConfigNode;
use super::web::feed_address;
use tidegate_core::model::SecretSource;
use url::Url;

/// What is to be written.
const WANTED: &str = "{ url = \"https://example.org/hook\", secret = { file = \"…\" } }";

/// Where changes of a feed are delivered as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebhookConfig {
    pub url: Url,
    /// What deliveries are signed with; read at the start and whenever the configuration is.
    pub secret: SecretSource,
}

/// `{ url = …, secret = … }`.
pub(super) fn webhook() -> Kind<WebhookConfig> {
    Kind::new("`{ url, secret }`, an address and a secret", read).secret()
}

fn read(node: &ConfigNode<'_>) -> Result<WebhookConfig, String> {
    let [Some(url), Some(signing)] = node.keys(["url", "secret"], WANTED)? else {
        return Err(format!("needs both url and secret; write {WANTED}"));
    };
    let text = url.text().map_err(|_| format!("has a url that {}", url.refusal(WANTED)))?;
    let url = feed_address(text).map_err(|error| format!("has a url that is none: {error}"))?;
    let secret = secret(signing, false).map_err(|said| format!("has a secret that {said}"))?;
    Ok(WebhookConfig { url, secret })
}
