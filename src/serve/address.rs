//! The addresses of this gateway, and how those of upstreams may be shown.

use super::origins::FeedPlaces;
use super::query::{CONTAINERS, DIALECTS, word};
use super::{AudienceKey, KnownReader, ServeSettings};
use arc_swap::ArcSwap;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tidegate_core::model::{
    ArchiveId, EndpointId, FeedName, FeedRecord, Format, ShownAddress, SupId, SupIdBasis, SyncId,
    Tick, Time,
};
use tidegate_core::xml::address::percent_encoded;
use tidegate_format::render::{Addresses, Cloud, Container, Dialect, ViewKind};
use url::Url;

/// How many bytes of the hash make a SUP id: 64 bits.
const SUP_ID_BYTES: usize = 8;

/// Where readers register with the cloud.
pub(super) const CLOUD_PATH: &str = "/rsscloud/pleaseNotify";

/// The form of a document: what `as` and `sx` choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DocumentForm {
    pub(super) dialect: Dialect,
    /// The container, where it is not the feed's own.
    pub(super) container: Option<Container>,
}

impl DocumentForm {
    /// The same of a feed of a format: its own container is named no more.
    pub(super) fn within(self, format: Format) -> Self {
        let container = self.container.filter(|container| *container != Container::of(format));
        Self { container, ..self }
    }

    /// The container of a feed of a format.
    pub(super) fn container(self, format: Format) -> Container {
        self.container.unwrap_or(Container::of(format))
    }
}

/// The addresses that documents, headers and pages name.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) base: String,
    pub(super) endpoint: EndpointId,
    /// What SUP ids are made of.
    sup_ids: SupIdBasis,
    pub(super) config: Arc<ServeSettings>,
    /// The reader whose own it is, below the path of the token.
    pub(super) reader: Option<Arc<KnownReader>>,
    /// The feeds whose reader view has an address of its own.
    pub(super) places: Arc<ArcSwap<FeedPlaces>>,
}

/// In which form a feed of changes is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ChangeFeedForm {
    Atom,
    JsonFeed,
    Page,
}

impl Site {
    pub(super) fn new(
        config: Arc<ServeSettings>,
        endpoint: EndpointId,
        sup_ids: SupIdBasis,
    ) -> Self {
        let base = config.public_url.trim_end_matches('/').to_owned();
        Self { base, endpoint, sup_ids, config, reader: None, places: Arc::default() }
    }

    /// Whether there are SUP documents.
    fn has_sup(&self) -> bool {
        !self.config.sup.periods.is_empty()
    }

    /// The same site as a reader has it, below a path.
    pub(super) fn below(&self, path: &str, reader: &Arc<KnownReader>) -> Self {
        Self { base: self.at(path), reader: Some(Arc::clone(reader)), ..self.clone() }
    }

    /// Whose site it is, for keys of what is written with its addresses.
    pub(super) fn key(&self) -> AudienceKey {
        self.reader.as_ref().map_or(AudienceKey::Public, |reader| AudienceKey::Reader(reader.id))
    }

    /// Whether a document of a feed leads to a feed that it has items of.
    fn leads_to(&self, source: &FeedName, record: &FeedRecord) -> bool {
        match &self.reader {
            Some(reader) => reader.names(source),
            None => !record.private,
        }
    }

    /// The form of documents in a container when `?sx=` says this of it. Plain XML has the namespace
    /// of FeedSync, the only one that FeedSync for Collections knows (its section 1.1), whatever the
    /// default is, and JSON has none to choose.
    pub(super) fn form(
        &self,
        requested_dialect: Option<Dialect>,
        container: Option<Container>,
    ) -> DocumentForm {
        let dialect = match (container, requested_dialect) {
            (Some(Container::Json), _) | (Some(Container::Pox), None) => Dialect::FeedSync,
            (_, Some(requested_dialect)) => requested_dialect,
            (_, None) => self.config.publish.dialect,
        };
        DocumentForm { dialect, container }
    }

    /// The path below which it is, without a slash at its end; empty where it has a host of its own.
    pub(super) fn path(&self) -> &str {
        let behind = self.base.split_once("://").map_or("", |(_, behind)| behind);
        behind.find('/').and_then(|at| behind.get(at..)).unwrap_or_default()
    }

