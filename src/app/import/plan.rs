//! What becomes of each outline of a list: a pure decision.

use crate::config::{self, Config, FEED_LIMIT, feed_name};
use crate::model::{
    EndpointId, Enrolment, FeedName, FeedOptions, FeedRecord, FeedSource, FeedStanding,
    ShownAddress, Time,
};
use crate::parse::opml::{Outline, OutlineKind, OutlineList};
use std::collections::{HashMap, HashSet};
use url::Url;

/// Outlines of this type are searches that a program makes over its feeds.
const SEARCH: &str = "vfolder";

/// An outline that was not taken, or something of the list that was guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The line, counted from 1.
    pub line: usize,
    /// The address as it is written, without credentials; `None` where there is none.
    pub address: Option<String>,
    /// Why, in words.
    pub why: String,
}

/// What a list comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Feeds to be added, in the order of the list.
    pub new: Vec<FeedRecord>,
    /// How many of its addresses are polled already.
    pub known: usize,
    /// Outlines that were deleted, by their sharing markup.
    pub deleted: usize,
    /// What could not be taken, in the order of the list.
    pub refused: Vec<Refused>,
}

/// What there is before a list is taken.
pub(super) struct Before<'a> {
    /// The feeds of the store.
    pub(super) stored: &'a [FeedRecord],
    /// The configuration, whose feeds may not be in the store yet.
    pub(super) config: &'a Config,
    /// This gateway's endpoint id.
    pub(super) endpoint: &'a EndpointId,
    /// The time now.
    pub(super) now: Time,
}

/// Decides about each outline.
pub(super) fn plan(list: &OutlineList, before: &Before<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut known = Known::of(before);
    let when = FeedRecord::next_change(before.stored, before.now);
    let parents: HashSet<usize> =
        list.outlines.iter().filter_map(|outline| outline.parent).collect();
    for (number, outline) in list.outlines.iter().enumerate() {
        if outline.is_deleted() {
            plan.deleted += 1;
            continue;
        }
        let refuse = |address: Option<&str>, why: String| Refused {
            line: outline.line,
            address: address.map(shown),
            why,
        };
        let written = match outline.kind() {
            OutlineKind::Feed(written) => written,
            OutlineKind::Include(address) => {
                let why = "it leads to another list; import that by itself".to_owned();
                plan.refused.push(refuse(Some(address), why));
                continue;
            }
            OutlineKind::Link(address) => {
                let why = "it is a link to a page and no feed".to_owned();
                plan.refused.push(refuse(Some(address), why));
                continue;
            }
            OutlineKind::Text => {
                let is_search = outline.type_name().is_some_and(|t| t.eq_ignore_ascii_case(SEARCH));
                if !parents.contains(&number) {
                    let what = if is_search { "is a search" } else { "has no address" };
                    let said = outline.text().unwrap_or_default();
                    let why = format!("the outline {:?} {what}", short(said));
                    plan.refused.push(refuse(None, why));
                }
                continue;
            }
        };
        if list.is_torn && number + 1 == list.outlines.len() {
            let why =
                "the list ends within it, so that its address may be a part of one".to_owned();
            plan.refused.push(refuse(Some(written), why));
            continue;
        }
        match known.take(written, outline) {
            Ok(Some((name, url))) => {
                let mut record = FeedRecord {
                    name,
                    url: url.to_string(),
                    source: FeedSource::Api,
                    standing: FeedStanding::Active,
                    options: FeedOptions::default(),
                    enrolment: Enrolment {
                        title: outline.title().and_then(Enrolment::title),
                        ..Enrolment::default()
                    },
                };
                record.follow(None, when, before.endpoint);
                plan.new.push(record);
            }
            Ok(None) => plan.known += 1,
            Err(why) => plan.refused.push(refuse(Some(written), why)),
        }
    }
    plan
}

/// Names and addresses that are taken.
struct Known {
    names: HashSet<FeedName>,
    /// Addresses that the gateway has; `true` where the feed was removed.
    addresses: HashMap<String, bool>,
    /// Addresses of the list, with their lines.
    lines: HashMap<String, usize>,
    /// What the addresses of this gateway's own feeds begin with.
    own: Option<String>,
}

