#!/usr/bin/env python3
"""How cost grows: with the feeds, with the items of a feed, and with the readers.

    benches/compare/scale.py feeds 100,1000,10000,100000 --seconds 1800    a running gateway over time
    benches/compare/scale.py items 100,10000,100000                        a poll by the length of the ledger
    benches/compare/scale.py readers 1,10,100,1000                         a request by how many ask at once

feeds    A gateway polls a publisher on as many loopback addresses. So that all numbers of feeds cost the same number of
         polls a second, fewer feeds have a shorter interval: 100,000 have ten minutes, 10,000 one. When every feed was
         read, CPU, memory, disk and the lag of the schedule are sampled: how much later than its interval a feed is
         asked for again, as the publisher sees it. At the end the gateway is started again on what it stored.
items    Feeds of the same window whose ledgers have so many items, made by polling documents of which half is new. In
         each round each feed is polled with one new item on top and one less below, and again unchanged. The CPU of
         these polls is compared, the calls that ask for them included.
readers  wrk keeps so many connections busy with the reader view, and nginx serves the same bytes beside it.

100,000 feeds are the most there may be, and 150,000 items.
"""

import argparse
import contextlib
import itertools
import pathlib
import random
import sys
import tempfile
import time

import measure
import publisher
import serving
import stage

# How long what was begun is waited for before CPU is read, and after the first polls at least, in seconds.
SETTLING, INTAKE_SETTLING = 0.5, 5
# Of a ledger below so many items there are several feeds, each polled once a round: one would grow too much.
SHORT, COPIES = 1000, 10
# The most items of a ledger that the configuration allows.
ITEMS = "[publish]\nitems = 150_000\n"
# How long feeds may take to be read first, in seconds.
INTAKE = 3600


