#!/usr/bin/env python3
"""CPU time per changed feed: the gateway against a loop over feedparser, newsboat and lemon24/reader, in one run
on the same feeds and the same changes.

A publisher in a process of its own serves the feeds, 50 KB with 32 items each, over loopback. In each round every
feed changes (one new item on top, one edited, one less below), and each peer polls all of them, in another order each
time, and must have the new and the edited item of every feed. Then each polls all once more, which finds nothing changed.

What counts is the CPU time, user and system, of all that a peer does for it, as it is run:
  tidegate    its process, from the first poll, by the API, until one reader has read all feeds again (gzip), and a second
              more; and of it what it used until all were polled
  feedparser  a process that keeps running: conditional requests and parsing; it stores nothing
  newsboat    `newsboat -x reload`, a process for each round: its start, requests, parsing, its cache in SQLite
  reader      a process that keeps running: requests, parsing, its database in SQLite

    benches/compare/peers.py --json target/peers.json    the table, about five minutes, and figures for plot.py

Needs newsboat; feedparser and reader are installed with pip in a folder of their own below target."""

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

# A peer that is a library begins as `peers.py --peer …` in an environment of its own, and needs none of these.
if "--peer" not in sys.argv:
    import measure
    import publisher

# reader has a copy of feedparser that needs sgmllib, which its package does not ask for.
REQUIREMENTS = ["feedparser>=6.0.11,<7", "reader>=3.12,<4", "sgmllib3k"]
# The part of the gateway's time that goes by until the last poll is answered.
POLLS = "of it polls"
# How many polls the gateway is asked for at the same time.
PARALLEL = 4
# How long what a poll left to do is waited for, in seconds.
SETTLING = 1


class Tidegate:
    """The gateway, each feed polled by a call of the API and then read once."""

    def __init__(self, program, folder, urls):
        feeds = {f"f{number}": url for number, url in enumerate(urls)}
        self.gateway = measure.Gateway(program, folder / "gateway", measure.polling("24h", feeds))
        self.feeds, self.read, self.polls = list(feeds), {}, 0.0

    def poll(self):
        begun = measure.cpu(self.gateway.pid)
        self.each(lambda connection, feed: connection.poll(feed))
        self.polls = measure.cpu(self.gateway.pid) - begun
        self.each(self.read_one)
        time.sleep(SETTLING)
        return measure.cpu(self.gateway.pid) - begun

    def each(self, work):
        """Does something to every feed over a few connections, each of which has its share of them."""
        def share(first):
            with contextlib.closing(measure.Connection(self.gateway.base)) as connection:
                for feed in self.feeds[first::PARALLEL]:
                    work(connection, feed)

        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(share, range(PARALLEL)))

    def read_one(self, connection, feed):
        self.read[feed] = connection.ask("GET", f"/feeds/{feed}", {"accept-encoding": "gzip"})

    def items(self, number):
        """The texts of the items of a feed by their ids, as this peer has them."""
        text = html.unescape(gzip.decompress(self.read[f"f{number}"]).decode())
        return {entry.partition("<id>")[2].partition("</id>")[0]: entry for entry in text.split("<entry")[1:]}

    def end(self):
        self.gateway.end()


