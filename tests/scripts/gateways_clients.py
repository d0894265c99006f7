"""Who asks the gateways of gateways_run.py, each a thread that goes from one to the other and writes down what it saw:
readers, who makes and redacts items, consumers of changes, and subscribers of the hub."""

import hashlib
import hmac
import http.client
import json
import random
import re
import stage
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from gateways_record import Delivery, Item, Listing, Told, View, is_done
from gateways_stage import GATHERED, MADE, PUBLIC, Handler, Server, until

# How many read from each gateway, so that some wait at one that stands still.
READERS = 2
# The pauses of who reads all items and of who makes them, and how often one of these is redacted, in seconds and items.
LISTING, MAKING, REDACTED_ONE_IN = 0.5, 0.9, 8
# So many make items at a time: one may wait at a gateway that stands still.
MAKERS = 3
# How far back SUP documents are asked for, in seconds: usually, and by who has had no answer for so long.
UPDATES_OF, UNANSWERED, UPDATES_OF_MOST = 60, 40, 86_400
# How long a stream of events is read from one gateway, in seconds, and how many changes are remembered as late ones.
STREAMED, LATE_ONES = 1, 20
# How many feeds are subscribed to, for how long, and within what time the hub asks, in seconds.
SUBSCRIBED, HUB_LEASE, VERIFIED_WITHIN = 12, 86_400, 30
SECRET = "a-secret-of-the-subscribers"


class Clients:
    def __init__(self, fleet, publisher, record):
        self.fleet, self.publisher, self.record = fleet, publisher, record
        # Set where nothing is published and made any more, and where nobody asks any more.
        self.rests, self.ends, self.threads = threading.Event(), threading.Event(), []
        # The feeds that changed last.
        self.changed, self.streamed = [], 0
        self.subscribers = Subscribers(fleet, publisher, record)

    def begin(self):
        """Lets them ask until the end, while the publisher publishes."""
        self.subscribers.subscribe()
        readers = [lambda which=which: self.read(which) for which in self.fleet.all for _ in range(READERS)]
        makers = [lambda first=first: self.make(first) for first in range(MAKERS)]
        for job in (lambda: self.publisher.publish(self.rests), *makers, self.list, self.consume, self.stream,
                    self.listen, *readers):
            self.threads.append(threading.Thread(target=self.guarded, args=(job,), daemon=True))
            self.threads[-1].start()

    def guarded(self, job):
        try:
            job()
        except Exception as error:
            self.record.wrong.append(f"a client failed: {error!r}")

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(stage.WAIT)

    def read(self, which):
        """Reads any feed at one gateway, whatever is done to that; more often one that changed lately."""
        while not self.ends.wait(0.05):
            feed = random.choice(random.choice((self.changed, self.record.feeds)) or self.record.feeds)
            asked = time.monotonic()
            status, text, _ = self.fleet.get(which, f"/feeds/{feed}")
            post = self.publisher.newest_in(feed, text) if status == 200 else 0
            self.record.views.append(View(which, asked, time.monotonic(), status, feed, post))

    def items(self, which, feed, view=""):
        """Notes the numbers of the items that a gateway lists."""
        asked = time.monotonic()
        status, text, _ = self.fleet.get(which, f"/feeds/{feed}/complete")
        if status == 200:
            numbers = tuple(map(int, re.findall(r">made-(\d+)</title>", text)))
            self.record.listings.append(Listing(which, asked, view, numbers))

    def list(self):
        while not self.ends.wait(LISTING):
            self.items(random.choice(self.fleet.all), MADE)

    def make(self, first):
        """Makes items at any gateway, each once, and redacts some."""
        number, path, ids = first, f"/api/v1/feeds/{MADE}/items", []
        while not self.rests.wait(MAKING):
            number += MAKERS
            _, text = self.change(self.record.posts, number, path, {"title": f"made-{number}"})
            ids += [(number, json.loads(text)["sync_id"])] if text else []
            if ids and number % REDACTED_ONE_IN == 0:
                of, name = ids.pop(random.randrange(len(ids)))
                self.change(self.record.redactions, of, f"{path}/{name}/redact")

    def change(self, items, number, path, body=None):
        which, asked = self.fleet.near(), time.monotonic()
        status, text, _ = self.fleet.get(which, path, "POST", body)
        items.append(item := Item(which, asked, time.monotonic(), status, number))
        return item, text if is_done(item) else ""

    def consume(self):
        """A consumer of the change log, who asks some gateway for what it is told of."""
        place, log = "0", self.record.log
        while not self.ends.is_set():
            status, text, _ = self.fleet.get(self.fleet.near(), f"/changes?after={place}&wait=1")
            for line in map(json.loads, text.splitlines() if status == 200 else ()):
                place = line["id"]
                log.append(line["changes"])
                if line["epoch"] != len(log):
                    self.record.wrong.append(f"epoch {line['epoch']} was told as the {len(log)}th")
                feeds = [change["feed"] for change in line["changes"] if change["feed"] in self.publisher.newest]
                self.changed = [*self.changed, *feeds][-LATE_ONES:]
                self.look_for(random.choice(line["changes"]))
            if status != 200:
                time.sleep(0.05)

    def look_for(self, change):
        which, asked = self.fleet.near(), time.monotonic()
        status, text, _ = self.fleet.get(which, f"/feeds/{change['feed']}/sync")
        if status == 200:
            shown = re.search(r'until="([^"]+)"', text)
            self.record.told.append(Told(which, asked, change["feed"], change["tick"], shown.group(1) if shown else ""))

    def stream(self):
        """A consumer of events, which goes on at another gateway where it was at the last one."""
        place = "0"
        while not self.ends.is_set():
            which = self.fleet.near()
            address = f"http://127.0.0.1:{self.fleet.ports[which]}/events"
            request = urllib.request.Request(address, headers={"last-event-id": place})
            try:
                with urllib.request.urlopen(request, timeout=3) as answer:
                    end, at = time.monotonic() + STREAMED, place
                    while time.monotonic() < end and (line := answer.readline().decode()):
                        kind, _, said = line.rstrip("\n").partition(": ")
                        if (kind, said) == ("event", "reset"):
                            self.record.wrong.append(f"{which}/events does not know {place}")
                        at = said if kind == "id" else at
                        if kind == "data":
                            event, place = json.loads(said), at
                            self.streamed = event["epoch"]
                            self.record.events.append((event["epoch"], event["feed"], event["tick"]))
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def listen(self):
        """A consumer of SUP documents."""
        updates, answered = self.record.updates, 0
        while not self.ends.wait(0.3):
            asked = time.monotonic()
            seconds = UPDATES_OF if asked - answered < UNANSWERED else UPDATES_OF_MOST
            status, text, _ = self.fleet.get(self.fleet.near(), f"/sup.json?seconds={seconds}")
            for name, update in json.loads(text)["updates"] if status == 200 else ():
                updates[name] = max(update, updates.get(name, ""))
            answered = asked if status == 200 else answered

    def log(self, which):
        """The change log as a gateway tells it: the changes of each epoch."""
        log, place = [], "0"
        while lines := self.fleet.get(which, f"/changes?after={place}&wait=0")[1].splitlines():
            place = json.loads(lines[-1])["id"]
            log += [json.loads(line)["changes"] for line in lines]
        return log

    def look(self, which):
        """Notes what a gateway has in the end."""
        fleet, record = self.fleet, self.record
        record.logs[which] = self.log(which)
        record.listed[which] = dict(json.loads(fleet.get(which, f"/sup.json?seconds={UPDATES_OF_MOST}")[1])["updates"])
        record.pages[which] = {}
        for feed in record.feeds:
            _, text, headers = fleet.get(which, f"/feeds/{feed}")
            record.pages[which][feed] = (headers.get("etag"), self.publisher.newest_in(feed, text))
        self.items(which, GATHERED, " gathered")
        self.items(which, MADE)


