//! Random values of every kind for tests.

use crate::purge_mark::PurgeMark;
use crate::{LoggedChange, VersionNote};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use std::ops::Range;
use std::time::Duration;
use tidegate_core::model::*;

mod access;
mod enrolment;
mod noise;
mod poll;
mod subscription;
mod upstream_hub;

use access::any_access;
use enrolment::any_enrolment;
pub(crate) use poll::any_poll;
pub(crate) use subscription::any_subscription;

pub(crate) fn text() -> impl Strategy<Value = String> {
    ".{0,12}"
}
pub(crate) fn time() -> impl Strategy<Value = Time> {
    any::<i64>().prop_map(Time::from_unix)
}

pub(crate) fn tick() -> impl Strategy<Value = Tick> {
    time().prop_map(Tick::at)
}

fn feed() -> impl Strategy<Value = FeedName> {
    "[a-z0-9][a-z0-9-]{0,63}".prop_map(|name| FeedName::new(&name).unwrap())
}

fn sync_id() -> impl Strategy<Value = SyncId> {
    "[a-z0-9.ä-]{1,40}".prop_map(|id| SyncId::new(&id).unwrap())
}

fn range() -> impl Strategy<Value = Range<usize>> {
    (any::<usize>(), any::<usize>()).prop_map(|(start, end)| start..end)
}

fn format() -> impl Strategy<Value = Format> {
    use Format::*;
    select(vec![Atom10, Atom03, Rss20, Rss09x, Rss10, Rss090, JsonFeed, Opml, Collection])
}

fn count() -> impl Strategy<Value = Count> {
    (1..=Count::MAX.value()).prop_map(|count| Count::new(count).unwrap())
}

fn update() -> impl Strategy<Value = Update> {
    let by = || "[a-zé0-9:.-]{1,20}".prop_map(|by| EndpointId::new(&by).unwrap());
    let stamp = prop_oneof![
        (time(), by()).prop_map(|(when, by)| Stamp::Both { when, by }),
        by().prop_map(Stamp::By),
        time().prop_map(Stamp::When),
    ];
    (count(), stamp).prop_map(|(sequence, stamp)| Update { sequence, stamp })
}

fn context() -> impl Strategy<Value = Context> {
    (vec((text(), text()), 0..3), of(text()), of(text()))
        .prop_map(|(namespaces, base, lang)| Context { namespaces, base, lang })
}

pub(crate) fn any_markup() -> impl Strategy<Value = Markup> {
    let slots = (any::<usize>(), of(any::<usize>()), of(range()), of(range())).prop_map(
        |(attributes, inner, id, id_element)| Slots { attributes, inner, id, id_element },
    );
    let card = (text(), of(text()), of(text()), of(time()), of(time())).prop_map(
        |(title, link, author, published, updated)| Card {
            title,
            link,
            author,
            published,
            updated,
        },
    );
    (format(), ".{0,400}", context(), slots, card).prop_map(
        |(format, xml, context, slots, card)| Markup { format, xml, context, slots, card },
    )
}

pub(crate) fn any_skeleton() -> impl Strategy<Value = Skeleton> {
    let slots = (any::<usize>(), of(range()), any::<usize>(), of(range()), of(range())).prop_map(
        |(root_attributes, version, entries, updated, id)| SkeletonSlots {
            root_attributes,
            version,
            entries,
            updated,
            id,
        },
    );
    (format(), ".{0,400}", slots, context(), text(), of(text())).prop_map(
        |(format, text, slots, context, title, link)| Skeleton {
            format,
            text,
            slots,
            context,
            title,
            link,
        },
    )
}

fn any_probe() -> impl Strategy<Value = Probe> {
    let heard = (any::<bool>(), any::<u16>(), time(), time())
        .prop_map(|(gone, status, first, last)| ProbeAnswer { gone, status, first, last });
    (any::<u32>(), time(), of(heard), of(text())).prop_map(|(asked, last, heard, silence)| Probe {
        asked,
        last,
        heard,
        silence,
    })
}

