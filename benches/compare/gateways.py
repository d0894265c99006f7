#!/usr/bin/env python3
"""What PostgreSQL as the store costs, and what one, two and three gateways on it do, against sled in the same run.

All share the processors of the machine, with a database of its own: what counts are ratios within the run and figures for
each change, not throughput.

    benches/compare/gateways.py                   all parts, about an hour
    benches/compare/gateways.py changes serving   some of them

    tables   rows and bytes of feeds with 10 and with 50 items, and what a changed poll of them takes
    changes  polls that all find a change, as fast as they come
    serving  a cached document, as fast as it is answered, and the statements meanwhile
    memory   memory and what a start takes, by the growth from N to 2N feeds
    upkeep   statements for each feed after a start

Changes and serving have --rounds, each run takes --seconds, --feeds change, and memory is that of --memory-feeds and of
twice as many. Needs PostgreSQL's server with pg_stat_statements (Debian: postgresql, postgresql-contrib).
"""

import collections
import contextlib
import os
import pathlib
import secrets
import statistics
import subprocess
import sys
import tempfile
import time

import measure
import publisher
import stage

GATEWAYS = 3
# How long gateways may take to read all feeds and share the polls, and what is left to come to rest, in seconds.
SHARED, SETTLING = 1800, 6
# How long after its start a gateway looks at each feed that it owns first, and how long that takes at most for one.
UPKEEP, UPKEEP_OF_FEED = 62, 0.02
# How often feeds are polled whose memory is counted, in seconds.
MEMORY_INTERVAL = 60
# Runs this script again with a database of its own. Checkpoints and vacuums come when the script asks for them.
STAGE = """
CI=1 source tests/scripts/postgres_stage.bash
cat >>"$work/database/data/postgresql.conf" <<SETTINGS
shared_preload_libraries = 'pg_stat_statements'
max_connections = 200
shared_buffers = '512MB'
max_wal_size = '8GB'
checkpoint_timeout = '1h'
autovacuum = off
SETTINGS
database restart -m fast -l "$work/database/log"
python3 -B "$0" --url "$url" --psql "$tools/psql" --data "$work/database/data" "$@"
"""
# One client may have all connections, and documents name the gateway.
SERVER = 'trusted_proxies = ["127.0.0.1"]\npublic_url = "https://feeds.example.org"'


def documents(entries):
    """Documents whose entries take 1.4 KB and pack to half of it."""
    return publisher.Documents(entries, 225, 40)


