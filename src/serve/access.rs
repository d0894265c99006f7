//! What a feed's publisher is asked with, as the API shows it: that there is a secret and where it is
//! from, and never what it is. `PUT` takes it back as it stands here.

use super::json::with;
use serde_json::{Map, Value, json};
use tidegate_core::model::{
    FeedAccess, Login, ProxyAddress, ProxyRoute, SecretSource, UserPassword,
};

/// The keys of a feed's configuration that say how its publisher is asked.
pub(super) fn shown(access: Option<&FeedAccess>) -> Value {
    let nothing = FeedAccess::default();
    let access = access.unwrap_or(&nothing);
    let headers: Map<String, Value> =
        access.headers.iter().map(|(name, source)| (name.clone(), secret(source))).collect();
    let (basic, bearer) = match &access.login {
        Some(Login::Basic(login)) => (pair(login), Value::Null),
        Some(Login::Bearer(token)) => (Value::Null, secret(token)),
        None => (Value::Null, Value::Null),
    };
    json!({
        "headers": headers,
        "cookie": access.cookie.as_ref().map(secret),
        "user_agent": access.user_agent,
        "basic": basic,
        "bearer": bearer,
        "proxy": match &access.route {
            None => Value::Null,
            Some(ProxyRoute::Direct) => json!("none"),
            Some(ProxyRoute::Proxy(address)) => proxy(address),
        },
    })
}

fn secret(source: &SecretSource) -> Value {
    json!({ "stored": true, "from": source.kind() })
}

fn pair(login: &UserPassword) -> Value {
    json!({ "user": secret(&login.user), "password": secret(&login.password) })
}

fn proxy(address: &ProxyAddress) -> Value {
    match &address.login {
        None => json!(address.url),
        Some(login) => with(json!({ "url": address.url }), pair(login)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::feed_settings;
    use tidegate_core::model::SecretText;

    fn literal(text: &str) -> SecretSource {
        SecretSource::Literal(SecretText::new(text).unwrap())
    }

    fn pair_of(text: &str) -> UserPassword {
        UserPassword { user: literal(text), password: literal(text) }
    }

    #[test]
    fn nothing_secret_is_shown_and_all_of_it_can_be_put_back() {
        let proxy = ProxyAddress {
            url: "http://proxy.example:3128".to_owned(),
            login: Some(Box::new(pair_of("hush"))),
        };
        for login in [Login::Basic(pair_of("hush")), Login::Bearer(literal("hush"))] {
            for route in [None, Some(ProxyRoute::Direct), Some(ProxyRoute::Proxy(proxy.clone()))] {
                let access = FeedAccess {
                    headers: vec![("X-Key".to_owned(), SecretSource::File("/hush".to_owned()))],
                    cookie: Some(SecretSource::Env("HUSH".to_owned())),
                    user_agent: Some("reader".to_owned()),
                    login: Some(login.clone()),
                    route,
                };
                let shown = shown(Some(&access));
                assert!(!shown.to_string().to_lowercase().contains("hush"), "{shown}");
                let mut read = feed_settings(shown.as_object().unwrap()).unwrap().access;
                assert_eq!(read.fill_in(Some(&access)), Ok(()));
                assert_eq!(read, access);
            }
        }
        let nothing = shown(None);
        let read = feed_settings(nothing.as_object().unwrap()).unwrap();
        assert_eq!(read.access, FeedAccess::default());
    }
}
