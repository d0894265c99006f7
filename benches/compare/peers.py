#!/usr/bin/env python3
"""CPU time per changed feed: the gateway against a loop over feedparser, newsboat and lemon24/reader, in one run
on the same feeds and the same changes.

A publisher in a process of its own serves the feeds, 50 KB with 32 items each, over loopback. In each round every
feed changes (one new item on top, one edited, one less below), and each peer polls all of them once, in another
order each time. Then it is checked that the peer has the new and the edited item of every feed: without that there
is no figure. Then each polls all of them once more, which finds nothing changed.

What counts is the CPU time, user and system, of all that a peer does for it, as it is run:
  tidegate    its process, from the first call to /api/v1/feeds/NAME/poll until the last feed was read again by one
              reader who takes gzip: requests, parsing, judging, versions, storing durably, rendering and packing,
              the calls and the reads themselves, and what it does within a second afterwards; and of it what it
              used until all were polled, before the first was read
  feedparser  a process that keeps running: conditional requests and parsing; it stores nothing
  newsboat    `newsboat -x reload`, a process for each round: its start, requests, parsing, its cache in SQLite
  reader      a process that keeps running: requests, parsing, its database in SQLite

    benches/compare/peers.py --rounds 7                  the table, about five minutes
    benches/compare/peers.py --json target/peers.json    and for plot.py

Installs newsboat from Debian's packages, and feedparser and reader with pip in a folder of their own below target,
where they are missing and it may.
"""

import argparse
import concurrent.futures
import contextlib
import gzip
import html
import json
import os
import pathlib
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

import measure
import publisher
import serving_stage as stage

# reader has a copy of feedparser that needs sgmllib, which its package does not ask for.
REQUIREMENTS = ["feedparser>=6.0.11,<7", "reader>=3.12,<4", "sgmllib3k"]
# The part of the gateway's time that goes by until the last poll is answered.
POLLS = "of it polls"
# How many polls the gateway is asked for at the same time.
PARALLEL = 4
# How long what a poll left to do is waited for, in seconds.
SETTLING = 1
CONFIGURATION = """
[polling]
allow_private = true
min_interval = "24h"
max_interval = "24h"
"""
FEED = """
[[feed]]
name = "f{number}"
url = "{url}"
"""


class Tidegate:
    """The gateway, each feed polled by a call of the API and then read once."""

    def __init__(self, begin, arguments, folder, urls):
        feeds = "".join(FEED.format(number=number, url=url) for number, url in enumerate(urls))
        self.gateway = stage.Gateway(begin, arguments.bin, folder, CONFIGURATION + feeds)
        self.feeds, self.read, self.polls = len(urls), {}, 0.0

    def poll(self):
        begun = measure.cpu(self.gateway.process.pid)
        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(self.poll_some, range(PARALLEL)))
            self.polls = measure.cpu(self.gateway.process.pid) - begun
            list(pool.map(self.read_some, range(PARALLEL)))
        time.sleep(SETTLING)
        return measure.cpu(self.gateway.process.pid) - begun

    def poll_some(self, first):
        """Polls some feeds over one connection, each when the one before was polled."""
        with contextlib.closing(stage.Client(self.gateway)) as client:
            for number in range(first, self.feeds, PARALLEL):
                client.poll(f"f{number}")

    def read_some(self, first):
        """Reads some feeds over one connection."""
        with contextlib.closing(stage.Client(self.gateway)) as client:
            for number in range(first, self.feeds, PARALLEL):
                self.read[number] = client.read(f"/feeds/f{number}")

    def missing(self, number, items):
        """Those of the items that a peer does not have."""
        text = html.unescape(gzip.decompress(self.read[number]).decode())
        return [id for id, content in items.items() if id not in text or content not in text]

    def end(self):
        self.gateway.end()


