"""Subscribers of the hub of gateways_run.py: they subscribe through any gateway, and the one that writes delivers."""

import hashlib
import hmac
import threading
import time
import urllib.parse

from gateways_stage import Handler, PUBLIC, Server

# How many feeds are subscribed to, and for how long, in seconds.
SUBSCRIBED, HUB_LEASE = 12, 86_400
SECRET = "a-secret-of-the-subscribers"
# Within what time a subscription is to be asked for and verified, in seconds.
VERIFIED_WITHIN = 30


class Subscribers:
    """A callback for each of some feeds, each at an address of its own."""

    def __init__(self, fleet, publisher):
        self.fleet, self.publisher, self.lock = fleet, publisher, threading.Lock()
        step = max(1, len(publisher.newest) // SUBSCRIBED)
        self.feeds = [f"feed-{number}" for number in range(0, len(publisher.newest), step)][:SUBSCRIBED]
        # Of each feed: the newest post and the digest of the last delivery, and when that came.
        self.verified, self.last = set(), {}
        # The newest post of each when all were subscribed to: of feeds that stay so, nothing has to be delivered.
        self.known = {}
        self.deliveries, self.repeated, self.latest = 0, 0, 0.0
        subscribers = self

        class Callback(Handler):
            def do_GET(self):
                feed, _, query = self.path.strip("/").partition("?")
                status, said = subscribers.verify(feed, dict(urllib.parse.parse_qsl(query)))
                self.answer(status, said.encode())

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                subscribers.take(self.path.strip("/"), body, self.headers)
                self.answer(204)

        self.server = Server(Callback)

    def topic(self, feed):
        return f"{PUBLIC}/feeds/{feed}"

    def subscribe(self):
        """Subscribes through any gateway, and waits until the hub has asked."""
        for number, feed in enumerate(self.feeds):
            callback = f"http://127.2.0.{number + 1}:{self.server.port}/{feed}"
            form = {"hub.mode": "subscribe", "hub.topic": self.topic(feed), "hub.callback": callback,
                    "hub.secret": SECRET, "hub.lease_seconds": HUB_LEASE}
            headers = {"content-type": "application/x-www-form-urlencoded"}
            body = urllib.parse.urlencode(form).encode()
            self.fleet.ask("/websub", True, method="POST", body=body, headers=headers)
        wanted = set(self.feeds)
        self.fleet.until("subscribed to the hub", VERIFIED_WITHIN, lambda: self.verified == wanted)
        self.known = {feed: self.publisher.newest[feed] for feed in self.feeds}

    def verify(self, feed, asked):
        """Whether the hub's question is about what was asked for."""
        if feed in self.feeds and (asked.get("hub.mode"), asked.get("hub.topic")) == ("subscribe", self.topic(feed)):
            self.verified.add(feed)
            return 200, asked["hub.challenge"]
        self.fleet.fault(f"the hub asks the callback of {feed} for {asked}")
        return 404, ""

    def take(self, feed, body, headers):
        """A delivery: signed, one of the publisher's documents, and none that is older than what came before."""
        with self.lock:
            signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
            if headers["x-hub-signature"] != signature:
                self.fleet.fault(f"a delivery of {feed} is signed with {headers['x-hub-signature']}")
            links = ", ".join(headers.get_all("link", []))
            if f'<{self.topic(feed)}>; rel="self"' not in links or f'<{PUBLIC}/websub>; rel="hub"' not in links:
                self.fleet.fault(f"a delivery of {feed} has the links {links}")
            newest, is_one = self.publisher.check_posts(feed, body.decode())
            if not is_one:
                self.fleet.fault(f"a delivery of {feed} is none of the publisher's documents: {body[:300]}")
            before, last_digest = self.last.get(feed, (0, b""))
            digest = hashlib.sha256(body).digest()
            if newest < before:
                self.fleet.fault(f"a delivery of {feed} ends with post {newest} after one with post {before}")
            self.repeated += digest == last_digest
            self.last[feed] = max((newest, digest), (before, last_digest), key=lambda known: known[0])
            self.deliveries += 1
            self.latest = time.monotonic()

    def lacking(self):
        """The feeds that got a new post since they were subscribed to, and whose last delivery lacks the newest one."""
        with self.lock:
            posts = {feed: self.last.get(feed, (0, b""))[0] for feed in self.feeds}
        newest = {feed: self.publisher.newest[feed] for feed in self.feeds}
        return {feed: f"post {post} of {newest[feed]}" for feed, post in posts.items()
                if post != newest[feed] > self.known[feed]}
