//! What the operator says of a feed: as it is taken, and as it is shown. Of a secret is shown that there is one and
//! where it is from, and never what it is; `PUT` takes that back as it stands here.

use super::{object, optional};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidegate_core::model::{
    Deletions, FeedAccess, FeedName, FeedRecord, Ignore, Login, Order, Probing, ProxyAddress,
    ProxyRoute, SecretSource, UserPassword,
};
use tidegate_status::describe;
use tidegate_status::schema::{self, text, words};
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};

describe! {
    /// How the document runs.
    OrderWord: words(Order::ALL.map(Order::name));
    /// Which missing items' own addresses are asked whether they are gone.
    ProbeChoice: ObjectBuilder::new().schema_type(SchemaType::AnyValue)
        .enum_values(Some([json!(true), json!(false), json!("doubts")]));
    /// A duration: 90s, 5m, 24h, 30d.
    pub(crate) Interval: text().pattern(Some("^[0-9]+[smhd]$")).examples(["1h"]);
    /// What becomes of conflicts.
    ConflictRule: text().pattern(Some("^(keep|winner|prefer:.+)$"));
    /// The field of an entry.
    FieldName: text().min_length(Some(1));
    /// Always true.
    pub(crate) True: ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true]));
    /// Where a secret is.
    SecretPlace: words(["literal", "file", "env"]);
    /// The keys of `FeedSettings`; null where one goes back to its default.
    pub(crate) FeedPatch: ObjectBuilder::new().schema_type(Type::Object);
}

/// A duration as the configuration writes it: in the largest unit that is exact.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let exact = units.iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    let (unit, suffix) = exact.copied().unwrap_or((1, "s"));
    format!("{}{suffix}", seconds / unit)
}

/// What the operator says of a feed, as `PUT` takes it.
#[derive(Serialize, ToSchema)]
#[schema(as = FeedOptions)]
pub(crate) struct ShownOptions {
    complete: bool,
    deletions: Deletions,
    #[schema(value_type = OrderWord)]
    order: &'static str,
    #[schema(value_type = ProbeChoice)]
    probe: Value,
    backfill: bool,
    secret: Option<bool>,
    #[schema(minimum = 1)]
    items: Option<u32>,
    ignore: Vec<IgnoredField>,
    #[schema(value_type = Option<Interval>)]
    min_interval: Option<String>,
    #[schema(value_type = Option<Interval>)]
    max_interval: Option<String>,
    local: bool,
    title: Option<String>,
    sources: Vec<FeedName>,
    shares_with: Vec<FeedName>,
    #[schema(value_type = ConflictRule)]
    conflicts: String,
    private: bool,
    add_feeds: bool,
    #[serde(flatten)]
    access: ShownAccess,
}

impl ShownOptions {
    /// What is said of a feed.
    pub(crate) fn new(record: &FeedRecord) -> Self {
        let (options, sharing) = (&record.options, &record.options.sharing);
        Self {
            complete: options.complete,
            deletions: options.deletions,
            order: options.order.name(),
            probe: match options.probe {
                Probing::Off => json!(false),
                Probing::All => json!(true),
                Probing::Doubts => json!("doubts"),
            },
            backfill: options.backfill,
            secret: options.secret,
            items: options.items,
            ignore: options.ignore.iter().map(IgnoredField::from).collect(),
            min_interval: options.min_interval.map(duration),
            max_interval: options.max_interval.map(duration),
            local: sharing.local,
            title: sharing.title.clone(),
            sources: sharing.sources.clone(),
            shares_with: sharing.shares_with.clone(),
            conflicts: sharing.conflicts.to_string(),
            private: record.private,
            add_feeds: record.adds_feeds,
            access: ShownAccess::new(record.access.as_deref()),
        }
    }
}

