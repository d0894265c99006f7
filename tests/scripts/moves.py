"""The state of a gateway moves from sled to PostgreSQL and back, and everybody who follows it goes on. See postgres.sh.

Readers get the same bytes of every view of every feed, and their ETags are valid; so do those of archives, of older
versions of items and of the list of feeds. Consumers of `/changes`, `/events` and SUP documents go on from where they
were before the first move."""

import concurrent.futures
import datetime
import http.client
import json
import re
import shutil
import stage
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from failing_disk_run import check, document
from gateways_stage import ON_POSTGRES, PUBLIC

# How many requests are made at once.
AT_ONCE = 16
# How long a connection is used again, in seconds.
IDLE = 10
# How long an answer may take, and a change until it is told, in seconds.
PATIENCE, TOLD_WITHIN = 60, 20
ON_SLED = """
public_url = "https://feeds.example.org"
[polling]
allow_private = true
"""
# Documents are short, so that feeds have archives. An aggregate remembers how far it has read its sources.
SOURCES = """
[[feed]]
name = "one"
local = true
[[feed]]
name = "two"
local = true
[[aggregate]]
name = "both"
sources = ["one", "two"]
"""
PUBLISHED = f"""
[publish]
archive_entries = 2
{SOURCES}"""
# What has a tag. The page of a feed has none: it says when the feed was polled.
VIEWS = ("", "/sync", "/complete", "/changes", "?as=rss", "?as=jsonfeed", "/sync?as=json", "/sync?sx=feedsync",
         "/complete?as=pox", "/complete?sx=feedsync")
# The view that says nothing of new items.
EDITS = "/changes"
LIST = "/subscriptions.opml"
# The feeds with the most items, and how many these have; all have at least one.
DEEP, DEEPEST = 20, 8
# The period of SUP documents, in seconds.
PERIOD = 86_400


def feed_of(path):
    found = re.match("/feeds/([^/?]+)", path)
    return found and found.group(1)


