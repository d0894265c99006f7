"""What one gateway of several does for all, as clients of the others see it, and when another one takes its place. See
postgres.sh.

An item that was redacted through one gateway is in no view of any other by the time of the answer. Subscribers of the
hub and of rssCloud register through gateways that follow; so does a publisher's hub that asks and pushes. Then the
gateway that writes is killed: deliveries that failed come again, and none is older than one before; aggregates, rssCloud
and pushes go on."""

import collections
import hashlib
import hmac
import json
import re
import stage
import threading
import time
import types
import urllib.parse

from failing_disk_run import check
from gateways_database import Database
from gateways_stage import Fleet, Handler, LEASE, ON_POSTGRES, PUBLIC, Server

# Feeds are polled when they are pushed or asked for, in seconds otherwise.
EVERY = 3600
# How long a gateway may take to do what it is asked for, and what follows from that to come, in seconds.
DONE_WITHIN, FOLLOWS_WITHIN = 40, 30
# How long after a failure a delivery comes again at the latest, where somebody writes, and how long what was acknowledged
# may be missing from a delivery that is under way, in seconds.
AGAIN_WITHIN, UNDER_WAY = 45, 2
# Documents are short, so that feeds have archives. An aggregate remembers how far it has read its sources.
TABLES = """
[publish]
archive_entries = 2
[websub]
subscribe = true
[[feed]]
name = "one"
local = true
[[feed]]
name = "two"
local = true
[[aggregate]]
name = "both"
sources = ["one", "two"]
[store]
"""
# How often everything is read around a redaction.
READ_AROUND = 10
FORM = {"content-type": "application/x-www-form-urlencoded"}
ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>pushed</title><id>urn:pushed</id>
<updated>2026-01-01T00:00:00Z</updated><link rel="hub" href="{}"/><link rel="self" href="{}"/>{}</feed>"""
ENTRY = "<entry><id>urn:p{0}</id><title>pushed {0}.</title><updated>2026-01-01T00:00:00Z</updated></entry>"
RSS = '<?xml version="1.0"?><rss version="2.0"><channel><title>r</title><link>http://r.example/</link>' \
      "<description>r</description>{}</channel></rss>"
ITEM = '<item><guid isPermaLink="false">r{0}</guid><title>told {0}.</title></item>'
# Every view that has items, also the one that says when the feed was polled.
ALL_VIEWS = ("", "/sync", "/complete", "/changes", "?as=rss", "?as=jsonfeed", "/sync?as=json", "/sync?sx=feedsync",
             "/complete?as=pox", "/complete?sx=feedsync", "/about")


class Callbacks:
    """Takes deliveries and answers challenges; with 503 at the paths in `fails`."""

    def __init__(self):
        self.verified, self.fails = set(), set()
        # By path: when something came, its body, and whether it was taken.
        self.came = collections.defaultdict(list)
        callbacks = self

        class Callback(Handler):
            def do_GET(self):
                path, _, query = self.path.partition("?")
                asked = dict(urllib.parse.parse_qsl(query))
                callbacks.verified.add(path)
                self.answer(200, (asked.get("hub.challenge") or asked.get("challenge", "")).encode())

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                fails = self.path in callbacks.fails
                callbacks.came[self.path].append((time.monotonic(), body, not fails))
                self.answer(503 if fails else 204)

        self.server = Server(Callback)

    def taken(self, path):
        return [(at, body) for at, body, is_taken in list(self.came[path]) if is_taken]


class Hub:
    """A publisher's hub. It reaches the gateways by one that follows, whatever address they name."""

    def __init__(self, fleet):
        self.fleet, self.by, self.callbacks = fleet, None, {}
        hub = self

        class Asked(Handler):
            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
                self.answer(202)
                if form.get("hub.mode") == "subscribe":
                    threading.Thread(target=hub.verify, args=(form,), daemon=True).start()

        self.server = Server(Asked)
        self.address = f"http://127.0.0.1:{self.server.port}/hub"

    def verify(self, form):
        topic, path = form["hub.topic"], form["hub.callback"].removeprefix(PUBLIC)
        asked = {"hub.mode": "subscribe", "hub.topic": topic, "hub.challenge": f"challenge-{time.monotonic_ns()}",
                 "hub.lease_seconds": "86400"}
        status, text, _ = self.fleet.get(self.by, f"{path}?{urllib.parse.urlencode(asked)}")
        if (status, text) != (200, asked["hub.challenge"]):
            self.fleet.fault(f"a publisher's hub was answered {status} {text[:200]} by gateway {self.by}")
            return
        self.callbacks[topic] = path, form.get("hub.secret", "").encode()

    def push(self, topic, document):
        """Whether a push was taken."""
        path, secret = self.callbacks[topic]
        signature = "sha256=" + hmac.new(secret, document, hashlib.sha256).hexdigest()
        headers = {"content-type": "application/atom+xml", "x-hub-signature": signature,
                   "link": f'<{self.address}>; rel="hub", <{topic}>; rel="self"'}
        return self.fleet.get(self.by, path, method="POST", body=document, headers=headers)[0] == 202