    /// The address of a path that begins with `/`.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The address of a view. A container and a dialect that are not the default ones stay in the
    /// address, so that a subscriber who follows links keeps them.
    pub(super) fn view(&self, feed: &FeedName, kind: ViewKind, form: DocumentForm) -> String {
        let query = self.query(form);
        let is_default = form == self.form(None, form.container);
        if kind == ViewKind::Reader
            && is_default
            && self.reader.is_none()
            && let Some(address) = self.places.load().address(feed, form.container)
        {
            return address.to_owned();
        }
        let view = match kind {
            ViewKind::Reader => "",
            ViewKind::Sync => "/sync",
            ViewKind::Complete => "/complete",
        };
        format!("{}/feeds/{feed}{view}{query}", self.base)
    }

    /// The address of the feed of a feed's changes.
    pub(super) fn changes(&self, feed: &FeedName, form: ChangeFeedForm) -> String {
        let query = match form {
            ChangeFeedForm::Atom => "",
            ChangeFeedForm::JsonFeed => "?as=jsonfeed",
            ChangeFeedForm::Page => "?as=html",
        };
        format!("{}/feeds/{feed}/changes{query}", self.base)
    }

    /// The id of the feed of a feed's changes: the same wherever this gateway is reached.
    pub(super) fn change_feed_id(&self, feed: &FeedName) -> String {
        format!("urn:tidegate:changes:{}:{feed}", percent_encoded(self.endpoint.as_str()))
    }

    /// The id of the version of an item that was made at a tick, as an entry of that feed.
    pub(super) fn change_entry_id(&self, feed: &FeedName, item: &SyncId, tick: Tick) -> String {
        let item = percent_encoded(item.as_str());
        format!("{}:{item}:{}", self.change_feed_id(feed), tick.update_id())
    }

    /// The address of a view as it was from `shown` on.
    pub(super) fn past(
        &self,
        feed: &FeedName,
        kind: ViewKind,
        form: DocumentForm,
        shown: Time,
        since: Option<Tick>,
    ) -> String {
        let view = self.view(feed, kind, form);
        let joint = if view.contains('?') { '&' } else { '?' };
        let since = since.map(|since| format!("&since={since}")).unwrap_or_default();
        format!("{view}{joint}as-of={shown}{since}")
    }

    /// The address of an archive.
    pub(super) fn archive(&self, feed: &FeedName, id: &ArchiveId, form: DocumentForm) -> String {
        format!("{}/feeds/{feed}/archive/{id}{}", self.base, self.query(form))
    }

    fn query(&self, form: DocumentForm) -> String {
        let container = form.container.map(|of| format!("as={}", word(&CONTAINERS, &of)));
        let is_default = form == self.form(None, form.container);
        let dialect = (!is_default).then(|| format!("sx={}", word(&DIALECTS, &form.dialect)));
        match container.into_iter().chain(dialect).collect::<Vec<_>>().join("&") {
            none if none.is_empty() => none,
            query => format!("?{query}"),
        }
    }

    /// The SUP id of a feed (SUP section 4): opaque, stable, and it gives no address away.
    pub(super) fn sup_id(&self, feed: &FeedName) -> Option<SupId> {
        let mut hash = Sha256::new();
        // No endpoint id is empty, so those of the two kinds differ.
        if self.sup_ids == SupIdBasis::Endpoint {
            hash.update(self.endpoint.as_str());
        }
        // An endpoint id holds no NUL, so two pairs never hash the same text.
        hash.update([0]);
        hash.update(feed.as_str());
        let digest = hash.finalize();
        digest.get(..SUP_ID_BYTES).and_then(|first| SupId::new(&HEXLOWER.encode(first)).ok())
    }

    /// The same, where there is a SUP document.
    pub(super) fn announced_id(&self, feed: &FeedName) -> Option<SupId> {
        self.has_sup().then(|| self.sup_id(feed)).flatten()
    }

    /// Where the feed's updates are announced: the SUP document, and the feed's id in it
    /// (SUP section 6.1).
    pub(super) fn sup(&self, feed: &FeedName) -> Option<String> {
        self.sup_id(feed).map(|id| format!("{}/sup.json#{id}", self.base))
    }

    /// Where readers register with the cloud.
    fn registrar(&self) -> Option<Cloud> {
        let url = Url::parse(&self.at(CLOUD_PATH)).ok()?;
        let (domain, port) = (url.host_str()?.to_owned(), url.port_or_known_default()?);
        Some(Cloud { domain, port, path: url.path().to_owned() })
    }

    /// Where a feed comes from, as far as it may be shown, and what its references are relative to:
    /// its upstream, or this gateway where it has none.
    fn upstream(
        &self,
        record: &FeedRecord,
        form: DocumentForm,
        site: Option<&str>,
    ) -> (String, Option<String>) {
        // A publisher's site is where its readers have it, not where the gateway asks it.
        if let Some(base) = self.places.load().base(&record.name) {
            return (base.to_owned(), None);
        }
        // What is written here is relative to here, whoever else shares it.
        if record.has_upstream() && !record.options.sharing.local {
            let shown = record.shown();
            (shown.base(site), shown.link().map(str::to_owned))
        } else {
            (self.view(&record.name, ViewKind::Reader, form), None)
        }
    }