class Library:
    """A peer that is a library of Python, in a process that polls when it is told to."""

    def __init__(self, kind, python, folder, urls):
        addresses = folder / f"{kind}.urls"
        addresses.write_text("\n".join(urls))
        self.urls = urls
        command = [python, __file__, "--peer", kind, addresses, folder / f"{kind}.sqlite"]
        self.process = subprocess.Popen(
            measure.pinned(measure.cores()[0], command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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

    def items(self, number):
        return self.tell(f"items {self.urls[number]}")

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=measure.WAIT)


class Newsboat:
    """`newsboat -x reload`, once for each round."""

    def __init__(self, folder, urls):
        self.folder, self.urls = folder / "newsboat", urls
        self.folder.mkdir()
        (self.folder / "urls").write_text("\n".join(urls) + "\n")
        (self.folder / "config").write_text("reload-threads 1\n")
        files = ["-u", "urls", "-c", "cache.db", "-C", "config"]
        self.command = measure.pinned(measure.cores()[0], [measure.program("newsboat"), *files, "-x", "reload"])

    def poll(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        subprocess.run(self.command, cwd=self.folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def items(self, number):
        asked = "SELECT guid, content FROM rss_item WHERE feedurl = ?"
        with contextlib.closing(sqlite3.connect(self.folder / "cache.db")) as cache:
            return dict(cache.execute(asked, [self.urls[number]]).fetchall())

    def end(self):
        pass


def answer_as(kind, addresses, database):
    """The process of a library: polls when it is told to, on standard input, and says what it has."""
    addresses = pathlib.Path(addresses).read_text().split()
    if kind == "feedparser":
        import feedparser

        # With conditional requests; it keeps what it read last.
        known = {address: {} for address in addresses}

        def poll():
            for address, last in known.items():
                found = feedparser.parse(address, etag=last.get("etag"), modified=last.get("modified"))
                if found.get("status") != 304:
                    known[address] = found

        def entries(address):
            return known[address].entries
    else:
        import reader

        library = reader.make_reader(database)
        for address in addresses:
            library.add_feed(address)

        def poll():
            library.update_feeds(scheduled=False)

        def entries(address):
            return library.get_entries(feed=address)

    print("ready", flush=True)
    for line in sys.stdin:
        word, _, address = line.strip().partition(" ")
        said = poll() if word == "poll" else {entry.id: entry.content[0].value for entry in entries(address)}
        print(json.dumps(said), flush=True)


def venv():
    """Python with the libraries that are compared, in a folder of its own."""
    make = 'source tests/scripts/venv.bash; venv_python peers "import feedparser, reader, sgmllib" "$@"'
    root = pathlib.Path(__file__).parents[2]
    made = subprocess.run(["bash", "-c", make, "venv", *REQUIREMENTS], cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    return root / made.stdout.strip()


def check(name, peer, documents, feeds, version):
    """Fails where a peer has not seen what a version brought."""
    for number in range(feeds):
        feed = f"f{number}"
        numbers = [documents.newest(version), documents.edited(version)]
        has, wanted = peer.items(number), {documents.id(feed, n): documents.text(feed, n, version) for n in numbers if n}
        if missing := [id for id, text in wanted.items() if text not in has.get(id, "")]:
            raise RuntimeError(f"{name} has not seen {missing} of {feed}, version {version}")


def compare(given, documents):
    """The CPU seconds of each round, by what was found and by peer."""
    python, peers, taken = venv(), {}, {}
    with tempfile.TemporaryDirectory() as folder, publisher.Publisher(documents) as source:
        folder = pathlib.Path(folder)
        urls = [source.url(number) for number in range(given.feeds)]
        try:
            peers["tidegate"] = Tidegate(given.bin, folder, urls)
            for kind in ("feedparser", "reader"):
                peers[kind] = Library(kind, python, folder, urls)
            peers["newsboat"] = Newsboat(folder, urls)
            for version in range(given.rounds + 1):
                if version > 0:
                    source.advance()
                order = random.Random(version).sample(sorted(peers), len(peers))
                for found in ("new" if version == 0 else "changed", "unchanged"):
                    for name in order:
                        before = source.counted()["requests"]
                        seconds = peers[name].poll()
                        asked = source.counted()["requests"] - before
                        # The gateway reads new feeds by itself as well.
                        if asked != given.feeds and (name, found) != ("tidegate", "new"):
                            raise RuntimeError(f"{name} asked {asked} times for {given.feeds} feeds")
                        check(name, peers[name], documents, given.feeds, version)
                        if version > 0 or found == "new":
                            by = taken.setdefault(found, {})
                            by.setdefault(name, []).append(seconds)
                            if name == "tidegate":
                                by.setdefault(POLLS, []).append(peers[name].polls)
                print(f"round {version} of {given.rounds}", file=sys.stderr, flush=True)
        finally:
            for peer in peers.values():
                peer.end()
    return taken


def main():
    given = measure.given(feeds=200, rounds=7, json=None)
    documents = publisher.large(edits=True)
    size, packed = documents.sizes()
    rows, shown = [], {}
    for found, peers in compare(given, documents).items():
        for name in ("tidegate", POLLS, "feedparser", "newsboat", "reader"):
            cpu, off = measure.spread([seconds / given.feeds * 1e6 for seconds in peers[name]])
            ratio, around = measure.ratio(peers[name], peers["tidegate"])
            rows.append({"found": found, "peer": name, "cpu": round(cpu, 1), "spread": round(off, 1),
                         "ratio": round(ratio, 2), "ratio_spread": round(around, 2)})
            shown[f"{found}, {name}"] = {"µs a feed": (cpu, off), "ratio": (ratio, around)}
    measure.show(f"{given.feeds} feeds of {size} bytes, {packed} packed; {given.rounds} rounds.\nCPU a feed in µs, user and"
                 " system, and what that is to the gateway in the same round: medians, and half of the distance between\n"
                 "the quartiles.", shown)
    measure.report(given.json, kind="peers", feeds=given.feeds, rounds=given.rounds, bytes=size, rows=rows)


if __name__ == "__main__":
    sys.exit(answer_as(*sys.argv[2:]) if sys.argv[1:2] == ["--peer"] else main())
