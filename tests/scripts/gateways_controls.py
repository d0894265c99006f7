"""Negative controls of gateways_run.py: readers that a careful person might write, and that must miss changes. Where
one does not, the run has shown nothing: then the disturbances are too gentle for its checks as well.

One goes by time, as `WHERE changed_at > last` does. One goes by position in the database itself, and so sees commits
before they are durable. What gateways promise to consumers is what these two lack."""

import collections
import contextlib
import datetime
import re
import subprocess
import time

# How long before its last question the reader by time begins to ask: within this time documents list a change.
OVERLAP = 2
# The pauses of the readers, in seconds.
CLOCK_PAUSE, POSITION_PAUSE = 1, 0.01
# The class of entries of the change log, whose keys begin with the epoch.
LOG_CLASS = 12
ROWS = f"""SELECT log_seq, encode(key, 'hex'), encode(value, 'hex') FROM tidegate_recent
WHERE shard = 0 AND class = {LOG_CLASS} AND log_seq > {{}} ORDER BY log_seq, key;"""


def as_tick(seconds):
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class ClockReader:
    """Asks some gateway for what changed in a feed since it asked last, by its own clock."""

    def __init__(self, fleet, feeds, ends):
        self.fleet, self.feeds, self.ends = fleet, feeds, ends
        self.asked, self.first, self.seen = {}, {}, collections.defaultdict(set)

    def read(self):
        while not self.ends.is_set():
            for feed in self.feeds:
                now = time.time()
                since = f"?since={as_tick(self.asked[feed] - OVERLAP)}" if feed in self.asked else ""
                answered = self.fleet.ask(f"/feeds/{feed}/sync{since}")
                if not answered:
                    continue
                self.asked[feed] = now
                self.seen[feed].update(re.findall(r' when="([^"]+)"', answered[1]))
                self.first.setdefault(feed, max(self.seen[feed], default=""))
            time.sleep(CLOCK_PAUSE)

    def missed(self, ticks):
        """The changes that it never saw, of those by feed that there were since its first question."""
        return sorted((feed, tick) for feed, first in self.first.items() for tick in ticks.get(feed, ())
                      if tick > first and tick not in self.seen[feed])


class Psql:
    """Statements to the database, one after the other on one connection."""

    def __init__(self, program, url):
        self.process = subprocess.Popen([program, "-qAtX", url], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, statement):
        """The rows; `OSError` where the connection is gone."""
        self.process.stdin.write(f"{statement}\n\\echo end\n")
        self.process.stdin.flush()
        rows = []
        while (line := self.process.stdout.readline()) != "end\n":
            if not line:
                raise ConnectionError("psql has ended")
            rows.append(line.rstrip("\n").split("|"))
        return rows

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        # What it did not read any more is lost.
        with contextlib.suppress(OSError):
            self.process.stdin.close()


class PositionReader:
    """Reads from the database what was committed behind the last position that it knows."""

    def __init__(self, psql, url, ends):
        self.psql, self.url, self.ends = psql, url, ends
        self.last, self.seen = None, set()

    def read(self):
        connection = None
        while not self.ends.is_set():
            try:
                connection = connection or Psql(self.psql, self.url)
                if self.last is None:
                    self.last = int(connection.ask("SELECT log_seq FROM tidegate_shard WHERE shard = 0;")[0][0])
                for position, key, value in connection.ask(ROWS.format(self.last)):
                    self.last = int(position)
                    self.seen.add(change(key, value))
            except OSError:
                connection.end()
                connection = None
            time.sleep(POSITION_PAUSE)
        connection and connection.end()

    def is_deceived(self):
        """Whether the database took back what it saw, and whether that has not come again."""
        connection = Psql(self.psql, self.url)
        try:
            # Nothing that it saw since is missing.
            seen = self.seen.copy()
            there = {change(key, value) for _, key, value in connection.ask(ROWS.format(0))}
            return bool(invented(there, seen))
        finally:
            connection.end()

    def wrong(self, changes):
        """The changes that it never saw, and what it saw that never was, of those by epoch, feed and tick."""
        return invented(self.seen, changes), invented(changes, self.seen)


def invented(known, others):
    """What others have since the first of what is known, and is not known."""
    first = min((each[0] for each in known if each), default=0)
    return sorted(each for each in others if each and each[0] > first and each not in known)


def change(key, value):
    """The epoch, the feed and the tick of an entry of the log; nothing where it is of no feed of the publisher's."""
    found = re.search(rb"(feed-\d+)([\x80-\xff]*[\x00-\x7f])", bytes.fromhex(value), re.S)
    if not found:
        return None
    number = sum((byte & 0x7f) << (7 * place) for place, byte in enumerate(found.group(2)))
    seconds = number >> 1 if number & 1 == 0 else -((number + 1) >> 1)
    return int(key[:16], 16), found.group(1).decode(), as_tick(seconds)