impl Known {
    fn of(before: &Before<'_>) -> Self {
        let config = before.config;
        let stored = || before.stored.iter();
        let mut names: HashSet<FeedName> = stored().map(|record| record.name.clone()).collect();
        names.extend(config.feeds.iter().map(|feed| feed.name.clone()));
        names.extend(config.aggregates.iter().map(|aggregate| aggregate.name.clone()));
        let gone = |record: &FeedRecord| record.standing == FeedStanding::Gone;
        let mut addresses: HashMap<String, bool> = HashMap::new();
        for record in stored() {
            let removed = addresses.entry(record.url.clone()).or_insert(true);
            *removed &= gone(record);
        }
        let polled = config.feeds.iter().filter_map(|feed| feed.url.as_ref());
        addresses.extend(polled.map(|url| (url.to_string(), false)));
        let own = config.server.public_url.as_ref().map(|url| format!("{url}/feeds/"));
        Self { names, addresses, lines: HashMap::new(), own }
    }

    /// A name for the feed at an address; `None` where the gateway has it.
    fn take(
        &mut self,
        written: &str,
        outline: &Outline,
    ) -> Result<Option<(FeedName, Url)>, String> {
        let url = config::feed_address(&of_the_web(written)).map_err(|error| error.to_string())?;
        let text = url.to_string();
        if self.own.as_ref().is_some_and(|own| text.starts_with(own)) {
            return Err("it is a feed of this gateway itself".to_owned());
        }
        if let Some(line) = self.lines.get(&text) {
            return Err(format!("it stands in line {line} already"));
        }
        self.lines.insert(text.clone(), outline.line);
        match self.addresses.get(&text) {
            Some(false) => return Ok(None),
            Some(true) => {
                return Err("it was removed from this gateway; add it by the API".to_owned());
            }
            None => {}
        }
        if self.names.len() >= FEED_LIMIT {
            return Err(format!("there are {FEED_LIMIT} feeds, which is the limit"));
        }
        let name = feed_name(&url, |name| self.names.contains(name));
        let name = name.ok_or("no name is left for it")?;
        self.names.insert(name.clone());
        Ok(Some((name, url)))
    }
}

/// An address with the scheme of the web: `feed:` stands in front of such an address, or in its
/// place.
fn of_the_web(written: &str) -> String {
    let begins = |prefix: &str| {
        let head = written.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| written.get(prefix.len()..)).flatten()
    };
    if let Some(rest) = begins("feed://") {
        return format!("http://{rest}");
    }
    begins("feed:").unwrap_or(written).to_owned()
}

/// How much of an address or a text is shown, in characters.
const SHOWN: usize = 200;

/// A text as a message shows it: one line without control characters.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN).collect()
}

