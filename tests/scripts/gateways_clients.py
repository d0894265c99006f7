"""Who asks the gateways of gateways_run.py: readers and consumers that go from one to the other, an operator, and who
makes items."""

import collections
import hashlib
import http.client
import json
import random
import re
import stage
import threading
import time
import urllib.error
import urllib.request

from failing_disk_run import check
from gateways_stage import LEASE

# How long a stream of events is read from one gateway, in seconds.
STREAMED = 1
# How long the operator waits for a feed to be made, in seconds.
MADE_WITHIN = 40
# Who reads from a gateway that is cut off, and how long each waits for an answer, in seconds.
CUT_OFF_READERS, CUT_OFF_PATIENCE = 8, 6
# For how long a writer that lost the answer to a commit may serve what was before, in seconds: nine tenths of its lease,
# and what an answer takes. Others may write a little later.
MAY_LAG = 0.9 * LEASE + 0.3
# How long the gateway that writes may serve what was before a commit whose answer was lost, in seconds.
SETTLED_WITHIN = 10
# How far back SUP documents are asked for, in seconds: usually, and by who has had no answer for so long.
UPDATES_OF, UNANSWERED, UPDATES_OF_MOST = 60, 30, 86_400
# The pause after an item that was made, how long its answer is waited for, in seconds, and the feed that has them.
MAKING, MAKING_PATIENCE, MADE = 0.3, 10, "kept"


def digest(changes):
    """A few bytes for the changes of an epoch."""
    return hashlib.sha256(json.dumps(changes, sort_keys=True).encode()).digest()[:12]


def shows(text, change):
    """Whether a sync view has a change; so has what is none, since the feed was removed."""
    until = re.search(r'until="([^"]+)"', text)
    return not until or until.group(1) >= change["tick"]


