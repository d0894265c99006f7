#!/usr/bin/env python3
"""What PostgreSQL as the store costs, and what one, two and three gateways on it do, against sled in the same run.

Gateways, database, publisher and clients share the processors of the machine: what counts are ratios within the run
and figures for each change, not throughput. It starts a database of its own and stops it.

    benches/compare/gateways.py                   all parts, about an hour
    benches/compare/gateways.py changes serving   some of them

    tables        rows and bytes of feeds with 10 and with 50 items, and what a changed poll of them takes
    changes       polls that all find a change, as fast as they come
    serving       a cached document, as fast as it is answered, and the statements meanwhile; fails where a gateway reads
                  what feeds have
    memory        memory and what a start takes, by the growth from N to 2N feeds
    upkeep        what is done for each feed after a start and then every hour

Needs PostgreSQL's server with pg_stat_statements (Debian: postgresql, postgresql-contrib). wrk is installed from Debian's
packages where it is missing and that is allowed.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import os
import pathlib
import re
import secrets
import shutil
import statistics
import sys
import tempfile
import time

import measure
import publisher
import serving_stage
from postgres import BY_CLOCK, READS, Database

stage = serving_stage.stage
# Words of an entry's text, and how many different ones there are: 1.4 KB that pack to half of it.
WORDS, VOCABULARY = 225, 40
GATEWAYS = 3
# How long gateways may take to share the polls, and what is left to come to rest, in seconds.
SHARED, SETTLING = 60, 6
# How long after its start a gateway looks at each feed that it owns first, and how long that takes at most for one.
UPKEEP, UPKEEP_OF_FEED = 62, 0.02
# How often feeds are polled whose memory is counted, in seconds.
MEMORY_INTERVAL = 60
# The connections of readers to all gateways together, and to one of three.
CONNECTIONS, TO_ONE = 48, (1, 16, 64, 256)
# The classes of src/store/engine.rs that every gateway has in memory.
IN_MEMORY = ("gateway", "feeds", "states", "log")


def classes():
    """The names of classes of records by their numbers."""
    source = (pathlib.Path(__file__).parents[2] / "src/store/engine.rs").read_text()
    body = source.partition("classes! {")[2].partition("\n}")[0]
    return {int(number): name for name, number in re.findall(r"^    \w+ (\w+) (\d+)$", body, re.M)}


CLASSES = classes()
LOG = next(number for number, name in CLASSES.items() if name == "log")


class Documents(publisher.Documents):
    """Documents whose entries are made once."""

    @functools.lru_cache(maxsize=400_000)
    def entry(self, *entry):
        return super().entry(*entry)


def documents(entries):
    return Documents(entries, WORDS, VOCABULARY)


class Gateway(stage.Gateway):
    """A gateway whose figures are read."""

    def __init__(self, options, folder, configuration):
        folder.mkdir()
        # One client may have all connections, and documents name the gateway.
        server = 'trusted_proxies = ["127.0.0.1"]\npublic_url = "https://feeds.example.org"'
        begun = time.monotonic()
        super().__init__(options.bin, folder, configuration, server)
        self.pid, self.began = self.process.pid, time.monotonic()
        self.start = self.began - begun

    def figures(self):
        lines = [line.rpartition(" ") for line in self.ask("/metrics").decode().splitlines() if line[0] != "#"]
        return collections.Counter({name: float(value) for name, _, value in lines})

    def polls(self):
        """Polls that found a change, and polls that failed."""
        figures = self.figures()
        return [figures[f'tidegate_polls_total{{outcome="{outcome}"}}'] for outcome in ("changed", "failed")]


class Figures:
    """What happened in a while."""

    def __init__(self):
        self.statements, self.database, self.wal = collections.Counter(), 0, (0, 0)

    @property
    def all_changes(self):
        return sum(self.changes)

    @property
    def rate(self):
        return self.all_changes / self.seconds

    def of_change(self, number):
        return number / self.all_changes

    def counted(self, *names):
        return sum(self.statements[name] for name in names)

    def not_by_clock(self):
        # Each numbering begins and commits, too.
        return sum(self.statements.values()) - self.counted(*BY_CLOCK) - 2 * self.statements["COUNTER"]


class Fleet:
    """A publisher, and gateways on one store that poll it."""

    def __init__(self, options, base, feeds, interval, entries, kind="postgres", share=0.0):
        self.options, self.base, self.feeds = options, base if kind == "postgres" else None, feeds
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gateways-", dir=options.folder))
        self.publisher = publisher.Publisher(documents(entries), share)
        self.gateways, self.started, self.schema = [], 0, f"space_{secrets.token_hex(4)}"
        lines = ["[store]", f'kind = "{kind}"']
        if kind == "postgres":
            lines += [f'url = "{base.space(self.schema)}"', "require_standby = false"]
        lines.append(f'[polling]\nallow_private = true\nmin_interval = "{interval}s"\nmax_interval = "{interval}s"')
        lines += [f'[[feed]]\nname = "f{n}"\nurl = "{self.publisher.url(n)}"' for n in range(feeds)]
        self.configuration = "\n".join(lines) + "\n"

    def add(self):
        """Starts one more gateway."""
        self.started += 1
        self.gateways.append(Gateway(self.options, self.folder / f"gateway-{self.started}", self.configuration))
        return self.gateways[-1]

    def settle(self, limit=1800):
        """Waits until every feed was polled, and each gateway has its part of them."""
        if not self.publisher.wait(self.feeds, limit):
            raise RuntimeError(f"the first polls took longer than {limit} s: {self.publisher.counted()}")
        end, parts = time.monotonic() + SHARED, []
        while self.base and (sum(parts) != self.feeds or not all(parts)):
            if time.monotonic() > end:
                raise RuntimeError(f"gateways poll {parts} feeds")
            time.sleep(0.5)
            parts = [gateway.figures()["tidegate_feeds_polled"] for gateway in self.gateways]
        time.sleep(SETTLING)

    def keep_up(self):
        """Waits until every gateway has looked at its feeds for what ages: a minute after its start."""
        end = self.gateways[-1].began + UPKEEP + self.feeds * UPKEEP_OF_FEED
        time.sleep(max(0, end - time.monotonic()))

    def change(self, interval):
        """Changes every feed, and waits until each was polled in its turn, and is stored."""
        logged = f"SELECT count(*) FROM {self.schema}.tidegate_entry WHERE class = {LOG}"
        before = int(self.base.sql(logged)[0][0])
        self.publisher.advance()
        end = time.monotonic() + 10 * interval
        while int(self.base.sql(logged)[0][0]) < before + self.feeds:
            if time.monotonic() > end:
                raise RuntimeError(f"not all of {self.feeds} feeds were polled")
            time.sleep(1)

    def measure(self, work):
        """What happens in so many seconds, or while something is done."""
        figures, base, gateways = Figures(), self.base, self.gateways
        # What the metrics of a gateway ask of the store counts nothing.
        before = [gateway.polls() for gateway in gateways]
        if base:
            base.reset()
            begin, database = base.position(), base.cpu()
        cpu = [measure.cpu(gateway.pid) for gateway in gateways]
        handed, begun = measure.handed(gateways[0].pid), time.monotonic()
        work() if callable(work) else time.sleep(work)
        figures.seconds = time.monotonic() - begun
        figures.handed = measure.handed(gateways[0].pid) - handed
        figures.cpu = [measure.cpu(gateway.pid) - taken for gateway, taken in zip(gateways, cpu, strict=True)]
        if base:
            figures.database, figures.statements = base.cpu() - database, base.statements()
            end = base.position()
        after = [gateway.polls() for gateway in gateways]
        figures.changes = [now[0] - then[0] for then, now in zip(before, after, strict=True)]
        failed = sum(now[1] - then[1] for then, now in zip(before, after, strict=True))
        if failed > figures.all_changes * 0.01:
            raise RuntimeError(f"{failed} polls failed")
        if base:
            figures.wal = base.logged(begin, end)
        return figures

    def end(self):
        for gateway in reversed(self.gateways):
            gateway.end()
        self.publisher.stop()
        shutil.rmtree(self.folder)
        if self.base:
            self.base.sql(f"DROP SCHEMA {self.schema} CASCADE")
            self.base.sql("CHECKPOINT")


@contextlib.contextmanager
def fleet(*arguments, **more):
    made = Fleet(*arguments, **more)
    try:
        yield made
    finally:
        made.end()


def show(title, rows):
    """A table of rows by their names: each a mapping of columns to texts or numbers."""
    columns = list(dict.fromkeys(column for _, row in rows for column in row))

    def text(value):
        if isinstance(value, float):
            return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
        return str(value)

    lines = [["", *columns]] + [[name, *(text(row.get(column, "-")) for column in columns)] for name, row in rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    print(f"\n{title}\n")
    for name, *cells in lines:
        aligned = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print(f"{name.ljust(widths[0])}  {aligned}".rstrip(), flush=True)


def show_statements(options, figures, parts, of):
    """Each statement by its name, where that is asked for."""
    if options.statements:
        named = [f"{name} {count / parts:.2f}" for name, count in figures.statements.most_common()]
        print(f"  statements, {of}: " + ", ".join(name for name in named if not name.endswith(" 0.00")))


def tables(options, base):
    feeds = options.table_feeds
    interval = max(5, feeds // 15)
    for entries in (10, 50):
        with fleet(options, base, feeds, interval, entries) as made:
            made.add()
            made.settle()
            table = f"{made.schema}.tidegate_entry"
            base.sql(f"VACUUM (ANALYZE) {table}")
            sizes = f"SELECT pg_table_size('{table}'), pg_indexes_size('{table}')"
            heap, index = map(int, base.sql(sizes)[0])
            held = base.sql("SELECT class, count(*), sum(octet_length(key)), sum(octet_length(value))"
                            f" FROM {table} GROUP BY class HAVING count(*) >= {feeds / 10} ORDER BY 4 DESC")
            held = {CLASSES[int(number)]: tuple(map(int, counts)) for number, *counts in held}
            rows = [(name, {"rows": count / feeds, "bytes of a key": keys / count, "of a value": values / count})
                    for name, (count, keys, values) in held.items()]
            all_rows = sum(count for count, _, _ in held.values())
            at_start = sum(keys + values for name, (_, keys, values) in held.items() if name in IN_MEMORY)
            rows.append(("all", {"rows": all_rows / feeds, "table KB": heap / feeds / 1e3,
                                 "indexes KB": index / feeds / 1e3, "read at a start KB": at_start / feeds / 1e3}))
            whole, packed = made.publisher.documents.sizes()
            show(f"A feed of {entries} items ({feeds} feeds, documents of {whole} bytes, {packed} packed):", rows)
            made.keep_up()
            rows, found = [], []
            for gateways, what in ((1, "after a checkpoint"), (1, "later"), (1, "later"), (2, "later")):
                if gateways > len(made.gateways):
                    made.add()
                    made.settle()
                if what != "later":
                    base.sql("CHECKPOINT")
                figures = made.measure(lambda: made.change(interval))
                rows.append((f"{gateways}, {what}", cost(figures)))
                found.append(figures)
            grown = sum(map(int, base.sql(sizes)[0])) - heap - index
            show(f"A changed poll of it, by gateways; each makes the tables {grown / feeds / 4e3:.1f} KB larger until"
                 " they are vacuumed:", rows)
            for figures in found[1:]:
                show_statements(options, figures, figures.all_changes, "a change")


def cost(figures):
    """What a changed poll takes."""
    each = figures.of_change
    return {
        "polls": figures.all_changes,
        "WAL KB": each(figures.wal[0]) / 1e3, "page images KB": each(figures.wal[1]) / 1e3,
        "reads": each(figures.counted(*READS)), "all statements": each(figures.not_by_clock()),
        "gateways ms": each(sum(figures.cpu)) * 1e3, "database ms": each(figures.database) * 1e3,
    }


def changes(options, base):
    found = collections.defaultdict(list)
    for number in range(options.rounds):
        for kind, counts in (("sled", (1,)), ("postgres", (1, 2, 3))):
            with fleet(options, base, options.feeds, 1, 10, kind, share=1.0) as made:
                for count in counts:
                    made.add()
                    made.settle()
                    made.keep_up()
                    # So that page images count the same everywhere: none before, all after.
                    base.sql("CHECKPOINT")
                    found[f"{kind}, {count}"].append(made.measure(options.seconds))
                    if made.base:
                        base.sql(f"VACUUM {made.schema}.tidegate_entry")
        rates = ", ".join(f"{case}: {runs[-1].rate:.0f}/s" for case, runs in found.items())
        print(f"changes, round {number + 1} of {options.rounds}: {rates}", file=sys.stderr)
    rows = []
    for case, runs in found.items():
        def middle(figure, runs=runs):
            return statistics.median(map(figure, runs))

        ratios = [run.rate / sled.rate for run, sled in zip(runs, found["sled, 1"], strict=True)]
        row = {"changes/s": middle(lambda run: run.rate), "to sled's": statistics.median(ratios),
               "lowest": min(ratios), "highest": max(ratios),
               "gateways ms": middle(lambda run: run.of_change(sum(run.cpu)) * 1e3)}
        if case == "sled, 1":
            row["written KB"] = middle(lambda run: run.of_change(run.handed) / 1e3)
        else:
            row |= {
                "database ms": middle(lambda run: run.of_change(run.database) * 1e3),
                "statements": middle(lambda run: run.of_change(run.not_by_clock())),
                "by the clock": middle(lambda run: run.of_change(sum(run.statements.values()) - run.not_by_clock())),
                "WAL KB": middle(lambda run: run.of_change(run.wal[0]) / 1e3),
                "page images KB": middle(lambda run: run.of_change(run.wal[1]) / 1e3),
            }
        rows.append((case, row))
    show(f"{options.feeds} feeds of 10 items, each due every second and changed whenever it is asked for; a change, medians"
         f" of {options.rounds} rounds of {options.seconds} s:", rows)
    for case, runs in found.items():
        show_statements(options, runs[-1], runs[-1].all_changes, f"a change, {case}")


def serving(options, base):
    wrk, = measure.programs("wrk")
    every = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    found = collections.defaultdict(list)

    def load(made, connections, gateways):
        def ask(gateway):
            address = f"{gateway.base}/feeds/f0"
            return measure.wrk(wrk, every, gateway.pid, address, {}, connections, options.wrk_seconds)

        def work():
            with concurrent.futures.ThreadPoolExecutor(len(gateways)) as pool:
                runs.extend(pool.map(ask, gateways))

        # The first answer of a gateway is made, not found.
        for gateway in gateways:
            gateway.ask("/feeds/f0")
        runs = []
        figures = made.measure(work)
        if reads := figures.counted(*READS):
            raise RuntimeError(f"gateways read {reads:.0f} times to answer from their caches")
        figures.runs, figures.requests = runs, sum(run.requests for run in runs)
        figures.answers = sum(run.rate for run in runs)
        return figures

    for number in range(options.rounds):
        for kind, counts in (("sled", (1,)), ("postgres", (1, 2, 3))):
            with fleet(options, base, 100, 86_400, 10, kind) as made:
                for count in counts:
                    made.add()
                    made.settle()
                    made.keep_up()
                    found[f"{kind}, {count}"].append(load(made, CONNECTIONS // count, made.gateways))
                for connections in TO_ONE if made.base else ():
                    found[f"one of three, {connections}"].append(load(made, connections, made.gateways[:1]))
        print(f"serving, round {number + 1} of {options.rounds}", file=sys.stderr)
    rows = []
    for case, runs in found.items():
        def middle(figure, runs=runs):
            return statistics.median(map(figure, runs))

        def of_each(figure, runs=runs):
            """Medians by gateway."""
            each = zip(*(map(figure, run.runs) for run in runs), strict=True)
            return ", ".join(f"{statistics.median(values):.1f}" for values in each)

        ratio = [run.answers / sled.answers for run, sled in zip(runs, found["sled, 1"], strict=True)]
        row = {"requests/s": middle(lambda run: run.answers), "to sled's": statistics.median(ratio),
               "processor µs": of_each(lambda run: run.cpu), "p99 ms": of_each(lambda run: run.p99)}
        if case != "sled, 1":
            row |= {
                "requests": middle(lambda run: run.requests),
                "statements": middle(lambda run: sum(run.statements.values())),
                "looks": middle(lambda run: run.counted("LOOK")), "reads": middle(lambda run: run.counted(*READS)),
                "database µs": middle(lambda run: run.database / run.requests * 1e6),
            }
        rows.append((case, row))
    show(f"A cached document of {documents(10).sizes()[0]} bytes: {CONNECTIONS} connections to all gateways together, then so"
         f" many to one of three; medians of {options.rounds} rounds of {options.wrk_seconds} s:", rows)
    for case, runs in found.items():
        show_statements(options, runs[-1], 1, case)


def memory(options, base):
    rows = []
    for feeds in (options.memory_feeds, 2 * options.memory_feeds):
        # First polls are spread over the interval.
        with fleet(options, base, feeds, MEMORY_INTERVAL, 10) as made:
            begin, database, begun = base.position(), base.cpu(), time.monotonic()
            first = made.add()
            made.settle()
            took = time.monotonic() - begun - SETTLING
            row = {"feeds": feeds, "taken in a second": feeds / took, "a feed, ms": measure.cpu(first.pid) / feeds * 1e3,
                   "of the database": (base.cpu() - database) / feeds * 1e3,
                   "WAL KB": sum(base.logged(begin, base.position())) / feeds / 1e3}
            base.sql(f"VACUUM (ANALYZE) {made.schema}.tidegate_entry")
            before = base.cpu()
            second = made.add()
            row |= {"start s": second.start, "start, processor s": measure.cpu(second.pid),
                    "start, database s": base.cpu() - before}
            made.settle()
            time.sleep(options.memory_wait)
            for name, gateway in (("first", first), ("second", second)):
                row[f"{name} MB"] = measure.memory(gateway.pid) / 1e6
                times = []
                for _ in range(3):
                    begun = time.monotonic()
                    gateway.ask("/metrics")
                    times.append((time.monotonic() - begun) * 1e3)
                row[f"{name}'s metrics ms"] = statistics.median(times)
            rows.append((f"{feeds} feeds", row))
    show(f"Feeds of 10 items that one gateway takes in; then a second one starts; {options.memory_wait} s later:", rows)
    (_, less), (_, more) = rows
    columns = ("start s", "start, processor s", "start, database s", "first MB", "second MB",
               "first's metrics ms", "second's metrics ms")
    scale = {"s": (1e6, "µs"), "MB": (1e6, "bytes"), "ms": (1e3, "µs")}
    growth = {}
    for column in columns:
        factor, unit = scale[column.split()[-1]]
        growth[f"{column.rpartition(' ')[0]} {unit}"] = (more[column] - less[column]) / options.memory_feeds * factor
    show("Growth a feed:", [("", growth)])


def upkeep(options, base):
    rows = []
    for entries in (10, 50):
        with fleet(options, base, options.table_feeds, 86_400, entries) as made:
            made.add()
            made.settle()
            made.gateways.pop().end()
            base.reset()
            begun = time.monotonic()
            made.add()
            before, spent = collections.Counter(), 0.0
            for what, until in (("after the start", 45), ("a minute later", 120)):
                busy, last = [], before
                while time.monotonic() < begun + until:
                    now = base.statements()
                    if any(now[name] > last[name] for name in READS):
                        busy.append(time.monotonic())
                    last = now
                    time.sleep(0.5)
                executed = base.statements("total_exec_time")
                taken = sum(executed[name] for name in READS)
                rows.append((f"{entries} items, {what}", {
                    **{name: (last[name] - before[name]) / made.feeds for name in READS},
                    "all": sum(last[name] - before[name] for name in READS) / made.feeds,
                    "within ms": (busy[-1] - busy[0]) / made.feeds * 1e3 if busy else 0.0,
                    "of which the database executes": (taken - spent) / made.feeds,
                }))
                before, spent = last, taken
    show(f"What a gateway does for each of {options.table_feeds} feeds, one after the other; statements:", rows)


PARTS = {"tables": tables, "changes": changes, "serving": serving, "memory": memory, "upkeep": upkeep}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--rounds", type=int, default=5, help="of changes and serving")
    parser.add_argument("--seconds", type=int, default=15, help="of a run")
    parser.add_argument("--wrk-seconds", type=int, default=4, help="of a run of wrk")
    parser.add_argument("--feeds", type=int, default=600, help="that change")
    parser.add_argument("--table-feeds", type=int, default=300, help="of which rows are counted")
    parser.add_argument("--memory-feeds", type=int, default=3000, help="and twice as many")
    parser.add_argument("--memory-wait", type=int, default=60, help="seconds until memory is read")
    parser.add_argument("--statements", action="store_true", help="each statement by its name")
    parser.add_argument("--folder", help="where data folders and the database are")
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; all of them")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    os.environ["TIDEGATE_LOG"] = "warn"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        base = Database(pathlib.Path(folder) / "database")
        try:
            version = base.sql("SHOW server_version")[0][0].split()[0]
            print(f"{len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[1]:.1f}, PostgreSQL {version}")
            for part in options.parts or PARTS:
                PARTS[part](options, base)
            print(f"\nload at the end {os.getloadavg()[1]:.1f}")
        finally:
            base.stop()


if __name__ == "__main__":
    main()