class Moved:
    """A gateway whose state moves, and what those know of it who follow it."""

    def __init__(self, program, folder, feeds):
        self.program, self.folder = program, folder
        self.site, self.local = stage.Site(), threading.local()
        self.site.documents["/news.xml"] = document(3)
        self.names = [f"local-{number}" for number in range(feeds)]
        self.feeds = ["news", "one", "two", "both", *self.names]
        # The documents by path; the lines of the change log; the SUP document; the last post of the publisher.
        self.documents, self.log, self.sup, self.posts = {}, [], {}, 5
        # What items were before they were edited, by their paths.
        self.versions = {}
        self.notes, self.begun, self.gateway = [], time.monotonic(), None

    def note(self, what):
        now = time.monotonic()
        self.notes.append(f"{what} {now - self.begun:.1f} s")
        self.begun = now

    def configure(self, configuration):
        self.configuration = configuration + PUBLISHED
        (self.folder / "tidegate.toml").write_text("[server]\n" + self.configuration)

    def start(self):
        self.gateway = stage.Gateway(self.program, self.folder, self.configuration)
        self.local = threading.local()

    def end(self):
        self.gateway.end()
        check(self.gateway.process.returncode == 0, f"it ended with status {self.gateway.process.returncode}")
        self.configure(self.configuration.removesuffix(PUBLISHED))

    def tool(self, *arguments):
        given = ("--config", self.folder / "tidegate.toml", "--data", self.folder / "data")
        done = subprocess.run([self.program, *arguments, *given], capture_output=True, text=True)
        return done.returncode, done.stderr

    def moves(self, configuration, file):
        """Moves the state into another store."""
        self.end()
        self.begun = time.monotonic()
        status, said = self.tool("export", file, "--move")
        check(status == 0, f"export: {said}")
        self.note(f"exported {file.stat().st_size / 1e6:.1f} MB in")
        status, said = self.tool("serve")
        check(status != 0 and "was moved to" in said, f"what was moved away started: {said}")
        self.configure(configuration)
        shutil.rmtree(self.folder / "data")
        self.begun = time.monotonic()
        status, said = self.tool("import", file)
        check(status == 0, f"import: {said}")
        self.note("imported in")
        status, said = self.tool("import", file)
        check(status != 0 and " already" in said, f"imported twice: {said}")
        self.begun = time.monotonic()
        self.start()
        self.note("started in")

    def ask(self, path, method="GET", body=None, headers=None):
        """The status, the body and the headers; over a connection that each thread keeps."""
        now = time.monotonic()
        if now > getattr(self.local, "fresh", 0) + IDLE:
            host = urllib.parse.urlsplit(self.gateway.base).netloc
            self.local.connection = http.client.HTTPConnection(host, timeout=PATIENCE)
        self.local.fresh = now
        every = {"authorization": f"Bearer {stage.TOKEN}", "content-type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body)
        self.local.connection.request(method, path, data, every)
        answer = self.local.connection.getresponse()
        return answer.status, answer.read(), answer.headers

    def told(self, path, method="GET", body=None, headers=None):
        status, text, _ = self.ask(path, method, body, headers)
        check(200 <= status < 300, f"{method} {path}: {status} {text[:300]}")
        return text

    def each(self, job, things):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(job, things))

    def make(self):
        """Feeds of all kinds, with items that were edited and deleted, and archives."""
        def put(name):
            self.told(f"/api/v1/feeds/{name}", "PUT", {"local": True})

        def post(made):
            name, item = made
            path = f"/api/v1/feeds/{name}/items"
            shared = json.loads(self.told(path, "POST", {"title": f"item {item}"}))["sync_id"]
            if item == 1 and len(name) % 2:
                self.told(f"{path}/{shared}", "PUT", {"title": "edited"})
                self.versions[f"/feeds/{name}/items/{shared}?version=1"] = f"item {item}"
            if item == 2:
                self.told(f"{path}/{shared}", "DELETE")

        self.told("/api/v1/feeds/news", "PUT", {"url": self.site.base + "/news.xml"})
        self.gateway.poll("news")
        self.each(put, self.names)
        self.note(f"made {len(self.names)} feeds in")
        # Changes of one feed that come in one second are dated a second apart.
        for item in range(DEEPEST):
            with_more = lambda at: item < (DEEPEST if at % DEEP == 0 else 1 + at % 5)
            self.each(post, [(name, item) for at, name in enumerate(self.feeds[1:3] + self.names) if with_more(at)])
        self.site.documents["/news.xml"] = document(self.posts)
        self.gateway.poll("news")
        self.note("their items in")

    def read_log(self, after):
        lines = []
        while more := self.told(f"/changes?after={after}&wait=0").splitlines():
            lines.extend(map(json.loads, more))
            after = lines[-1]["id"]
        return lines

    def rest(self):
        """Waits until no time is said that is not there yet; then all is told, and aggregates have all."""
        after = self.log[-1]["id"] if self.log else "0"
        before, lines = None, self.read_log(after)
        while lines != before:
            newest = max(change["tick"] for line in lines for change in line["changes"])
            ahead = datetime.datetime.fromisoformat(newest) - datetime.datetime.now(datetime.timezone.utc)
            time.sleep(max(2, ahead.total_seconds() + 1))
            before, lines = lines, self.read_log(after)
        return lines

    def look(self, feeds):
        """What readers of these feeds get, and consumers."""
        self.log += self.rest()
        epochs = [line["epoch"] for line in self.log]
        check(epochs == list(range(1, len(epochs) + 1)), "epochs are not dense")
        self.sup = json.loads(self.told(f"/sup.json?seconds={PERIOD}"))
        self.begun = time.monotonic()
        self.documents = {path: found for path, found in self.documents.items() if feed_of(path) not in feeds}
        self.documents.update(self.each(self.document, [LIST, *self.views(feeds), *self.old_versions(feeds)]))
        archives = self.each(self.archives, feeds)
        for found in archives:
            self.documents.update(found)
        return archives

    def views(self, feeds):
        return [f"/feeds/{feed}{view}" for feed in feeds for view in VIEWS]

    def old_versions(self, feeds):
        named = set(feeds)
        return [path for path in self.versions if feed_of(path) in named]

    def document(self, path):
        status, text, headers = self.ask(path)
        check(status == 200, f"{path}: {status} {text[:300]}")
        # Each feed that is added is a change of the list, a second after the last one: its date is ahead for long.
        return path, (text, headers["etag"], headers["last-modified"] if path != LIST else None)

    def archives(self, feed):
        """The archives of a feed: the newest, one in the middle and the oldest."""
        text, found = self.documents[f"/feeds/{feed}"][0], {}
        while link := re.search(rb'<link rel="prev-archive" [^>]*href="([^"]+)"', text):
            path = link.group(1).decode().removeprefix(PUBLIC)
            found[path] = self.document(path)[1]
            text = found[path][0]
        places = sorted({0, len(found) // 2, len(found) - 1}) if found else []
        return {path: found[path] for path in (list(found)[place] for place in places)}

    def is_valid(self, path):
        """Whether a document is the same, and the ETag of before is valid."""
        text, tag, date = self.documents[path]
        status = self.ask(path, headers={"if-none-match": tag})[0]
        if status != 304:
            return f"{path}: {status} where {tag} is known"
        found = self.document(path)[1]
        if found == (text, tag, date):
            return None
        pairs = enumerate(zip(text, found[0]))
        at = next((at for at, (one, other) in pairs if one != other), min(len(text), len(found[0])))
        shown = [(part[max(0, at - 40):at + 80], *more) for part, *more in (found, (text, tag, date))]
        return f"{path}: from byte {at} on {shown[0]} instead of {shown[1]}"

    def check_same(self, where):
        """Nothing is to be read anew."""
        self.begun = time.monotonic()
        wrong = [fault for fault in self.each(self.is_valid, sorted(self.documents)) if fault]
        check(not wrong, f"{where}: {len(wrong)} of {len(self.documents)} documents differ: {wrong[:2]}")
        self.note(f"{2 * len(self.documents)} requests in")
        places = [0, len(self.log) // 2, len(self.log) - 1, len(self.log)]
        for place in places:
            after = self.log[place - 1]["id"] if place else "0"
            check(self.read_log(after) == self.log[place:], f"{where}: /changes after {after} has other lines")
        sup = json.loads(self.told(f"/sup.json?seconds={PERIOD}"))
        check(sup["since_time"] <= self.sup["updated_time"], f"{where}: a SUP document begins at {sup['since_time']}")
        check(sup["updates"] == self.sup["updates"], f"{where}: SUP documents have other updates")

    def events(self, after, epochs):
        """The epochs that a stream of events tells after a place."""
        told, headers = [], {"last-event-id": after}
        request = urllib.request.Request(self.gateway.base + "/events", headers=headers)
        with urllib.request.urlopen(request, timeout=TOLD_WITHIN) as stream:
            while len(told) < epochs:
                line = stream.readline().decode().rstrip("\n")
                check(line != "event: reset", f"/events does not know {after}")
                if line.startswith("data: "):
                    epoch = json.loads(line.removeprefix("data: "))["epoch"]
                    told += [epoch] if told[-1:] != [epoch] else []
        return told

    def check_goes_on(self, where, since):
        """New changes follow the old ones for everybody who has been here since before the first move."""
        validators = self.gateway.poll("news")["outcome"]
        check(validators == "not_modified", f"{where}: the publisher's validators were lost: {validators}")
        self.posts += 1
        self.site.documents["/news.xml"] = document(self.posts)
        report = self.gateway.poll("news")
        found = report["created"], report["updated"], report["deleted"], report["rekeyed"]
        check(found == (1, 0, 0, 0), f"{where}: a new post of the publisher: {report}")
        title = f"item {where}"
        for feed in ("one", "local-0"):
            self.told(f"/api/v1/feeds/{feed}/items", "POST", {"title": title})
        begun = time.monotonic()
        while (titles := self.told("/feeds/both/complete").decode()).count(f">{title}<") != 1:
            check(time.monotonic() < begun + TOLD_WITHIN, f"{where}: the aggregate has {titles}")
            time.sleep(0.2)
        changed = ("news", "one", "both", "local-0")
        for feed in changed:
            tag = self.documents[f"/feeds/{feed}/sync"][1]
            status, text, _ = self.ask(f"/feeds/{feed}/sync", headers={"if-none-match": tag, "a-im": "feed"})
            check(status == 226, f"{where}: a delta of {feed} since before: {status} {text[:300]}")
        known, before, sup = len(self.log), self.documents, self.sup
        self.look(changed)
        is_covered = self.sup["since_time"] <= sup["updated_time"]
        updates = dict(self.sup["updates"]).items() - dict(sup["updates"]).items()
        check(is_covered and len(updates) == len(changed), f"{where}: a SUP document lists {updates}")
        new = {change["feed"] for line in self.log[known:] for change in line["changes"]}
        check(new == set(changed), f"{where}: told were changes of {new}")
        views = [path for path in self.views(changed) if not path.endswith(EDITS)]
        old = [path for path in views if self.documents[path] == before[path]]
        check(not old, f"{where}: new items are not in {old}")
        lines = [line["epoch"] for line in self.log]
        for place in (since, known):
            told = self.events(self.log[place - 1]["id"], len(lines) - place)
            check(told == lines[place:], f"{where}: /events told {told} after {place}")


def moved(program, work, file, feeds):
    """sled, PostgreSQL, sled."""
    folder = work / "moves"
    folder.mkdir()
    moved = Moved(program, folder, feeds)
    try:
        moved.configure(ON_SLED)
        moved.start()
        moved.make()
        archives = moved.look(moved.feeds)
        count = sum(map(bool, archives))
        check(count > len(archives) / 2, f"only {count} of {len(archives)} feeds have archives")
        older = {path: moved.documents[path][0].decode() for path in moved.versions}
        wrong = [path for path, title in moved.versions.items() if f">{title}<" not in older[path]]
        check(older and not wrong, f"of {len(older)} older versions these are others: {wrong[:2]}")
        size = sum(len(text) for text, *_ in moved.documents.values())
        moved.note(f"read {len(moved.documents)} documents of {size / 1e6:.1f} MB in")
        since = len(moved.log)
        moved.moves(ON_POSTGRES.format(file), folder / "one.tg")
        moved.check_same("in PostgreSQL")
        moved.check_goes_on("in PostgreSQL", since)
        moved.moves(ON_SLED, folder / "two.tg")
        moved.check_same("back in sled")
        moved.check_goes_on("back in sled", since)
        moved.end()
    finally:
        if moved.gateway:
            moved.gateway.process.kill()
    print(f"{len(moved.documents)} documents of {len(moved.feeds)} feeds, {count} with archives, and {len(older)} of them "
          f"older versions of items, are the same in sled, in PostgreSQL and in sled again, their ETags valid; "
          f"{len(moved.log)} epochs, none missing and none twice; {'; '.join(moved.notes)}")
