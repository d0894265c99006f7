"""A disk that fills, and one that fails: what is durable is served, nothing unacknowledged is shown, nothing acknowledged
is lost, and the gateway goes on by itself once the disk works again."""

import json
import os
import re
import stage
import sys
import threading
import time
import urllib.error
from stage import check

# How long a store may take to stop, and to be open again, in seconds.
STOPS_WITHIN, OPEN_WITHIN = 20, 45
# How long a disk fails at least, in seconds.
FAILS_FOR = 1.5
# Ways to fail, as failing_disk_shim.c has them.
FAULTS = ("write", "sync", "lose")
CONFIGURATION = """
[store]
min_free = "1MiB"
[polling]
allow_private = true
"""


def document(posts):
    """A feed of so many posts, of some kilobytes each."""
    filling = lambda post: " ".join(f"word{post * 7919 + n * 104729}" for n in range(400))
    updated = "2026-01-{:02}T00:00:00Z".format
    return stage.atom("News", (
        stage.entry(f"post-{n}", f"Post {n}", filling(n), updated(n)) for n in range(posts, 0, -1)
    ))


class Watched:
    """A gateway with one feed that is polled (`news`) and one whose items are made here (`own`). Somebody
    makes items all the time, and somebody reads."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.site = stage.Site()
        self.site.documents["/news.xml"] = document(3)
        self.configuration = CONFIGURATION
        self.acknowledged, self.unknown, self.shown, self.answers = {}, set(), set(), {}
        self.ends, self.threads, self.made = threading.Event(), [], 0

    def start(self):
        self.gateway = stage.Gateway(self.program, self.folder, self.configuration)
        self.process = self.gateway.process

    def begin(self):
        """Starts with its feeds, and asks for what is answered while the store is closed, too."""
        self.start()
        self.gateway.ask("/api/v1/feeds/own", "PUT", {"local": True})
        self.gateway.ask("/api/v1/feeds/news", "PUT", {"url": self.site.base + "/news.xml"})
        self.gateway.poll("news")
        self.get("/feeds/news")

    def work(self):
        for job in (self.make_items, self.read_items):
            self.threads.append(threading.Thread(target=job, daemon=True))
            self.threads[-1].start()

    def stop_work(self):
        self.ends.set()
        for thread in self.threads:
            thread.join(stage.WAIT)

    def get(self, path, headers=None):
        """The status and the body of an answer, and its headers."""
        return stage.get(self.gateway.base + path, headers=headers)

    def make_items(self):
        while not self.ends.is_set():
            self.made += 1
            title = f"made-{self.made}"
            try:
                answer = self.gateway.ask("/api/v1/feeds/own/items", "POST", {"title": title})
                self.acknowledged[title] = json.loads(answer)["sync_id"]
                status = 201
            except urllib.error.HTTPError as error:
                status = error.code
                if "unknown whether" in error.read().decode():
                    self.unknown.add(title)
            except OSError:
                # The gateway was killed under it.
                status = 0
                self.unknown.add(title)
            self.answers[status] = self.answers.get(status, 0) + 1
            time.sleep(0.01 if status == 201 else 0.1)

    def titles(self, view):
        status, text, _ = self.get(f"/feeds/own{view}")
        return set(re.findall(r"made-\d+", text)) if status == 200 else set()

    def read_items(self):
        while not self.ends.is_set():
            try:
                for view in ("", "/sync"):
                    self.shown |= self.titles(view)
            except OSError:
                pass
            time.sleep(0.02)

    def ready(self):
        return self.get("/readyz")

    def until(self, what, seconds, is_it):
        if not stage.until(is_it, seconds):
            raise RuntimeError(f"{what}: not within {seconds} s; {self.ready()[:2]}, {self.answers}")

    def check_stopped(self, cached, uncached):
        """What is answered while the store is closed; more of it is in src/serve/tests/stopped_store.rs."""
        status, said, _ = self.ready()
        check(status == 503 and "the store stopped at" in said, f"/readyz: {status} {said}")
        status, text, headers = self.get(cached)
        check(status == 200 and "Post 3" in text, f"{cached}: {status}")
        check(self.get(cached, {"if-none-match": headers["etag"]})[0] == 304, f"{cached}: no 304")
        status, _, headers = self.get(uncached)
        check(status == 503 and headers["retry-after"], f"{uncached}: {status}")

    def check_kept(self, when):
        """Everything that was acknowledged or shown is there, and nothing that was refused."""
        # What comes while the document is read may be in it or not.
        acknowledged, shown = set(self.acknowledged), set(self.shown)
        there = self.titles("/complete")
        check(there, f"{when}: the complete view cannot be read")
        lost = acknowledged - there
        check(not lost, f"{when}: {len(lost)} acknowledged items are lost: {sorted(lost)[:5]}")
        lost = shown - there
        check(not lost, f"{when}: {len(lost)} items that were shown are lost: {sorted(lost)[:5]}")
        strange = there - set(self.acknowledged) - self.unknown
        # The one that is being made just now.
        check(len(strange) <= 1, f"{when}: {sorted(strange)[:5]} were refused and are there")

    def made_more(self, count):
        """Waits until so many more items are made."""
        before = len(self.acknowledged)
        self.until("items are made", 20, lambda: len(self.acknowledged) > before + count)

    def end(self):
        self.gateway.end()
        check(self.process.returncode == 0, f"it ended with status {self.process.returncode}")


def failing(program, folder, shim):
    """Each way of failing in turn, under one process."""
    flags = folder / "faults"
    flags.mkdir()
    os.environ.update(LD_PRELOAD=str(shim), TIDEGATE_FAULTS=str(flags))
    watched = Watched(program, folder)
    watched.begin()
    del os.environ["LD_PRELOAD"], os.environ["TIDEGATE_FAULTS"]
    watched.work()
    for number, fault in enumerate(FAULTS):
        watched.made_more(20)
        (flags / fault).touch()
        begun = time.monotonic()
        watched.until("the store stops", STOPS_WITHIN, lambda: watched.ready()[0] == 503)
        stopped = time.monotonic()
        watched.check_stopped("/feeds/news", f"/feeds/news?as=json&sx={['sse', 'feedsync'][number % 2]}")
        time.sleep(max(0, FAILS_FOR - (time.monotonic() - begun)))
        (flags / fault).unlink()
        works = time.monotonic()
        watched.until("the store is open again", OPEN_WITHIN, lambda: watched.ready()[0] == 200)
        opened = time.monotonic()
        watched.made_more(5)
        watched.check_kept(f"after {fault}")
        check(watched.process.poll() is None, "the gateway ended")
        watched.site.documents["/news.xml"] = document(4 + number)
        watched.gateway.poll("news")
        check(f"Post {4 + number}" in watched.get("/feeds/news")[1], "a new post is not shown")
        print(
            f"{fault}: stopped after {stopped - begun:.1f} s, open again {opened - works:.1f} s after the disk "
            f"worked; {len(watched.acknowledged)} items acknowledged, {len(watched.unknown)} of unknown fate"
        )
        # The rendition that is asked for while the store is closed must be that of now.
        watched.get("/feeds/news")
    watched.gateway.kill()
    watched.stop_work()
    watched.start()
    watched.check_kept("after a kill")
    watched.gateway.end()
    print(f"after a kill: all {len(watched.acknowledged)} acknowledged and {len(watched.shown)} shown items are there")


def fill(disk, leave):
    """Fills a disk but for some bytes."""
    space = os.statvfs(disk)
    free = space.f_bavail * space.f_frsize - leave
    chunk = bytes(1 << 16)
    try:
        with (disk / "filler").open("ab") as file:
            while free > 0:
                file.write(chunk[: min(len(chunk), free)])
                file.flush()
                free -= len(chunk)
    except OSError:
        pass


def filling(program, disk):
    """A disk that is filled by somebody else: nearly, and then wholly."""
    watched = Watched(program, disk)
    watched.begin()
    filler = disk / "filler"

    # Nearly full: nothing new is taken in, and reading goes on from the store.
    fill(disk, 400 << 10)
    watched.until("space is low", 20, lambda: "store.min_free" in watched.ready()[1])
    check(watched.ready()[0] == 200, f"/readyz: {watched.ready()[:2]}")
    for path, body in (("/feeds/news/poll", None), ("/feeds/own/items", {"title": "refused"})):
        try:
            watched.gateway.ask("/api/v1" + path, "POST", body)
            raise RuntimeError(f"{path} was taken")
        except urllib.error.HTTPError as error:
            check(error.code == 507, f"{path}: {error.code}")
    check(watched.get("/feeds/news?as=json&sx=feedsync")[0] == 200, "reading stops")
    filler.unlink(missing_ok=True)
    watched.until("space is there", 20, lambda: watched.ready()[1] == "ready\n")
    watched.gateway.poll("news")
    print("low space: refused with 507, read, and went on by itself")

    # Full at once, while items are being made.
    watched.work()
    watched.made_more(20)
    full = threading.Event()

    def keep_full():
        while not full.is_set():
            fill(disk, 0)

    filling_it = threading.Thread(target=keep_full, daemon=True)
    filling_it.start()
    watched.until("a full disk is noticed", STOPS_WITHIN, lambda: watched.ready()[1] != "ready\n")
    # Where space was seen to be low first, only what takes nothing in is still written.
    for number in range(40):
        if watched.ready()[0] == 503:
            break
        changed = {"url": watched.site.base + "/news.xml", "complete": number % 2 == 0}
        try:
            watched.gateway.ask("/api/v1/feeds/news", "PUT", changed)
        except urllib.error.HTTPError:
            pass
    stops = watched.ready()[0] == 503
    if stops:
        watched.check_stopped("/feeds/news", "/feeds/news?as=pox")
    time.sleep(FAILS_FOR)
    full.set()
    filling_it.join(stage.WAIT)
    filler.unlink(missing_ok=True)
    works = time.monotonic()
    watched.until("it goes on", OPEN_WITHIN, lambda: watched.ready()[1] == "ready\n")
    watched.made_more(5)
    watched.check_kept("after the disk was full")
    print(
        f"full disk: {'stopped' if stops else 'took nothing in'}, went on {time.monotonic() - works:.1f} s after space "
        f"was freed; {len(watched.acknowledged)} items acknowledged"
    )
    watched.stop_work()
    watched.end()
    watched.start()
    watched.check_kept("after a restart")
    watched.gateway.end()


def main():
    options = stage.given("shim", "work", disk=None)
    folder = options.work / "gateway"
    folder.mkdir()
    try:
        failing(options.bin, folder, options.shim)
        if options.disk:
            folder = options.disk
            filling(options.bin, folder)
    except (RuntimeError, OSError) as fault:
        told = [line for line in (folder / "gateway.log").read_text().splitlines() if " INFO " not in line]
        print("\n".join(told[-40:]), file=sys.stderr)
        sys.exit(f"FAILED: {fault}")


if __name__ == "__main__":
    main()
