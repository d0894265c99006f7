//! What the command line says over the file.

use super::{Config, FeedConfig, feed_name, without_login};
use std::net::SocketAddr;
use std::path::PathBuf;
use tidegate_core::model::{FeedRecord, FeedSource};
use url::Url;

/// What the command line says over the file; applied anew whenever the file is read again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// The address to listen on.
    pub listen: Option<SocketAddr>,
    /// The data folder.
    pub data: Option<PathBuf>,
    /// The address under which the gateway is reached, checked by [`super::public_address`].
    pub public_url: Option<String>,
    /// All upstreams and callbacks may be at loopback or private addresses.
    pub allow_private: bool,
    /// Feeds to add, named after their addresses.
    pub feeds: Vec<Url>,
}

impl Overrides {
    /// What it says of keys, each by its option, as a variable would say it.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&'static str, (&'static str, String))> {
        let private = self.allow_private.then(|| "true".to_owned());
        let settings = [
            ("server.listen", "--listen", self.listen.map(|listen| listen.to_string())),
            ("server.public_url", "--public-url", self.public_url.clone()),
            ("store.path", "--data", self.data.as_ref().map(|data| data.display().to_string())),
            ("polling.allow_private", "--allow-private", private.clone()),
            ("websub.private_callbacks", "--allow-private", private),
        ];
        settings.into_iter().filter_map(|(key, option, said)| Some((key, (option, said?))))
    }

    /// Adds its feeds to those of the file, and names the data folder as it is: that may be no text.
    pub fn complete(&self, config: &mut Config) {
        if let Some(data) = &self.data {
            config.store.path.clone_from(data);
        }
        for url in &self.feeds {
            add(config, url);
        }
    }
}

/// Adds a feed, unless its address is polled already. What the store says of names is put over that
/// later.
fn add(config: &mut Config, url: &Url) {
    let (url, access) = without_login(url.clone());
    // With other credentials it is another feed.
    let is_other = |feed: &FeedConfig| access.is_some() && feed.access != access;
    if config.feeds.iter().any(|feed| feed.url == url.as_str() && !is_other(feed)) {
        return;
    }
    let name = feed_name(&url, |name| config.feeds.iter().any(|feed| feed.name == *name));
    let record =
        |name| FeedRecord { access, ..FeedRecord::new(name, url, FeedSource::CommandLine) };
    config.feeds.extend(name.map(record).map(FeedConfig::from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checked, Variables, check, check_with};
    use std::collections::BTreeSet;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use tidegate_net::fetch::AllowPrivate;

    const FILE: &str = r#"
[server]
listen = "127.0.0.1:1"
public_url = "https://a.example"
[store]
path = "a"
[polling]
allow_private = ["localhost:80"]
[[feed]]
name = "example-org-feed"
url = "https://example.org/news"
"#;

    fn over_file(overrides: &Overrides) -> Checked {
        let variables = Variables::default().below(overrides);
        let mut checked = check_with("f", FILE, &variables).unwrap();
        overrides.complete(&mut checked.config);
        checked
    }

    #[test]
    fn the_command_line_wins() {
        assert_eq!(over_file(&Overrides::default()), check("f", FILE).unwrap());
        // A data folder may have any name.
        let data = PathBuf::from(OsString::from_vec(b"caf\xe9".to_vec()));
        let overrides = Overrides {
            listen: Some("[::]:0".parse().unwrap()),
            data: Some(data.clone()),
            public_url: Some("https://b.example".to_owned()),
            allow_private: true,
            feeds: Vec::new(),
        };
        let config = over_file(&overrides).config;
        assert_eq!(config.server.listen.to_string(), "[::]:0");
        assert_eq!(config.store.path, data);
        assert_eq!(config.server.public_url.as_deref(), Some("https://b.example"));
        assert_eq!(config.polling.allow_private, AllowPrivate::All);
        assert_eq!(config.websub.private_callbacks, AllowPrivate::All);
        // What contradicts the file is a fault of the option.
        let file = "[server]\nadmin_listen = \"127.0.0.1:7\"\n";
        let listen = Some("127.0.0.1:7".parse().unwrap());
        let same = Overrides { listen, ..Overrides::default() };
        let faults = check_with("f", file, &Variables::default().below(&same)).unwrap_err();
        assert!(faults.to_string().starts_with("f:2: server.admin_listen: is that of listen"));
    }

    #[test]
    fn feeds_are_added_once_under_names_of_their_own() {
        let bare = "https://example.org/feed?b";
        let with_login = |who: &str| bare.replace("//", &format!("//{who}@"));
        let (one, two) = (with_login("me:one"), with_login("me:two"));
        let feed = "https://example.org/feed";
        let urls = [feed, "https://example.org/news", feed, &one, &two, &one, bare];
        let feeds = urls.iter().map(|url| Url::parse(url).unwrap()).collect();
        let overrides = Overrides { feeds, ..Overrides::default() };
        let feeds = over_file(&overrides).config.feeds;
        use FeedSource::{CommandLine, File};
        let expected = [
            (File, "https://example.org/news"),
            (CommandLine, feed),
            // With other credentials it is another feed.
            (CommandLine, bare),
            (CommandLine, bare),
        ];
        assert!(feeds.iter().map(|feed| (feed.source, &*feed.url)).eq(expected));
        // The first name is taken, and the others have a query.
        let names: BTreeSet<&str> = feeds.iter().map(|feed| feed.name.as_str()).collect();
        assert_eq!((names.len(), feeds[0].name.as_str()), (4, "example-org-feed"));
        for name in names.into_iter().skip(1) {
            assert!(name.starts_with("example-org-feed-") && name.len() == 25, "{name}");
        }
    }
}
