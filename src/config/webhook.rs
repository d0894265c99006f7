//! `webhook` of a feed: where its changes are delivered, and what they are signed with.

use super::access::secret;
use super::kinds::{Kind, Mistakes};
use super::value::{ConfigNode, Value};
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
pub(super) struct Webhook;

impl Kind for Webhook {
    type Out = WebhookConfig;

    fn read(&self, node: &ConfigNode<'_>, mistakes: &mut Mistakes) -> Option<WebhookConfig> {
        read(node).map_err(|said| mistakes.push((node.at, said))).ok()
    }

    fn allowed(&self) -> String {
        "`{ url, secret }`, an address and a secret".to_owned()
    }

    fn is_secret(&self) -> bool {
        true
    }
}

fn read(node: &ConfigNode<'_>) -> Result<WebhookConfig, String> {
    let Value::Table(entries) = &node.value else {
        return Err(format!("is a {}; write {WANTED}", node.value.kind()));
    };
    if let Some(other) = entries.iter().find(|entry| !["url", "secret"].contains(&entry.key)) {
        return Err(format!("has a key that is neither url nor secret: {:?}", other.key));
    }
    let of = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node);
    let (Some(url), Some(signing)) = (of("url"), of("secret")) else {
        return Err(format!("needs both url and secret; write {WANTED}"));
    };
    let Value::Text(url) = &url.value else {
        return Err(format!("has a url that is a {}; write {WANTED}", url.value.kind()));
    };
    let url = feed_address(url).map_err(|error| format!("has a url that is none: {error}"))?;
    let secret = secret(signing, false).map_err(|said| format!("has a secret that {said}"))?;
    Ok(WebhookConfig { url, secret })
}
