"""What gateways_run.py disturbs: a publisher of many hosts whose truth is known, and gateways on one database."""

import collections
import http.client
import http.server
import json
import os
import random
import re
import socket
import stage
import sys
import threading
import time
import typing
import urllib.error
import urllib.request

# The lease on the database and on shards, in seconds.
LEASE = 15
# How long a gateway may take to have the feeds after the lease, and to share the polls after it was started.
SOON, SHARED_WITHIN = 15, 30
# How many posts a document has, and how many feeds a host.
POSTS, OF_HOST = 12, 3
# The shards, and the longest that a client waits, in seconds.
SHARDS, PATIENCE = 1024, 12
# More faults than these say nothing more.
FAULTS = 1000
# Each start may listen on another port, and documents name the gateway.
ON_POSTGRES = """
public_url = "https://feeds.example.org"
[store]
kind = "postgres"
require_standby = false
url = {{ file = "{}" }}
[polling]
allow_private = true
"""
# Subscribers are on this machine. No key of the file: an older program would refuse it.
os.environ["TIDEGATE_WEBSUB_PRIVATE_CALLBACKS"] = "true"
PUBLIC = "https://feeds.example.org"
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


class Server(http.server.ThreadingHTTPServer):
    """A server at every address of this machine."""
    daemon_threads, request_queue_size = True, 256

    def __init__(self, handler):
        super().__init__(("0.0.0.0", 0), handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Gateways that are killed leave in the middle of a request."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Ends each connection after its answer: thousands of hosts would keep as many threads."""
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in (*headers, ("connection", "close")):
            self.send_header(name, value)
        if status != 304:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_left(self):
        """Whether the client has ended the connection."""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def log_message(self, *_):
        pass


class Pause(typing.NamedTuple):
    """How long a feed was not polled: the seconds, when that ended, and the gateways that polled it before and then;
    nobody has polled it since where the last is empty."""

    seconds: float
    feed: str
    ended: float
    before: str
    then: str

    def __str__(self):
        when = time.strftime("%H:%M:%S", time.localtime(time.time() - (time.monotonic() - self.ended)))
        return f"{self.feed} was not polled for {self.seconds:.1f} s until {when}, by {self.before}, then by " \
               f"{self.then or 'nobody yet'}"


class Publisher:
    """Serves all feeds, each at an address of its host, and notes each request."""

    def __init__(self, feeds, every):
        self.newest = {f"feed-{number}": 1 for number in range(feeds)}
        self.every, self.faults, self.lock = every, [], threading.Lock()
        # When and by whom each feed was polled last, and its longest pause.
        self.last, self.longest = {}, {}
        self.in_flight, self.answered = {}, {}
        self.polls, self.since = collections.Counter(), time.monotonic()
        # The newest post of each feed that some gateway has, by what it said when it polled.
        self.known = collections.Counter()
        # The gateways that do not get through to it, and those that wait for its answers; how many polls waited so.
        self.cut_off, self.slow, self.held = set(), set(), 0
        publisher = self

        class Feeds(Handler):
            def do_GET(self):
                feed, agent = self.path.strip("/").removesuffix(".xml"), self.headers["user-agent"].split(" ")[0]
                if not self.gets_through(agent):
                    return
                known = self.headers.get("if-none-match", "")
                with Poll(publisher, feed, agent, self.is_left):
                    publisher.known[feed] = max(publisher.known[feed], int(known.strip('"') or 0))
                    while agent in publisher.slow and not self.is_left():
                        time.sleep(0.05)
                    time.sleep(random.choice((0, 0.01, 0.2)))
                    newest = publisher.newest[feed]
                    tag = '"%d"' % newest
                    if not self.gets_through(agent):
                        return
                    is_known = known == tag
                    publisher.answered[feed] = (time.monotonic(), agent, 304 if is_known else 200, newest)
                    if is_known:
                        self.answer(304, headers=[("etag", tag)])
                    else:
                        of = [("etag", tag), ("content-type", "application/atom+xml")]
                        self.answer(200, document(feed, newest), of)

            def gets_through(self, agent):
                """Waits while its gateway is cut off; whether the gateway still waits then."""
                while agent in publisher.cut_off and not self.is_left():
                    time.sleep(0.1)
                self.close_connection = True
                return not self.is_left()

        self.server = Server(Feeds)

    def address(self, number):
        host = number // OF_HOST
        return f"http://127.1.{host // 250}.{host % 250 + 1}:{self.server.port}/feed-{number}.xml"

    def host(self, feed):
        """The number of the host that has a feed."""
        return int(feed.removeprefix("feed-")) // OF_HOST

    def publish(self, ends):
        """A new post in some feed, and now and then in many. Each is a version of its own in the end: none comes where
        half of the document is new to all gateways, since one that is all new is held."""
        feeds = sorted(self.newest)
        while not ends.is_set():
            for feed in random.sample(feeds, random.choice((1, 1, 1, 3))):
                if self.newest[feed] - self.known[feed] < POSTS // 2:
                    self.newest[feed] += 1
            time.sleep(0.1)

    def last_answer(self, feed):
        """What it answered last for a feed, in words."""
        at, agent, status, newest = self.answered[feed]
        return f"{agent} got {status} for post {newest} {time.monotonic() - at:.1f} s ago"

    def check_posts(self, feed, text):
        """The newest post of a document, and whether it is one of the publisher's documents of this feed."""
        posts, texts = ([int(number) for number in re.findall(what, text)]
                        for what in (r"Post (\d+)<", rf"the text of post (\d+) of {feed}<"))
        last = max(posts, default=0)
        is_whole = posts == texts == list(range(last, max(0, last - POSTS), -1))
        return last, is_whole and 0 < last <= self.newest[feed]

    def take_pause(self):
        """The longest pause of a feed since this was asked last, also one that goes on."""
        with self.lock:
            now = time.monotonic()
            going_on = (Pause(now - at, feed, now, agent, "") for feed, (at, agent) in self.last.items())
            longest = max([*self.longest.values(), *going_on])
            self.longest.clear()
            return longest


class Poll:
    """A poll of a feed, as the publisher sees it: until it is answered, or the gateway has ended the connection. A gateway
    that ends in order does so, and gives its feeds over before the publisher looks again."""

    def __init__(self, publisher, feed, agent, is_left):
        self.publisher, self.feed, self.agent, self.is_left = publisher, feed, agent, is_left

    def __enter__(self):
        publisher, now = self.publisher, time.monotonic()
        with publisher.lock:
            in_flight = publisher.in_flight.setdefault(self.feed, [])
            others = [poll.agent for poll in in_flight if poll.agent != self.agent and not poll.is_left()]
            if others and len(publisher.faults) < FAULTS:
                at = time.strftime("%H:%M:%S")
                publisher.faults.append(f"{at} {self.feed} is polled by {self.agent} and {others} at once")
            in_flight.append(self)
            at, before = publisher.last.get(self.feed, (publisher.since, "nobody"))
            pause = Pause(now - at, self.feed, now, before, self.agent)
            publisher.longest[self.feed] = max(publisher.longest.get(self.feed, pause), pause)
            publisher.last[self.feed] = (now, self.agent)
            publisher.polls[self.agent] += 1
            publisher.held += self.agent in publisher.slow

    def __exit__(self, *_):
        with self.publisher.lock:
            self.publisher.in_flight[self.feed].remove(self)


class Fleet:
    """The gateways, each with its own way to the database."""

    def __init__(self, program, work, database, publisher, count):
        self.program, self.publisher, self.database = program, publisher, database
        self.folders = [work / f"gateway-{which}" for which in range(count)]
        self.ports, self.gateways = [stage.free_port() for _ in range(count)], [None] * count
        self.away, self.faults, self.answers = set(range(count)), [], collections.Counter()
        # Who answers readers, and may poll nothing.
        self.idle = set()
        # What only the gateway that writes answers, and was not answered while commits were cut.
        self.unanswered = 0
        # Whether there may be no database, and whether there may be no gateway that writes.
        self.is_shaken, self.is_headless = False, False
        # Until then connections to the database are cut at commits, or what became of some of these is not known yet.
        self.cut_until = 0
        # What is configured beside polling.
        self.on_postgres = ON_POSTGRES
        for folder in self.folders:
            folder.mkdir()
        self.addresses = [database.address(which, work) for which in range(count)]

    def start(self, which):
        configuration = self.on_postgres.format(self.addresses[which]) + POLLING.format(self.publisher.every, which)
        listen = f"127.0.0.1:{self.ports[which]}"
        self.gateways[which] = stage.Gateway(self.program, self.folders[which], configuration, listen=listen)
        self.away.discard(which)
        self.idle.discard(which)

    def is_cut(self):
        """Whether answers to commits may be lost."""
        return time.monotonic() < self.cut_until

    def may_lag(self):
        """Whether the gateway that writes may not know yet of commits that others show."""
        return self.is_cut() or self.is_shaken

    def lacks_writer(self):
        """Whether what only the gateway that writes answers may go unanswered."""
        return self.is_headless or self.is_cut()

    def fault(self, said):
        if len(self.faults) < FAULTS:
            self.faults.append(f"{time.strftime('%H:%M:%S')} {said}")

    def get(self, which, path, timeout=PATIENCE, method="GET", body=None, headers=None):
        """The status, the body and the headers; status 0 where there was no answer."""
        try:
            every = {"authorization": f"Bearer {stage.TOKEN}", "content-type": "application/json", **(headers or {})}
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            address = f"http://127.0.0.1:{self.ports[which]}{path}"
            request = urllib.request.Request(address, data, every, method=method)
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error), {}

    def near(self):
        """A gateway that is there."""
        return random.choice(self.there())

    def there(self):
        return sorted(set(range(len(self.ports))) - self.away)

    def ask(self, path, is_of_writer=False, **how):
        """What some gateway answers; nothing where it was about to go, or there is no database, or nobody to write."""
        which = self.near()
        is_shaken = self.is_shaken or (is_of_writer and self.lacks_writer())
        status, text, _ = self.get(which, path, **how)
        self.answers[status] += 1
        if 200 <= status < 300:
            return which, text
        is_shaken = is_shaken or self.is_shaken or (is_of_writer and self.lacks_writer())
        if not (is_shaken or which in self.away):
            self.fault(f"{which}{path} answered {status}: {text[:200]}")
        elif is_of_writer and self.is_cut():
            self.unanswered += 1
        time.sleep(0.05)
        return None

    def shards(self, which):
        found = re.search(r"^tidegate_poll_shards (\d+)$", self.get(which, "/metrics")[1], re.M)
        return int(found.group(1)) if found else 0

    def until(self, what, seconds, is_it):
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            if is_it():
                took = time.monotonic() - begun
                print(f"  {time.strftime('%H:%M:%S')} {what}: {took:.1f} s", file=sys.stderr, flush=True)
                return took
            time.sleep(0.1)
        ready = [self.get(which, "/readyz", 3)[:2] for which in range(len(self.ports))]
        shards = [self.shards(which) for which in range(len(self.ports))]
        faults = self.faults[:3] + self.publisher.faults[:3]
        raise RuntimeError(f"{what}: not within {seconds} s; {ready}, {shards} shards, {faults}")

    def until_shared(self, what):
        """Waits until those that are there have all shards, each about as many."""
        def is_shared():
            there = self.there()
            shards = [(which, self.shards(which)) for which in there]
            counts = [count for which, count in shards if count or which not in self.idle]
            return sum(counts) == SHARDS and max(counts) - min(counts) <= len(there)
        return self.until(what, SHARED_WITHIN + LEASE, is_shared)

    def writer(self):
        """The gateway that writes; nothing where there is none. There must not be two."""
        writes = lambda which: self.get(which, "/readyz", 5)[1].startswith("ready")
        writers = list(filter(writes, self.there()))
        # The one may have handed over to the other meanwhile.
        if len(writers) > 1 and len(writers := list(filter(writes, writers))) > 1:
            self.fault(f"gateways {writers} say that they write")
        return writers[0] if writers else None
