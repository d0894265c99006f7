#!/usr/bin/env python3
"""What polls cost: a gateway against a publisher on many loopback addresses.

    benches/compare/polling.py --feeds 2000 --seconds 8 --runs 2 304 same changing-large

The publisher is a process of its own, pinned to the last processor; the gateway is pinned to the first. Each feed is at
a loopback address of its own, so that the one request at a time that a host is asked slows no poll. Per poll are
measured the processor time of the gateway (user and system) and what it handed to the system to write, the requests
themselves included. Runs of --seconds begin --warm seconds after the first poll; a feed is polled every --interval
seconds, and --share of the polls find a change in those rows that are changing.
"""

import pathlib
import sys
import tempfile
import time

import measure
import publisher
import scale

# What rows are of: the documents, whether polls find a change, and whether answers have a tag. Without one the same
# document is read again and again.
ROWS = {
    "304": (publisher.large, False, True), "same": (publisher.large, False, False),
    "small": (publisher.small, False, True), "changing": (publisher.small, True, True),
    "changing-large": (publisher.large, True, True),
}


def main():
    given = measure.given(feeds=2000, interval=1, seconds=10.0, runs=3, warm=5.0, share=0.03, rows=tuple(ROWS))
    for row in given.rows:
        documents, is_changing, has_tag = ROWS[row]
        share = given.share if is_changing else 0.0
        with tempfile.TemporaryDirectory() as folder, publisher.Publisher(documents(), share, has_tag) as source:
            urls = {f"f{n}": source.url(n) for n in range(given.feeds)}
            with measure.Gateway(given.bin, folder, measure.polling(f"{given.interval}s", urls)) as gateway:
                scale.read_first(source, given.feeds)
                time.sleep(given.warm)
                watch = scale.Watch(gateway, source, pathlib.Path(folder), given.interval)
                for _ in range(given.runs):
                    time.sleep(given.seconds)
                    print(f"{row:16} {scale.spent(watch.sample())}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