pub(crate) fn any_known() -> impl Strategy<Value = LedgerEntry> {
    use Evidence::*;
    let names = (sync_id(), text(), text(), vec(text(), 0..3), text());
    let more = (of(text()), of(time()), of(time()));
    let versions = (count(), vec(update(), 1..4), tick(), time(), time());
    let standing = prop_oneof![
        Just(ItemStatus::Current),
        time().prop_map(|since| ItemStatus::Retired { since }),
        time().prop_map(|since| ItemStatus::Deleted { since }),
        time().prop_map(|since| ItemStatus::Redacted { since }),
        time().prop_map(|since| ItemStatus::Discarded { since }),
        time().prop_map(|since| ItemStatus::Older { since }),
    ];
    let evidence = select(vec![Aged, Hole, Complete, Passed, Said, Unplaced]);
    let told = (any::<u8>(), text(), of(any_probe()));
    let absence = (evidence, time(), any::<u32>(), told).prop_map(
        |(evidence, since, observations, (doubts, seen, probe))| Absence {
            evidence,
            since,
            observations,
            doubts: Doubts::from_bits(doubts),
            seen,
            probe,
        },
    );
    let prints = (vec(any::<(u64, u64)>(), 0..9), any::<u64>(), noise::any_noise(), any::<u64>());
    let origin = prop_oneof![
        Just(Origin::Observed),
        Just(Origin::Upstream),
        Just(Origin::Local),
        feed().prop_map(Origin::Feed),
    ];
    let shared = (of(any::<bool>()), any::<u32>(), origin, of(any::<bool>()));
    (names, more, versions, standing, of(absence), (prints, shared)).prop_map(
        |(
            (id, native_shown, published_id, aliases, title),
            (link, published, updated),
            (updates, history, tick, first_seen, came),
            standing,
            absence,
            ((prints, bytes, noise, touched), (noconflicts, conflicts, origin, sse091)),
        )| LedgerEntry {
            id,
            native_shown,
            published_id,
            aliases,
            title,
            link,
            published,
            updated,
            updates,
            history: History::from_newest_first(history).unwrap(),
            tick,
            noconflicts,
            conflicts,
            origin,
            first_seen,
            came,
            standing,
            absence,
            prints,
            bytes,
            noise,
            sse091,
            extras: None,
            touched,
        },
    )
}

pub(crate) fn any_state() -> impl Strategy<Value = FeedState> {
    let marks = (any::<u64>(), of(tick()), of(tick()), of(tick()), any::<u64>(), time());
    let seen = (format(), any::<bool>(), any::<u128>(), any::<u128>(), any::<u64>(), of(text()));
    let decision = of(select(&[Decision::Release, Decision::Drop][..]));
    let prints = (any::<u64>(), any::<u64>(), any::<u32>());
    let times = (time(), time());
    let looks = (any::<u32>(), any::<u32>());
    let hold = (text(), text(), times, looks, prints, decision).prop_map(
        |(reason, kind, (since, row_since), (observations, documents), prints, decision)| {
            let (body, source, kept) = prints;
            Hold {
                reason,
                kind,
                since,
                row_since,
                observations,
                documents,
                body,
                source,
                kept,
                decision,
            }
        },
    );
    let counts = any::<[u32; 4]>();
    let seen = (seen, any::<u64>());
    let learned = any::<[u32; 12]>();
    let ids = "[a-z0-9]{1,24}".prop_map(|id| ArchiveId::new(&id).unwrap());
    let chain = (of(tick()), any::<u32>(), of(ids), any::<[u64; 4]>()).prop_map(
        |(sealed, unsealed, newest, [first, next, free, bytes])| Chain {
            sealed,
            unsealed,
            newest,
            first,
            next,
            free,
            bytes,
        },
    );
    let gap = of((time(), time()).prop_map(|(since, until)| Gap { since, until }));
    let until = (of(text()), any::<u32>(), gap, of(time()));
    let deltas = (any::<u64>(), until, vec((any::<u32>(), any::<u64>()), 0..4));
    let more = (deltas, chain);
    (marks, seen, learned, of(hold), of(time()), counts, more).prop_map(
        |(
            (revision, tick, window_start, complete_start, render, shown),
            ((format, says_complete, wire, body, head, site), source),
            learned,
            hold,
            ripens,
            [current, living, tombstones, contested],
            ((deltas_from, (upstream_until, updates_before, gap, source_since), lineage), archives),
        )| {
            let [documents, largest, kept_order, reordered, rest @ ..] = learned;
            let [grew_above, grew_below, holes_returned, left_middle, left_end, came @ ..] = rest;
            let [came_alone, came_sliding, came_swapping] = came;
            FeedState {
                revision: Revision(revision),
                tick,
                window_start,
                complete_start,
                render_revision: render,
                updated_at: shown,
                format,
                says_complete,
                wire,
                body,
                head,
                site,
                source,
                source_since,
                character: Character {
                    documents,
                    largest,
                    kept_order,
                    reordered,
                    grew_above,
                    grew_below,
                    holes_returned,
                    left_middle,
                    left_end,
                    came_alone,
                    came_sliding,
                    came_swapping,
                },
                hold,
                next_decision_at: ripens,
                current,
                living,
                tombstones,
                contested,
                archives,
                deltas_from,
                upstream_until,
                updates_before,
                gap,
                lineage: Lineage::new(
                    lineage.into_iter().map(|(mark, after)| Stretch { mark, after }),
                ),
                ..FeedState::untouched(format, shown)
            }
        },
    )
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let names = (
        select([&EventKind::ALL[..], &[EventKind::Backfilled, EventKind::Discarded]].concat()),
        sync_id(),
        text(),
        of(text()),
        text(),
    );
    (names, of(tick()), text(), time(), of(time())).prop_map(
        |((kind, id, native_id, old_native_id, title), tick, reason, at, seen_gone)| Event {
            kind,
            id,
            native_id,
            old_native_id,
            title,
            tick,
            reason,
            at,
            seen_gone,
        },
    )
}

pub(crate) fn any_note() -> impl Strategy<Value = VersionNote> {
    let times = (tick(), time());
    (count(), update(), any::<bool>(), times, text(), text(), any::<u64>()).prop_map(
        |(updates, update, deleted, (tick, shown), title, reason, size)| VersionNote {
            updates,
            update,
            deleted,
            tick,
            shown,
            title,
            reason,
            size,
        },
    )
}

