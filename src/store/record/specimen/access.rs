//! Random ways of asking a publisher.

use super::text;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use tidegate_core::model::*;

fn source() -> impl Strategy<Value = SecretSource> {
    prop_oneof![
        "[ -~]{0,20}".prop_map(|text| SecretSource::Literal(SecretText::new(&text).unwrap())),
        text().prop_map(SecretSource::File),
        "[A-Z_]{1,9}".prop_map(SecretSource::Env),
        Just(SecretSource::LeftOut),
    ]
}

fn pair() -> impl Strategy<Value = UserPassword> {
    (source(), source()).prop_map(|(user, password)| UserPassword { user, password })
}

pub(super) fn any_access() -> impl Strategy<Value = Option<Box<FeedAccess>>> {
    let login = prop_oneof![pair().prop_map(Login::Basic), source().prop_map(Login::Bearer)];
    let proxy = (text(), of(pair().prop_map(Box::new)))
        .prop_map(|(url, login)| ProxyRoute::Proxy(ProxyAddress { url, login }));
    let route = prop_oneof![Just(ProxyRoute::Direct), proxy];
    let headers = vec(("[A-Za-z-]{1,12}", source()), 0..3);
    let access = (headers, of(source()), of(text()), of(login), of(route)).prop_map(
        |(headers, cookie, user_agent, login, route)| {
            Box::new(FeedAccess { headers, cookie, user_agent, login, route })
        },
    );
    of(access)
}