/// What a feed's publisher is asked with.
#[derive(Serialize, ToSchema)]
struct ShownAccess {
    headers: BTreeMap<String, StoredSecret>,
    cookie: Option<StoredSecret>,
    user_agent: Option<String>,
    basic: Option<StoredLogin>,
    bearer: Option<StoredSecret>,
    proxy: Option<ShownProxy>,
}

impl ShownAccess {
    fn new(access: Option<&FeedAccess>) -> Self {
        let nothing = FeedAccess::default();
        let access = access.unwrap_or(&nothing);
        let (basic, bearer) = match &access.login {
            Some(Login::Basic(login)) => (Some(login.into()), None),
            Some(Login::Bearer(token)) => (None, Some(token.into())),
            None => (None, None),
        };
        let secret = |(name, source): &(String, SecretSource)| (name.clone(), source.into());
        Self {
            headers: access.headers.iter().map(secret).collect(),
            cookie: access.cookie.as_ref().map(StoredSecret::from),
            user_agent: access.user_agent.clone(),
            basic,
            bearer,
            proxy: access.route.as_ref().map(ShownProxy::from),
        }
    }
}

/// A field whose changes make no version, or a pattern in one.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Ignored)]
enum IgnoredField {
    #[schema(value_type = FieldName)]
    Field(String),
    Pattern {
        #[schema(value_type = FieldName)]
        field: String,
        #[schema(value_type = Option<String>)]
        pattern: String,
    },
}

impl From<&Ignore> for IgnoredField {
    fn from(ignore: &Ignore) -> Self {
        let field = ignore.field().to_owned();
        match ignore.pattern() {
            Some(pattern) => Self::Pattern { field, pattern: pattern.to_owned() },
            None => Self::Field(field),
        }
    }
}

/// That there is a secret, and where it is from.
#[derive(Serialize, ToSchema)]
struct StoredSecret {
    #[schema(value_type = True)]
    stored: bool,
    #[schema(value_type = SecretPlace)]
    from: &'static str,
}

impl From<&SecretSource> for StoredSecret {
    fn from(source: &SecretSource) -> Self {
        Self { stored: true, from: source.kind() }
    }
}

/// That there are a user and a password.
#[derive(Serialize, ToSchema)]
struct StoredLogin {
    user: StoredSecret,
    password: StoredSecret,
}

impl From<&UserPassword> for StoredLogin {
    fn from(login: &UserPassword) -> Self {
        Self { user: (&login.user).into(), password: (&login.password).into() }
    }
}

/// The way to a publisher: `none`, the address of a proxy, or that with a login.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ShownProxy {
    Address(String),
    WithLogin(ProxyWithLogin),
}

#[derive(Serialize, ToSchema)]
struct ProxyWithLogin {
    url: String,
    #[serde(flatten)]
    login: StoredLogin,
}

impl From<&ProxyRoute> for ShownProxy {
    fn from(route: &ProxyRoute) -> Self {
        match route {
            ProxyRoute::Direct => Self::Address("none".to_owned()),
            ProxyRoute::Proxy(ProxyAddress { url, login: None }) => Self::Address(url.clone()),
            ProxyRoute::Proxy(ProxyAddress { url, login: Some(login) }) => {
                Self::WithLogin(ProxyWithLogin { url: url.clone(), login: (&**login).into() })
            }
        }
    }
}

