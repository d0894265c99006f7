//! Uploads on their way to sites. A site is asked once the body has come, or so much of it that it surely flows; until
//! then it takes nothing of the site's. A few bodies that come slowly go on to it all the same, as they come.

use super::super::client::Client;
use super::super::problem::Problem;
use super::body::{ReadEnd, ReadingBody};
use super::looks::{LookPermit, LookTurns};
use super::send::problem_of;
use super::service::PassError;
use super::slots::SiteSlots;
use http::{Extensions, StatusCode};
use std::time::Duration;
use tidegate_net::origin::PassedBody;
use tokio::time::sleep;
use url::Url;

/// How much of a body is read before the site is asked, in bytes, of how many at a time, and how long that may take.
const AHEAD: usize = 64 * 1024;
const AT_ONCE: usize = 512;
const TIME: Duration = Duration::from_secs(60);
/// After how long a body that has not come is a slow one; how many of them a site gets at a time, and one client sends.
const SLOW_AFTER: Duration = Duration::from_secs(1);
const SITE_SLOW: u32 = 16;
const CLIENT_SLOW: u32 = 2;

/// The uploads that are read.
pub(super) struct Uploads {
    ahead: SiteSlots,
    slow: LookTurns,
}

impl Uploads {
    pub(super) fn new() -> Self {
        Self { ahead: SiteSlots::new(AT_ONCE), slow: LookTurns::new(CLIENT_SLOW, SITE_SLOW) }
    }

    /// A body of which enough has come for the site to be asked, and the leave of a slow one.
    pub(super) async fn read_ahead(
        &self,
        site: &Url,
        request: &Extensions,
        body: PassedBody,
    ) -> Result<(PassedBody, Option<LookPermit>), Problem> {
        let late = || {
            let said = "the body of the request does not come";
            Problem::new(StatusCode::REQUEST_TIMEOUT, said)
        };
        let client = request.get().copied().unwrap_or(Client::Own);
        let _slot = self.ahead.acquire(request, false).await?;
        let mut reading = ReadingBody::new(body, TIME);
        let leave = tokio::select! {
            biased;
            read = reading.read(AHEAD) => match read {
                Ok(ReadEnd::Whole | ReadEnd::Limit) => None,
                Ok(ReadEnd::Late) => return Err(late()),
                Err(_) => return Err(problem_of(PassError::Unsent)),
            },
            leave = async {
                sleep(SLOW_AFTER).await;
                self.slow.acquire((site, client), TIME).await
            } => Some(leave.map_err(|_| late())?),
        };
        Ok((reading.into_body(), leave))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::{Stream, StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::{BodyExt as _, StreamBody};
    use tidegate_net::origin::BodyError;
    use tokio::time::{Instant, timeout};

    fn request_of(last: u8) -> Extensions {
        let mut request = Extensions::new();
        request.insert(Client::at([192, 0, 2, last].into()));
        request
    }

    fn body(pieces: impl Stream<Item = Bytes> + Send + 'static) -> PassedBody {
        StreamBody::new(pieces.map(|bytes| Ok::<_, BodyError>(Frame::data(bytes)))).boxed_unsync()
    }

    /// A body that begins and does not go on.
    fn begun() -> PassedBody {
        body(stream::iter([Bytes::from_static(b"x")]).chain(stream::pending()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_is_asked_once_a_body_has_come_or_flows() {
        let (uploads, site) = (Uploads::new(), Url::parse("http://a/").unwrap());
        let of = async |last: u8, body| uploads.read_ahead(&site, &request_of(last), body).await;
        let whole = stream::iter([&b"a"[..], b"b"].map(Bytes::from_static));
        let flows = stream::repeat(Bytes::from_static(&[b'x'; 1024]));
        let at = Instant::now();
        let (whole, leave) = of(1, body(whole)).await.unwrap();
        assert_eq!(whole.collect().await.unwrap().to_bytes(), "ab");
        assert!(leave.is_none() && of(1, body(flows)).await.unwrap().1.is_none());
        assert_eq!(at.elapsed(), Duration::ZERO);
        // Nine clients send what does not come: a few of these go on, and the others do not hinder anybody.
        let mut slow = Vec::new();
        for last in 1..=9 {
            for _ in 0..4 {
                if let Ok(read) = timeout(2 * SLOW_AFTER, of(last, begun())).await {
                    slow.push(read.unwrap());
                }
            }
        }
        assert_eq!(slow.len(), 16);
        let (late, _) = tokio::join!(of(20, begun()), of(21, body(stream::empty())));
        assert_eq!(late.err().unwrap().status(), StatusCode::REQUEST_TIMEOUT);
        slow.truncate(15);
        let (mut next, leave) = of(20, begun()).await.unwrap();
        assert!(
            leave.is_some() && next.frame().await.unwrap().unwrap().into_data().unwrap() == "x"
        );
    }
}
