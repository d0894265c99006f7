"""Several gateways on one database that share the polls, of which now one is killed and now another. See postgres.sh.

A publisher of many hosts notes who polls which feed when. Readers and consumers go from gateway to gateway. By hand:
postgres.sh takes `--feeds`, `--every` and `--rounds` for a longer run."""

import collections
import http.client
import json
import random
import re
import signal
import stage
import subprocess
import sys
import threading
import time
import urllib.error
from failing_disk_run import check

# The lease on the database and on shards, in seconds.
LEASE = 15
# How long a gateway may take to have the feeds after the lease, and to share the polls after it was started.
SOON, SHARED_WITHIN = 15, 30
# How many posts a document has, and how many feeds a host.
POSTS, OF_HOST = 12, 3
# The shards, and the longest that a client waits, in seconds.
SHARDS, PATIENCE, STREAMED = 1024, 12, 1
# Each start may listen on another port, and documents name the gateway.
ON_POSTGRES = """
public_url = "https://feeds.example.org"
[store]
kind = "postgres"
url = {{ file = "{}" }}
[polling]
allow_private = true
"""
POLLING = """
min_interval = "{0}s"
max_interval = "{0}s"
user_agent = "gateway-{1}"
"""
ENTRY = """<entry><id>urn:{0}-{1}</id><title>Post {1}</title><updated>2026-01-01T00:00:00Z</updated>
<content>the text of post {1} of {0}</content></entry>"""


def document(feed, newest):
    """A feed of the last posts up to `newest`."""
    posts = range(newest, max(0, newest - POSTS), -1)
    entries = "".join(ENTRY.format(feed, post) for post in posts)
    return (f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>{feed}</title><id>urn:{feed}</id>'
            f'<updated>2026-01-01T00:00:00Z</updated>{entries}</feed>').encode()


