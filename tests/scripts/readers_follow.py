"""Real readers follow changing feeds for some rounds, directly and behind the gateway: rss2email, newsboat, sfeed and
Python's feedparser. In the end every post that a round showed must be there: behind the gateway none may be missing, and
none there more often than where the reader follows the publisher itself.

Needs Debian's rss2email, newsboat and sfeed (in CI they are installed, elsewhere one that is missing is left out).
"""

import collections
import email
import email.policy
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import xml.sax.saxutils

import feedparser

import stage

# The posts that a feed shows.
WINDOW = 12
# How long a round takes at least, in seconds: libcurl in newsboat takes what is not newer by Last-Modified, whole seconds,
# for what it has.
ROUND = 1.1
# How long one reader may take for one round, in seconds.
READER_WAIT = 120


class Feed:
    """A feed that changes in every round. A post is a number; its title bears it for good."""

    def __init__(self, kind, seed):
        self.kind, self.random = kind, random.Random(seed)
        self.posts, self.made, self.seen = [], 0, set()
        self.publish(5)

    def publish(self, count):
        for _ in range(count):
            self.made += 1
            self.posts.insert(0, {"n": self.made, "text": f"What post {self.made} says. " * 8})

    def change(self, turn):
        """One round: mostly new posts, at times an edit, a withdrawal, a quiet round."""
        roll = self.random.randrange(10)
        if roll < 6:
            self.publish(1 + roll // 2)
        elif roll == 6:
            self.random.choice(self.posts[:WINDOW])["text"] += f" Corrected in round {turn}."
        elif roll == 7:
            self.publish(1)
            self.posts.remove(self.random.choice(self.posts[2:6]))
        elif roll == 8:
            self.publish(2)
            self.posts[2]["text"] += f" And more in round {turn}."

    def document(self, base):
        shown = self.posts[:WINDOW]
        self.seen |= {post["n"] for post in shown}
        return (self.atom if self.kind == "atom" else self.rss)(shown, base)

    def title(self, post):
        return f"Post {post['n']:04} of {self.kind}"

    def atom(self, shown, base):
        link = '<link href="{}/{}"/>'.format
        entries = (
            stage.entry(f"post:{n}", self.title(post), escaped(post["text"]), stamp(n), link(base, f"post/{n}"))
            for post in shown for n in [post["n"]]
        )
        return stage.atom("A feed", entries, id="feed", updated=stamp(self.made), more=link(base, ""))

    def rss(self, shown, base):
        return stage.rss(base, [(post["n"], self.title(post), escaped(post["text"])) for post in shown])


def escaped(text):
    return xml.sax.saxutils.escape(f"<p>{text}</p>")


def stamp(number):
    """A time that rises with the number: one post an hour."""
    return f"2026-{1 + number // 600:02}-{1 + number // 24 % 25:02}T{number % 24:02}:00:00Z"


def numbers(titles):
    """How often each post is there, by its title."""
    return collections.Counter(
        int(found.group(1)) for found in (re.search(r"Post (\d{4})", t) for t in titles) if found
    )


class Feedparser:
    """A reader by the library's documentation: it hands back the validators of the last answer."""

    name, needs = "feedparser", None

    def __init__(self, folder, feeds):
        self.feeds = {name: [url, None, None, {}] for name, url in feeds.items()}

    def read(self):
        for state in self.feeds.values():
            answer = feedparser.parse(state[0], etag=state[1], modified=state[2])
            if answer.get("status") == 304:
                continue
            state[1], state[2] = answer.get("etag"), answer.get("modified")
            for entry in answer.entries:
                state[3].setdefault(entry.id, entry.title)

    def have(self, name):
        return numbers(self.feeds[name][3].values())


class Rss2email:
    name, needs = "rss2email", "r2e"

    def __init__(self, folder, feeds):
        self.folder, self.feeds = folder, feeds
        self.config, self.data = folder / "r2e.cfg", folder / "r2e.json"
        lines = [
            "[DEFAULT]", "from = gateway@example.org", "to = reader@example.org",
            "email-protocol = maildir", f"maildir-path = {folder}/mail", "verbose = warning", "",
        ]
        for name, url in feeds.items():
            (folder / "mail" / name).parent.mkdir(exist_ok=True)
            lines += [f"[feed.{name}]", f"url = {url}", f"maildir-mailbox = {name}", ""]
        self.config.write_text("\n".join(lines))

    def read(self):
        run(["r2e", "-c", self.config, "-d", self.data, "run"], self.folder)

    def have(self, name):
        titles = []
        for path in (self.folder / "mail" / name).glob("*/*"):
            message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            titles.append(str(message["subject"]))
        return numbers(titles)


class Newsboat:
    name, needs = "newsboat", "newsboat"

    def __init__(self, folder, feeds):
        self.folder, self.feeds = folder, feeds
        (folder / "urls").write_text("".join(f"{address}\n" for address in feeds.values()))
        (folder / "config").write_text("reload-threads 2\ndownload-retries 1\nmax-items 0\n")

    def read(self):
        files = [word for flag, name in (("-u", "urls"), ("-C", "config"), ("-c", "cache.db"))
                 for word in (flag, self.folder / name)]
        run(["newsboat", *files, "-x", "reload"], self.folder)

    def have(self, name):
        with sqlite3.connect(self.folder / "cache.db") as database:
            asked = "SELECT title FROM rss_item WHERE feedurl = ?"
            return numbers(title for title, in database.execute(asked, (self.feeds[name],)))


class Sfeed:
    name, needs = "sfeed", "sfeed_update"

    def __init__(self, folder, feeds):
        self.folder = folder
        calls = "".join(f"\tfeed '{name}' '{url}'\n" for name, url in feeds.items())
        (folder / "sfeedrc").write_text(f"sfeedpath='{folder}/feeds'\nfeeds() {{\n{calls}}}\n")

    def read(self):
        run(["sfeed_update", self.folder / "sfeedrc"], self.folder)

    def have(self, name):
        lines = (self.folder / "feeds" / name).read_text().splitlines()
        return numbers(line.split("\t")[1] for line in lines)


def run(command, home):
    """A round of a reader that is a program, in a home of its own."""
    done = subprocess.run(
        command, env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=READER_WAIT, text=True, check=False,
    )
    if done.returncode:
        print(f"{command[0]} ended with {done.returncode}: {done.stdout[-500:]}", file=sys.stderr)


READERS = [Feedparser, Rss2email, Newsboat, Sfeed]


def compare(name, feed, direct, behind):
    """What a reader behind the gateway has otherwise than it should."""
    missing = sorted(feed.seen - set(behind))
    if missing:
        yield f"{name}: {feed.kind}: {len(missing)} of {len(feed.seen)} posts lost: {missing[:12]}"
    twice = sorted(n for n, count in behind.items() if count > max(1, direct[n]))
    if twice:
        yield f"{name}: {feed.kind}: there more than once: {twice[:12]}"


def pairs(site, gateway, feeds, root):
    """Of each reader that is here one that follows the publisher, and one that follows the gateway."""
    for reader in READERS:
        if reader.needs and not shutil.which(reader.needs):
            stage.check(not os.environ.get("CI"), f"there is no {reader.name} here")
            print(f"left out, not here: {reader.name}")
            continue
        pair = []
        for way, address in (("direct", site.base + "/{}.xml"), ("behind", gateway.base + "/feeds/{}")):
            folder = root / f"{reader.name}-{way}"
            folder.mkdir()
            pair.append(reader(folder, {feed.kind: address.format(feed.kind) for feed in feeds}))
        yield pair


def follow(program, rounds, root):
    """Yields what readers behind the gateway have otherwise than they should."""
    feeds, site = [Feed("atom", 14), Feed("rss", 41)], stage.Site()
    publish = lambda feed: site.documents.update({f"/{feed.kind}.xml": feed.document(site.base)})
    for feed in feeds:
        publish(feed)
    with stage.Gateway(program, root, stage.feeds_of(site, [feed.kind for feed in feeds])) as gateway:
        followed = list(pairs(site, gateway, feeds, root))
        for turn in range(rounds):
            if turn:
                time.sleep(ROUND)
            for feed in feeds:
                if turn:
                    feed.change(turn)
                    publish(feed)
                gateway.poll(feed.kind)
            for reader in (reader for pair in followed for reader in pair):
                reader.read()
        for direct, behind in followed:
            for feed in feeds:
                there, directly = behind.have(feed.kind), direct.have(feed.kind)
                print(f"{behind.name}: {feed.kind}: {len(there)} of {len(feed.seen)} posts (directly {len(directly)})")
                yield from compare(behind.name, feed, directly, there)


def main():
    given = stage.given(rounds=30)
    with tempfile.TemporaryDirectory() as root:
        return stage.status(list(follow(given.bin, given.rounds, pathlib.Path(root))))


sys.exit(main())
