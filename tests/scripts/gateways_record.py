"""What was seen of several gateways from outside; what they promise of it; and for each promise controls: the same record
as gateways would have left it that break the promise. A check that finds nothing in its controls shows nothing."""

import bisect
import collections
import copy
import itertools
import typing

# What a change at one gateway may take until others show it, and how long a feed may wait for its poll beside its
# interval after a fault, in seconds.
LAG, TAKEN_OVER = 0.3, 15
# How long after the last fault subscribers may wait for the last document, in seconds.
DELIVERED = 60
# More faults than these of a check say nothing more.
SHOWN = 5

# All times are seconds of one clock. `by`: a gateway and its start; `which`: its number.
Poll = typing.NamedTuple("Poll", [("feed", str), ("by", str), ("at", float)])
# A document that was answered; `post`: its newest, or 0 where it is none of the publisher's.
View = typing.NamedTuple("View", [("which", int), ("asked", float), ("answered", float), ("status", int), ("feed", str),
                                  ("post", int)])
# An item that was posted, or redacted.
Item = typing.NamedTuple("Item", [("which", int), ("asked", float), ("answered", float), ("status", int),
                                  ("number", int)])
# All items of the feed that they are posted to, or of the aggregate that gathers them.
Listing = typing.NamedTuple("Listing", [("which", int), ("asked", float), ("view", str), ("numbers", tuple)])
# A change that was told, and the time of the last change that a gateway showed of its feed afterwards.
Told = typing.NamedTuple("Told", [("which", int), ("asked", float), ("feed", str), ("tick", str), ("shown", str)])
Delivery = typing.NamedTuple("Delivery", [("feed", str), ("at", float), ("post", int)])
# `away`: the gateways that it concerns. `is_outage`: nobody can poll or commit. `cuts`: answers to commits are lost.
Fault = typing.NamedTuple("Fault", [("what", str), ("away", frozenset), ("began", float), ("ended", float),
                                    ("is_outage", bool), ("cuts", bool)])


class Record:
    """Lists that grow while gateways run, and what is compared with them in the end."""

    def __init__(self, feeds, every):
        self.feeds, self.every = feeds, every
        self.polls, self.views, self.posts, self.redactions, self.listings = [], [], [], [], []
        self.told, self.deliveries, self.faults = [], [], []
        # The change log as consumers were told it: an epoch with its changes, and one event after the other.
        self.log, self.events = [], []
        # The update of each feed that a consumer of SUP documents saw last.
        self.updates = {}
        # Since when polls count, when the last fault was over, and when everything had come to rest.
        self.began, self.calm, self.rested = 0, 0, 0
        # By feed: its last post, and when it was published; of those that somebody subscribed to, the post by then.
        self.newest, self.published, self.subscribed = {}, {}, {}
        # By gateway: its log, the validator and newest post of each feed, and its updates in SUP documents.
        self.logs, self.pages, self.listed = {}, {}, {}
        # What clients met that no gateway may do.
        self.wrong = []

    def but(self, **parts):
        """The same record with other parts."""
        other = copy.copy(self)
        other.__dict__.update(parts)
        return other

    def outage(self, first, last):
        """For how long in this time nobody could poll."""
        return sum(max(0, min(last, fault.ended) - max(first, fault.began)) for fault in self.faults if fault.is_outage)

    def is_disturbed(self, request, cuts=False):
        """Whether a gateway may leave a request without an answer. `cuts`: also since commits are cut."""
        return any(fault.began <= request.answered and request.asked <= fault.ended
                   and (fault.is_outage or request.which in fault.away or (cuts and fault.cuts))
                   for fault in self.faults)


def is_done(request):
    return 200 <= request.status < 300