class Clients:
    """Each is a thread. What a client saw is compared with what gateways say in the end."""

    def __init__(self, fleet, publisher):
        self.fleet, self.publisher = fleet, publisher
        self.ends, self.threads = threading.Event(), []
        # Set where nothing is published and nothing is made any more.
        self.rests = threading.Event()
        # Epochs of the change log by number, as digests, and the last tick of each feed.
        self.told, self.ticks = {}, {}
        # The last epoch of a stream of events, and the epoch, feed and tick of each event.
        self.streamed, self.events = 0, []
        self.updates, self.seen, self.lags = {}, collections.Counter(), []
        # The newest post of each feed that some gateway has shown, and the feeds that changed last.
        self.shown, self.changed = {}, collections.deque(maxlen=50)

    def begin(self):
        """Lets them ask until the end, while the publisher publishes."""
        jobs = [self.read, self.read, self.consume, self.listen, self.stream, self.operate]
        for job in [lambda: self.publisher.publish(self.rests), *jobs]:
            self.threads.append(self.start(job))

    def start(self, job):
        thread = threading.Thread(target=self.guarded, args=(job,), daemon=True)
        thread.start()
        return thread

    def guarded(self, job):
        try:
            job()
        except Exception as error:
            self.fleet.fault(f"a client failed: {error!r}")

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(stage.WAIT)

    def read(self):
        """A reader of any feed at any gateway: each document is one of the publisher's, and none is older."""
        fleet, newest = self.fleet, {}
        while not self.ends.is_set():
            feed = f"feed-{random.randrange(len(self.publisher.newest))}"
            may_lag = fleet.may_lag()
            answered = fleet.ask(f"/feeds/{feed}")
            if not answered:
                continue
            which, text = answered
            last, is_one = self.publisher.check_posts(feed, text)
            if not is_one:
                fleet.fault(f"{which}/feeds/{feed} is none of the publisher's: {text[:300]}")
            before, by = newest.get(feed, (0, ""))
            if last < before and which not in fleet.away:
                is_there = lambda text: self.publisher.check_posts(feed, text)[0] >= before
                if not (may_lag and self.catches_up(which, f"/feeds/{feed}", is_there)):
                    fleet.fault(f"{which}/feeds/{feed} shows post {last} after post {before}, which {by} showed")
            newest[feed] = max((last, f"{which} at {time.strftime('%H:%M:%S')}"), (before, by))
            self.shown[feed] = max(last, self.shown.get(feed, 0))

    def consume(self):
        """A consumer of the change log that goes from gateway to gateway, and asks another for what it is told of."""
        fleet, place = self.fleet, "0"
        while not self.ends.is_set():
            answered = fleet.ask(f"/changes?after={place}&wait=1")
            if not answered:
                continue
            for line in map(json.loads, answered[1].splitlines()):
                if line["epoch"] != len(self.told) + 1:
                    fleet.fault(f"epoch {line['epoch']} was told after {len(self.told)}")
                place, self.told[line["epoch"]] = line["id"], digest(line["changes"])
                for change in line["changes"]:
                    feed = change["feed"]
                    if change["tick"] <= self.ticks.get(feed, ""):
                        fleet.fault(f"{feed} has the tick {change['tick']} after {self.ticks[feed]}")
                    self.ticks[feed] = change["tick"]
                    if feed in self.publisher.newest:
                        self.changed.append(feed)
                # Of feeds that are not removed again.
                if changes := [change for change in line["changes"] if change["feed"] in self.publisher.newest]:
                    self.look_for(random.choice(changes))

    def look_for(self, change):
        """Who was told of a change finds it at any gateway."""
        fleet, may_lag = self.fleet, self.fleet.may_lag()
        shown = fleet.ask(path := f"/feeds/{change['feed']}/sync")
        if shown and not shows(shown[1], change):
            is_there = lambda text: shows(text, change)
            if not (may_lag and self.catches_up(shown[0], path, is_there)):
                fleet.fault(f"{shown[0]} shows {change['feed']} as before {change['tick']}, which was told")

    def catches_up(self, which, path, is_there):
        """Whether a gateway that shows what is older may do so while answers of the database are lost: it writes, and
        soon after the database answers it shows what others show."""
        fleet, begun = self.fleet, time.monotonic()
        if fleet.get(which, "/readyz")[1].startswith("standby"):
            return False
        until = begun + SETTLED_WITHIN
        while time.monotonic() < until:
            until = time.monotonic() + SETTLED_WITHIN if fleet.is_shaken else until
            status, text, _ = fleet.get(which, path)
            if status == 200 and is_there(text):
                self.lags.append(time.monotonic() - begun)
                return True
            time.sleep(0.01)
        return False

    def listen(self):
        """A consumer of SUP documents."""
        until = 0
        while not self.ends.is_set():
            asked = time.monotonic()
            answered = self.fleet.ask(f"/sup.json?seconds={UPDATES_OF if asked < until else UPDATES_OF_MOST}")
            for name, update in json.loads(answered[1])["updates"] if answered else []:
                self.updates[name] = max(update, self.updates.get(name, ""))
            until = asked + UNANSWERED if answered else until
            time.sleep(0.3)

    def stream(self):
        """A consumer of events, which goes on at another gateway where it was at the last one."""
        fleet, place = self.fleet, "0"
        while not self.ends.is_set():
            which = fleet.near()
            address = f"http://127.0.0.1:{fleet.ports[which]}/events"
            request = urllib.request.Request(address, headers={"last-event-id": place})
            is_shaken = fleet.is_shaken
            try:
                with urllib.request.urlopen(request, timeout=3) as answer:
                    until, at = time.monotonic() + STREAMED, place
                    while time.monotonic() < until and (line := answer.readline().decode()):
                        kind, _, said = line.rstrip("\n").partition(": ")
                        if (kind, said) == ("event", "reset"):
                            fleet.fault(f"{which}/events does not know {place}")
                        at = said if kind == "id" else at
                        if kind == "data":
                            event, place = json.loads(said), at
                            epoch = event["epoch"]
                            if epoch not in (self.streamed, self.streamed + 1):
                                fleet.fault(f"{which}/events told epoch {epoch} after {self.streamed}")
                            self.streamed = epoch
                            self.events.append((epoch, event["feed"], event["tick"]))
            except (OSError, http.client.HTTPException) as error:
                is_refused = isinstance(error, urllib.error.HTTPError)
                if is_refused and not (is_shaken or fleet.is_shaken or which in fleet.away):
                    fleet.fault(f"{which}/events answered {error.code}: {error.read()[:200]}")
                time.sleep(0.05)

    def operate(self):
        """An operator who asks any gateway about a feed, to make one, and to remove it again."""
        fleet, number = self.fleet, 0
        while not self.rests.is_set():
            number += 1
            name = f"own-{number}"
            if fleet.ask(f"/api/v1/feeds/feed-{number % len(self.publisher.newest)}", True):
                self.seen["shown"] += 1
            if not fleet.is_shaken and not fleet.away & {0, 1, 2}:
                made = fleet.get(fleet.near(), f"/api/v1/feeds/{name}", MADE_WITHIN, "PUT", {"local": True})
                self.seen[f"made {made[0]}"] += 1
                if made[0] == 201:
                    removed = fleet.get(fleet.near(), f"/api/v1/feeds/{name}", MADE_WITHIN, "DELETE")
                    self.seen[f"removed {removed[0]}"] += 1
            time.sleep(1)

    def goes_on(self, seconds, within):
        """What is published is told, at once or soon."""
        before = len(self.told)
        time.sleep(seconds)
        self.fleet.until("something was told", within, lambda: len(self.told) > before)


