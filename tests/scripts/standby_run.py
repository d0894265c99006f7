"""Two gateways on one database, one of them a standby, of which now one ends and now the other. See postgres.sh."""

import http.client
import json
import re
import signal
import stage
import subprocess
import threading
import time
import urllib.error
from failing_disk_run import check

# The lease on the database, and how much later the standby has the feeds at most, in seconds.
LEASE, SOON = 15, 10
# How long the first gateway takes at most to go on once its database was killed, in seconds.
RESTARTS = 45
# How many posts a document has, and how far apart the publisher's documents are, in seconds.
POSTS, EVERY = 8, 0.2
# The longest that a client waits for an answer, and that one takes of a gateway that goes on, in seconds.
PATIENCE, ANSWERS_WITHIN = 12, 10
# The same of clients that ask the other one then; and how long a stream of events is read before its client does.
HOPS_AFTER, STREAMED = 3, 1
# Each start may listen on another port, and documents name the gateway.
ON_POSTGRES = """
public_url = "https://feeds.example.org"
[store]
kind = "postgres"
url = {{ file = "{}" }}
[polling]
allow_private = true
"""
ENTRY = """<entry><id>urn:post-{0}</id><title>Post {0}</title><updated>2026-01-01T00:00:00Z</updated>
<content>the text of post {0}</content></entry>"""


def document(newest):
    """A feed of the last posts up to `newest`."""
    posts = range(newest, max(0, newest - POSTS), -1)
    return ('<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><id>urn:news</id>'
            '<updated>2026-01-01T00:00:00Z</updated>%s</feed>' % "".join(map(ENTRY.format, posts))).encode()


