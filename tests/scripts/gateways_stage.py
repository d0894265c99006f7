"""What gateways_run.py watches: a publisher of many hosts that knows what it published, and gateways on one database."""

import http.client
import json
import os
import random
import re
import stage
import subprocess
import sys
import time

from gateways_record import Poll
from stage import check

# How many posts a document has, and how many feeds a host.
POSTS, OF_HOST = 12, 3
# The longest that a client waits: for a gateway that should answer, and for one that is disturbed, in seconds.
PATIENCE, AWAY_PATIENCE = 15, 2
# How long a gateway may take to answer again once nothing disturbs it, in seconds.
BACK_WITHIN = 45
# The feed whose items are made here, and the aggregate that gathers them.
MADE, GATHERED = "kept", "gathered"
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
PUBLIC = "https://feeds.example.org"
POLLING = """
min_interval = "{0}s"
max_interval = "{0}s"
user_agent = "gateway-{1}-{2}"
[[feed]]
name = "kept"
local = true
[[aggregate]]
name = "gathered"
sources = ["kept"]
"""
# Subscribers are on this machine. No key of the file: an older program would refuse it.
os.environ["TIDEGATE_WEBSUB_PRIVATE_CALLBACKS"] = "true"


def document(feed, newest):
    """A feed of the last posts up to `newest`."""
    posts = range(newest, max(0, newest - POSTS), -1)
    return stage.atom(feed, (stage.entry(f"{feed}-{n}", f"Post {n}", f"the text of post {n} of {feed}") for n in posts))


class Server(stage.Server):
    """A server at every address of this machine."""

    def __init__(self, handler):
        super().__init__(handler, "0.0.0.0")
        self.port = self.server_address[1]

    def handle_error(self, *_):
        """Gateways that are killed leave in the middle of a request."""


class Handler(stage.Handler):
    """Ends each connection after its answer: thousands of hosts would keep as many threads."""

    def answer(self, status, body=b"", headers=()):
        super().answer(status, body, (*headers, ("connection", "close")))


class Publisher:
    """Serves all feeds, each at an address of its host, and notes who polls what when."""

    def __init__(self, record):
        self.record, self.newest, self.last = record, dict.fromkeys(record.feeds, 1), {}
        # The newest post of each feed that some gateway has, by what it said when it polled.
        self.known = dict.fromkeys(record.feeds, 0)
        publisher = self

        class Feeds(Handler):
            def do_GET(self):
                feed, now = self.path.strip("/").removesuffix(".xml"), time.monotonic()
                record.polls.append(Poll(feed, self.headers["user-agent"].split(" ")[0], now))
                publisher.last[feed] = now
                has = int(self.headers.get("if-none-match", "").strip('"') or 0)
                publisher.known[feed] = max(publisher.known[feed], has)
                time.sleep(random.choice((0, 0.01, 0.2)))
                newest = publisher.newest[feed]
                headers = [("etag", f'"{newest}"'), ("content-type", "application/atom+xml")]
                if has == newest:
                    self.answer(304, headers=headers[:1])
                else:
                    self.answer(200, document(feed, newest), headers)

        self.server = Server(Feeds)

    def address(self, number):
        host = number // OF_HOST
        return f"http://127.1.{host // 250}.{host % 250 + 1}:{self.server.port}/feed-{number}.xml"

    def publish(self, ends):
        """A new post in some feed, and now and then in many. Each is a version of its own in the end: none comes where
        half of the document is new to all gateways, since one that is all new is held."""
        while not ends.wait(0.1):
            for feed in random.sample(self.record.feeds, random.choice((1, 1, 1, 3))):
                if self.newest[feed] - self.known[feed] < POSTS // 2:
                    self.newest[feed] += 1
                    self.record.published[feed] = time.monotonic()

    def newest_in(self, feed, text):
        """The newest post of a document; 0 where it is none of the publisher's documents of this feed."""
        posts, texts = ([int(number) for number in re.findall(what, text)]
                        for what in (r"Post (\d+)<", rf"the text of post (\d+) of {feed}<"))
        last = max(posts, default=0)
        is_one = posts == texts == list(range(last, max(0, last - POSTS), -1)) and last <= self.newest[feed]
        return last if is_one else 0

    def until_polled(self, what, within):
        """Waits until each feed is polled from now on; how long that took, in seconds."""
        since = time.monotonic()
        return until(what, within, lambda: min(self.last.get(feed, 0) for feed in self.record.feeds) > since)


def until(what, seconds, is_it):
    begun = time.monotonic()
    check(stage.until(is_it, seconds, 0.1), f"{what}: not within {seconds} s")
    took = time.monotonic() - begun
    print(f"  {time.strftime('%H:%M:%S')} {what}: {took:.1f} s", file=sys.stderr, flush=True)
    return took


class Fleet:
    """The gateways, each with its own way to the database."""

    def __init__(self, program, work, proxies, every, count):
        self.program, self.proxies, self.every, self.on_postgres = program, proxies, every, ON_POSTGRES
        self.folders = [work / f"gateway-{which}" for which in range(count)]
        self.ports, self.gateways = [stage.free_port() for _ in range(count)], [None] * count
        self.starts, self.away, self.all = [0] * count, set(range(count)), range(count)
        for which, folder in enumerate(self.folders):
            folder.mkdir(parents=True)
            (folder / "database.url").write_text(proxies.url(which) + "\n")
            (folder / "database.url").chmod(0o600)

    def start(self, which):
        self.starts[which] += 1
        configuration = self.on_postgres.format(self.folders[which] / "database.url")
        configuration += POLLING.format(self.every, which, self.starts[which])
        listen = f"127.0.0.1:{self.ports[which]}"
        self.gateways[which] = stage.Gateway(self.program, self.folders[which], configuration, listen=listen)

    def signal(self, which, number):
        self.gateways[which].process.send_signal(number)

    def until_ready(self, what, those):
        until(what, BACK_WITHIN, lambda: all(self.get(which, "/readyz")[0] == 200 for which in those))

    def get(self, which, path, method="GET", body=None, headers=None):
        """The status, the body and the headers; status 0 where there was no answer."""
        every = {"authorization": f"Bearer {stage.TOKEN}", "content-type": "application/json", **(headers or {})}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        address = f"http://127.0.0.1:{self.ports[which]}{path}"
        try:
            return stage.get(address, method, data, every, AWAY_PATIENCE if which in self.away else PATIENCE)
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error), {}

    def near(self):
        """A gateway that nothing disturbs, if there is one."""
        return random.choice(sorted(set(self.all) - self.away) or list(self.all))

    def end(self):
        for gateway in filter(None, self.gateways):
            if gateway.process.poll() is None:
                gateway.kill()


class Database:
    """PostgreSQL's server: `restart` is the command that starts it again, but for how it ends before."""

    def __init__(self, restart, data):
        self.command, self.data = restart, data

    def restart(self, how):
        """`how`: "fast", or "immediate", which kills it."""
        subprocess.run(f"{self.command} -m {how}", shell=True, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def signal(self, number):
        """Sends a signal to all of its processes."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        children = f"/proc/{first}/task/{first}/children"
        with open(children) as others:
            for process in (first, *map(int, others.read().split())):
                os.kill(process, number)