fn any_sharing() -> impl Strategy<Value = SharingOptions> {
    let policy = select(vec!["keep", "winner", "prefer:gate.example"]);
    (any::<bool>(), of(text()), vec(feed(), 0..3), vec(feed(), 0..3), policy).prop_map(
        |(local, title, sources, shares_with, policy)| SharingOptions {
            local,
            title,
            sources,
            shares_with,
            conflicts: policy.parse().unwrap(),
        },
    )
}

pub(crate) fn any_feed() -> impl Strategy<Value = FeedRecord> {
    let source = select(vec![FeedSource::File, FeedSource::CommandLine, FeedSource::Api]);
    let standing = select(vec![FeedStanding::Active, FeedStanding::Paused, FeedStanding::Gone]);
    let deletions = select(vec![Deletions::Safe, Deletions::Eager, Deletions::Off]);
    let interval = || of(any::<u64>().prop_map(Duration::from_millis));
    let ignore = ("[a-z]{1,8}(/[a-z:]{1,8})?", of("[a-z]{0,8}[0-9]?"))
        .prop_map(|(field, pattern)| Ignore::new(&field, pattern.as_deref()).unwrap());
    let probing = select(vec![Probing::Off, Probing::All, Probing::Doubts]);
    let noise = (select(Order::ALL.to_vec()), probing, any::<[bool; 2]>(), vec(ignore, 0..4));
    let options = (any::<bool>(), deletions, interval(), interval(), noise, any_sharing())
        .prop_map(|(complete, deletions, min_interval, max_interval, noise, sharing)| {
            let (order, probe, [backfill, secret], ignore) = noise;
            FeedOptions {
                complete,
                deletions,
                min_interval,
                max_interval,
                order,
                probe,
                backfill,
                ignore,
                sharing,
                secret: Some(secret).filter(|_| complete),
                ..FeedOptions::default()
            }
        });
    let members =
        select(vec![MemberStanding::Listed, MemberStanding::Dropped, MemberStanding::Own]);
    let list = (feed(), members, any::<u64>()).prop_map(|(list, standing, placed)| ListMember {
        list,
        standing,
        placed,
    });
    let on_demand =
        (text(), time(), any::<[bool; 2]>()).prop_map(|(site, asked, [is_let_go, is_json])| {
            OnDemand { site, asked, is_let_go, is_json }
        });
    let kept = (any_enrolment(), any_access(), any::<[bool; 2]>(), of(list), of(on_demand));
    (feed(), text(), source, standing, options, kept).prop_map(
        |(
            name,
            url,
            source,
            standing,
            options,
            (enrolment, access, [private, adds_feeds], list, on_demand),
        )| FeedRecord {
            name,
            url,
            source,
            standing,
            options,
            enrolment,
            access,
            private,
            adds_feeds,
            list,
            on_demand,
        },
    )
}

pub(crate) fn any_announced() -> impl Strategy<Value = LoggedChange> {
    (feed(), tick(), any::<u64>(), any::<u32>()).prop_map(|(feed, tick, revision, versions)| {
        LoggedChange { feed, tick, revision: Revision(revision), versions }
    })
}

pub(crate) fn any_floor() -> impl Strategy<Value = PurgeMark> {
    (any::<u64>(), of(tick()), any::<u64>(), time(), any::<u32>()).prop_map(
        |(revision, tick, render, shown, updates)| PurgeMark {
            revision: Revision(revision),
            tick,
            render,
            shown,
            updates,
        },
    )
}

pub(crate) fn any_order() -> impl Strategy<Value = Vec<SyncId>> {
    vec(sync_id(), 0..40)
}

pub(crate) fn any_kept() -> impl Strategy<Value = Vec<HeldEntry>> {
    let own = |text: Option<String>| text.map(std::borrow::Cow::Owned);
    let slots = (any::<usize>(), of(any::<usize>()), of(range()), of(range()));
    let names = (of(text()), any::<bool>(), of(text()), of(text()), of(text()));
    let fields = vec((text(), text()), 0..4);
    let kept = (".{0,200}", context(), slots, names, (of(time()), of(time())), fields).prop_map(
        move |(markup, context, slots, names, (published, updated), fields)| {
            let (attributes, inner, id, id_element) = slots;
            let (native_id, id_is_permalink, link, title, author) = names;
            let field =
                |(path, value): (String, String)| Field { path: path.into(), value: value.into() };
            Entry {
                span: 0..0,
                markup: markup.into(),
                slots: Slots { attributes, inner, id, id_element },
                context: context.into(),
                native_id: own(native_id),
                id_is_permalink,
                link: own(link),
                title: own(title),
                author: own(author),
                published,
                updated,
                projection: fields.into_iter().map(field).collect::<Vec<_>>().into(),
                sync: None,
            }
        },
    );
    let kept = (kept, format(), time(), any::<bool>())
        .prop_map(|(entry, format, since, foreign)| HeldEntry { entry, format, since, foreign });
    vec(kept, 0..4)
}
