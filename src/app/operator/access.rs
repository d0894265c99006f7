//! What a publisher is asked with, as the API gives it.

use super::AdminService;
use std::sync::PoisonError;
use tidegate_core::model::{FeedAccess, FeedRecord, FeedStanding, ProxyRoute, SecretSource};
use tidegate_net::fetch;
use tidegate_serve::OperatorError;
use url::Url;

impl AdminService {
    /// What is wanted for a feed, with the secrets that are stored already in their places. Those go
    /// where they went: whoever may change a feed must not learn by it what he was not shown.
    pub(super) fn wanted_access(
        &self,
        access: FeedAccess,
        url: &str,
        before: Option<&FeedRecord>,
    ) -> Result<Option<Box<FeedAccess>>, OperatorError> {
        let bad = |said: String| Err(OperatorError::BadRequest(said));
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        let is_named = |(_, source): &(String, &SecretSource)| {
            matches!(source, SecretSource::File(_) | SecretSource::Env(_))
        };
        if let (false, Some((name, _))) =
            (config.polling.api_secrets, access.secrets().into_iter().find(is_named))
        {
            return bad(format!(
                "{name}: a file or a variable can be named here only where the configuration says \
                 polling.api_secrets = true; give the secret itself, or put the feed into the \
                 configuration"
            ));
        }
        let known_route = before.and_then(|before| before.access.as_ref()?.route.as_ref());
        if let Some(ProxyRoute::Proxy(proxy)) = &access.route {
            let is_named = config.polling.proxy.as_ref().is_some_and(|own| own.url == proxy.url)
                || matches!(known_route, Some(ProxyRoute::Proxy(known)) if known.url == proxy.url);
            if !is_named && !fetch::admits_proxy(&proxy.url, &config.polling.allow_private) {
                return bad(
                    "proxy: one that is named here is at a public address, written as such, or at a \
                     host and port that polling.allow_private lists; or put the feed into the \
                     configuration"
                        .to_owned(),
                );
            }
        }
        if !access.lacks_secrets() {
            return Ok(access.or_none());
        }
        let before = before.filter(|before| before.standing != FeedStanding::Gone);
        let known = before.and_then(|before| before.access.as_deref());
        if let Some(before) = before {
            let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
            if origin(&before.url) != origin(url) {
                return bad("url is of another origin than the secrets that are stored are for; \
                            give them again"
                    .to_owned());
            }
        }
        let mut filled = access;
        if let Err(name) = filled.fill_in(known) {
            return bad(format!("{name}: none is stored; give it"));
        }
        if known.is_some_and(|known| known.route != filled.route) {
            return bad("proxy is another one, which would see the secrets that are stored; give \
                        them again"
                .to_owned());
        }
        Ok(filled.or_none())
    }
}
