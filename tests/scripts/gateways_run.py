"""Several equal gateways on one database, and what is done to them, one fault after the other. See postgres.sh.

What is seen from outside is written down (gateways_record.py says what, and what must hold of it): by the publisher of all
feeds, and by readers, consumers, subscribers and who makes items, who go from gateway to gateway (gateways_clients.py).
In the end it is compared with what gateways have and with what was published."""

import concurrent.futures
import contextlib
import random
import re
import signal
import time

from gateways_clients import Clients
from gateways_proxy import AHEAD, BEHIND, Proxies
from gateways_record import TAKEN_OVER, Fault, Record, check as check_record
from gateways_stage import GATHERED, MADE, Fleet, Publisher, until
from stage import check

GATEWAYS = 3
# How many feeds are added at once, and within what time they are added and polled, in seconds.
ADDED_AT_ONCE, ADDED_WITHIN = 16, 300
# One commit in so many is cut, for so many seconds, and how many must be at least, behind and ahead of them.
CUT_ONE_IN, CUT_SECONDS, FEWEST_CUTS = 5, 12, 2
# How long the database is paused, and for how long nothing is there when all gateways were killed, in seconds.
PAUSED, NOTHING_THERE = 12, 5
# For how long a gateway is known that says nothing: one that ends in order says so, and nobody waits for that.
LEASE = 10
# How long everything may take to arrive in the end, in seconds.
ARRIVES = 60