class Publisher:
    """Serves all feeds, each at an address of its host, and notes each request."""

    def __init__(self, feeds, every):
        self.newest = {f"feed-{number}": 1 for number in range(feeds)}
        self.every, self.faults, self.lock = every, [], threading.Lock()
        self.in_flight, self.last, self.longest = {}, {}, {}
        self.polls, self.bound, self.since = collections.Counter(), float("inf"), time.monotonic()
        publisher = self

        class Handler(stage.http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                feed, agent = self.path.strip("/").removesuffix(".xml"), self.headers["user-agent"]
                with publisher.polled(feed, agent):
                    time.sleep(random.choice((0, 0.01, 0.2)))
                    body = document(feed, publisher.newest[feed])
                    tag = '"%d"' % publisher.newest[feed]
                    is_known = self.headers.get("if-none-match") == tag
                    self.send_response(304 if is_known else 200)
                    self.send_header("etag", tag)
                    if not is_known:
                        self.send_header("content-type", "application/atom+xml")
                        self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(b"" if is_known else body)

            def log_message(self, *_):
                pass

        self.server = stage.http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.server.daemon_threads = True
        # Gateways that are killed leave in the middle of an answer.
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def address(self, number):
        host = number // OF_HOST
        return f"http://127.1.{host // 250}.{host % 250 + 1}:{self.server.server_address[1]}/feed-{number}.xml"

    def polled(self, feed, agent):
        return Poll(self, feed, agent)

    def publish(self, ends):
        """A new post in some feed, and now and then in many."""
        feeds = sorted(self.newest)
        while not ends.is_set():
            for feed in random.sample(feeds, random.choice((1, 1, 1, 3))):
                self.newest[feed] += 1
            time.sleep(0.1)


class Poll:
    """A poll of a feed, as the publisher sees it."""

    def __init__(self, publisher, feed, agent):
        self.publisher, self.feed, self.agent = publisher, feed, agent

    def __enter__(self):
        publisher, now = self.publisher, time.monotonic()
        with publisher.lock:
            others = publisher.in_flight.setdefault(self.feed, [])
            if any(agent != self.agent for agent in others):
                publisher.faults.append(f"{self.feed} is polled by {self.agent} and {others} at once")
            others.append(self.agent)
            gap = now - publisher.last.get(self.feed, publisher.since)
            publisher.longest[self.feed] = max(publisher.longest.get(self.feed, 0), gap)
            publisher.last[self.feed] = now
            publisher.polls[self.agent] += 1

    def __exit__(self, *_):
        with self.publisher.lock:
            self.publisher.in_flight[self.feed].remove(self.agent)


class Fleet:
    """The gateways, and those who ask them."""

    def __init__(self, program, work, file, publisher, count):
        self.program, self.publisher, self.file = program, publisher, file
        self.folders = [work / f"gateway-{which}" for which in range(count)]
        self.ports, self.gateways = [stage.free_port() for _ in range(count)], [None] * count
        self.away, self.is_shaken, self.ends, self.faults = set(range(count)), False, threading.Event(), []
        # Whether there may be no gateway that writes.
        self.is_headless = False
        self.answers, self.told, self.ticks, self.streamed = collections.Counter(), {}, {}, 0
        self.updates, self.seen, self.threads, self.failover = {}, collections.Counter(), [], 0
        for folder in self.folders:
            folder.mkdir()

    def start(self, which):
        configuration = ON_POSTGRES.format(self.file) + POLLING.format(self.publisher.every, which)
        listen = f"127.0.0.1:{self.ports[which]}"
        self.gateways[which] = stage.Gateway(self.program, self.folders[which], configuration, listen=listen)
        self.away.discard(which)

    def get(self, which, path, timeout=PATIENCE, method="GET", body=None, headers=None):
        """The status, the body and the headers; status 0 where there was no answer."""
        try:
            every = {"authorization": f"Bearer {stage.TOKEN}", "content-type": "application/json", **(headers or {})}
            data = json.dumps(body).encode() if body is not None else None
            address = f"http://127.0.0.1:{self.ports[which]}{path}"
            request = stage.urllib.request.Request(address, data, every, method=method)
            with stage.urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error), {}

    def near(self):
        """A gateway that is there."""
        return random.choice(sorted(set(range(len(self.ports))) - self.away))

    def ask(self, path, is_of_writer=False, **how):
        """What some gateway answers; nothing where it was about to go, or there is no database, or nobody to write."""
        which = self.near()
        is_shaken = self.is_shaken or (is_of_writer and self.is_headless)
        status, text, _ = self.get(which, path, **how)
        self.answers[status] += 1
        if status == 200:
            return which, text
        is_shaken = is_shaken or self.is_shaken or (is_of_writer and self.is_headless)
        if not (is_shaken or which in self.away):
            self.faults.append(f"{which}{path} answered {status}: {text[:200]}")
        time.sleep(0.05)
        return None

    def read(self):
        """A reader of any feed at any gateway: each document is one of the publisher's, and none is older."""
        newest = {}
        while not self.ends.is_set():
            feed = f"feed-{random.randrange(len(self.publisher.newest))}"
            answered = self.ask(f"/feeds/{feed}")
            if not answered:
                continue
            which, text = answered
            posts = sorted({int(number) for number in re.findall(r"Post (\d+)<", text)})
            last = posts[-1] if posts else 0
            if posts != list(range(max(1, last - POSTS + 1), last + 1)) or last > self.publisher.newest[feed]:
                self.faults.append(f"{which}/feeds/{feed} is none of the publisher's: {posts}")
            if last < newest.get(feed, 0) and which not in self.away and not self.is_shaken:
                self.faults.append(f"{which}/feeds/{feed} shows post {last} after post {newest[feed]}")
            newest[feed] = max(last, newest.get(feed, 0))

    def consume(self):
        """A consumer of the change log that goes from gateway to gateway, and asks another for what it is told of."""
        place = "0"
        while not self.ends.is_set():
            answered = self.ask(f"/changes?after={place}&wait=1")
            if not answered:
                continue
            for line in map(json.loads, answered[1].splitlines()):
                if line["epoch"] != len(self.told) + 1:
                    self.faults.append(f"epoch {line['epoch']} was told after {len(self.told)}")
                place, self.told[line["epoch"]] = line["id"], line["changes"]
                for change in line["changes"]:
                    feed = change["feed"]
                    if change["tick"] <= self.ticks.get(feed, ""):
                        self.faults.append(f"{feed} has the tick {change['tick']} after {self.ticks[feed]}")
                    self.ticks[feed] = change["tick"]
                change = random.choice(line["changes"])
                shown = self.ask(f"/feeds/{change['feed']}/sync")
                until = re.search(r'until="([^"]+)"', shown[1]) if shown else None
                if until and until.group(1) < change["tick"]:
                    self.faults.append(f"{shown[0]} shows {until.group(1)} after {change['tick']} was told")

    def listen(self):
        """A consumer of SUP documents."""
        while not self.ends.is_set():
            answered = self.ask("/sup.json?seconds=60")
            for name, update in json.loads(answered[1])["updates"] if answered else []:
                self.updates[name] = max(update, self.updates.get(name, ""))
            time.sleep(0.3)

    def stream(self):
        """A consumer of events, which goes on at another gateway where it was at the last one."""
        place = "0"
        while not self.ends.is_set():
            which = self.near()
            address = f"http://127.0.0.1:{self.ports[which]}/events"
            request = stage.urllib.request.Request(address, headers={"last-event-id": place})
            try:
                with stage.urllib.request.urlopen(request, timeout=3) as answer:
                    until, at = time.monotonic() + STREAMED, place
                    while time.monotonic() < until and (line := answer.readline().decode()):
                        kind, _, said = line.rstrip("\n").partition(": ")
                        if (kind, said) == ("event", "reset"):
                            self.faults.append(f"{which}/events does not know {place}")
                        at = said if kind == "id" else at
                        if kind == "data":
                            epoch, place = json.loads(said)["epoch"], at
                            if epoch not in (self.streamed, self.streamed + 1):
                                self.faults.append(f"{which}/events told epoch {epoch} after {self.streamed}")
                            self.streamed = epoch
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def operate(self):
        """An operator who asks any gateway to add a feed, to poll one, and to remove it again."""
        number = 0
        while not self.ends.is_set():
            number += 1
            name, url = f"own-{number}", self.publisher.address(number % len(self.publisher.newest))
            if self.ask(f"/api/v1/feeds/feed-{number % len(self.publisher.newest)}", True):
                self.seen["shown"] += 1
            if not self.is_shaken and not self.away & {0, 1, 2}:
                status, text, _ = self.get(self.near(), f"/api/v1/feeds/{name}", 40, "PUT", {"local": True})
                self.seen[f"made {status}"] += 1
                if status == 201:
                    status, text, _ = self.get(self.near(), f"/api/v1/feeds/{name}", 40, "DELETE")
                    self.seen[f"removed {status}"] += 1
            time.sleep(1)

    def shards(self, which):
        found = re.search(r"^tidegate_poll_shards (\d+)$", self.get(which, "/metrics")[1], re.M)
        return int(found.group(1)) if found else 0

    def until(self, what, seconds, is_it):
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            if is_it():
                took = time.monotonic() - begun
                print(f"  {what}: {took:.1f} s", file=sys.stderr, flush=True)
                return took
            time.sleep(0.1)
        ready = [self.get(which, "/readyz", 3)[:2] for which in range(len(self.ports))]
        shards = [self.shards(which) for which in range(len(self.ports))]
        faults = self.faults[:3] + self.publisher.faults[:3]
        raise RuntimeError(f"{what}: not within {seconds} s; {ready}, {shards} shards, {faults}")

    def until_shared(self, what):
        """Waits until those that are there have all shards, each about as many."""
        def is_shared():
            there = sorted(set(range(len(self.ports))) - self.away)
            counts = [self.shards(which) for which in there]
            return sum(counts) == SHARDS and max(counts) - min(counts) <= len(there)
        return self.until(what, SHARED_WITHIN + LEASE, is_shared)

    def writer(self):
        """The gateway that writes; nothing where there is none."""
        there = sorted(set(range(len(self.ports))) - self.away)
        writers = [which for which in there if self.get(which, "/readyz", 5)[1].startswith("ready")]
        return writers[0] if writers else None

    def begin(self):
        jobs = [self.read, self.read, self.consume, self.listen, self.stream, self.operate]
        for job in [lambda: self.publisher.publish(self.ends), *jobs]:
            self.threads.append(threading.Thread(target=self.guarded, args=(job,), daemon=True))
            self.threads[-1].start()

    def guarded(self, job):
        try:
            job()
        except Exception as error:
            self.faults.append(f"a client failed: {error!r}")

    def goes_on(self, seconds):
        """What is published is told, at once or soon."""
        before = len(self.told)
        time.sleep(seconds)
        self.until("something was told", SOON, lambda: len(self.told) > before)