class Pair:
    """Two gateways at addresses of their own, a publisher, readers and consumers that go from one to the other."""

    def __init__(self, program, work, file):
        self.program, self.folders, self.site = program, [work / "pair-0", work / "pair-1"], stage.Site()
        self.ports, self.configuration = [stage.free_port(), stage.free_port()], ON_POSTGRES.format(file)
        self.gateways, self.away, self.is_shaken = [None, None], set(), False
        self.published, self.newest, self.ends, self.faults = 0, 0, threading.Event(), []
        self.answers, self.told, self.slowest, self.threads, self.streamed = {}, {}, 0.0, [], 0
        for folder in self.folders:
            folder.mkdir()

    def start(self, which):
        listen = f"127.0.0.1:{self.ports[which]}"
        self.gateways[which] = stage.Gateway(self.program, self.folders[which], self.configuration, listen=listen)
        self.away.discard(which)

    def base(self, which):
        return f"http://127.0.0.1:{self.ports[which]}"

    def get(self, which, path, timeout=None, method="GET"):
        """The status and the body; status 0 where there was no answer."""
        timeout = timeout or (HOPS_AFTER if which in self.away else PATIENCE)
        try:
            headers = {"authorization": f"Bearer {stage.TOKEN}"} if method != "GET" else {}
            request = stage.urllib.request.Request(self.base(which) + path, headers=headers, method=method)
            with stage.urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)

    def until(self, what, seconds, is_it):
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            if is_it():
                return time.monotonic() - begun
            time.sleep(0.05)
        ready = [self.get(which, "/readyz", 3) for which in (0, 1)]
        raise RuntimeError(f"{what}: not within {seconds} s; {ready}, {self.answers}, {self.faults[:3]}")

    def role(self, which, begins):
        return lambda: self.get(which, "/readyz", 5)[1].startswith(begins)

    def publish(self):
        """New documents, which whoever has the feeds is told to poll. One that no gateway has read stays: a document
        that has nothing in common with the last one would be held."""
        while not self.ends.is_set():
            self.published += 1
            self.site.documents["/news.xml"] = document(self.published)
            while not self.ends.is_set() and not any(self.polls(which) for which in {0, 1} - self.away):
                time.sleep(EVERY)
            time.sleep(EVERY)

    def polls(self, which):
        status, text = self.get(which, "/api/v1/feeds/news/poll", HOPS_AFTER, "POST")
        return status == 200 and not json.loads(text)["error"]

    def fault(self, said):
        self.faults.append(said)

    def seen(self, which, path):
        """The newest post of a document, each of which the publisher had; nothing where there was no answer."""
        is_away, is_shaken, begun = which in self.away, self.is_shaken, time.monotonic()
        status, text = self.get(which, path)
        took = time.monotonic() - begun
        self.answers[status] = self.answers.get(status, 0) + 1
        if status != 200:
            # A gateway that was ended may refuse; the other one never does, but while there is no database.
            is_without = status == 503 and (is_shaken or self.is_shaken)
            if not is_without and not is_away and which not in self.away:
                self.fault(f"{which}{path} answered {status}: {text[:200]}")
            return None
        if not is_away and which not in self.away:
            self.slowest = max(self.slowest, took)
        posts = sorted({int(number) for number in re.findall(r"Post (\d+)<", text)})
        newest = posts[-1]
        if posts != list(range(max(1, newest - POSTS + 1), newest + 1)) or newest > self.published:
            self.fault(f"{which}{path} is none of the publisher's: {posts}, {self.published}")
        return newest

    def read(self):
        """One reader that goes from one gateway to the other."""
        newest, which = 0, 0
        while not self.ends.is_set():
            which = 1 - which
            was_shaken = self.is_shaken
            found = self.seen(which, "/feeds/news")
            if found is not None:
                # A gateway that has the feeds and learned from nobody that its last write was durable serves from
                # memory what was before, until the database answers.
                if found < newest and not (which in self.away and (was_shaken or self.is_shaken)):
                    self.fault(f"{which} answered post {found} after post {newest}")
                newest = max(newest, found)
            time.sleep(0.01)

    def consume(self):
        """A consumer of the change log: it asks one gateway what is new, and the other for the feed."""
        place, which = "0", 0
        while not self.ends.is_set():
            which = 1 - which
            is_away = which in self.away
            status, text = self.get(which, f"/changes?after={place}&wait=1")
            if status != 200:
                if not (status == 503 and self.is_shaken) and not is_away and which not in self.away:
                    self.fault(f"{which}/changes answered {status}: {text[:200]}")
                time.sleep(0.05)
                continue
            for line in map(json.loads, text.splitlines()):
                place = line["id"]
                for change in line["changes"]:
                    if line["epoch"] in self.told:
                        self.fault(f"epoch {line['epoch']} was told twice")
                    self.told[line["epoch"]] = change["revision"]
                    self.shows(1 - which, change)

    def shows(self, which, change):
        """A gateway shows what the other has told."""
        is_away, is_shaken = which in self.away, self.is_shaken
        status, text = self.get(which, "/feeds/news/sync")
        if status != 200:
            # A read that the end of the database cut off is answered with 503.
            if not (is_shaken or self.is_shaken or is_away) and which not in self.away:
                self.fault(f"{which}/feeds/news/sync answered {status}: {text[:200]}")
            return
        until = re.search(r'until="([^"]+)"', text)
        if not (until and until.group(1) >= change["tick"]) and not is_away and which not in self.away:
            self.fault(f"{which} shows {until and until.group(1)} after {change['tick']} was told")

    def listen(self):
        """A consumer of SUP documents: whatever it reads lists no older update than before."""
        last, which = "", 0
        while not self.ends.is_set():
            which = 1 - which
            status, text = self.get(which, "/sup.json?seconds=60")
            if status == 200:
                updates = [update for _, update in json.loads(text)["updates"]]
                if which not in self.away and updates and max(updates) < last:
                    # A document is made once a second at most.
                    time.sleep(1)
                    status, text = self.get(which, "/sup.json?seconds=60")
                    updates = [update for _, update in json.loads(text)["updates"]] if status == 200 else [last]
                    if max(updates, default="") < last:
                        self.fault(f"{which}/sup.json goes back to {max(updates)} from {last}")
                last = max([last, *updates])
            time.sleep(0.2)

    def stream(self):
        """A consumer of events, which goes on at the other gateway where it was at the one."""
        place, which = "0", 0
        while not self.ends.is_set():
            which = 1 - which
            request = stage.urllib.request.Request(self.base(which) + "/events", headers={"last-event-id": place})
            try:
                with stage.urllib.request.urlopen(request, timeout=HOPS_AFTER) as answer:
                    until, at = time.monotonic() + STREAMED, place
                    while time.monotonic() < until and (line := answer.readline().decode()):
                        kind, _, said = line.rstrip("\n").partition(": ")
                        if (kind, said) == ("event", "reset"):
                            self.fault(f"{which}/events does not know {place}")
                        at = said if kind == "id" else at
                        if kind == "data":
                            epoch, place = json.loads(said)["epoch"], at
                            if epoch != self.streamed + 1:
                                self.fault(f"{which}/events told epoch {epoch} after {self.streamed}")
                            self.streamed = epoch
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)

    def work(self):
        for job in (self.publish, self.read, self.read, self.consume, self.stream, self.listen):
            self.threads.append(threading.Thread(target=job, daemon=True))
            self.threads[-1].start()

    def goes_on(self, seconds):
        """Both answer, and what is published is told."""
        before = len(self.told)
        time.sleep(seconds)
        check(len(self.told) > before, f"nothing was told for {seconds} s; {self.answers}, {self.faults[:3]}")