class Run:
    """`database`: what restarts and pauses the server."""

    def __init__(self, program, work, url, database, feeds, every):
        self.record = Record([f"feed-{number}" for number in range(feeds)], every)
        self.publisher, self.proxies = Publisher(self.record), Proxies(url, GATEWAYS)
        self.fleet = Fleet(program, work, self.proxies, every, GATEWAYS)
        self.clients = Clients(self.fleet, self.publisher, self.record)
        # How long it took until every feed was polled again, in seconds, and what else there is to tell.
        self.database, self.took, self.notes = database, [], []

    def begin(self):
        self.fleet.start(0)
        self.fleet.away.discard(0)
        begun, feeds = time.monotonic(), range(len(self.record.feeds))
        with concurrent.futures.ThreadPoolExecutor(ADDED_AT_ONCE) as pool:
            list(pool.map(self.add, feeds))
        self.notes.append(f"{len(feeds)} feeds added in {time.monotonic() - begun:.1f} s")
        self.publisher.until_polled("the first polls", ADDED_WITHIN)
        for which in self.fleet.all[1:]:
            self.fleet.start(which)
        self.fleet.away.clear()
        self.settle("three gateways")
        self.record.polls.clear()
        self.record.began = time.monotonic()
        self.clients.begin()
        self.settle("clients")

    def add(self, number):
        """Adds a feed; later, where the gateway is hard pressed by those before it."""
        until_then, body = time.monotonic() + ADDED_WITHIN, {"url": self.publisher.address(number)}
        while (answer := self.fleet.get(0, f"/api/v1/feeds/feed-{number}", "PUT", body))[0] != 201:
            check(answer[0] == 503 and time.monotonic() < until_then, f"feed-{number} was not added: {answer[:2]}")
            time.sleep(1)

    def settle(self, what):
        """Waits until every feed was polled. What took too long, the record says."""
        return self.publisher.until_polled(what, 2 * (self.record.every + TAKEN_OVER))

    @contextlib.contextmanager
    def fault(self, what, away=(), is_outage=False, cuts=False):
        """Something is wrong for a while; `away`: gateways that it concerns. Then all answer, and poll every feed."""
        fleet, began = self.fleet, time.monotonic()
        fleet.away.update(away)
        yield
        fleet.until_ready(f"{what}, and back", fleet.all)
        fleet.away.clear()
        self.record.faults.append(Fault(what, frozenset(away), began, time.monotonic(), is_outage, cuts))
        self.took.append((what, self.settle(f"after {what}")))

    def some(self, count):
        return random.sample(list(self.fleet.all), count)

    def kill(self, count):
        those = self.some(count)
        with self.fault(f"a kill of {count}", those):
            for which in those:
                self.fleet.gateways[which].kill()
            self.took.append((f"a kill of {count}", self.settle("others poll")))
            for which in those:
                self.fleet.start(which)

    def kill_all(self):
        with self.fault("a kill of all", self.fleet.all, is_outage=True):
            for which in self.fleet.all:
                self.fleet.gateways[which].kill()
            time.sleep(NOTHING_THERE)
            for which in self.fleet.all:
                self.fleet.start(which)

    def stop(self):
        """Stops a gateway, and wakes it: requests wait at it meanwhile."""
        which, = self.some(1)
        with self.fault("a stop", [which]):
            self.fleet.signal(which, signal.SIGSTOP)
            self.took.append(("a stop", self.settle("others poll")))
            self.fleet.signal(which, signal.SIGCONT)

    def end(self):
        which, = self.some(1)
        with self.fault("an end", [which]):
            self.fleet.gateways[which].end()
            self.took.append(("an end", took := self.settle("others poll")))
            self.fleet.start(which)
        check(took - self.record.every < LEASE, f"an end in order: others polled all feeds only after {took:.1f} s")

    def cut(self):
        """Cuts a gateway off from the database, within a transaction that may have been committed."""
        which, = self.some(1)
        way = random.choice((AHEAD, BEHIND))
        with self.fault(f"a cut {way} a commit", [which]):
            self.proxies.cut_off(which, way)
            self.took.append(("a cut", self.settle("others poll")))
            self.proxies.heal(which)

    def commits(self):
        """Connections of all gateways are cut at commits."""
        with self.fault("commits", cuts=True):
            for which in self.fleet.all:
                self.proxies.cut(which, CUT_ONE_IN, CUT_SECONDS)
            time.sleep(CUT_SECONDS)
        counts = [self.proxies.count(which) for which in self.fleet.all]
        cuts = {way: sum(count[way] for count in counts) for way in (BEHIND, AHEAD)}
        check(min(cuts.values()) >= FEWEST_CUTS, f"too few commits were cut: {counts}")
        self.notes.append(f"commits cut so far: {cuts}")

    def restart_database(self, how):
        with self.fault(f"a database that ends ({how})", is_outage=True):
            self.database.restart(how)

    def pause_database(self):
        with self.fault("a paused database", is_outage=True):
            self.database.signal(signal.SIGSTOP)
            time.sleep(PAUSED)
            self.database.signal(signal.SIGCONT)

    def rest(self):
        """Nothing is published any more, and everything that was arrives."""
        record, clients, fleet = self.record, self.clients, self.fleet
        record.calm = max([record.began, *(fault.ended for fault in record.faults)])
        clients.rests.set()
        # The last posts are published by then.
        time.sleep(1)
        record.newest = dict(self.publisher.newest)
        # Those that were polled last before the last posts are polled once more, and all of it is gathered.
        self.settle("the last polls")
        self.settle("the last polls")
        had = lambda: {one.feed: one.post for one in list(record.deliveries)}
        wanted = {feed: post for feed, post in record.newest.items() if post > record.subscribed.get(feed, post)}
        with contextlib.suppress(RuntimeError):
            until("all is delivered", ARRIVES, lambda: wanted.items() <= had().items())
        last = len(clients.log(0))
        with contextlib.suppress(RuntimeError):
            until("consumers have come to the end", ARRIVES, lambda: min(len(record.log), clients.streamed) >= last)
        clients.end()
        record.rested = time.monotonic()
        for which in fleet.all:
            clients.look(which)
        metrics = "".join(fleet.get(which, "/metrics")[1] for which in fleet.all)
        counted = sum(map(int, re.findall(r"^tidegate_feeds{standing=\S+ (\d+)$", metrics, re.MULTILINE)))
        check(counted == len(record.feeds) + len((MADE, GATHERED)), f"the gateways count {counted} feeds together")

    def finish(self):
        """Ends the gateways; what was seen, in words. An error where it is not as it must be."""
        for gateway in self.fleet.gateways:
            gateway.end()
        wrong, compared = check_record(self.record)
        check(not wrong, f"{len(wrong)} promises are broken:\n" + "\n".join(wrong))
        took = ", ".join(f"{what} {seconds:.1f}" for what, seconds in self.took)
        return f"{compared}; every feed polled again, in seconds: {took}; {'; '.join(self.notes)}"

    def close(self):
        self.clients.rests.set()
        self.clients.ends.set()
        self.fleet.end()
        self.proxies.end()


STEPS = {
    "commits": Run.commits,
    "kill": lambda run: run.kill(1),
    "two": lambda run: run.kill(2),
    "all": Run.kill_all,
    "stop": Run.stop,
    "cut": Run.cut,
    "end": Run.end,
    "restart": lambda run: run.restart_database("fast"),
    "crash": lambda run: run.restart_database("immediate"),
    "pause": Run.pause_database,
}
# What a landing has time for.
FEW_STEPS = ("commits", "kill", "stop", "end", "crash")


def gateways(program, work, url, database, feeds, every, steps, minutes=0):
    """Three gateways on a database; the steps, each a function of the run, again and again for so many minutes, and once at
    least."""
    work.mkdir(parents=True, exist_ok=True)
    run = Run(program, work, url, database, feeds, every)
    try:
        run.begin()
        end = time.monotonic() + 60 * minutes
        while True:
            for step in steps:
                step(run)
            if time.monotonic() > end:
                break
        run.rest()
        print(f"{GATEWAYS} gateways, {feeds} feeds, every {every} s: {run.finish()}")
    finally:
        run.close()