def gateways(program, work, file, restart, feeds=150, every=3, rounds=1, failover=0):
    """Three gateways, and for a while a fourth: killed, stopped and woken, ended, and their database killed.
    `restart` is a command that kills the database, or is called with the fleet; `failover` is how long the database
    may take to be there again, in seconds."""
    publisher = Publisher(feeds, every)
    fleet = Fleet(program, work, file, publisher, 4)
    fleet.failover = failover
    try:
        watched(fleet, publisher, restart, rounds)
    finally:
        fleet.ends.set()
        for gateway in filter(None, fleet.gateways):
            gateway.process.kill()


def watched(fleet, publisher, restart, rounds):
    fleet.start(0)
    for number, feed in enumerate(publisher.newest):
        fleet.gateways[0].ask(f"/api/v1/feeds/{feed}", "PUT", {"url": publisher.address(number)})
    every_feed = set(publisher.newest)
    fleet.until("the first polls", 60, lambda: set(publisher.last) == every_feed)
    with publisher.lock:
        publisher.longest.clear()
    fleet.start(1)
    fleet.start(2)
    check(fleet.get(0, "/readyz")[1] == "ready\n", f"/readyz of the writer: {fleet.get(0, '/readyz')}")
    check(fleet.get(1, "/readyz")[1].startswith("standby: the gateway process "), f"/readyz: {fleet.get(1, '/readyz')}")
    for which, is_standby in ((0, 0), (1, 1), (2, 1)):
        check(f"tidegate_standby {is_standby}\n" in fleet.get(which, "/metrics")[1], f"tidegate_standby of {which}")
    check("this one polls its part" in fleet.get(1, "/")[1], "the overview of a gateway that follows")
    took = {"shared": fleet.until_shared("three gateways")}
    fleet.begin()
    fleet.goes_on(6)
    for _ in range(rounds):
        disturb(fleet, publisher, restart, took)
    # Everything comes to rest.
    fleet.goes_on(5)
    fleet.ends.set()
    for thread in fleet.threads:
        thread.join(stage.WAIT)
    time.sleep(3 * publisher.every + 2)
    finish(fleet, publisher, took)


