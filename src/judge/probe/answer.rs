//! What the replies of a round mean.

use super::scope::is_front;
use tidegate_core::model::{Probe, ProbeAnswer, Snapshot, SyncId, Time};
use tidegate_core::xml::plain_address::plain_link;
use tidegate_core::xml::shortened;
use url::Url;

/// What an address replied, after the redirects within the feed's own domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReply {
    pub asked: Url,
    /// What came of it.
    pub end: ProbeEnd,
}

/// How asking ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeEnd {
    /// With a status that is no redirect, of this address.
    Status {
        code: u16,
        /// The address that answered.
        at: Url,
    },
    /// Without one: why, in words.
    NoStatus(String),
}

/// Everything that a round heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    /// The reply of an item that the document lists.
    pub listed: ProbeReply,
    /// The reply of an address that was made up; `None` if it was not asked.
    pub made_up: Option<ProbeReply>,
    /// The replies of missing items; `None` if one was not asked because of what came before.
    pub items: Vec<(SyncId, Option<ProbeReply>)>,
}

/// What a round says of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeVerdict {
    /// It is gone, by this status.
    Gone(u16),
    /// It is there, by this status.
    There(u16),
    /// Nothing; why, in words.
    Nothing(String),
}

/// Whether a reply to HEAD calls for a GET, because HEAD itself may be what was refused.
pub fn wants_get(reply: &ProbeReply) -> bool {
    match &reply.end {
        ProbeEnd::Status { code, .. } => {
            !matches!(code, 200..=299 | 404 | 410) && !is_refusal(reply)
        }
        ProbeEnd::NoStatus(_) => false,
    }
}

/// Whether the site asks to be left alone, so that the round ends.
pub fn is_refusal(reply: &ProbeReply) -> bool {
    matches!(reply.end, ProbeEnd::Status { code: 429 | 503, .. })
}

/// Whether the page of a listed item is there, as it must be for a 404 elsewhere to mean something.
pub fn is_alive(reply: &ProbeReply) -> bool {
    matches!(&reply.end, ProbeEnd::Status { code: 200, at } if !is_front(at))
}

/// Whether a made-up address is answered as if there were something.
pub fn is_echo(reply: &ProbeReply) -> bool {
    matches!(&reply.end, ProbeEnd::Status { code: 200, at } if is_same_page(&reply.asked, at))
}

/// What the replies say of each item.
pub fn answers(snapshot: &Snapshot, replies: &Replies) -> Vec<(SyncId, ProbeVerdict)> {
    let answer = |(id, reply): &(SyncId, Option<ProbeReply>)| {
        let answer = match reply {
            Some(reply) => judge_reply(snapshot, replies, reply),
            None => ProbeVerdict::Nothing(why_not_asked(replies)),
        };
        (id.clone(), answer)
    };
    replies.items.iter().map(answer).collect()
}

/// Describes the replies, one text for each item.
pub fn describe_replies(snapshot: &Snapshot, replies: &Replies) -> Vec<String> {
    let link = |id: &SyncId| snapshot.known.iter().find(|known| known.id == *id)?.link.clone();
    let words = |(id, answer): &(SyncId, ProbeVerdict)| {
        let link = link(id).unwrap_or_else(|| id.to_string());
        match answer {
            ProbeVerdict::Gone(status) => format!("{link} is gone ({status})"),
            ProbeVerdict::There(status) => format!("{link} is there ({status})"),
            ProbeVerdict::Nothing(why) => silence(&format!("{link} says nothing: {why}")),
        }
    };
    answers(snapshot, replies).iter().map(words).collect()
}

fn judge_reply(snapshot: &Snapshot, replies: &Replies, reply: &ProbeReply) -> ProbeVerdict {
    let (code, at) = match &reply.end {
        ProbeEnd::Status { code, at } => (*code, at),
        ProbeEnd::NoStatus(why) => return ProbeVerdict::Nothing(why.clone()),
    };
    let is_same = is_same_page(&reply.asked, at);
    let elsewhere = if is_same {
        None
    } else if is_front(at) {
        Some("it leads to the site's front page")
    } else if is_page_of_another(snapshot, &reply.asked, at) {
        Some("it leads to another item's page")
    } else {
        None
    };
    match (code, elsewhere) {
        (_, Some(elsewhere)) => ProbeVerdict::Nothing(elsewhere.to_owned()),
        (404 | 410, None) if is_alive(&replies.listed) => ProbeVerdict::Gone(code),
        (404 | 410, None) => ProbeVerdict::Nothing(format!(
            "it answered {code}, but what the document lists {}",
            describe_reply(&replies.listed)
        )),
        (200, None) if !is_same => ProbeVerdict::Nothing(format!("it leads to another page, {at}")),
        (200, None) => match &replies.made_up {
            Some(made_up) if tells_apart(made_up) => ProbeVerdict::There(code),
            Some(made_up) => ProbeVerdict::Nothing(format!(
                "it answered 200, but a made-up address {}",
                describe_reply(made_up)
            )),
            None => ProbeVerdict::Nothing("it answered 200, which was not compared".to_owned()),
        },
        _ => ProbeVerdict::Nothing(format!("it answered {code}")),
    }
}