class Relayed:
    """Three gateways, and what is asked of them."""

    def __init__(self, program, work, url):
        self.database, self.site = Database(url, 3), stage.Site()
        publisher = types.SimpleNamespace(every=EVERY, faults=[])
        self.fleet = Fleet(program, work, self.database, publisher, 3)
        self.fleet.on_postgres = ON_POSTGRES.replace("[store]\n", TABLES)
        self.callbacks, self.hub = Callbacks(), Hub(self.fleet)
        self.pushed, self.told, self.own = 0, 0, 0
        # When which item of our own was acknowledged.
        self.acknowledged = []

    def until(self, what, is_it, seconds=FOLLOWS_WITHIN):
        return self.fleet.until(what, seconds, is_it)

    def done(self, which, path, method="POST", body=None, headers=None):
        """What a gateway answers; later, while another one has not taken over yet or a feed moves to the writer."""
        until = time.monotonic() + DONE_WITHIN
        while True:
            status, text, _ = self.fleet.get(which, path, method=method, body=body, headers=headers)
            if 200 <= status < 300:
                return text
            check(status in (0, 409, 502, 503) and time.monotonic() < until, f"{which}{path}: {status} {text[:300]}")
            time.sleep(0.3)

    def begin(self):
        for which in (0, 1, 2):
            self.fleet.start(which)
        followed = lambda which: self.fleet.get(which, "/readyz")[1].startswith("standby: the gateway process")
        self.until("two gateways follow", lambda: followed(1) and followed(2))
        self.hub.by = 2
        self.publish_pushed(3)
        self.publish_told(3)
        for name in ("pushed", "told"):
            self.done(1, f"/api/v1/feeds/{name}", "PUT", {"url": f"{self.site.base}/{name}.xml"})

    def publish_pushed(self, posts):
        self.pushed = posts
        self.topic = self.site.base + "/pushed.xml"
        entries = "".join(map(ENTRY.format, range(posts, 0, -1)))
        self.site.documents["/pushed.xml"] = ATOM.format(self.hub.address, self.topic, entries).encode()

    def publish_told(self, posts):
        self.told = posts
        self.site.documents["/told.xml"] = RSS.format("".join(map(ITEM.format, range(posts, 0, -1)))).encode()

    def post(self, which, feed, title):
        return json.loads(self.done(which, f"/api/v1/feeds/{feed}/items", body={"title": title}))["sync_id"]

    def post_own(self, which):
        self.own += 1
        self.post(which, "one", f"own {self.own}.")
        self.acknowledged.append((time.monotonic(), self.own))

    def shown(self, feed, title, view=""):
        """Whether all gateways show an item once."""
        texts = [self.fleet.get(which, f"/feeds/{feed}{view}")[1] for which in self.fleet.there()]
        return all(text.count(f">{title}<") == 1 for text in texts)

    def subscribe(self):
        """Each through another gateway that follows."""
        for at, path in enumerate(("/heard", "/failing")):
            form = {"hub.mode": "subscribe", "hub.topic": f"{PUBLIC}/feeds/one",
                    "hub.callback": f"http://127.2.1.{at + 1}:{self.callbacks.server.port}{path}"}
            self.done(1 + at, "/websub", body=urllib.parse.urlencode(form).encode(), headers=FORM)
        form = {"notifyProcedure": "", "protocol": "http-post", "domain": "127.2.1.3", "path": "/cloud",
                "port": self.callbacks.server.port, "url1": f"{PUBLIC}/feeds/told"}
        answer = self.done(2, "/rsscloud/pleaseNotify", body=urllib.parse.urlencode(form).encode(), headers=FORM)
        check('success="true"' in answer, f"rssCloud: {answer}")
        wanted = {"/heard", "/failing", "/cloud"}
        self.until("subscribers are verified", lambda: self.callbacks.verified == wanted)
        self.until("the publisher's hub is subscribed to", lambda: self.topic in self.hub.callbacks)

    def views(self, which, feed, more):
        """All that a gateway says of a feed, archives included."""
        found, archives = {}, []
        for path in [f"/feeds/{feed}{view}" for view in ALL_VIEWS] + more:
            found[path] = self.fleet.get(which, path)
        text = found[f"/feeds/{feed}"][1]
        while link := re.search(r'<(?:atom:)?link rel="prev-archive" [^>]*href="([^"]+)"', text):
            archives.append(link.group(1).removeprefix(PUBLIC))
            for path in (archives[-1], archives[-1] + "?as=jsonfeed"):
                found[path] = self.fleet.get(which, path)
            text = found[archives[-1]][1]
        return found, archives

    def redact(self, feed, shared, title, by):
        """Redacts an item; then no gateway has it in anything, whatever it had in memory."""
        fleet = self.fleet
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        item = f"/feeds/{feed}/items/{shared}"
        more = [item, f"{item}?version=1", f"/feeds/{feed}/complete?as-of={now}"]
        before, in_archives = {which: self.views(which, feed, more) for which in (0, 1, 2)}, 0
        for which, (found, archives) in before.items():
            has = {path for path, (_, text, _) in found.items() if title in text}
            wanted = {f"/feeds/{feed}/complete", f"/feeds/{feed}/sync", item}
            check(wanted <= has, f"gateway {which} has {title} in {has} alone: redaction shows nothing")
            in_archives += len(has.intersection(archives))
        answered, left = threading.Event(), []
        # Who reads all the while, so that documents are made just then.
        def read(which):
            for path in READ_AROUND * list(before[which][0]):
                is_after = answered.is_set()
                if title in fleet.get(which, path)[1] and is_after:
                    left.append((which, path, "to who reads all the while"))

        readers = [threading.Thread(target=read, args=(which,), daemon=True) for which in before]
        for reader in readers:
            reader.start()
        self.done(by, f"/api/v1{item}/redact")
        answered.set()
        for which in sorted(fleet.there(), key=lambda which: which == by):
            paths = before[which][0]
            # Those of before by their addresses, and what leads from one to the other now.
            found = {path: fleet.get(which, path) for path in paths} | self.views(which, feed, more)[0]
            for view in ("", "/sync", "/complete"):
                path = f"/feeds/{feed}{view}"
                tag = {"if-none-match": paths[path][2]["etag"], "a-im": "feed"}
                found[path, "delta"] = fleet.get(which, path, headers=tag)
                if title in paths[path][1] and found[path, "delta"][0] not in (200, 226):
                    left.append((which, path, "with whoever has it already"))
            left += [(which, path) for path, (_, text, _) in found.items() if title in text]
            left += [(which, path, status) for path, (status, _, _) in found.items() if not 200 <= status < 500]
        for reader in readers:
            reader.join(stage.WAIT)
        check(not left, f"{title} was redacted through gateway {by}, and is left in {left}")
        return sum(len(found) for found, _ in before.values()), in_archives

    def redactions(self):
        items = [self.post(which % 2 + 1, "two", f"secret {which}.") for which in range(6)]
        self.until("aggregates have it", lambda: self.shown("both", "secret 5.", "/complete"))
        # The oldest and the newest, one by the gateway that writes, and one that its publisher still lists.
        found = [self.redact("two", items[at], f"secret {at}.", by) for at, by in ((0, 1), (5, 2), (3, 0))]
        listed = json.loads(self.done(1, "/api/v1/feeds/pushed/items", "GET"))["items"]
        shared = next(item["sync_id"] for item in listed if item["title"] == "pushed 2.")
        found.append(self.redact("pushed", shared, "pushed 2.", 2))
        check(all(archives for _, archives in found), f"archives have items to redact: {found}")
        gone = lambda: not any(f"secret {at}." in self.fleet.get(which, "/feeds/both/complete")[1]
                               for at in (0, 3, 5) for which in self.fleet.there())
        self.until("aggregates have no more of it", gone)
        return sum(documents for documents, _ in found)

    def push(self):
        """A publisher's hub pushes to a gateway that follows, and all show it."""
        self.publish_pushed(self.pushed + 1)
        document = self.site.documents["/pushed.xml"]
        self.until("a push was taken", lambda: self.hub.push(self.topic, document), DONE_WITHIN)
        return self.until("what was pushed is shown", lambda: self.shown("pushed", f"pushed {self.pushed}.", "/complete"))

    def ping(self, which):
        """A change is told by rssCloud, to who registered through a gateway that follows."""
        before = len(self.callbacks.taken("/cloud"))
        self.publish_told(self.told + 1)
        self.done(which, "/api/v1/feeds/told/poll")
        self.until("rssCloud tells of a change", lambda: len(self.callbacks.taken("/cloud")) > before)
        said = urllib.parse.parse_qs(self.callbacks.taken("/cloud")[-1][1])
        check(said.get("url") == [f"{PUBLIC}/feeds/told"], f"rssCloud tells {said}")

    def gathered(self):
        """The aggregate has each item of its sources once."""
        title = f"own {self.own}."
        self.until("the aggregate has a change", lambda: self.shown("both", title, "/complete"))
        for which in self.fleet.there():
            text = self.fleet.get(which, "/feeds/both/complete")[1]
            ids = re.findall(r'<sx:sync id="([^"]+)"', text)
            check(len(ids) == len(set(ids)), f"gateway {which} has items twice in an aggregate")
            counts = [text.count(f">own {number}.<") for number in range(1, self.own + 1)]
            check(set(counts) == {1}, f"gateway {which} has items of a source so often in an aggregate: {counts}")

    def take_over(self):
        """The gateway that writes is killed while a callback fails and is behind."""
        fleet, callbacks = self.fleet, self.callbacks
        self.post_own(1)
        self.gathered()
        self.until("subscribers have it", lambda: callbacks.taken("/heard") and callbacks.taken("/failing"))
        callbacks.fails.add("/failing")
        self.post_own(2)
        self.until("a delivery fails", lambda: not callbacks.came["/failing"][-1][2])
        self.post_own(1)
        writer = fleet.writer()
        fleet.away.add(writer)
        fleet.gateways[writer].process.kill()
        fleet.gateways[writer].process.wait()
        callbacks.fails.clear()
        self.until("another gateway writes", lambda: fleet.writer() is not None, LEASE + FOLLOWS_WITHIN)
        writes = time.monotonic()
        follows = next(which for which in fleet.there() if which != fleet.writer())
        self.hub.by = follows
        self.post_own(follows)
        self.gathered()
        self.push()
        self.ping(follows)
        self.until("what failed is delivered", lambda: len(callbacks.taken("/failing")) > 1, AGAIN_WITHIN)
        failed = max(at for at, _, is_taken in callbacks.came["/failing"] if not is_taken)
        seconds = callbacks.taken("/failing")[1][0] - max(failed, writes)
        check(seconds < AGAIN_WITHIN, f"what failed was delivered {seconds:.1f} s after somebody could")
        for path in ("/heard", "/failing"):
            self.until(f"{path} has the newest", lambda: self.newest(callbacks.taken(path)[-1][1]) == self.own)
            self.check_deliveries(path)

    def newest(self, text):
        return max(map(int, re.findall(r">own (\d+)\.<", text)), default=0)

    def check_deliveries(self, path):
        """None is older than one before, nor than what was acknowledged before it."""
        came = [(at, self.newest(body)) for at, body, _ in self.callbacks.came[path]]
        posts = [post for _, post in came]
        check(posts == sorted(posts), f"{path} was told {posts}")
        for at, post in came:
            known = max((own for when, own in self.acknowledged if when < at - UNDER_WAY), default=0)
            check(post >= known, f"{path} was told {post} where {known} was there: {posts}")

    def end(self):
        for gateway in filter(None, self.fleet.gateways):
            gateway.process.kill()
        self.database.end()


def relayed(program, work, file):
    """Three gateways on the database whose address is in `file`."""
    work = work / "relayed"
    work.mkdir()
    stage, begun = Relayed(program, work, file.read_text().strip()), time.monotonic()
    try:
        stage.begin()
        stage.subscribe()
        documents = stage.redactions()
        pushed = stage.push()
        stage.ping(1)
        stage.take_over()
        check(not stage.fleet.faults, f"{stage.fleet.faults[:5]}")
    finally:
        stage.end()
    failing = [(stage.newest(body), is_taken) for _, body, is_taken in stage.callbacks.came["/failing"]]
    print(f"relayed by gateways that follow: nothing of 4 redacted items in {documents} documents, a push shown after "
          f"{pushed:.1f} s, rssCloud and aggregates before and after another one took over; a callback that failed was "
          f"told {failing}; in {time.monotonic() - begun:.1f} s")
