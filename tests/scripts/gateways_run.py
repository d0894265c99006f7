"""Several gateways on one database that share the polls, and what is done to them. See postgres.sh.

They are killed, stopped and woken, ended, cut off from the network, and their database is killed; connections are cut
at commits. A publisher of many hosts notes who polls which feed when. Readers, consumers and subscribers compare what
they see with what is there in the end, and negative controls must miss some of it. By hand: postgres.sh takes
`--feeds`, `--every` and `--rounds` for a longer run."""

import concurrent.futures
import json
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from failing_disk_run import check
from gateways_clients import SETTLED_WITHIN, Clients, CutOffReader, digest
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
        self.subscribers = Subscribers(self.fleet, self.publisher)
        self.rested, self.controls = threading.Event(), []
        # Of many feeds each seldom changes.
        some = self.subscribers.feeds if feeds <= FEW else sorted(self.publisher.newest)[::MANY_STEP]
        self.by_time = ClockReader(self.fleet, some, self.rested)
        self.by_position = PositionReader(psql, url, self.rested)
        # How long each disturbance kept shards or changes waiting, in seconds, and what else there is to tell.
        self.took, self.notes, self.made = {}, [], 0

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

    def others(self):
        """Those of the first three that do not write."""
        writer = self.fleet.writer()
        return [which for which in (0, 1, 2) if which != writer]

    def kill(self, which, what):
        self.fleet.away.add(which)
        self.fleet.gateways[which].process.kill()
        self.fleet.gateways[which].process.wait()
        self.took[what] = self.fleet.until_shared(what)
        self.until_written(what)
        self.goes_on(3)
        self.fleet.start(which)
        self.fleet.until_shared(f"{what}, and back")

    def end(self, which, what):
        self.fleet.away.add(which)
        self.fleet.gateways[which].end()
        self.took[what] = self.fleet.until_shared(what)
        self.until_written(what)
        self.goes_on(3)

    def until_written(self, what):
        """Waits until there is a gateway that writes; most often there is by now."""
        self.fleet.until(f"{what}, and somebody writes", SOON, lambda: self.fleet.writer() is not None)

    def is_back(self, which):
        """Waits until a gateway answers again that was stopped or cut off."""
        self.fleet.until(f"gateway {which} is back", BACK_WITHIN,
                         lambda: self.fleet.get(which, "/readyz", 5)[0] == 200)
        self.fleet.away.discard(which)

    def stop(self, which):
        self.fleet.away.add(which)
        self.fleet.gateways[which].process.send_signal(signal.SIGSTOP)

    def wake(self, which):
        self.fleet.gateways[which].process.send_signal(signal.SIGCONT)

    def cut_off(self, which, at_commit=None):
        """Cuts a gateway off from the database and the publisher; who reads from it meanwhile."""
        self.fleet.away.add(which)
        self.database.cut_off(which, at_commit)
        self.publisher.cut_off.add(f"gateway-{which}")
        return CutOffReader(self.clients, which)

    def heal(self, which, reader, what):
        """Ends that, after a look at what it answered."""
        status = self.fleet.get(which, "/readyz", 10)[0]
        check(status != 200, f"{what}: /readyz of a gateway that is cut off answers {status}")
        answers, last, stale = reader.end()
        self.notes.append(f"{what}: it answered {answers}, documents for {last:.1f} s")
        for said in stale[:1]:
            self.fleet.fault(f"{what}: {len(stale)} of {sum(answers.values())} answers were stale, {said}")
        self.publisher.cut_off.discard(f"gateway-{which}")
        self.database.heal(which)

    def leave_publisher(self):
        """A gateway reaches the database and no publisher: after some minutes it leaves its shards to the others, and
        goes on answering readers. The feeds that it polled have waited for as long."""
        fleet, publisher = self.fleet, self.publisher
        which, (before, out) = self.others()[0], (dict(publisher.longest), time.monotonic())
        publisher.cut_off.add(f"gateway-{which}")
        # It polls again when it likes to.
        fleet.idle.add(which)
        fleet.until("a gateway reaches no publisher", LEFT_WITHIN + publisher.every,
                    lambda: fleet.shards(which) == 0)
        fleet.until_shared("a gateway reaches no publisher, and its feeds are polled")
        self.took["out of reach of the publisher"] = time.monotonic() - out
        publisher.cut_off.discard(f"gateway-{which}")
        time.sleep(publisher.every)
        self.goes_on(3)
        with publisher.lock:
            publisher.longest = before

    def kill_database(self):
        """Kills the database right after a commit that is not durable yet: who goes by position has seen it."""
        fleet = self.fleet
        fleet.is_shaken = True
        writer = fleet.writer()
        self.database.cut_off(writer, BEHIND)
        time.sleep(SEEN_WITHIN)
        subprocess.run(self.restart, shell=True, check=True, stdout=subprocess.DEVNULL, cwd="/")
        is_deceived = self.by_position.is_deceived()
        self.database.heal(writer)
        # The gateway that writes may note only by a write that some of its own are gone.
        took = fleet.until("a write after the database was killed", REOPENED_WITHIN, self.writes)
        fleet.until("all gateways are back", BACK_WITHIN,
                    lambda: all(fleet.get(which, "/readyz", 5)[0] == 200 for which in fleet.there()))
        fleet.until_shared("after the database was killed")
        fleet.is_shaken = False
        self.goes_on(3)
        return took, is_deceived

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

    def disturb(self, number):
        fleet = self.fleet
        # Connections are cut at commits while the shards of a gateway that was killed wait for another.
        fleet.cut_until = time.monotonic() + CUT_SECONDS + SETTLED_WITHIN
        for which in fleet.there():
            self.database.cut(which, CUT_ONE_IN, CUT_SECONDS)
        self.kill(self.others()[0], "a kill")
        # One more; of the others one is stopped while one is cut off.
        fleet.start(3)
        self.took["a fourth"] = fleet.until_shared("a fourth gateway")
        off, stopped = self.others()
        self.stop(stopped)
        reader = self.cut_off(off)
        self.took["a stop and a cut"] = fleet.until_shared("a stop and a cut")
        self.goes_on(3)
        self.heal(off, reader, "a cut")
        self.wake(stopped)
        self.is_back(off)
        self.is_back(stopped)
        fleet.until_shared("a stop and a cut, and back")
        self.end(3, "an end")
        # The one that writes.
        fleet.is_headless = True
        ended = fleet.writer()
        self.end(ended, "an end of the writer")
        fleet.start(ended)
        fleet.until_shared("an end of the writer, and back")
        self.kill(fleet.writer(), "a kill of the writer")
        stopped = fleet.writer()
        self.stop(stopped)
        self.took["a stop of the writer"] = fleet.until_shared("a stop of the writer")
        self.until_written("a stop of the writer")
        self.goes_on(3)
        self.wake(stopped)
        self.is_back(stopped)
        fleet.until_shared("a stop of the writer, and woken")
        # At the worst moment: within a transaction, or when it may have been committed.
        off = fleet.writer()
        reader = self.cut_off(off, AHEAD if number % 2 == 0 else BEHIND)
        self.took["a cut of the writer"] = fleet.until_shared("a cut of the writer")
        self.until_written("a cut of the writer")
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
        self.clients.end()
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
        self.clients.ends.set()
        self.rested.set()
        for gateway in filter(None, self.fleet.gateways):
            gateway.process.kill()
        self.database.end()