def kept(record):
    """Every acknowledged item is there, once, and none that was redacted: at its gateway at once, elsewhere soon."""
    touched = {item.number for item in record.redactions}
    for listing in record.listings:
        def by_then(items, listing=listing):
            lag = LAG if listing.view == "" else listing.asked - record.calm
            return {item.number for item in items if is_done(item)
                    and item.answered < listing.asked - lag * (item.which != listing.which or listing.view != "")}

        numbers = set(listing.numbers)
        if len(numbers) < len(listing.numbers):
            yield f"{listing.which}{listing.view} has items twice"
        if lost := by_then(record.posts) - numbers - touched:
            yield f"{listing.which}{listing.view} lacks {sorted(lost)[:5]} of {len(record.posts)} items"
        if left := by_then(record.redactions) & numbers:
            yield f"{listing.which}{listing.view} has {sorted(left)[:5]}, which were redacted"


def real(record):
    """Every document is one that the publisher had, and each of its posts was a change once."""
    yield from (f"{view.which} served a document of {view.feed} that no publisher had" for view in record.views
                if view.status == 200 and not view.post)
    yield from (f"{one.feed} was delivered as no publisher had it" for one in record.deliveries if not one.post)
    versions = collections.Counter()
    for change in itertools.chain(*record.log):
        versions[change["feed"]] += change["versions"]
    yield from (f"{feed} has {versions[feed]} versions of {newest} posts" for feed, newest in record.newest.items()
                if versions[feed] != newest)


def fresh(record):
    """No view goes back behind what any gateway has shown, but for a moment; that holds of one that wakes, too."""
    shown = collections.defaultdict(list)
    for view in sorted(record.views, key=lambda view: view.answered):
        of_feed = shown[view.feed]
        if view.status == 200 and view.post > (of_feed[-1][1] if of_feed else 0):
            of_feed.append((view.answered, view.post, view.which))
    for view in record.views:
        of_feed = shown[view.feed]
        before = bisect.bisect_left(of_feed, (view.asked - LAG,))
        if view.status == 200 and before and view.post < of_feed[before - 1][1]:
            at, post, which = of_feed[before - 1]
            yield f"{view.which} showed {view.feed} with post {view.post}, {view.asked - at:.2f} s after {which} with {post}"


def told(record):
    """Consumers that go from gateway to gateway were told every change once, in the order that all gateways tell."""
    first, *others = record.logs.values()
    if any(log != first for log in others):
        yield "gateways tell other changes"
    if record.log != first:
        apart = next((at for at, (one, other) in enumerate(zip(record.log, first, strict=False)) if one != other), -1)
        yield f"a consumer was told {len(record.log)} epochs of {len(first)}, others from {apart + 1} on"
    changes = [(epoch, change["feed"], change["tick"]) for epoch, line in enumerate(first, 1) for change in line]
    if sorted(record.events) != sorted(changes):
        yield f"the stream told {len(record.events)} changes, {len(set(record.events))} different ones, of {len(changes)}"
    ticks, revisions = {}, collections.Counter()
    for change in itertools.chain(*first):
        feed = change["feed"]
        if change["tick"] <= ticks.get(feed, "") or (feed in record.newest and change["revision"] != revisions[feed] + 1):
            yield f"{feed} has {change} after the tick {ticks.get(feed)} and the revision {revisions[feed]}"
        ticks[feed], revisions[feed] = change["tick"], change["revision"]
    first, *others = record.listed.values()
    if any(listed != first for listed in others):
        yield "gateways list other updates in SUP documents"
    if missed := {name for name, update in first.items() if record.updates.get(name) != update}:
        yield f"a consumer of SUP documents has seen other updates of {len(missed)} feeds than are listed"


def found(record):
    """Who was told of a change finds it at every gateway."""
    yield from (f"{one.which} showed {one.feed} as of {one.shown}, which was told as of {one.tick}" for one in record.told
                if one.shown < one.tick)


def by_feed(polls):
    polled = collections.defaultdict(list)
    for poll in sorted(polls, key=lambda poll: poll.at):
        polled[poll.feed].append(poll)
    return polled