class Database:
    """The server, whose statements are counted."""

    def __init__(self, given):
        self.url, self.psql = given.url, given.psql
        self.pid = int((pathlib.Path(given.data) / "postmaster.pid").read_text().split()[0])
        self.sql("CREATE EXTENSION pg_stat_statements")

    def sql(self, text):
        """The first row of a statement, as texts."""
        rows = stage.psql(self.psql, self.url, text)
        return rows[0] if rows else []

    def space(self, schema):
        """An empty schema; the address of a gateway for it."""
        self.sql(f"CREATE SCHEMA {schema}")
        return f"{self.url}?sslmode=disable&options=-csearch_path%3D{schema}"

    def cpu(self):
        """Seconds of processor that the server and its connections have taken, those that ended included."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        taken = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        for child in pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                taken += measure.cpu(int(child))
        return taken

    def used(self):
        """What was used so far: processor, bytes of WAL, and statements that were made."""
        asked = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, sum(calls) FROM pg_stat_statements"
        return collections.Counter(cpu=self.cpu(), **dict(zip(("wal", "statements"), map(float, self.sql(asked)), strict=True)))


class Fleet(contextlib.ExitStack):
    """A publisher, and gateways on one store that poll it; without a database each has sled."""

    def __init__(self, given, base, feeds, interval, entries, share=0.0):
        super().__init__()
        self.program, self.base, self.feeds, self.gateways = given.bin, base, feeds, []
        self.folder = self.enter_context(tempfile.TemporaryDirectory(prefix="gateways-"))
        self.publisher = self.enter_context(publisher.Publisher(documents(entries), share))
        self.polling = measure.polling(f"{interval}s", {f"f{n}": self.publisher.url(n) for n in range(feeds)})
        self.schema = f"space_{secrets.token_hex(4)}"
        self.url = base and base.space(self.schema)
        if base:
            self.callback(base.sql, f"DROP SCHEMA {self.schema} CASCADE")

    def add(self):
        """Starts one more gateway, and waits until every feed was polled and each gateway has its part of them."""
        store = f'[store]\nkind = "postgres"\nrequire_standby = false\nurl = "{self.url}"' if self.url else ""
        folder, begun = tempfile.mkdtemp(dir=self.folder), time.monotonic()
        gateway = self.enter_context(measure.Gateway(self.program, folder, f"{store}\n{self.polling}", SERVER, ()))
        gateway.began = time.monotonic()
        gateway.start = gateway.began - begun
        self.gateways.append(gateway)
        self.settle()
        return gateway

    def settle(self):
        parts = lambda: [gateway.figures()["tidegate_feeds_polled"] for gateway in self.gateways]
        is_shared = lambda of: sum(of) == self.feeds and all(of) and self.publisher.counted()["feeds"] == self.feeds
        stage.check(stage.until(lambda: is_shared(parts()), SHARED, 0.5), f"gateways poll {parts()} feeds")
        time.sleep(SETTLING)

    def keep_up(self):
        """Waits until every gateway has looked at its feeds for what ages: a minute after its start."""
        time.sleep(max(0, self.gateways[-1].began + UPKEEP + self.feeds * UPKEEP_OF_FEED - time.monotonic()))

    def used(self):
        """What was used so far by the gateways together, and by the database."""
        used = self.base.used() if self.base else collections.Counter()
        for gateway in self.gateways:
            figures = gateway.figures()
            used["changes"] += figures.get('tidegate_polls_total{outcome="changed"}', 0)
            used["gateways"] += measure.cpu(gateway.pid)
        return used

    def during(self, seconds):
        """What a while takes: changes a second, and for each of them processor time, statements and WAL."""
        before, begun = self.used(), time.monotonic()
        time.sleep(seconds)
        used, took = self.used(), time.monotonic() - begun
        used.subtract(before)
        changes = max(1, used["changes"])
        row = {"changes/s": changes / took, "gateways ms": used["gateways"] / changes * 1e3}
        if self.base:
            row |= {"database ms": used["cpu"] / changes * 1e3, "statements": used["statements"] / changes,
                    "WAL KB": used["wal"] / changes / 1e3}
        return row


def medians(runs):
    """By name, the median of each figure."""
    return {name: {what: statistics.median(row[what] for row in rows) for what in rows[0]} for name, rows in runs.items()}


def tables(given, base):
    sizes, changes = {}, {}
    for entries in (10, 50):
        # Every feed is polled once in a while, and has changed then.
        with Fleet(given, base, given.feeds, given.seconds, entries, share=1.0) as fleet:
            fleet.add()
            table = f"{fleet.schema}.tidegate_entry"

            def size():
                base.sql(f"VACUUM (ANALYZE) {table}")
                asked = f"SELECT count(*), pg_table_size('{table}'), pg_indexes_size('{table}') FROM {table}"
                rows, heap, index = map(int, base.sql(asked))
                return {"rows": rows / given.feeds, "table KB": heap / given.feeds / 1e3, "indexes KB": index / given.feeds / 1e3}

            sizes[f"{entries} items"] = size()
            fleet.keep_up()
            for what in ("after a checkpoint", "later"):
                if what != "later":
                    base.sql("CHECKPOINT")
                changes[f"{entries} items, {what}"] = fleet.during(given.seconds)
            sizes[f"{entries} items, later"] = size()
    measure.show(f"A feed of {given.feeds}:", sizes)
    measure.show("A changed poll of it:", changes)


def changes(given, base):
    runs = collections.defaultdict(list)
    for _ in range(given.rounds):
        for kind, gateways in ((None, 1), (base, GATEWAYS)):
            with Fleet(given, kind, given.feeds, 1, 10, share=1.0) as fleet:
                for count in range(1, gateways + 1):
                    fleet.add()
                    fleet.keep_up()
                    # So that images of pages count the same everywhere: none before, all after.
                    base.sql("CHECKPOINT")
                    runs[f"{'postgres' if kind else 'sled'}, {count}"].append(fleet.during(given.seconds))
    measure.show(f"{given.feeds} feeds of 10 items that change whenever they are asked for, every second; a change:", medians(runs))


def serving(given, base):
    runs = collections.defaultdict(list)
    every = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    for _ in range(given.rounds):
        for kind in (None, base):
            with Fleet(given, kind, 100, 86_400, 10) as fleet:
                gateway = fleet.add()
                fleet.keep_up()
                # The first answer of a gateway is made, not found.
                gateway.ask("/feeds/f0")
                before = kind.used()["statements"] if kind else 0
                made = measure.wrk(every, gateway.pid, f"{gateway.base}/feeds/f0", {}, 48, given.seconds)
                row = {"requests/s": made.rate, "processor µs": made.cpu, "p99 ms": made.p99}
                if kind:
                    row["statements a second"] = (kind.used()["statements"] - before) / given.seconds
                runs["postgres" if kind else "sled"].append(row)
    measure.show(f"A cached document of {documents(10).sizes()[0]} bytes, 48 connections:", medians(runs))


def memory(given, base):
    rows = {}
    for feeds in (given.memory_feeds, 2 * given.memory_feeds):
        # First polls are spread over the interval.
        with Fleet(given, base, feeds, MEMORY_INTERVAL, 10) as fleet:
            before = base.used()
            first = fleet.add()
            used = base.used()
            used.subtract(before)
            row = {"gateway ms a feed": measure.cpu(first.pid) / feeds * 1e3, "database ms a feed": used["cpu"] / feeds * 1e3,
                   "WAL KB a feed": used["wal"] / feeds / 1e3}
            base.sql(f"VACUUM (ANALYZE) {fleet.schema}.tidegate_entry")
            second = fleet.add()
            row["second starts in s"] = second.start
            fleet.keep_up()
            for name, gateway in (("first", first), ("second", second)):
                row[f"{name} MB"] = stage.memory(gateway.pid)[0] / 1e6
            rows[f"{feeds} feeds"] = row
    less, more = rows.values()
    rows["growth a feed, millionths"] = {
        what: (more[what] - less[what]) / given.memory_feeds * 1e6 for what in ("second starts in s", "first MB", "second MB")
    }
    measure.show("Feeds of 10 items that one gateway takes in; then a second one starts:", rows)


def upkeep(given, base):
    rows = {}
    for entries in (10, 50):
        with Fleet(given, base, given.feeds, 86_400, entries) as fleet:
            fleet.add()
            fleet.gateways.pop().end()
            before = base.used()["statements"]
            fleet.add()
            started = base.used()["statements"]
            fleet.keep_up()
            ended = base.used()["statements"]
            rows[f"{entries} items"] = {
                "at the start": (started - before) / given.feeds, "a minute later": (ended - started) / given.feeds
            }
    measure.show(f"Statements for each of {given.feeds} feeds, those by the clock among them:", rows)


PARTS = {"tables": tables, "changes": changes, "serving": serving, "memory": memory, "upkeep": upkeep}


def main():
    given = measure.given(
        url=None, psql=None, data=None, rounds=5, seconds=15, feeds=600, memory_feeds=3000, parts=tuple(PARTS),
    )
    if not given.url:
        root, script = pathlib.Path(__file__).parents[2], pathlib.Path(__file__).resolve()
        return subprocess.run(["bash", "-euc", STAGE, script, *sys.argv[1:]], cwd=root, check=False).returncode
    base = Database(given)
    print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[1]:.1f}, PostgreSQL {base.sql('SHOW server_version')[0]}")
    for part in given.parts:
        PARTS[part](given, base)


if __name__ == "__main__":
    sys.exit(main())
