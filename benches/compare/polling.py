#!/usr/bin/env python3
"""What polls cost: a gateway against a publisher on many loopback addresses.

The publisher is a process of its own, pinned to the last processor; the gateway is pinned to the first. Each feed is at
a loopback address of its own, so that the one request at a time that a host is asked slows no poll. Per poll are
measured the processor time of the gateway (user and system) and what it handed to the system to write, the requests
themselves included.

    benches/compare/polling.py --feeds 2000 --seconds 8 --runs 2 304 same changing-large
"""

import argparse
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--feeds", type=int, default=2000)
    parser.add_argument("--interval", type=int, default=1, help="seconds between two polls of a feed")
    parser.add_argument("--seconds", type=float, default=10, help="length of a run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm", type=float, default=5, help="seconds before the first run")
    parser.add_argument("--share", type=float, default=0.03, help="of polls that find a change")
    parser.add_argument("rows", nargs="*", default=["304", "same", "changing"], help=f"{', '.join(ROWS)}")
    given = parser.parse_args()
    for row in given.rows:
        documents, is_changing, has_tag = ROWS[row]
        source = publisher.Publisher(documents(), given.share if is_changing else 0.0, has_tag)
        with tempfile.TemporaryDirectory() as folder:
            urls = {f"f{n}": source.url(n) for n in range(given.feeds)}
            gateway = measure.Gateway(given.bin, folder, measure.polling(f"{given.interval}s", urls))
            try:
                scale.read_first(source, given.feeds)
                time.sleep(given.warm)
                watch = scale.Watch(gateway, source, pathlib.Path(folder), given.interval)
                for _ in range(given.runs):
                    time.sleep(given.seconds)
                    print(f"{row:16} {scale.spent(watch.sample())}", flush=True)
            finally:
                gateway.end()
                source.stop()


if __name__ == "__main__":
    sys.exit(main())
