//! Feeds that the requests of readers made: below an origin, or by `/subscribe`.

use super::{FeedRecord, FeedSource, FeedStanding, Time};
use serde::{Deserialize, Serialize};

/// What is kept of a feed that a reader's request made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OnDemand {
    /// The address of the site that the configuration admits, below which the feed's own is.
    pub site: String,
    /// When it was last asked for or announced, as far as that was written down.
    pub asked: Time,
    /// Whether it is paused because it was not asked for any more.
    pub is_let_go: bool,
    /// Whether its publisher has it as JSON Feed, as which it is answered at his address.
    pub is_json: bool,
}

impl FeedRecord {
    /// A feed that a request makes now.
    pub fn on_demand(name: super::FeedName, url: &str, site: &str, asked: Time) -> Self {
        let on_demand = OnDemand { site: site.to_owned(), asked, is_let_go: false, is_json: false };
        Self { on_demand: Some(on_demand), ..Self::new(name, url, FeedSource::Api) }
    }

    /// Whether it is paused because it was not asked for, so that the next request resumes it.
    pub fn is_let_go(&self) -> bool {
        self.standing == FeedStanding::Paused
            && self.on_demand.as_ref().is_some_and(|made| made.is_let_go)
    }

    /// Pauses it, since it is not asked for any more. Its history is kept.
    pub fn let_go(&mut self) {
        self.standing = FeedStanding::Paused;
        self.on_demand.iter_mut().for_each(|made| made.is_let_go = true);
    }

    /// Has it be where its site is now, with all that is kept of it; whether it is a feed of that site, which was at `from`.
    pub fn move_with_site(&mut self, from: &str, to: &str) -> bool {
        let Some(made) = self.on_demand.as_mut().filter(|made| made.site == from) else {
            return false;
        };
        let Some(url) = self.url.strip_prefix(from).map(|rest| format!("{to}{rest}")) else {
            return false;
        };
        to.clone_into(&mut made.site);
        self.url = url;
        true
    }

    /// Notes that it was asked for; resumes it where it was let go.
    pub fn ask_for(&mut self, now: Time) {
        if self.is_let_go() {
            self.standing = FeedStanding::Active;
        }
        if let Some(made) = &mut self.on_demand {
            made.asked = made.asked.max(now);
            made.is_let_go = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EndpointId, FeedName, Stamp};

    #[test]
    fn a_request_resumes_what_was_let_go_and_not_what_the_operator_paused() {
        let at = Time::from_unix;
        let name = FeedName::new("a").unwrap();
        let mut feed = FeedRecord::on_demand(name, "http://a/f", "http://a/", at(10));
        feed.follow(None, at(10), &EndpointId::own("here").unwrap());
        feed.let_go();
        assert!(feed.is_let_go() && feed.standing == FeedStanding::Paused);
        feed.ask_for(at(20));
        assert!(!feed.is_let_go() && feed.standing == FeedStanding::Active);
        // The clock may go back.
        feed.ask_for(at(15));
        assert_eq!(feed.on_demand.as_ref().unwrap().asked, at(20));
        let made = feed.enrolment.history.last().and_then(Stamp::when);
        assert_eq!(made, Some(at(10)), "it is no newer for being asked for");
        feed.pause_by_hand();
        feed.ask_for(at(30));
        assert_eq!(feed.standing, FeedStanding::Paused);
    }

    #[test]
    fn a_feed_moves_with_its_site_alone() {
        let name = FeedName::new("a").unwrap();
        let made = FeedRecord::on_demand(name, "http://a/x/f?y", "http://a/x/", Time::MIN);
        let mut moved = made.clone();
        assert!(!moved.move_with_site("http://a/", "https://b/") && moved == made);
        assert!(moved.move_with_site("http://a/x/", "https://b:1/"));
        assert_eq!(
            (moved.url.as_str(), moved.on_demand.as_ref().unwrap().site.as_str()),
            ("https://b:1/f?y", "https://b:1/")
        );
        let mut configured = FeedRecord { on_demand: None, ..made };
        assert!(!configured.move_with_site("http://a/x/", "https://b/"));
    }
}