/// An address without user, password and keys.
fn shown(address: &str) -> String {
    let short = short(address);
    match Url::parse(address) {
        Ok(url) if url.cannot_be_a_base() && address.contains('@') => "…".to_owned(),
        Ok(url) if url.cannot_be_a_base() => short,
        Ok(_) => self::short(ShownAddress::of(address, None).text()),
        // What cannot be parsed cannot be cut safely.
        Err(_) if address.contains('@') => "…".to_owned(),
        Err(_) => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::opml::{OpmlLimits, read};

    fn planned(outlines: &str, stored: &[FeedRecord], config: &Config) -> Plan {
        let text = format!("<opml><body>\n{outlines}</body></opml>");
        let list = read(&text, &OpmlLimits::default()).unwrap();
        let endpoint = EndpointId::own("here").unwrap();
        let now = Time::from_unix(1_795_191_605);
        plan(&list, &Before { stored, config, endpoint: &endpoint, now })
    }

    fn refused(plan: &Plan) -> Vec<String> {
        let said = |r: &Refused| format!("{} {:?} {}", r.line, r.address.as_deref(), r.why);
        plan.refused.iter().map(said).collect()
    }

    #[test]
    fn feeds_are_named_and_everything_else_is_said() {
        let plan = planned(
            "<outline text='F'><outline title=' The A ' xmlUrl='https://a.example/feed#x'/>\n\
             <outline xmlUrl='https://a.example/feed?b'/>\n<outline xmlUrl='https://a.example/feed'/>\n\
             <outline xmlUrl='feed://b.example/'/><outline xmlUrl='FEED:https://c.example/'/>\n\
             <outline xmlUrl='ftp://d.example/'/><outline xmlUrl='d.example/feed'/>\n\
             <outline xmlUrl='https://me:secret@'/><outline xmlUrl='http://a b/'/></outline>\n\
             <outline text='alone'/><outline type='include' url='http://l/'/>\n\
             <outline type='link' url='http://p/'/><outline type='vfolder' text='new'/>\n\
             <outline xmlUrl='https://gone.example/'><sx:sync id='x' version='2' deleted='true'>\
             <sx:history by='A'/></sx:sync></outline>",
            &[],
            &Config::default(),
        );
        let new: Vec<_> = plan.new.iter().map(|r| (r.name.as_str(), r.url.as_str())).collect();
        assert_eq!(
            new,
            [
                ("a-example-feed", "https://a.example/feed"),
                ("a-example-feed-d532orrb", "https://a.example/feed?b"),
                ("b-example", "http://b.example/"),
                ("c-example", "https://c.example/"),
            ]
        );
        assert_eq!(plan.new[0].enrolment.title.as_deref(), Some("The A"));
        assert_eq!(plan.new[0].enrolment.history.len(), 1);
        assert_eq!(plan.deleted, 1);
        let said = refused(&plan);
        for (line, part) in [
            (4, "it stands in line 2 already"),
            (6, "the scheme \"ftp\""),
            (6, "is not a web address"),
            (7, "is not a web address"),
            (7, "white space"),
            (8, "\"alone\" has no address"),
            (8, "another list"),
            (9, "no feed"),
            (9, "\"new\" is a search"),
        ] {
            let found = said.iter().any(|s| s.starts_with(&format!("{line} ")) && s.contains(part));
            assert!(found, "{line} {part}: {said:#?}");
        }
        assert_eq!(said.len(), 9, "{said:#?}");
        assert!(!said.concat().contains("secret"), "{said:#?}");
    }

    #[test]
    fn an_address_that_is_cut_is_none() {
        let text = "<opml><body><outline xmlUrl='https://a.example/'/>\n<outline text='B' xmlUrl='https://b.exa";
        let list = read(text, &OpmlLimits::default()).unwrap();
        let endpoint = EndpointId::own("here").unwrap();
        let (stored, config) = (&[][..], &Config::default());
        let now = Time::from_unix(1_795_191_605);
        let plan = plan(&list, &Before { stored, config, endpoint: &endpoint, now });
        assert_eq!(plan.new.len(), 1, "{plan:?}");
        assert!(refused(&plan).iter().any(|said| said.contains("ends within it")), "{plan:?}");
    }

    #[test]
    fn what_the_gateway_has_is_left() {
        let config = "[server]\npublic_url=\"https://gate.example\"\n[[feed]]\nname=\"b-example\"\n\
            url=\"https://other.example/\"\n";
        let config = config::check("f", config).unwrap().config;
        let mut stored = planned("<outline xmlUrl='https://a.example/'/>", &[], &config).new;
        let again = "<outline xmlUrl='https://a.example/'/><outline xmlUrl='https://other.example/'/>\
            <outline xmlUrl='https://b.example/'/><outline xmlUrl='https://gate.example/feeds/x'/>";
        let plan = planned(again, &stored, &config);
        assert_eq!(plan.known, 2);
        assert_eq!(plan.new.len(), 1);
        assert_eq!(
            plan.new[0].name.as_str(),
            "b-example-luo5tbey",
            "the configuration has that name"
        );
        assert!(refused(&plan)[0].contains("this gateway itself"));
        assert!(plan.new[0].enrolment.changed() > stored[0].enrolment.changed());
        stored[0].standing = FeedStanding::Gone;
        assert!(refused(&planned(again, &stored, &config))[0].contains("was removed"));
    }
}
