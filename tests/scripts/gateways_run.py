"""Several gateways on one database that share the polls, and what is done to them. See postgres.sh.

They are killed, stopped and woken, ended, cut off from the network, and their database is killed; connections are cut
at commits. A publisher of many hosts notes who polls which feed when. Readers, consumers and subscribers compare what
they see with what is there in the end, and negative controls must miss some of it. What is acknowledged to who makes
items is looked for. By hand: postgres.sh takes `--feeds`, `--every` and `--rounds` for a longer run, as `.ci/long` does.
"""

import collections
import concurrent.futures
import json
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

from failing_disk_run import check
from gateways_clients import SETTLED_WITHIN, UPDATES_OF_MOST, Clients, CutOffReader, Maker, digest
from gateways_controls import ClockReader, PositionReader
from gateways_database import AHEAD, BEHIND, Database
from gateways_hub import Subscribers
from gateways_stage import LEASE, SOON, Fleet, Publisher
from stage import WAIT

# How many feeds are added at once.
ADDED_AT_ONCE = 16
# Within what time a feed is added, in seconds.
ADDED_WITHIN = 300
# One commit in so many is cut, for so many seconds.
CUT_ONE_IN, CUT_SECONDS = 5, 12
# How long the negative controls go on once all is delivered, in seconds.
AFTERWARDS = 3
# So many are cut at least behind a commit, and as many ahead of one.
FEWEST_CUTS = 2
# How long a gateway may take to be there again after it was woken, or is no longer cut off, in seconds.
BACK_WITHIN = 45
# How long it may take until something is written again after the database was killed, in seconds.
REOPENED_WITHIN = 60
# How long a gateway keeps shards whose publishers it does not reach, in seconds: polls time out, for two minutes.
LEFT_WITHIN = 240
# How long who reads from a gateway that is stopped waits until it is woken, and reads on then, in seconds.
ASLEEP, AWAKE = 1, 3
# How much later than its interval a feed is polled while nothing is disturbed, in seconds.
LATE = 5
# A gateway that ends gives over what it has: nobody waits for its lease, in seconds.
GIVEN_OVER_WITHIN = LEASE - 3
# How often the database is killed at most until the reader by position was deceived.
KILLS = 5
# How long that reader may take to see a commit, in seconds.
SEEN_WITHIN = 0.03
# Of more feeds than so many the reader by time reads one in so many; else those that are subscribed to.
FEW, MANY_STEP = 240, 20


