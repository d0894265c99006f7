"""Watches `tidegate demo`: a history grows, a tombstone comes into the sync view, and none into the
reader view. Standard library only; exit status 1 where a minute does not show it.

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
# How long all of it may take, and one request, in seconds.
WATCH_WAIT = 60
REQUEST_WAIT = 10
# How long the program may take to end once it was told to, in seconds.
END_WAIT = 30
# Both feeds of the demonstration, with three views each.
ADDRESSES = 6


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


def printed_addresses(lines, deadline):
    """The addresses of the gateway's views, as the demonstration prints them for people."""
    found = []
    while len(found) < ADDRESSES:
        line = lines.get(timeout=max(0.1, deadline - time.monotonic()))
        if line is None:
            raise RuntimeError("it ended before it said where to look")
        said = re.match(r"\s+curl (http://\S+/feeds/[a-z0-9-]+(?:/sync|/complete)?)\s", line)
        if said:
            found.append(said.group(1))
    return found


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
    addresses = printed_addresses(lines, deadline)
    feeds = [Feed(one) for one in addresses if not one.endswith(("/sync", "/complete"))]
    while not shown(feeds):
        if time.monotonic() > deadline:
            for feed in feeds:
                print(f"{feed.reader}: grown {feed.grown}, tombstone {feed.tombstone}")
            raise RuntimeError(f"{WATCH_WAIT} s were not enough")
        if process.poll() is not None:
            raise RuntimeError(f"it ended with status {process.returncode}")
        for feed in feeds:
            try:
                feed.look()
            except urllib.error.HTTPError as error:
                # Until the first poll is stored there is nothing to show.
                if error.code != 503:
                    raise
        time.sleep(0.5)
    for address in addresses:
        fetch(address)
    for feed in feeds:
        print(f"{feed.reader}")
        print(f"  a history grew: {feed.grown or 'not yet'}")
        print(f"  a tombstone in the sync view alone: {feed.tombstone}")
    print(f"seen within {time.monotonic() - began:.0f} s")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bin", required=True)
    given = arguments.parse_args()
    command = [given.bin, "demo", "--listen", "127.0.0.1:0"]
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