def disturb(fleet, publisher, restart, took):
    def others():
        writer = fleet.writer()
        return [which for which in (0, 1, 2) if which != writer]

    def kill(which, what):
        fleet.away.add(which)
        fleet.gateways[which].process.kill()
        fleet.gateways[which].process.wait()
        took[what] = fleet.until_shared(what)
        fleet.goes_on(3)
        fleet.start(which)
        fleet.until_shared(f"{what}, and back")

    def pause(which, what):
        fleet.away.add(which)
        fleet.gateways[which].process.send_signal(signal.SIGSTOP)
        took[what] = fleet.until_shared(what)
        fleet.goes_on(3)
        fleet.gateways[which].process.send_signal(signal.SIGCONT)
        fleet.until("a gateway that was woken", 30, lambda: fleet.get(which, "/readyz", 5)[0] == 200)
        fleet.away.discard(which)
        fleet.until_shared(f"{what}, and woken")

    kill(others()[0], "a kill")
    pause(others()[1], "a stop")
    def end(which, what):
        fleet.away.add(which)
        fleet.gateways[which].end()
        took[what] = fleet.until_shared(what)
        fleet.goes_on(3)

    # One more, and one less.
    fleet.start(3)
    took["a fourth"] = fleet.until_shared("a fourth gateway")
    fleet.goes_on(3)
    end(3, "an end")
    fleet.is_headless = True
    ended = fleet.writer()
    end(ended, "an end of the writer")
    fleet.start(ended)
    fleet.until_shared("an end of the writer, and back")
    kill(fleet.writer(), "a kill of the writer")
    pause(fleet.writer(), "a stop of the writer")
    fleet.is_headless = False
    fleet.is_shaken = True
    if callable(restart):
        restart(fleet)
    else:
        subprocess.run(restart, shell=True, check=True, stdout=subprocess.DEVNULL, cwd="/")
    took["a killed database"] = fleet.until("after the database was killed", 60, lambda: fleet.writer() is not None)
    fleet.until_shared("after the database was killed")
    fleet.is_shaken = False
    fleet.goes_on(5)