class Stage:
    """What takes part in a run."""

    def __init__(self, program, work, file, restart, feeds, every, psql):
        self.restart, url = restart, pathlib.Path(file).read_text().strip()
        self.publisher, self.database = Publisher(feeds, every), Database(url, 4)
        self.fleet = Fleet(program, work, self.database, self.publisher, 4)
        self.clients = Clients(self.fleet, self.publisher)
        self.maker = Maker(self.clients)
        self.subscribers = Subscribers(self.fleet, self.publisher)
        self.rested, self.controls = threading.Event(), []
        # Of many feeds each seldom changes.
        some = self.subscribers.feeds if feeds <= FEW else sorted(self.publisher.newest)[::MANY_STEP]
        self.by_time = ClockReader(self.fleet, some, self.rested)
        self.by_position = PositionReader(psql, url, self.rested)
        # How long each disturbance kept shards or changes waiting, and a feed at the longest, in seconds, and what else
        # there is to tell.
        self.took, self.pause, self.notes, self.made = {}, 0, [], 0
        # When the last disturbance began.
        self.disturbed = 0

    def begin(self):
        fleet, publisher = self.fleet, self.publisher
        fleet.start(0)
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(ADDED_AT_ONCE) as pool:
            list(pool.map(self.add, range(len(publisher.newest))))
        self.notes.append(f"{len(publisher.newest)} feeds added in {time.monotonic() - begun:.1f} s")
        every_feed = set(publisher.newest)
        fleet.until("the first polls", 60 + publisher.every, lambda: set(publisher.last) == every_feed)
        with publisher.lock:
            publisher.longest.clear()
        # Shards that move are a disturbance, too.
        self.disturbed = time.monotonic()
        fleet.start(1)
        fleet.start(2)
        check(fleet.get(0, "/readyz")[1] == "ready\n", f"/readyz of the writer: {fleet.get(0, '/readyz')}")
        standby = fleet.get(1, "/readyz")
        check(standby[1].startswith("standby: the gateway process "), f"/readyz: {standby}")
        for which, is_standby in ((0, 0), (1, 1), (2, 1)):
            metrics = fleet.get(which, "/metrics", WAIT)
            check(f"tidegate_standby {is_standby}\n" in metrics[1], f"tidegate_standby of {which}: {metrics[:2]}")
        check("this one polls its part" in fleet.get(1, "/")[1], "the overview of a gateway that follows")
        self.took["shared"] = fleet.until_shared("three gateways")
        self.subscribers.subscribe()
        self.clients.begin()
        self.maker.begin()
        self.controls = [self.clients.start(control.read) for control in (self.by_time, self.by_position)]
        self.goes_on(6)

    def add(self, number):
        """Adds a feed; later, where the gateway is hard pressed by those before it."""
        until = time.monotonic() + ADDED_WITHIN
        body = {"url": self.publisher.address(number)}
        while True:
            status, said, _ = self.fleet.get(0, f"/api/v1/feeds/feed-{number}", WAIT, "PUT", body)
            if status == 201:
                return
            check(status == 503 and time.monotonic() < until, f"feed-{number} was not added: {status} {said}")
            time.sleep(1)

    def goes_on(self, seconds):
        """Changes are told, at once or soon."""
        self.clients.goes_on(seconds, SOON + self.publisher.every)

    def writer(self, what=None):
        """The gateway that writes; waits until there is one. Most often there is."""
        writers = []

        def is_there():
            writers[:] = [self.fleet.writer()]
            return writers != [None]

        self.fleet.until(f"{what}, and somebody writes" if what else "somebody writes", SOON, is_there)
        return writers[0]

    def others(self):
        """Those of the first three that do not write."""
        writer = self.writer()
        return [which for which in (0, 1, 2) if which != writer]

    def check_pauses(self, what, more=0):
        """No feed was left unpolled too long since this was asked last. `more`: for how long nobody can poll, in
        seconds."""
        pause, bound = self.publisher.take_pause(), self.publisher.every + 2 * LEASE + more
        self.pause = max(self.pause, pause.seconds)
        check(pause.seconds < bound, f"{what}: {pause}, the bound is {bound:.1f}")

    def one_at_a_time(self, what):
        """Before the next disturbance, waits until each feed was polled since the one before, and is not late: a feed
        that waits for its poll after one gateway is gone may meet the next, and no bound is for both."""
        publisher = self.publisher

        def all_polled():
            with publisher.lock:
                since = max(self.disturbed, time.monotonic() - publisher.every - LATE)
                return all(at > since for at, _ in publisher.last.values())

        self.fleet.until(f"each feed was polled before {what}", publisher.every + 2 * LEASE, all_polled)
        self.disturbed = time.monotonic()

    def kill(self, which, what):
        self.fleet.away.add(which)
        self.fleet.gateways[which].process.kill()
        self.fleet.gateways[which].process.wait()
        self.took[what] = self.fleet.until_shared(what)
        self.writer(what)
        self.goes_on(3)
        # One that cannot join within a few tries ends, for whoever started it to start it again.
        time.sleep(max(0, self.fleet.cut_until - SETTLED_WITHIN - time.monotonic()))
        self.fleet.start(which)
        self.fleet.until_shared(f"{what}, and back")

    def end(self, which, what):
        """Ends a gateway in order; how long it took until others write and poll in its place, in seconds."""
        self.fleet.away.add(which)
        begun = time.monotonic()
        self.fleet.gateways[which].end()
        self.took[what] = self.fleet.until_shared(what)
        self.writer(what)
        seconds = time.monotonic() - begun
        self.goes_on(3)
        return seconds

    def end_in_order(self, which, what):
        seconds = self.end(which, what)
        check(seconds < GIVEN_OVER_WITHIN, f"{what}: others had what it had after {seconds:.1f} s")

    def is_back(self, which):
        """Waits until a gateway answers again that was stopped or cut off."""
        self.fleet.until(f"gateway {which} is back", BACK_WITHIN,
                         lambda: self.fleet.get(which, "/readyz", 5)[0] == 200)
        self.fleet.away.discard(which)

    def stop(self, which):
        self.fleet.away.add(which)
        self.fleet.gateways[which].process.send_signal(signal.SIGSTOP)

    def wake(self, which, what):
        """Wakes a gateway: what waits at it by then is answered with nothing that others have left behind."""
        reader = CutOffReader(self.clients, which)
        time.sleep(ASLEEP)
        self.fleet.gateways[which].process.send_signal(signal.SIGCONT)
        time.sleep(AWAKE)
        self.check_stale(reader, f"{what}, once woken")

    def cut_off(self, which, at_commit=None):
        """Cuts a gateway off from the database and the publisher; who reads from it meanwhile. At a commit it is cut off
        from the database alone, and the publisher keeps its polls waiting: it must end them itself."""
        agent, publisher = f"gateway-{which}", self.publisher
        publisher.held = 0
        if at_commit:
            publisher.slow.add(agent)
            self.fleet.until("a poll is in flight", publisher.every + LEASE, lambda: publisher.held)
        self.fleet.away.add(which)
        before = dict(self.clients.shown) if at_commit == BEHIND else None
        self.database.cut_off(which, at_commit)
        if not at_commit:
            publisher.cut_off.add(agent)
        return CutOffReader(self.clients, which, before)

    def check_stale(self, reader, what):
        answers, last, lagged, stale = reader.end()
        behind = f", {lagged} of them from before the commit whose answer was lost" if reader.before else ""
        self.notes.append(f"{what}: it answered {answers}, documents for {last:.1f} s{behind}")
        for said in stale[:1]:
            self.fleet.fault(f"{what}: {len(stale)} of {sum(answers.values())} answers were stale, {said}")

    def heal(self, which, reader, what):
        """Ends that, after a look at what it answered."""
        status = self.fleet.get(which, "/readyz", 10)[0]
        check(status != 200, f"{what}: /readyz of a gateway that is cut off answers {status}")
        self.check_stale(reader, what)
        if (agent := f"gateway-{which}") in self.publisher.slow:
            self.notes.append(f"{what}: the publisher kept {self.publisher.held} polls waiting")
        self.publisher.cut_off.discard(agent)
        self.publisher.slow.discard(agent)
        self.database.heal(which)

    def leave_publisher(self):
        """A gateway reaches the database and no publisher: after some minutes it leaves its shards to the others, and
        goes on answering readers. The feeds that it polled have waited for as long."""
        fleet, publisher = self.fleet, self.publisher
        agent = f"gateway-{(which := self.others()[0])}"
        # By then each feed was polled by who has it now; who has one of a host's has all of them.
        self.one_at_a_time("a gateway reaches no publisher")
        time.sleep(publisher.every)
        self.check_pauses("before a gateway reaches no publisher")
        with publisher.lock:
            out = time.monotonic()
            hosts = {publisher.host(feed) for feed, (_, by) in publisher.last.items() if by == agent}
        publisher.cut_off.add(agent)
        # It polls again when it likes to.
        fleet.idle.add(which)
        fleet.until("a gateway reaches no publisher", LEFT_WITHIN + publisher.every,
                    lambda: fleet.shards(which) == 0)
        fleet.until_shared("a gateway reaches no publisher, and its feeds are polled")
        self.took["out of reach of the publisher"] = time.monotonic() - out
        publisher.cut_off.discard(agent)
        time.sleep(publisher.every)
        self.goes_on(3)
        with publisher.lock:
            # Those are waited for from now on, polled again or not yet.
            for feed in [feed for feed in publisher.newest if publisher.host(feed) in hosts]:
                publisher.longest.pop(feed, None)
                publisher.last[feed] = (time.monotonic(), agent)
        self.check_pauses("a gateway reached no publisher")

    def kill_database(self):
        """Kills the database right after a commit that is not durable yet: who goes by position has seen it."""
        fleet = self.fleet
        self.one_at_a_time("the database is killed")
        writer = self.writer()
        fleet.is_shaken = True
        self.database.cut_off(writer, BEHIND)
        time.sleep(SEEN_WITHIN)
        subprocess.run(self.restart, shell=True, check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.database.heal(writer)
        # The gateway that writes may note only by a write that some of its own are gone.
        took = fleet.until("a write after the database was killed", REOPENED_WITHIN, self.writes)
        fleet.until("all gateways are back", BACK_WITHIN,
                    lambda: all(fleet.get(which, "/readyz", 5)[0] == 200 for which in fleet.there()))
        fleet.until_shared("after the database was killed")
        fleet.is_shaken = False
        self.goes_on(3)
        # What was taken back may have come again by now.
        return took, self.by_position.is_deceived()

    def kill_databases(self):
        """Kills the database until the reader by position was deceived."""
        for kills in range(1, KILLS + 1):
            took, is_deceived = self.kill_database()
            self.took["a killed database"] = max(took, self.took.get("a killed database", 0))
            if is_deceived:
                break
        self.notes.append(f"the database was killed {kills} times")

    def writes(self):
        """Whether a feed can be made and removed."""
        self.made += 1
        name = f"/api/v1/feeds/made-{self.made}"
        made = self.fleet.get(self.fleet.near(), name, method="PUT", body={"local": True})
        return made[0] == 201 and self.fleet.get(self.fleet.near(), name, method="DELETE")[0] == 204

    def disturb(self):
        fleet = self.fleet
        self.one_at_a_time("a kill")
        # Connections are cut at commits while the shards of a gateway that was killed wait for another.
        fleet.cut_until = time.monotonic() + CUT_SECONDS + SETTLED_WITHIN
        for which in fleet.there():
            self.database.cut(which, CUT_ONE_IN, CUT_SECONDS)
        self.kill(self.others()[0], "a kill")
        # One more; of the others one is stopped while one is cut off.
        fleet.start(3)
        self.took["a fourth"] = fleet.until_shared("a fourth gateway")
        self.one_at_a_time("a stop and a cut")
        off, stopped = self.others()
        self.stop(stopped)
        reader = self.cut_off(off)
        self.took["a stop and a cut"] = fleet.until_shared("a stop and a cut")
        self.goes_on(3)
        self.heal(off, reader, "a cut")
        self.wake(stopped, "a stop")
        self.is_back(off)
        self.is_back(stopped)
        fleet.until_shared("a stop and a cut, and back")
        self.one_at_a_time("an end")
        self.end_in_order(3, "an end")
        # The one that writes.
        self.one_at_a_time("an end of the writer")
        ended, fleet.is_headless = self.writer(), True
        self.end_in_order(ended, "an end of the writer")
        fleet.start(ended)
        fleet.until_shared("an end of the writer, and back")
        self.one_at_a_time("a kill of the writer")
        self.kill(self.writer(), "a kill of the writer")
        self.one_at_a_time("a stop of the writer")
        stopped = self.writer()
        self.stop(stopped)
        self.took["a stop of the writer"] = fleet.until_shared("a stop of the writer")
        self.writer("a stop of the writer")
        self.goes_on(3)
        self.wake(stopped, "a stop of the writer")
        self.is_back(stopped)
        fleet.until_shared("a stop of the writer, and woken")
        self.one_at_a_time("a cut of the writer")
        # At the worst moment: within a transaction, or when it may have been committed.
        off, way = self.writer(), random.choice((AHEAD, BEHIND))
        self.notes.append(f"the writer was cut off {way} its commit")
        reader = self.cut_off(off, way)
        self.took["a cut of the writer"] = fleet.until_shared("a cut of the writer")
        self.writer("a cut of the writer")
        self.goes_on(3)
        self.heal(off, reader, "a cut of the writer")
        self.is_back(off)
        fleet.until_shared("a cut of the writer, and back")
        fleet.is_headless = False
        if callable(self.restart):
            self.restart(self)
        else:
            self.kill_databases()
        counts = [self.database.count(which) for which in range(len(fleet.ports))]
        behind, ahead = (sum(count[way] for count in counts) for way in (BEHIND, AHEAD))
        lags = self.clients.lags
        self.notes.append(f"connections cut {behind} times behind a commit, {ahead} times ahead of one; others showed "
                          f"{len(lags)} changes before the gateway that writes, up to {max(lags, default=0):.1f} s; "
                          f"{fleet.unanswered} questions to it got no answer")
        check(behind >= FEWEST_CUTS and ahead >= FEWEST_CUTS, f"too few commits were cut: {counts}")

    def rest(self):
        """Nothing is published any more, and everything that was arrives."""
        self.goes_on(5)
        self.clients.rests.set()
        self.maker.end()
        time.sleep(self.publisher.every)
        lacking, begun = set(self.publisher.newest), time.monotonic()
        while self.still_lack(lacking) and time.monotonic() < begun + self.publisher.every + 2 * LEASE + SOON:
            time.sleep(1)
        self.took["the last posts"], lacking_posts = time.monotonic() - begun, lacking
        try:
            self.fleet.until("all is delivered", 3 * SOON, lambda: not self.subscribers.lacking())
        except RuntimeError as error:
            lacking = self.subscribers.lacking()
            told = self.fleet.get(self.fleet.near(), "/api/v1/subscriptions")[1]
            raise RuntimeError(f"{error}; subscribers lack {lacking}, gateways {sorted(lacking_posts)[:9]}; {told}") from error
        # The controls have had their time as well.
        time.sleep(AFTERWARDS)
        clients = self.clients
        self.fleet.until("the stream has come to the end", SOON, lambda: clients.streamed >= len(clients.told))
        clients.end()
        self.rested.set()
        for control in self.controls:
            control.join(SOON)

    def still_lack(self, feeds):
        """Takes out the feeds that have the publisher's newest post; whether any are left."""
        for feed in sorted(feeds):
            text = self.fleet.get(self.fleet.near(), f"/feeds/{feed}")[1]
            if self.publisher.check_posts(feed, text)[0] == self.publisher.newest[feed]:
                feeds.discard(feed)
        return bool(feeds)

    def end_all(self):
        for ends in (self.clients.ends, self.clients.rests, self.maker.ends, self.rested):
            ends.set()
        for gateway in filter(None, self.fleet.gateways):
            gateway.process.kill()
        self.database.end()


def gateways(program, work, file, restart, feeds=150, every=3, rounds=1, psql=None):
    """Three gateways on the database whose address is in `file`, and for a while a fourth.

    `restart` is a command that kills the database and starts it again, or is called with the stage and does something
    to the database."""
    psql = psql or shutil.which("psql") or str(max(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql")))
    stage = Stage(program, work, file, restart, feeds, every, psql)
    try:
        stage.begin()
        for number in range(rounds):
            stage.disturb()
            stage.check_pauses(f"round {number + 1}")
            if rounds > 1 and number == 0:
                stage.leave_publisher()
        stage.rest()
        finish(stage, has_controls=not callable(restart))
    finally:
        stage.end_all()


def finish(stage, has_controls=True):
    """Compares what gateways say with what the publisher has, and with what clients saw."""
    fleet, publisher, clients, there = stage.fleet, stage.publisher, stage.clients, stage.fleet.there()
    stage.check_pauses("in the end")
    for feed, newest in publisher.newest.items():
        answers = [fleet.get(which, f"/feeds/{feed}") for which in there]
        texts, tags = {text for _, text, _ in answers}, {headers.get("etag") for _, _, headers in answers}
        check(len(texts) == 1 and len(tags) == 1, f"gateways serve {feed} in {len(texts)} ways, with the tags {tags}")
        is_it = publisher.check_posts(feed, texts.pop()) == (newest, True)
        check(is_it, f"{feed} is not the document with post {newest}; {publisher.last_answer(feed)}")
    stage.maker.check_kept("in the end")
    check(clients.seen["made 201"] and clients.seen["shown"], f"an operator was answered {dict(clients.seen)}")
    epochs, changes, updates = check_log(fleet, publisher, clients)
    check_updates(fleet, clients, updates)
    faults = fleet.faults + publisher.faults
    check(not faults, f"{len(faults)} faults: {faults[:8]}")
    stage.notes.append(check_subscribers(stage.subscribers))
    if has_controls:
        stage.notes.append(check_controls(stage, changes))
    for which in there:
        fleet.gateways[which].end()
    shown = ", ".join(f"{what} {seconds:.1f}" for what, seconds in stage.took.items())
    print(f"{len(there)} gateways shared {len(publisher.newest)} feeds: all shards were polled again, in seconds: "
          f"{shown}; {sum(publisher.polls.values())} polls ({dict(publisher.polls)}), none twice at once, the longest "
          f"pause {stage.pause:.1f} s at an interval of {publisher.every}; {epochs} epochs, answers {dict(fleet.answers)}, "
          f"operators {dict(clients.seen)}, {len(stage.maker.acknowledged)} items acknowledged, none lost and none twice, "
          f"answers to who made them {dict(stage.maker.answers)}; {'; '.join(stage.notes)}")


def read_log(fleet, which):
    """The change log as a gateway tells it, a line for each epoch."""
    log, place = [], "0"
    while lines := fleet.get(which, f"/changes?after={place}&wait=0")[1].splitlines():
        place = json.loads(lines[-1])["id"]
        log += lines
    return log


def check_log(fleet, publisher, clients):
    """What consumers were told is everything, and everything once; how many epochs there are, the changes by epoch, feed
    and tick, and the last update of each feed by the name that SUP documents have for it."""
    logs = [read_log(fleet, which) for which in fleet.there()]
    check(all(log == logs[0] for log in logs), "gateways tell other changes")
    missed, ticks, revisions, versions = [], {}, collections.Counter(), collections.Counter()
    changes, updates = set(), {}
    for count, line in enumerate(map(json.loads, logs[0]), 1):
        check(line["epoch"] == count, f"epochs are not dense: {line['epoch']} follows {count - 1}")
        if clients.told.get(count) != digest(line["changes"]):
            missed.append(count)
        for change in line["changes"]:
            feed, tick, revision = change["feed"], change["tick"], change["revision"]
            if feed in publisher.newest:
                check(tick > ticks.get(feed, ""), f"the tick of {feed} does not rise")
                check(revision == revisions[feed] + 1, f"{feed} has revision {revision} after {revisions[feed]}")
                ticks[feed], revisions[feed] = tick, revision
                versions[feed] += change["versions"]
                updates[change["sup_id"]] = change["update_id"]
                changes.add((count, feed, tick))
    check(not missed and len(clients.told) == len(logs[0]), f"a consumer missed {missed} of {len(logs[0])}")
    events = [event for event in clients.events if event[1] in publisher.newest]
    check(len(events) == len(changes) and set(events) == changes,
          f"the stream told {len(events)} changes, {len(set(events))} different ones, of {len(changes)}; it lacks "
          f"{sorted(changes.difference(events))[:5]}")
    other = {feed: versions[feed] for feed, newest in publisher.newest.items() if versions[feed] != newest}
    check(not other, f"feeds have other numbers of versions than of posts: {other}")
    return len(logs[0]), changes, updates


def check_updates(fleet, clients, updates):
    """All gateways list the last update of each feed in SUP documents, and a consumer has seen what is listed."""
    path = f"/sup.json?seconds={UPDATES_OF_MOST}"
    listed, *others = [dict(json.loads(fleet.get(which, path)[1])["updates"]) for which in fleet.there()]
    check(all(other == listed for other in others), "gateways list other updates in SUP documents")
    lost = {name for name, update in updates.items() if listed.get(name) != update}
    check(not lost, f"SUP documents have other updates of {lost} than the last ones")
    missed = {name for name, update in listed.items() if clients.updates.get(name) != update}
    check(not missed, f"a consumer of SUP documents has seen other updates of {missed} than are listed")


def check_subscribers(subscribers):
    check(subscribers.deliveries, "nothing was delivered to subscribers of the hub")
    lacking = subscribers.lacking()
    check(not lacking, f"subscribers of the hub lack posts: {lacking}")
    return (f"{subscribers.deliveries} deliveries to subscribers of {len(subscribers.feeds)} feeds, of them "
            f"{subscribers.repeated} of the same document again")


def check_controls(stage, changes):
    """The negative controls have missed changes, or the run fails."""
    ticks = {feed: set() for feed in stage.by_time.feeds}
    for _, feed, tick in changes:
        ticks.get(feed, set()).add(tick)
    missed = stage.by_time.missed(ticks)
    of = sum(map(len, ticks.values()))
    check(missed, f"a reader by time missed nothing of {of} changes: the checks would not notice")
    lost, invented = stage.by_position.wrong(changes)
    check(lost or invented, f"a reader by position saw all of {len(changes)} changes, and no others: "
                            "the checks would not notice")
    return (f"negative controls: by time {len(missed)} of {of} changes were missed, by position {len(lost)} of "
            f"{len(changes)} were, and {len(invented)} seen that never were")