def part(ordered, share):
    """The value below which a share of ordered values is; 0 where there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Watch:
    """Looks at a gateway and its publisher again and again."""

    def __init__(self, gateway, source, folder, interval):
        self.gateway, self.source, self.data, self.interval = gateway, source, folder / "data", interval
        self.begun = time.monotonic()
        self.before = self.totals()
        source.intervals()

    def totals(self):
        counted = self.source.counted()
        return {"at": time.monotonic() - self.begun, "cpu": measure.cpu(self.gateway.pid),
                "polls": counted["requests"], "changed": counted["changed"],
                "written": measure.written(self.gateway.pid)}

    def sample(self):
        """What was used since the last sample, and what is used now."""
        now, before = self.totals(), self.before
        self.before, used = now, {name: now[name] - before[name] for name in now}
        lags = [seconds - self.interval for seconds in self.source.intervals()]
        return {**used, "seconds": used["at"], "at": round(now["at"], 1), "memory": stage.memory(self.gateway.pid)[0],
                "disk": stage.disk(self.data), "lag": [round(part(lags, share), 3) for share in (0.5, 0.99, 1.0)]}


def read_first(source, number):
    """Waits until the publisher was asked for so many feeds."""
    if not stage.until(lambda: source.counted()["feeds"] >= number, INTAKE, 0.2):
        raise RuntimeError(f"of {number} feeds {source.counted()['feeds']} were read in {INTAKE} s")


def spent(sample):
    """What a sample says of a poll."""
    polls = max(1, sample["polls"])
    return (f"{polls / sample['seconds']:7.1f} polls/s {sample['changed'] / polls * 100:5.1f} % changed"
            f" {sample['cpu'] / polls * 1e6:7.0f} µs {sample['written'] / polls / 1000:7.1f} KB written a poll"
            f" {sample['memory'] / 1e6:7.0f} MB {sample['disk'] / 1e6:7.0f} MB on disk")


def watched(given, number, folder):
    """One gateway of so many feeds, from its first start to its second."""
    interval = max(1, round(number / given.polls))
    source = publisher.Publisher(publisher.large() if given.large else publisher.small(), given.share)
    configuration = measure.polling(f"{interval}s", {f"f{n}": source.url(n) for n in range(number)})

    def started():
        begun = time.monotonic()
        gateway = measure.Gateway(given.bin, folder, configuration)
        return gateway, round(time.monotonic() - begun, 2)

    gateway, start = started()
    try:
        read_first(source, number)
        row = {"feeds": number, "interval": interval, "start": start, "intake_cpu": measure.cpu(gateway.pid) / number * 1e6}
        # Feeds that were read late are polled again in a hurry.
        time.sleep(max(INTAKE_SETTLING, interval))
        watch, samples = Watch(gateway, source, folder, interval), []
        while not samples or samples[-1]["at"] < given.seconds:
            time.sleep(min(given.sample, given.seconds))
            samples.append(watch.sample())
            print(f"{number:7} feeds {samples[-1]['at']:7.0f} s {spent(samples[-1])}"
                  "  lag {:6.2f} {:6.2f} {:6.2f} s".format(*samples[-1]["lag"]), flush=True)
        gateway.end()
        gateway, row["restart"] = started()
        row["restart_cpu"] = measure.cpu(gateway.pid)
    finally:
        gateway.end()
        source.end()
    polls, changed, seconds, cpu = (
        sum(sample[name] for sample in samples) for name in ("polls", "changed", "seconds", "cpu")
    )
    return row | {"polls": polls, "changed": changed, "a_second": polls / seconds, "cpu": cpu / polls * 1e6,
                  "cores": cpu / seconds, "memory": samples[-1]["memory"], "disk": samples[-1]["disk"],
                  "samples": samples}


def feeds(given):
    rows = []
    for number in given.sizes:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            rows.append(watched(given, number, pathlib.Path(folder)))
        print({name: value for name, value in rows[-1].items() if name != "samples"}, flush=True)
    for less, more in itertools.pairwise(rows):
        each = more["feeds"] - less["feeds"]
        print(f"from {less['feeds']} to {more['feeds']} feeds: {(more['memory'] - less['memory']) / each:.0f} bytes of"
              f" memory and {(more['disk'] - less['disk']) / each:.0f} on disk a feed")
    return {"rows": rows, "share": given.share}


def lengthen(connection, source, gateway, folder, names, size, window):
    """Makes the ledgers of some feeds as long as they are to be: CPU, memory and disk for each item."""
    def used():
        return measure.cpu(gateway.pid) * 1e6, stage.memory(gateway.pid)[0], stage.disk(pathlib.Path(folder) / "data")

    before = used()
    for name in names:
        connection.poll(name)
        missing = size - window
        while missing > 0:
            new = min(missing, max(1, window // 2))
            source.advance([name], new)
            report = connection.poll(name)
            if report["created"] != new:
                raise RuntimeError(f"{name}: {new} new items were taken for {report}")
            missing -= new
    return [(now - then) / size / len(names) for now, then in zip(used(), before, strict=True)]


def polled(connection, gateway, source, names, found):
    """µs of CPU for a poll of each of the feeds, which is to find what is said."""
    begun = measure.cpu(gateway.pid)
    for name in names:
        if found == "changed":
            source.advance([name])
        if (report := connection.poll(name))["outcome"] != found:
            raise RuntimeError(f"{name} is not {found}: {report}")
    time.sleep(SETTLING)
    return (measure.cpu(gateway.pid) - begun) / len(names) * 1e6


def items(given):
    window = min(32, *given.sizes)
    ledgers = {
        size: [f"f{COPIES * place + copy}" for copy in range(COPIES if size < SHORT else 1)]
        for place, size in enumerate(given.sizes)
    }
    runs, built = {}, {}
    with contextlib.ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(dir=given.folder))
        source = ends.enter_context(publisher.Publisher(publisher.Documents(window, 225, 40)))
        urls = {name: source.url(int(name[1:])) for names in ledgers.values() for name in names}
        configuration = ITEMS + measure.polling("24h", urls)
        gateway = ends.enter_context(measure.Gateway(given.bin, folder, configuration))
        connection = ends.enter_context(contextlib.closing(measure.Connection(gateway.base)))
        for size, names in ledgers.items():
            built[size] = lengthen(connection, source, gateway, folder, names, size, window)
        for turn in range(given.rounds + 1):
            for size in random.Random(turn).sample(given.sizes, len(ledgers)):
                names = ledgers[size] * (COPIES // len(ledgers[size]))
                for found in ("changed", "not_modified"):
                    taken = polled(connection, gateway, source, names, found)
                    # The first round warms up.
                    if turn > 0:
                        runs.setdefault((size, found), []).append(taken)
    rows, shown, shortest = [], {}, min(given.sizes)
    for size in given.sizes:
        row = {"items": size}
        for found in ("changed", "not_modified"):
            row[found] = measure.spread(runs[size, found])
            row[f"{found}_ratio"] = measure.ratio(runs[size, found], runs[shortest, found])
        rows.append(row)
        cost = dict(zip(("µs an item", "memory an item", "disk an item"), built[size], strict=True))
        shown[str(size)] = {name: value for name, value in row.items() if name != "items"} | cost
    measure.show("µs of CPU a poll by the items in the ledger, what that is to the shortest in the same round, and what an item\n"
                 "took to come there, in µs and bytes", shown)
    return {"rows": rows, "window": window}


def readers(given):
    given.seconds, given.instructions = given.wrk, False
    return {"rows": serving.by_readers(given, given.sizes)}


def main():
    modes = {"feeds": feeds, "items": items, "readers": readers}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("mode", choices=modes)
    parser.add_argument("sizes", type=lambda text: [int(size) for size in text.split(",")])
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--folder", help="where gateways store what they have; the system's folder for that")
    parser.add_argument("--json", help="a file for plot.py")
    parser.add_argument("--rounds", type=int, default=7, help="of items and readers")
    parser.add_argument("--wrk", type=int, default=1, help="seconds of a run with readers")
    parser.add_argument("--seconds", type=int, default=60, help="that feeds are sampled")
    parser.add_argument("--sample", type=float, default=5, help="seconds between two samples")
    parser.add_argument("--polls", type=float, default=1000 / 6, help="a second")
    parser.add_argument("--share", type=float, default=0.03, help="of polls that find a change")
    parser.add_argument("--large", action="store_true", help="documents of 50 KB instead of 16 KB")
    given = parser.parse_args()
    measure.report(given.json, kind=given.mode, **modes[given.mode](given))


if __name__ == "__main__":
    sys.exit(main())