def finish(fleet, publisher, took):
    there = sorted(set(range(len(fleet.ports))) - fleet.away)
    for feed, newest in publisher.newest.items():
        answers = [fleet.get(which, f"/feeds/{feed}") for which in there]
        texts, tags = {text for _, text, _ in answers}, {headers["etag"] for _, _, headers in answers}
        check(len(texts) == 1 and len(tags) == 1, f"gateways serve {feed} in {len(texts)} ways, with the tags {tags}")
        check(f"Post {newest}<" in texts.pop(), f"{feed} lacks post {newest}")
    listed = [dict(json.loads(fleet.get(which, "/sup.json?seconds=3600")[1])["updates"]) for which in there]
    check(all(updates == listed[0] for updates in listed), "gateways list other updates in SUP documents")
    later = {name for name, update in fleet.updates.items() if update > listed[0].get(name, "")}
    check(not later and len(listed[0]) >= len(publisher.newest), f"SUP documents lost updates of {later}")
    # What consumers were told is everything, and each was told the last change of each feed.
    logged, place = {}, "0"
    while lines := [json.loads(line) for line in fleet.get(0, f"/changes?after={place}&wait=0")[1].splitlines()]:
        place = lines[-1]["id"]
        logged |= {line["epoch"]: line["changes"] for line in lines}
    check(list(logged) == list(range(1, len(logged) + 1)), "epochs are not dense")
    missed = [epoch for epoch in logged if logged[epoch] != fleet.told.get(epoch) and epoch <= len(fleet.told)]
    check(not missed and len(fleet.told) > len(logged) * 0.8, f"a consumer missed {missed} of {len(logged)}")
    check(fleet.streamed > len(logged) * 0.8, f"the stream of events came to {fleet.streamed} of {len(logged)}")
    ticks, revisions = {}, {}
    for changes in logged.values():
        for change in changes:
            feed = change["feed"]
            if not feed.startswith("feed-"):
                continue
            check(change["tick"] > ticks.get(feed, ""), f"the tick of {feed} does not rise")
            check(change["revision"] > revisions.get(feed, 0), f"the revision of {feed} does not rise")
            ticks[feed], revisions[feed] = change["tick"], change["revision"]
    faults = fleet.faults + publisher.faults
    check(not faults, f"{len(faults)} faults: {faults[:8]}")
    bound = publisher.every + 2 * LEASE + SOON + fleet.failover
    longest = max(publisher.longest.values())
    check(longest < bound, f"a feed was not polled for {longest:.1f} s, the bound is {bound}")
    for which in there:
        fleet.gateways[which].end()
    shown = ", ".join(f"{what} {seconds:.1f}" for what, seconds in took.items())
    print(f"{len(there)} gateways shared {len(publisher.newest)} feeds: all shards were polled again, in seconds: {shown}; "
          f"{sum(publisher.polls.values())} polls ({dict(publisher.polls)}), none twice at once, the longest pause "
          f"{longest:.1f} s at an interval of {publisher.every}; {len(logged)} epochs, answers {dict(fleet.answers)}, "
          f"operators {dict(fleet.seen)}")