    /// What a document of this feed names; `site` is the page of its channel.
    pub(super) fn addresses(
        &self,
        record: &FeedRecord,
        form: DocumentForm,
        site: Option<&str>,
    ) -> Addresses {
        let feed = &record.name;
        let (upstream, via) = self.upstream(record, form, site);
        Addresses {
            reader: self.view(feed, ViewKind::Reader, form),
            sync: self.view(feed, ViewKind::Sync, form),
            complete: self.view(feed, ViewKind::Complete, form),
            upstream,
            via,
            sup: self.has_sup().then(|| self.sup(feed)).flatten(),
            hub: self.config.websub.hub.then(|| self.at("/websub")),
            absolute: self.config.publish.absolute_urls,
            keeps_new_feed_url: self.config.publish.keep_new_feed_url,
            aggregated: record
                .options
                .sharing
                .sources
                .iter()
                .filter(|source| self.leads_to(source, record))
                .map(|source| (source.to_string(), self.view(source, ViewKind::Sync, form)))
                .collect(),
            cloud: self.config.has_cloud().then(|| self.registrar()).flatten(),
        }
    }
}

/// The address of an item's page, from the root. A sync id may hold what has a meaning in an address.
pub fn item_page(feed: &FeedName, id: &SyncId) -> String {
    format!("/feeds/{feed}/items/{}", percent_encoded(id.as_str()))
}

/// An address that an upstream led to, fit to be shown to anybody. `secret` is what the operator says
/// of the upstream.
pub(super) fn shown(address: &str, secret: Option<bool>) -> String {
    ShownAddress::new(address, secret).text().to_owned()
}

/// An address as a link that a browser may follow; `None` for scripts and the like.
pub(super) fn followable(address: &str) -> Option<&str> {
    let url = Url::parse(address).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site_at(endpoint: &str, public_url: &str, dialect: Dialect) -> Site {
        let mut config = crate::tests::settings();
        (config.public_url, config.publish.dialect) = (public_url.to_owned(), dialect);
        Site::new(Arc::new(config), EndpointId::own(endpoint).unwrap(), SupIdBasis::Endpoint)
    }

    #[test]
    fn a_collection_has_a_dialect_of_its_own() {
        let news = FeedName::new("news").unwrap();
        let base = "https://feeds.example.org/feeds/news";
        for (container, dialect, query) in [
            (Container::Pox, None, "?as=pox"),
            (Container::Pox, Some(Dialect::FeedSync), "?as=pox"),
            (Container::Pox, Some(Dialect::Sse), "?as=pox&sx=sse"),
            (Container::Json, None, "?as=json"),
            (Container::Json, Some(Dialect::Sse091), "?as=json"),
            (Container::Rss, None, "?as=rss"),
        ] {
            for default in [Dialect::Sse, Dialect::FeedSync, Dialect::Sse091] {
                let site = site_at("here", "https://feeds.example.org/", default);
                let form = site.form(dialect, Some(container));
                assert_eq!(site.view(&news, ViewKind::Reader, form), format!("{base}{query}"));
            }
        }
    }

    #[test]
    fn sup_ids_survive_another_endpoint_where_it_is_random() {
        let of = |endpoint: &str, feed: &str, sup_ids| {
            let site = Site { sup_ids, ..site_at(endpoint, "http://x", Dialect::Sse) };
            site.sup_id(&FeedName::new(feed).unwrap()).unwrap().to_string()
        };
        let id = |endpoint: &str, sup_ids| of(endpoint, "news", sup_ids);
        assert_eq!(id("tg-one", SupIdBasis::Name), id("tg-two", SupIdBasis::Name));
        // As they are published: they must never change.
        assert_eq!(id("tg-one", SupIdBasis::Name), "c75b47ea96d36175");
        assert_eq!(id("here", SupIdBasis::Endpoint), "e405c6250b95ea5e");
        for (endpoint, feed) in [("here", "new"), ("her", "enews"), ("there", "news")] {
            assert_ne!(of(endpoint, feed, SupIdBasis::Endpoint), "e405c6250b95ea5e");
        }
    }

    #[test]
    fn scripts_are_not_followed() {
        assert!(followable("https://example.org/").is_some());
        for bad in ["javascript:alert(1)", "data:text/html,x", "/relative", "", "file:///etc"] {
            assert_eq!(followable(bad), None, "{bad}");
        }
    }
}