/// Whether a site that answers a made-up address like this tells apart what is there from what is
/// not.
fn tells_apart(made_up: &ProbeReply) -> bool {
    match &made_up.end {
        ProbeEnd::Status { code: 404 | 410, .. } => true,
        ProbeEnd::Status { code: 200, .. } => !is_echo(made_up),
        _ => false,
    }
}

fn why_not_asked(replies: &Replies) -> String {
    let before = replies.items.iter().filter_map(|(_, reply)| reply.as_ref());
    let all = [Some(&replies.listed), replies.made_up.as_ref()].into_iter().flatten().chain(before);
    let refused = all.into_iter().find(|reply| is_refusal(reply));
    match refused {
        Some(reply) => format!("it was not asked, because the site {}", describe_reply(reply)),
        None => {
            format!(
                "it was not asked, because what the document lists {}",
                describe_reply(&replies.listed)
            )
        }
    }
}

fn describe_reply(reply: &ProbeReply) -> String {
    match &reply.end {
        ProbeEnd::Status { code: 200, at } if is_front(at) => "leads to the front page".to_owned(),
        ProbeEnd::Status { code, .. } => format!("answers {code} too"),
        ProbeEnd::NoStatus(why) => format!("cannot be read ({why})"),
    }
}

/// Whether two addresses are of one page: but for scheme, host, tracking parameters, the slash at
/// the end and capitals. Both are within the feed's own domain.
fn is_same_page(a: &Url, b: &Url) -> bool {
    path(a).eq_ignore_ascii_case(&path(b))
}

fn path(url: &Url) -> String {
    let plain = plain_link(url.as_str());
    let start = plain.find(['/', '?']).unwrap_or(plain.len());
    plain.get(start..).unwrap_or_default().to_owned()
}

fn is_page_of_another(snapshot: &Snapshot, asked: &Url, at: &Url) -> bool {
    let (asked, at) = (plain_link(asked.as_str()), plain_link(at.as_str()));
    let mut links = snapshot.known.iter().filter_map(|known| known.link.as_deref());
    at != asked && links.any(|link| plain_link(link) == at)
}

/// Why nothing was said, as it is kept: publishers have a say in it.
fn silence(why: &str) -> String {
    shortened(why, Probe::SILENCE_LIMIT).to_owned()
}

/// What is known after another answer.
pub(crate) fn note_answer(before: Option<&Probe>, answer: ProbeVerdict, now: Time) -> Probe {
    let earlier = before.and_then(|probe| probe.heard);
    let (said, silence) = match answer {
        ProbeVerdict::Gone(status) => (Some((true, status)), None),
        ProbeVerdict::There(status) => (Some((false, status)), None),
        ProbeVerdict::Nothing(why) => (None, Some(silence(&why))),
    };
    let heard = match said {
        Some((gone, status)) => {
            let agreeing = earlier.filter(|heard| heard.gone == gone);
            let first = agreeing.map_or(now, |heard| heard.first);
            Some(ProbeAnswer { gone, status, first, last: now })
        }
        None => earlier,
    };
    let asked = before.map_or(0, |probe| probe.asked).saturating_add(1);
    Probe { asked, last: now, heard, silence }
}

/// The longest address that a reason names, in bytes.
const SHOWN: usize = 200;

/// What an item's own address said, in words.
pub(crate) fn describe_probe(probe: &Probe, link: Option<&str>) -> String {
    let link = link.filter(|link| link.len() <= SHOWN).map(|link| format!(", {link},"));
    let address = format!("its own address{}", link.unwrap_or_default());
    match (&probe.heard, &probe.silence) {
        (Some(heard), _) if heard.first < heard.last => {
            format!("{address} answered {} at {} and {}", heard.status, heard.first, heard.last)
        }
        (Some(heard), _) => format!("{address} answered {} at {}", heard.status, heard.last),
        (None, Some(silence)) => format!("{address} says nothing: {silence}"),
        (None, None) => format!("{address} says nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_told_with_address_status_and_time() {
        const HOUR: i64 = 3600;
        let noted = |probe: Option<Probe>, (at, answer): &(i64, ProbeVerdict)| {
            Some(note_answer(probe.as_ref(), answer.clone(), Time::from_unix(*at)))
        };
        let probe = |answers: &[(i64, ProbeVerdict)]| answers.iter().fold(None, noted).unwrap();
        let link = Some("https://e.org/a");
        let gone = probe(&[(0, ProbeVerdict::Gone(404))]);
        let said = "its own address, https://e.org/a, answered 404 at 1970-01-01T00:00:00Z";
        assert_eq!(describe_probe(&gone, link), said);
        let twice = probe(&[(0, ProbeVerdict::Gone(404)), (HOUR, ProbeVerdict::Gone(410))]);
        let said = "its own address, https://e.org/a, answered 410 at 1970-01-01T00:00:00Z and \
                    1970-01-01T01:00:00Z";
        assert_eq!(describe_probe(&twice, link), said);
        let silent = probe(&[(0, ProbeVerdict::Nothing("it answered 503".to_owned()))]);
        assert_eq!(describe_probe(&silent, None), "its own address says nothing: it answered 503");
        let long = probe(&[(0, ProbeVerdict::Nothing("ä".repeat(500)))]);
        assert!(long.silence.unwrap().len() <= Probe::SILENCE_LIMIT);
    }
}
