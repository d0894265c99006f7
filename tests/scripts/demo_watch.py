"""Watches `tidegate demo`: it tells all that it promises, every address that it tells answers, a history grows,
a tombstone comes into the sync view, and none into the reader view. Standard library only; exit status 1 where
two minutes do not show it.

    demo_watch.py --bin PATH/TO/tidegate
"""

import argparse
import queue
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as xml

SX = "{http://www.microsoft.com/schemas/sse}"
# How often the publisher changes: twice as often as for people.
EVERY = "2s"
# How long all of it may take, and one request, in seconds.
WATCH_WAIT = 120
REQUEST_WAIT = 10
# How long the program may take to end once it was told to, in seconds.
END_WAIT = 30
# The feeds of a publisher that shares nothing.
FEEDS = ["lighthouse", "harbour"]
# The kinds of lines that tell it all.
KINDS = {
    "new", "edit", "noise", "rename", "scroll-off", "deletion", "broken", "held", "hold over", "conflict",
    "events", "sup", "all seen",
}


def fetch(address):
    """The items of a view: sync id -> (updates, updates listed in its history, deleted)."""
    with urllib.request.urlopen(address, timeout=REQUEST_WAIT) as answer:
        document = xml.fromstring(answer.read())
    return {
        sync.get("id"): (
            int(sync.get("updates")),
            len(sync.findall(f"{SX}history")),
            sync.get("deleted") == "true",
        )
        for sync in document.iter(f"{SX}sync")
    }


def gateway(lines):
    """The gateway's address, from the first line."""
    line = lines.get(timeout=WATCH_WAIT)
    said = re.fullmatch(r"listening on (http://\S+)\n", line or "")
    if not said:
        raise RuntimeError(f"it does not say first where it listens: {line!r}")
    return said.group(1)


def told(lines):
    """The kinds and addresses of the lines that are there now."""
    while not lines.empty():
        line = lines.get()
        if line is None:
            return
        if "\x1b" in line:
            raise RuntimeError(f"a pipe has no colours: {line!r}")
        said = re.fullmatch(r" *\d+:\d\d  (\S+(?: \S+)*) {2,}(\S.*)  (http://\S+)\n", line)
        if said:
            yield said.group(1), said.group(3)


def check_address(address):
    """An address that was told answers; a stream of events begins."""
    with urllib.request.urlopen(address, timeout=REQUEST_WAIT) as answer:
        if not answer.readline():
            raise RuntimeError(f"{address} is empty")


class Feed:
    def __init__(self, reader):
        self.reader = reader
        self.grown = self.tombstone = None
        self.seen = {}

    def look(self):
        # The sync view first: what is a tombstone there must be gone from the reader view by then.
        sync, reader = fetch(f"{self.reader}/sync"), fetch(self.reader)
        for one, (_, _, deleted) in reader.items():
            if deleted:
                raise RuntimeError(f"{self.reader} shows the tombstone {one}")
        for one, (updates, listed, deleted) in sync.items():
            before = self.seen.get(one)
            if before and updates > before[0] and listed > before[1] and not deleted:
                self.grown = self.grown or f"{one}: {before[0]} to {updates} updates"
            if deleted and one in reader:
                raise RuntimeError(f"{self.reader} still has {one}, a tombstone in the sync view")
            # Only what was seen alive tells that a tombstone came while we watched.
            if deleted and before and not before[2]:
                self.tombstone = self.tombstone or one
        self.seen.update(sync)


def shown(feeds):
    """One feed revises its posts so seldom that a minute may pass without."""
    return all(feed.tombstone for feed in feeds) and any(feed.grown for feed in feeds)


def watch(process):
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    began = time.monotonic()
    deadline = began + WATCH_WAIT
    base = gateway(lines)
    feeds = [Feed(f"{base}/feeds/{name}") for name in FEEDS]
    kinds = set()
    while not (shown(feeds) and KINDS <= kinds):
        if time.monotonic() > deadline:
            for feed in feeds:
                print(f"{feed.reader}: grown {feed.grown}, tombstone {feed.tombstone}")
            raise RuntimeError(f"{WATCH_WAIT} s were not enough; not told: {sorted(KINDS - kinds)}")
        if process.poll() is not None:
            raise RuntimeError(f"it ended with status {process.returncode}")
        for kind, address in told(lines):
            kinds.add(kind)
            check_address(address)
        for feed in feeds:
            try:
                feed.look()
            except urllib.error.HTTPError as error:
                # Until the first poll is stored there is nothing to show.
                if error.code != 503:
                    raise
        time.sleep(0.5)
    print(f"told: {', '.join(sorted(kinds))}")
    for feed in feeds:
        print(f"{feed.reader}")
        print(f"  a history grew: {feed.grown or 'not yet'}")
        print(f"  a tombstone in the sync view alone: {feed.tombstone}")
    print(f"seen within {time.monotonic() - began:.0f} s")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bin", required=True)
    given = arguments.parse_args()
    command = [given.bin, "demo", "--listen", "127.0.0.1:0", "--every", EVERY]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        watch(process)
        process.terminate()
        status = process.wait(END_WAIT)
    except (RuntimeError, OSError, queue.Empty, xml.ParseError, subprocess.TimeoutExpired) as error:
        sys.exit(f"the demonstration does not show what it should: {error!r}")
    finally:
        process.kill()
        process.wait()
    if status != 0:
        sys.exit(f"it ended with status {status}")


if __name__ == "__main__":
    main()
