//! How many new feeds the requests of one client make.

use super::super::client::Client;
use super::super::pace::{Paces, Rate};
use std::time::Duration;

/// The most new feeds that the requests of one client make within [`HOUR`] as time goes on, and so many in any case.
const NEW_FEEDS: u32 = 500;
const FEW: u32 = 20;
/// They make one of so many of these at once, and [`FEW`] at least.
const AT_ONCE: u32 = 10;
const HOUR: Duration = Duration::from_secs(3600);
/// What is told once an hour.
const TOLD: Rate = Rate { burst: 1, each: HOUR };

/// How fast clients make feeds, and what the log has told.
#[derive(Default)]
pub(super) struct NewFeedShares {
    made: Paces<Client>,
    told: Paces<Client>,
}

impl NewFeedShares {
    /// Whether the requests of a client may make a feed now, at a site that may have so many `feeds`.
    pub(super) fn has_share(&self, client: Client, feeds: u32) -> bool {
        client == Client::Own || self.made.wait(&client.site(), share(feeds)).is_zero()
    }

    /// Takes one feed of a client's share; or how long it has to wait for one.
    pub(super) fn take_share(&self, client: Client, feeds: u32) -> Result<(), Duration> {
        let client = client.site();
        let Client::At(address) = client else { return Ok(()) };
        let taken = self.made.take(&client, share(feeds));
        if taken.is_ok() && !self.has_share(client, feeds) && self.told.take(&client, TOLD).is_ok()
        {
            tracing::info!(
                client = %address,
                "the requests of a client made as many feeds as they may at once, and make more slowly"
            );
        }
        taken
    }
}

/// The share of one client in the new feeds of a site that may have so many: others find room as well.
fn share(feeds: u32) -> Rate {
    let an_hour = (feeds / 2).clamp(FEW, NEW_FEEDS);
    Rate { burst: FEW.max(an_hour / AT_ONCE), each: HOUR / an_hour }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_makes_a_few_feeds_and_then_slowly_half_of_a_sites() {
        let (shares, client) =
            (NewFeedShares::default(), |last: u8| Client::at([192, 0, 2, last].into()));
        for (feeds, at_once, an_hour) in [(1, 20, 20), (1_000, 50, 500), (1_000_000, 50, 500)] {
            let shares = NewFeedShares::default();
            let make = || {
                let all = std::iter::from_fn(|| shares.take_share(client(1), feeds).ok());
                all.take(2 * 500).count()
            };
            assert_eq!(make(), at_once, "{feeds}");
            let mut later = 0;
            for _ in 0..60 {
                tokio::time::advance(HOUR / 60).await;
                later += make();
            }
            assert!(later.abs_diff(an_hour) <= 1, "{feeds}: {later}");
        }
        assert!((0..20).all(|_| shares.take_share(client(1), 100).is_ok()));
        assert!(!shares.has_share(client(1), 100) && shares.take_share(client(1), 100).is_err());
        assert!(shares.has_share(client(2), 100) && shares.take_share(client(2), 100).is_ok());
        // What the gateway does by itself is nobody's share.
        assert!((0..=NEW_FEEDS).all(|_| shares.take_share(Client::Own, 100).is_ok()));
        assert!(shares.has_share(Client::Own, 100));
    }
}