def standby(program, work, file, restart):
    """The standby takes over after a kill, an end in order and a stop, on the same socket."""
    pair = Pair(program, work, file)
    try:
        watched(pair, restart)
    finally:
        pair.ends.set()
        for gateway in filter(None, pair.gateways):
            gateway.process.kill()


def watched(pair, restart):
    pair.start(0)
    pair.gateways[0].ask("/api/v1/feeds/news", "PUT", {"url": pair.site.base + "/news.xml"})
    pair.published = 1
    pair.site.documents["/news.xml"] = document(1)
    pair.gateways[0].poll("news")
    pair.start(1)
    check(pair.role(1, "standby: the gateway process ")(), f"/readyz: {pair.get(1, '/readyz')}")
    check("tidegate_standby 1\n" in pair.get(1, "/metrics")[1], "the metrics of a standby")
    check("tidegate_standby 0\n" in pair.get(0, "/metrics")[1], "the metrics of a gateway that has the feeds")
    check("is a standby" in pair.get(1, "/")[1], "the overview of a standby")
    try:
        pair.gateways[1].ask("/api/v1/feeds/own", "PUT", {"local": True})
        raise RuntimeError("a standby made a feed")
    except urllib.error.HTTPError as error:
        said = error.read().decode()
        check(error.code == 503 and error.headers["retry-after"] and "the gateway process" in said, f"{error}: {said}")
    pair.work()
    pair.goes_on(5)
    took = []
    # Killed.
    pair.away.add(0)
    pair.gateways[0].process.kill()
    took.append(pair.until("after a kill", LEASE + SOON, pair.role(1, "ready")))
    pair.gateways[0].process.wait()
    pair.goes_on(5)
    pair.start(0)
    check(pair.role(0, "standby")(), f"/readyz: {pair.get(0, '/readyz')}")
    pair.goes_on(3)
    # Ended in order.
    pair.away.add(1)
    pair.gateways[1].end()
    took.append(pair.until("after an end", SOON, pair.role(0, "ready")))
    pair.goes_on(3)
    pair.start(1)
    pair.goes_on(3)
    # Stopped for longer than its lease, and woken.
    pair.away.add(0)
    pair.gateways[0].process.send_signal(signal.SIGSTOP)
    took.append(pair.until("after a stop", LEASE + SOON, pair.role(1, "ready")))
    pair.goes_on(3 * HOPS_AFTER)
    pair.gateways[0].process.send_signal(signal.SIGCONT)
    took.append(pair.until("after it was woken", 2 * SOON, pair.role(0, "standby")))
    pair.away.discard(0)
    pair.goes_on(5)
    # The database is killed; the standby has its readers wait.
    pair.away.add(1)
    pair.is_shaken = True
    subprocess.run(restart, shell=True, check=True, stdout=subprocess.DEVNULL, cwd="/")
    took.append(pair.until("after the database was killed", RESTARTS, pair.role(1, "ready")))
    pair.away.discard(1)
    pair.is_shaken = False
    check(pair.role(0, "standby")(), f"/readyz: {pair.get(0, '/readyz')}")
    pair.goes_on(5)
    pair.ends.set()
    for thread in pair.threads:
        thread.join(stage.WAIT)
    # What consumers were told is everything.
    logged, place = {}, "0"
    while lines := [json.loads(line) for line in pair.get(1, f"/changes?after={place}&wait=0")[1].splitlines()]:
        place = lines[-1]["id"]
        logged |= {line["epoch"]: change["revision"] for line in lines for change in line["changes"]}
    missed = sorted(set(logged) - set(pair.told))
    check(all(epoch > max(pair.told) for epoch in missed), f"consumers missed {missed} of {len(logged)}")
    check(pair.streamed > len(logged) - 20, f"the stream of events came to {pair.streamed} of {len(logged)}")
    check(not pair.faults, f"{len(pair.faults)} faults: {pair.faults[:5]}")
    check(pair.slowest < ANSWERS_WITHIN, f"an answer took {pair.slowest:.1f} s")
    for which in (0, 1):
        pair.gateways[which].end()
    shown = ", ".join(f"{seconds:.1f}" for seconds in took)
    print(f"a standby took over after a kill, an end and a stop, the stopped one became a standby, and both went on after "
          f"the database was killed, after {shown} s; "
          f"{pair.published} documents, {len(pair.told)} changes told, answers {pair.answers}, "
          f"the slowest after {pair.slowest:.1f} s")