def polled_by_one(record):
    """No feed is polled by two for longer than one interval. Who did not poll for two intervals, or was away, is one
    that begins anew."""
    for feed, polls in by_feed(record.polls).items():
        runs, last = [], {}
        for poll in polls:
            run = last.get(poll.by)
            which = int(poll.by.split("-")[1])
            is_new = run is None or poll.at - run[1] > 2 * record.every or any(
                fault.began < poll.at and run[1] < fault.ended and (fault.is_outage or which in fault.away)
                for fault in record.faults)
            if is_new:
                runs.append(run := [poll.at, poll.at, poll.by])
                last[poll.by] = run
            run[1] = poll.at
        for one, other in itertools.combinations(runs, 2):
            both = min(one[1], other[1]) - max(one[0], other[0])
            if one[2] != other[2] and both > record.every:
                yield f"{feed} was polled by {one[2]} and {other[2]} for {both:.1f} s"


def polled_soon(record):
    """No feed waits for its poll for longer than a takeover beside its interval."""
    polled = by_feed(record.polls)
    for feed in record.feeds:
        times = [(poll.at, poll.by) for poll in polled[feed]]
        times = [(record.began, "nobody"), *times, (record.rested, "nobody")]
        for (before, by), (after, then) in itertools.pairwise(times):
            pause = after - before - record.outage(before, after)
            if pause > record.every + TAKEN_OVER:
                yield f"{feed} was not polled for {pause:.1f} s, by {by}, then by {then}"


def shared(record):
    """Every gateway polls a part when all is calm."""
    by = collections.Counter(poll.by.split("-")[1] for poll in record.polls if poll.at > record.calm)
    yield from (f"gateway {which} polls nothing: {dict(by)}" for which in record.pages if not by[str(which)])


def answered(record):
    """Gateways that nothing disturbs answer readers and take changes, while others are away, too."""
    yield from (f"{view.which} answered {view.status} for {view.feed}" for view in record.views
                if not is_done(view) and not record.is_disturbed(view))
    yield from (f"{item.which} answered {item.status} to item {item.number}" for item in record.posts
                if not is_done(item) and not record.is_disturbed(item, cuts=True))
    yield from (f"{fault.what}: no change was taken" for fault in record.faults
                if fault.away and not fault.is_outage and not any(
                    is_done(item) and item.which not in fault.away and fault.began < item.asked and
                    item.answered < fault.ended for item in record.posts))


def delivered(record):
    """Subscribers of the hub get nothing that is older than what came before, and the last document soon."""
    last, first_with = {}, {}
    for one in sorted(record.deliveries, key=lambda one: one.at):
        if one.post < last.get(one.feed, 0):
            yield f"a delivery of {one.feed} ends with post {one.post} after one with {last[one.feed]}"
        last[one.feed] = one.post
        first_with.setdefault((one.feed, one.post), one.at)
    for feed, post in record.subscribed.items():
        newest, due = record.newest[feed], max(record.calm, record.published.get(feed, 0)) + DELIVERED
        if newest > post and first_with.get((feed, newest), due + 1) > due:
            yield f"a subscriber of {feed} lacks post {newest} of {record.published[feed]:.0f}, it has {last.get(feed)}"


def same(record):
    """In the end all gateways serve the same, which is the publisher's last document."""
    first, *others = record.pages.values()
    for feed, newest in record.newest.items():
        if first[feed][1] != newest:
            yield f"{feed} ends with post {first[feed][1]} of {newest}"
        if any(other[feed] != first[feed] for other in others):
            yield f"gateways serve {feed} in different ways"