class Library:
    """A peer that is a library of Python, in a process that polls when it is told to."""

    def __init__(self, kind, python, begin, folder, urls):
        addresses = folder / f"{kind}.urls"
        addresses.write_text("\n".join(urls))
        self.urls = urls
        script = pathlib.Path(__file__).with_name("peers_python.py")
        self.process = subprocess.Popen(
            [*begin, python, script, kind, addresses, folder / f"{kind}.sqlite"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{kind} did not start")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def poll(self):
        begun = measure.cpu(self.process.pid)
        self.tell("poll")
        return measure.cpu(self.process.pid) - begun

    def missing(self, number, items):
        has = self.tell(f"items {self.urls[number]}")
        return [id for id, content in items.items() if content not in has.get(id, "")]

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=measure.WAIT)


class Newsboat:
    """`newsboat -x reload`, once for each round."""

    def __init__(self, program, begin, folder, urls):
        self.folder, self.urls = folder / "newsboat", urls
        self.folder.mkdir()
        (self.folder / "urls").write_text("\n".join(urls) + "\n")
        (self.folder / "config").write_text("reload-threads 1\n")
        files = {"-u": "urls", "-c": "cache.db", "-C": "config"}
        self.command = [*begin, program, *(word for option, name in files.items() for word in (option, name)),
                        "-x", "reload"]

    def poll(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        subprocess.run(self.command, cwd=self.folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def missing(self, number, items):
        with sqlite3.connect(self.folder / "cache.db") as cache:
            rows = cache.execute(
                "SELECT guid, content FROM rss_item WHERE feedurl = ?", [self.urls[number]]
            )
            has = dict(rows.fetchall())
        return [id for id, content in items.items() if content not in has.get(id, "")]

    def end(self):
        pass


def venv(folder):
    """Python with the libraries that are compared, in a folder of its own."""
    python = pathlib.Path(folder).absolute() / "bin/python"
    there = [python, "-c", "import feedparser, reader, sgmllib"]
    if not python.exists() or subprocess.run(there, stderr=subprocess.DEVNULL).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS], check=True)
    return python


def check(name, peer, documents, feeds, version):
    """Fails where a peer has not seen what a version brought."""
    for number in range(feeds):
        feed = f"f{number}"
        numbers = [documents.newest(version), documents.edited(version)]
        items = {documents.id(feed, n): documents.text(feed, n, version) for n in numbers if n}
        missing = peer.missing(number, items)
        if missing:
            raise RuntimeError(f"{name} has not seen {missing} of {feed}, version {version}")


def compare(arguments):
    """The CPU seconds of each round, by what was found and by peer."""
    newsboat, = measure.programs("newsboat")
    python = venv(arguments.venv)
    documents = publisher.large(edits=True)
    begin = measure.pinned(measure.cores()[0], [])
    source, peers, taken = publisher.Publisher(documents), {}, {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        urls = [source.url(number) for number in range(arguments.feeds)]
        try:
            peers["tidegate"] = Tidegate(begin, arguments, folder, urls)
            for kind in ("feedparser", "reader"):
                peers[kind] = Library(kind, python, begin, folder, urls)
            peers["newsboat"] = Newsboat(newsboat, begin, folder, urls)
            for version in range(arguments.rounds + 1):
                if version > 0:
                    source.advance()
                order = random.Random(version).sample(sorted(peers), len(peers))
                for found in ("new" if version == 0 else "changed", "unchanged"):
                    for name in order:
                        before = source.counted()["requests"]
                        seconds = peers[name].poll()
                        asked = source.counted()["requests"] - before
                        # The gateway reads new feeds by itself as well.
                        if asked != arguments.feeds and (name, found) != ("tidegate", "new"):
                            raise RuntimeError(f"{name} asked {asked} times for {arguments.feeds} feeds")
                        check(name, peers[name], documents, arguments.feeds, version)
                        if version > 0 or found == "new":
                            by = taken.setdefault(found, {})
                            by.setdefault(name, []).append(seconds)
                            if name == "tidegate":
                                by.setdefault(POLLS, []).append(peers[name].polls)
                print(f"round {version} of {arguments.rounds}", file=sys.stderr, flush=True)
        finally:
            for peer in peers.values():
                peer.end()
            source.stop()
    return documents.sizes(), taken


def table(taken, feeds):
    """Medians and spread in µs of CPU a feed, and the ratio to the gateway in the same round."""
    rows = []
    for found, peers in taken.items():
        for name in ("tidegate", POLLS, "feedparser", "newsboat", "reader"):
            cpu, off = measure.spread([seconds / feeds * 1e6 for seconds in peers[name]])
            ratio, around = measure.spread([a / b for a, b in zip(peers[name], peers["tidegate"], strict=True)])
            rows.append({"found": found, "peer": name, "cpu": round(cpu, 1), "spread": round(off, 1),
                         "ratio": round(ratio, 2), "ratio_spread": round(around, 2)})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--venv", default="target/peers-venv")
    parser.add_argument("--feeds", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="a file for plot.py")
    arguments = parser.parse_args()
    (size, packed), taken = compare(arguments)
    rows = table(taken, arguments.feeds)
    print(f"{arguments.feeds} feeds of {size} bytes, {packed} packed; {arguments.rounds} rounds.\n"
          "CPU a feed in µs, user and system, and what that is to the gateway in the same round:\n"
          "medians, and half of the distance between the quartiles.\n")
    print(f"{'feeds are':10} {'peer':11}{'µs a feed':>18}{'ratio':>16}")
    for row in rows:
        print(f"{row['found']:10} {row['peer']:11}{row['cpu']:10.0f} ±{row['spread']:6.0f}"
              f"{row['ratio']:9.2f} ±{row['ratio_spread']:5.2f}", flush=True)
    if arguments.json:
        measure.report(arguments.json, kind="peers", feeds=arguments.feeds, rounds=arguments.rounds,
                       bytes=size, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