/// The keys of a `[[feed]]` table but its name. A key that is absent has its default.
#[derive(ToSchema)]
#[schema(as = FeedSettings)]
#[expect(dead_code, reason = "they are read key by key, so that a mistake names its key")]
pub(crate) struct TakenSettings {
    /// The upstream's address, http or https. Only a local feed may have none.
    #[schema(format = "uri", example = "https://example.org/atom.xml")]
    url: Option<String>,
    /// Whether the document lists every item.
    #[schema(required = false)]
    complete: bool,
    #[schema(required = false)]
    deletions: Deletions,
    #[schema(required = false)]
    order: OrderWord,
    #[schema(required = false)]
    probe: ProbeChoice,
    /// Whether older documents are read once.
    #[schema(required = false)]
    backfill: bool,
    /// Whether the address is a secret.
    secret: Option<bool>,
    #[schema(required = false)]
    headers: FeedHeaders,
    cookie: Option<Secret>,
    basic: Option<SecretLogin>,
    bearer: Option<Secret>,
    #[schema(min_length = 1, max_length = 256)]
    user_agent: Option<String>,
    proxy: Option<Proxy>,
    #[schema(required = false)]
    ignore: BTreeSet<IgnoredField>,
    #[schema(minimum = 1)]
    items: Option<u32>,
    min_interval: Option<Interval>,
    max_interval: Option<Interval>,
    /// Whether its items are made here.
    #[schema(required = false)]
    local: bool,
    #[schema(min_length = 1, max_length = 500)]
    title: Option<String>,
    #[schema(required = false)]
    shares_with: BTreeSet<schema::FeedName>,
    /// Whether only readers with a token may read it.
    private: Option<bool>,
    /// Whether the feeds of the subscription list at url are feeds here, and follow it.
    #[schema(required = false)]
    add_feeds: bool,
    #[schema(required = false)]
    conflicts: ConflictRule,
}

describe! {
    /// A secret. What is stored is never shown: answers have `stored` and `from`, and taking that back keeps it.
    Secret: OneOfBuilder::new()
        .item(text().min_length(Some(1)))
        .item(object("file", text().min_length(Some(1)).max_length(Some(4096))))
        .item(object("env", text().max_length(Some(128)).pattern(Some("^[A-Za-z_][A-Za-z0-9_]*$"))))
        .item(object("stored", True::schema()).property("from", text()));
    /// The user and the password of a login.
    SecretLogin: object("user", Ref::from_schema_name("Secret"))
        .property("password", Ref::from_schema_name("Secret"))
        .required("password");
    /// Further headers of requests, with their values.
    FeedHeaders: ObjectBuilder::new().schema_type(Type::Object).max_properties(Some(FeedAccess::HEADERS_LIMIT))
        .additional_properties(Some(Ref::from_schema_name("Secret")));
    /// The way to the publisher: `none`, the address of a proxy, or that with a login.
    Proxy: OneOfBuilder::new().item(text()).item(
        object("url", text())
            .property("user", Ref::from_schema_name("Secret"))
            .property("password", Ref::from_schema_name("Secret")),
    );
    /// What a feed is added with; its `name` is one made of its address where it is absent.
    pub(crate) NewFeed: AllOfBuilder::new()
        .item(Ref::from_schema_name("FeedSettings"))
        .item(optional("name", schema::FeedName::schema()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::value;
    use tidegate_config::feed_settings;
    use tidegate_core::model::SecretText;

    #[test]
    fn durations_and_what_is_ignored_are_written_as_they_are_read() {
        for (seconds, text) in
            [(0, "0s"), (90, "90s"), (300, "5m"), (7200, "2h"), (86_400, "1d"), (90_000, "25h")]
        {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
            assert_eq!(tidegate_config::duration(text).unwrap(), Duration::from_secs(seconds));
        }
        // So is what is ignored.
        let list = json!(["media:keywords", { "field": "description", "pattern": "[0-9]+" }]);
        let Value::Object(settings) = json!({ "ignore": list }) else { panic!() };
        let read = feed_settings(&settings).unwrap().options.ignore;
        assert_eq!(value(&read.iter().map(IgnoredField::from).collect::<Vec<_>>()), list);
    }

    fn literal(text: &str) -> SecretSource {
        SecretSource::Literal(SecretText::new(text).unwrap())
    }

    fn pair_of(text: &str) -> UserPassword {
        UserPassword { user: literal(text), password: literal(text) }
    }

    #[test]
    fn nothing_secret_is_shown_and_all_of_it_can_be_put_back() {
        let shown = |access: Option<&FeedAccess>| value(&ShownAccess::new(access));
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