def controls(record):
    """Records that break a promise each, by its check."""
    listing, view, one = record.listings[-1], record.views[-1], record.deliveries[-1]
    redacted = next(item for item in record.redactions if is_done(item))
    touched = {item.number for item in record.redactions}
    due = next(item.number for item in record.posts if is_done(item) and item.number not in touched)
    listed = lambda numbers: record.but(listings=[*record.listings, listing._replace(numbers=numbers)])
    yield "an item is lost", kept, listed(tuple(number for number in listing.numbers if number != due))
    yield "an item is there twice", kept, listed((*listing.numbers, listing.numbers[0]))
    yield "a redacted item is there", kept, listed((*listing.numbers, redacted.number))
    yield "a document of nobody's", real, record.but(views=[*record.views, view._replace(status=200, post=0)])
    yield "a delivery of nobody's", real, record.but(deliveries=[*record.deliveries, one._replace(post=0)])
    feed = view.feed
    yield "a post too many", real, record.but(newest={**record.newest, feed: record.newest[feed] + 1})
    later = next(view for view in record.views if view.post > 1)
    back = later._replace(asked=later.answered + LAG + 0.01, post=later.post - 1, which=later.which + 1)
    yield "a view goes back", fresh, record.but(views=[*record.views, back])
    yield "an epoch is missed", told, record.but(log=record.log[:5] + record.log[6:])
    yield "an epoch is told twice", told, record.but(log=record.log[:5] + record.log[4:])
    yield "an event is missed", told, record.but(events=record.events[:-1])
    yield "an event is told twice", told, record.but(events=[*record.events, record.events[-1]])
    yield "an update is missed", told, record.but(updates=dict(list(record.updates.items())[1:]))
    yield "logs differ", told, record.but(logs={**record.logs, -1: next(iter(record.logs.values()))[:-1]})
    yield "what was told is not there", found, record.but(told=[*record.told, record.told[-1]._replace(shown="")])
    twice = [poll._replace(by="gateway-9-0", at=poll.at + 0.1) for poll in record.polls if poll.feed == feed]
    yield "two poll", polled_by_one, record.but(polls=record.polls + twice)
    end = record.calm + record.every + TAKEN_OVER + 2 * record.every
    rests = [poll for poll in record.polls if poll.feed != feed or not record.calm < poll.at < end]
    yield "nobody polls", polled_soon, record.but(polls=rests, rested=max(record.rested, end))
    idle = [poll for poll in record.polls if "gateway-0-" not in poll.by]
    yield "one polls nothing", shared, record.but(polls=idle)
    yield "a reader is refused", answered, record.but(views=[*record.views, View(0, record.calm + 1, record.calm + 1, 503,
                                                                                 feed, 0)])
    yield "an item is refused", answered, record.but(posts=[*record.posts, Item(0, record.calm + 1, record.calm + 1, 503, 0)])
    fault = Fault("a kill", frozenset({0}), record.calm + 1, record.calm + 1, False, False)
    yield "nobody takes changes", answered, record.but(faults=[*record.faults, fault])
    newer = record.but(deliveries=[*record.deliveries, one._replace(at=one.at + 1, post=one.post - 1)])
    yield "an older delivery", delivered, newer
    late = [each._replace(at=each.at + 2 * DELIVERED + record.rested - record.calm) for each in record.deliveries]
    yield "late deliveries", delivered, record.but(deliveries=late)
    pages = {**record.pages, 0: {**record.pages[0], feed: ("", 0)}}
    yield "gateways differ", same, record.but(pages=pages)


def check(record):
    """What is wrong, in words; and what was compared."""
    checks = (kept, real, fresh, told, found, polled_by_one, polled_soon, shared, answered, delivered, same)
    wrong = record.wrong[:SHOWN] + [f"{of.__name__}: {said}" for of in checks
                                    for said in itertools.islice(of(record), SHOWN)]
    of = 0
    for what, promise, broken in controls(record):
        of += 1
        if not any(True for _ in promise(broken)):
            wrong.append(f"the check {promise.__name__} does not find that {what}: it shows nothing")
    shown = {"polls": record.polls, "views": record.views, "items posted": record.posts, "redacted": record.redactions,
             "listings": record.listings, "epochs": record.log, "looks for what was told": record.told,
             "deliveries": record.deliveries}
    return wrong, ", ".join(f"{len(seen)} {what}" for what, seen in shown.items()) + f"; {of} controls broke them"