def gateways(program, work, file, restart, feeds=150, every=3, rounds=1, psql=None, failover=0):
    """Three gateways on the database whose address is in `file`, and for a while a fourth.

    `restart` is a command that kills the database and starts it again, or is called with the stage and does something
    to the database; `failover` is how long that may be away then, in seconds."""
    psql = psql or shutil.which("psql") or str(max(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql")))
    stage = Stage(program, work, file, restart, feeds, every, psql)
    try:
        stage.begin()
        for number in range(rounds):
            stage.disturb(number)
            if rounds > 1 and number == 0:
                stage.leave_publisher()
        stage.rest()
        finish(stage, has_controls=not callable(restart), failover=failover)
    finally:
        stage.end_all()


def finish(stage, has_controls=True, failover=0):
    """Compares what gateways say with what the publisher has, and with what clients saw."""
    fleet, publisher, clients, there = stage.fleet, stage.publisher, stage.clients, stage.fleet.there()
    for feed, newest in publisher.newest.items():
        answers = [fleet.get(which, f"/feeds/{feed}") for which in there]
        texts, tags = {text for _, text, _ in answers}, {headers.get("etag") for _, _, headers in answers}
        check(len(texts) == 1 and len(tags) == 1, f"gateways serve {feed} in {len(texts)} ways, with the tags {tags}")
        check(f"Post {newest}<" in texts.pop(), f"{feed} lacks post {newest}; {publisher.last_answer(feed)}")
    listed = [dict(json.loads(fleet.get(which, "/sup.json?seconds=3600")[1])["updates"]) for which in there]
    check(all(updates == listed[0] for updates in listed), "gateways list other updates in SUP documents")
    later = {name for name, update in clients.updates.items() if update > listed[0].get(name, "")}
    check(not later and len(listed[0]) >= len(publisher.newest), f"SUP documents lost updates of {later}")
    epochs, changes = check_log(fleet, clients)
    faults = fleet.faults + publisher.faults
    check(not faults, f"{len(faults)} faults: {faults[:8]}")
    stage.notes.append(check_subscribers(stage.subscribers))
    if has_controls:
        stage.notes.append(check_controls(stage, changes))
    bound = publisher.every + 2 * LEASE + SOON + failover
    longest = max(publisher.longest.values())
    check(longest < bound, f"a feed was not polled for {longest:.1f} s, the bound is {bound}")
    for which in there:
        fleet.gateways[which].end()
    shown = ", ".join(f"{what} {seconds:.1f}" for what, seconds in stage.took.items())
    print(f"{len(there)} gateways shared {len(publisher.newest)} feeds: all shards were polled again, in seconds: "
          f"{shown}; {sum(publisher.polls.values())} polls ({dict(publisher.polls)}), none twice at once, the longest "
          f"pause {longest:.1f} s at an interval of {publisher.every}; {epochs} epochs, answers {dict(fleet.answers)}, "
          f"operators {dict(clients.seen)}; {'; '.join(stage.notes)}")


def check_log(fleet, clients):
    """What consumers were told is everything; how many epochs there are, and the changes by epoch, feed and tick."""
    count, place, missed, ticks, revisions, changes = 0, "0", [], {}, {}, set()
    while lines := [json.loads(line) for line in fleet.get(0, f"/changes?after={place}&wait=0")[1].splitlines()]:
        place = lines[-1]["id"]
        for line in lines:
            count += 1
            check(line["epoch"] == count, f"epochs are not dense: {line['epoch']} follows {count - 1}")
            if count <= len(clients.told) and clients.told.get(count) != digest(line["changes"]):
                missed.append(count)
            for change in line["changes"]:
                feed, tick, revision = change["feed"], change["tick"], change["revision"]
                if feed.startswith("feed-"):
                    check(tick > ticks.get(feed, ""), f"the tick of {feed} does not rise")
                    check(revision > revisions.get(feed, 0), f"the revision of {feed} does not rise")
                    ticks[feed], revisions[feed] = tick, revision
                    changes.add((count, feed, tick))
    check(not missed and len(clients.told) > count * 0.8, f"a consumer missed {missed} of {count}")
    check(clients.streamed > count * 0.8, f"the stream of events came to {clients.streamed} of {count}")
    return count, changes


def check_subscribers(subscribers):
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