class Maker:
    """Makes items at any gateway, each once, and notes which were acknowledged. All of them must be there in the end, and
    at once at any gateway."""

    def __init__(self, clients):
        self.clients, self.fleet = clients, clients.fleet
        self.acknowledged, self.answers, self.ends = [], collections.Counter(), threading.Event()

    def begin(self):
        status, text, _ = self.fleet.get(self.fleet.near(), f"/api/v1/feeds/{MADE}", MADE_WITHIN, "PUT", {"local": True})
        check(status in (200, 201), f"the feed for items: {status} {text}")
        self.thread = self.clients.start(self.make)

    def end(self):
        self.ends.set()
        self.thread.join(stage.WAIT)

    def make(self):
        number = 0
        while not self.ends.wait(MAKING):
            number += 1
            path, body = f"/api/v1/feeds/{MADE}/items", {"title": f"made-{number}"}
            status, _, _ = self.fleet.get(self.fleet.near(), path, MAKING_PATIENCE, "POST", body)
            self.answers[status] += 1
            if status == 201:
                self.acknowledged.append(f"made-{number}")
                self.look_for(f"made-{number}")

    def look_for(self, title):
        """Who has it acknowledged may read his own write at any gateway."""
        fleet, may_lag = self.fleet, self.fleet.may_lag()
        which = fleet.near()
        status, text, _ = fleet.get(which, f"/feeds/{MADE}")
        if status == 200 and f">{title}<" not in text and not (may_lag or fleet.may_lag() or which in fleet.away):
            fleet.fault(f"{which}/feeds/{MADE} lacks {title}, which was acknowledged")

    def titles(self, which):
        """The items that a gateway shows."""
        status, text, _ = self.fleet.get(which, f"/feeds/{MADE}/complete")
        check(status == 200, f"gateway {which} answers {status} {text[:200]}")
        return re.findall(r">(made-\d+)</title>", text)

    def check_kept(self, when):
        acknowledged = list(self.acknowledged)
        check(acknowledged, f"{when}: no item was acknowledged: {dict(self.answers)}")
        for which in self.fleet.there():
            titles = self.titles(which)
            lost = sorted(set(acknowledged) - set(titles))
            check(not lost, f"{when}: gateway {which} lost {len(lost)} of {len(acknowledged)} items: {lost[:5]}")
            check(len(titles) == len(set(titles)), f"{when}: gateway {which} has items twice")


class CutOffReader:
    """Reads from a gateway that is cut off or stopped, which must not answer what others have left behind. Where it wrote
    and lost the answer to a commit, it may do so while its lease lasts, but must show what was shown before the cut.
    `before`: the newest posts by then, or nothing where there is no such commit."""

    def __init__(self, clients, which, before=None):
        self.clients, self.which, self.before = clients, which, before
        self.answers, self.stale, self.lagged = collections.Counter(), [], 0
        self.ends, self.begun, self.last = threading.Event(), time.monotonic(), 0
        for _ in range(CUT_OFF_READERS):
            clients.start(self.read)

    def read(self):
        while not self.ends.is_set():
            # What it has in memory, and what it would have to read.
            feeds = random.choice((list(self.clients.changed), list(self.clients.shown))) or ["feed-0"]
            feed = random.choice(feeds)
            others = self.clients.shown.get(feed, 0)
            status, text, _ = self.clients.fleet.get(self.which, f"/feeds/{feed}", CUT_OFF_PATIENCE)
            if self.ends.is_set():
                return
            seconds = time.monotonic() - self.begun
            self.answers[status or "none"] += 1
            if status == 200:
                self.last = max(self.last, seconds)
                post = self.clients.publisher.check_posts(feed, text)[0]
                if post < others and self.before is not None and seconds < MAY_LAG and post >= self.before.get(feed, 0):
                    self.lagged += 1
                elif post < others:
                    self.stale.append(f"after {seconds:.1f} s {feed} with post {post} after post {others}")
            time.sleep(0.05)

    def end(self):
        """The answers by status, when the last document came, how many documents lagged by a commit, and which were
        stale."""
        self.ends.set()
        return dict(self.answers), self.last, self.lagged, self.stale