class Subscribers:
    """A callback for each of some feeds, each at an address of its own."""

    def __init__(self, fleet, publisher, record):
        self.fleet, self.publisher, self.record, self.verified = fleet, publisher, record, set()
        self.feeds = record.feeds[::max(1, len(record.feeds) // SUBSCRIBED)][:SUBSCRIBED]
        subscribers = self

        class Callback(Handler):
            def do_GET(self):
                feed, _, query = self.path.strip("/").partition("?")
                asked = dict(urllib.parse.parse_qsl(query))
                is_right = asked.get("hub.topic") == subscribers.topic(feed)
                subscribers.verified.add(feed)
                self.answer(200 if is_right else 404, asked["hub.challenge"].encode())

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
            form = {"hub.mode": "subscribe", "hub.topic": self.topic(feed), "hub.secret": SECRET,
                    "hub.callback": f"http://127.2.0.{number + 1}:{self.server.port}/{feed}", "hub.lease_seconds": HUB_LEASE}
            self.fleet.get(self.fleet.near(), "/websub", "POST", urllib.parse.urlencode(form).encode(),
                           {"content-type": "application/x-www-form-urlencoded"})
        until("subscribed to the hub", VERIFIED_WITHIN, lambda: self.verified == set(self.feeds))
        self.record.subscribed = {feed: self.publisher.newest[feed] for feed in self.feeds}

    def take(self, feed, body, headers):
        signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        links = ", ".join(headers.get_all("link", []))
        if headers["x-hub-signature"] != signature or f'<{self.topic(feed)}>; rel="self"' not in links:
            self.record.wrong.append(f"a delivery of {feed} has {headers['x-hub-signature']} and {links}")
        post = self.publisher.newest_in(feed, body.decode())
        self.record.deliveries.append(Delivery(feed, time.monotonic(), post))
