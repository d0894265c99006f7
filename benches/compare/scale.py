#!/usr/bin/env python3
"""How cost grows: with the feeds, with the items of a feed, and with the readers.

    benches/compare/scale.py feeds 100,1000,10000,100000 --seconds 1800    a running gateway over time
    benches/compare/scale.py items 100,10000,100000                        a poll by the length of the ledger
    benches/compare/scale.py readers 1,10,100,1000                         a request by how many ask at once

feeds    A gateway polls a publisher on as many loopback addresses. So that all of them cost the same number of polls
         a second (--polls), fewer feeds have a shorter interval: 100,000 have ten minutes, 10,000 one. 3 % of the
         polls find a change (--share). When every feed was read, CPU, memory, disk, what is written and the lag of
         the schedule are sampled: how much later than its interval a feed is asked for again, as the publisher sees
         it. At the end the gateway is stopped and started again on what it stored.
items    Feeds of the same window whose ledgers have so many items, made by polling documents of which half is new.
         In each round each feed is polled with one new item on top and one less below, and again unchanged.
         The CPU of these polls is compared, the calls that ask for them included.
readers  wrk keeps so many connections busy with the reader view, and nginx serves the same bytes beside it.

What must be raised in the configuration: `publish.items` for ledgers of more than 100,000 items (150,000 is the
most), and `server.trusted_proxies` for more than 128 connections of one client. 100,000 feeds in the file, and 1024
connections in all, are the most there may be.
"""

import argparse
import collections
import json
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

import measure
import publisher
import serving
import serving_stage as stage

# How long what was begun is waited for before CPU is read, in seconds.
SETTLING = 0.5
# The least time before the first sample, and before memory is read again after a restart, in seconds.
SHORTEST = 5
# Of a ledger below so many items there are several feeds, each polled once a round: one would grow too much.
SHORT, COPIES = 1000, 10
# The most items of a ledger that the configuration allows.
ITEMS = 150_000
# The growth over the second half of the samples that is called one, in percent.
GROWTH = 5
CONFIGURATION = """
[store]

[publish]
items = {items}

[polling]
allow_private = true
min_interval = "{interval}"
max_interval = "{interval}"
"""
FEED = """
[[feed]]
name = "{name}"
url = "{url}"
"""


def configuration(interval, urls, items=100_000):
    """A gateway's configuration with a feed for each of the addresses."""
    feeds = "".join(FEED.format(name=name, url=url) for name, url in urls.items())
    return CONFIGURATION.format(interval=interval, items=items) + feeds


def metrics(gateway):
    """The values of /metrics by name, summed over labels but the outcomes of polls."""
    values = collections.Counter()
    for line in gateway.ask("/metrics").decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name if name.startswith("tidegate_polls") else name.partition("{")[0]] += float(value)
    return values


def part(ordered, share):
    """The value below which a share of ordered values is; 0 where there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


class Watch:
    """Looks at a gateway and its publisher again and again."""

    def __init__(self, gateway, source, folder, interval):
        self.gateway, self.source, self.folder, self.interval = gateway, source, folder, interval
        self.begun = time.monotonic()
        self.before = self.totals()
        source.intervals()

    def totals(self):
        process = self.gateway.process.pid
        counted = self.source.counted()
        return {"at": time.monotonic() - self.begun, "cpu": measure.cpu(process), "polls": counted["requests"],
                "changed": counted["changed"], "written": measure.written(process),
                "publisher": measure.cpu(self.source.process.pid)}

    def sample(self):
        """What was used since the last sample, and what is used now."""
        now, before = self.totals(), self.before
        self.before, delta = now, {name: now[name] - before[name] for name in now}
        lags = [seconds - self.interval for seconds in self.source.intervals()]
        return {
            "at": round(now["at"], 1), "seconds": delta["at"], "polls": delta["polls"], "changed": delta["changed"],
            "cpu": delta["cpu"], "written": delta["written"], "publisher": round(delta["publisher"] / delta["at"], 3),
            "memory": measure.memory(self.gateway.process.pid), "disk": measure.disk(self.folder),
            "lag": [round(part(lags, share), 3) for share in (0.5, 0.99, 1.0)],
        }


class Reader(threading.Thread):
    """A client that reads a feed every second, another one each time."""

    def __init__(self, gateway, names, seed):
        super().__init__(daemon=True)
        self.client, self.dice, self.names = stage.Client(gateway), random.Random(seed), names
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(1):
            self.client.read(f"/feeds/{self.dice.choice(self.names)}")

    def end(self):
        self.ended.set()
        self.join()
        self.client.close()


def growth(values):
    """By how many percent figures grew over the second half: the median of the last quarter to the one before."""
    quarter = max(1, len(values) // 4)
    before = statistics.median(values[-2 * quarter:-quarter] or values)
    return (statistics.median(values[-quarter:]) / before - 1) * 100


def watched(arguments, number, folder):
    """One gateway of so many feeds, from its first start to its second."""
    interval = max(1, round(number / arguments.polls))
    source = publisher.Publisher(publisher.large() if arguments.large else publisher.small(), arguments.share)
    urls = {f"f{n}": source.url(n) for n in range(number)}
    begin = [] if arguments.unpinned else measure.pinned(measure.cores()[0], [])

    def started():
        begun = time.monotonic()
        gateway = stage.Gateway(begin, arguments.bin, folder, configuration(f"{interval}s", urls))
        return gateway, round(time.monotonic() - begun, 2)

    gateway, start = started()
    try:
        begun, empty = time.monotonic(), measure.memory(gateway.process.pid)
        if not source.wait(number, arguments.intake):
            raise RuntimeError(f"of {number} feeds {source.counted()['feeds']} were read in {arguments.intake} s")
        row = {
            "feeds": number, "interval": interval, "start": start, "intake": round(time.monotonic() - begun, 1),
            "intake_cpu": measure.cpu(gateway.process.pid) / number * 1e6, "empty": empty,
        }
        # Feeds that were read late are polled again in a hurry.
        time.sleep(max(SHORTEST, interval) if arguments.warm is None else arguments.warm)
        readers = [Reader(gateway, list(urls), seed) for seed in range(arguments.clients)]
        for reader in readers:
            reader.start()
        watch, samples = Watch(gateway, source, folder / "data", interval), []
        while not samples or samples[-1]["at"] < arguments.seconds:
            time.sleep(min(arguments.sample, arguments.seconds))
            samples.append(watch.sample())
            print(line(number, samples[-1]), flush=True)
        for reader in readers:
            reader.end()
        totals = metrics(gateway)
        begun = time.monotonic()
        gateway.end()
        row |= {"stop": round(time.monotonic() - begun, 2)}
        gateway, row["restart"] = started()
        row["restart_cpu"] = round(measure.cpu(gateway.process.pid), 2)
        time.sleep(SHORTEST)
        row["restart_memory"] = measure.memory(gateway.process.pid)
    finally:
        gateway.end()
        source.stop()
    polls, changed = (sum(sample[name] for sample in samples) for name in ("polls", "changed"))
    log = (folder / "gateway.log").read_text(errors="replace").splitlines()
    return row | {
        "polls": polls, "changed": changed,
        "failed": totals['tidegate_polls_total{outcome="failed"}'],
        "warnings": sum(" WARN " in entry or " ERROR " in entry for entry in log),
        "a_second": polls / sum(sample["seconds"] for sample in samples),
        "cpu": sum(sample["cpu"] for sample in samples) / polls * 1e6,
        "cores": sum(sample["cpu"] for sample in samples) / sum(sample["seconds"] for sample in samples),
        "written": sum(sample["written"] for sample in samples) / polls,
        "memory": samples[-1]["memory"], "disk": samples[-1]["disk"],
        "lag": [max(sample["lag"][place] for sample in samples) for place in range(3)],
        "growth": {
            "memory": growth([sample["memory"] for sample in samples]),
            "CPU of a poll": growth([sample["cpu"] / max(1, sample["polls"]) for sample in samples]),
        },
        "disk_change": (samples[-1]["disk"] - samples[0]["disk"]) / max(1, changed - samples[0]["changed"]),
        "samples": samples,
    }


def line(number, sample):
    """One sample to read."""
    polls = max(1, sample["polls"])
    middle, late, latest = sample["lag"]
    return (f"{number:7} feeds {sample['at']:7.0f} s {polls / sample['seconds']:7.1f} polls/s"
            f" {sample['cpu'] / polls * 1e6:7.0f} µs {sample['written'] / polls / 1000:7.1f} KB a poll"
            f" {sample['memory'] / 1e6:7.0f} MB {sample['disk'] / 1e6:7.0f} MB on disk"
            f"  lag {middle:6.2f} {late:6.2f} {latest:6.2f} s  publisher {sample['publisher']:.2f}")


def feeds(arguments):
    rows = []
    for number in arguments.sizes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            rows.append(watched(arguments, number, pathlib.Path(folder)))
        row = rows[-1]
        print(f"{number} feeds every {row['interval']} s: start {row['start']} s, all read after {row['intake']} s,"
              f" {row['intake_cpu']:.0f} µs of CPU each; then {row['a_second']:.1f} polls a second,"
              f" {row['changed'] / max(1, row['polls']) * 100:.1f} % changed, {row['failed']:.0f} failed,"
              f" {row['warnings']} warnings\n  {row['cpu']:.0f} µs of CPU a poll, {row['cores']:.3f} of a core,"
              f" {row['written'] / 1000:.2f} KB written a poll, {row['memory'] / 1e6:.0f} MB"
              f" ({(row['memory'] - row['empty']) / 1e6:.0f} MB since the start), {row['disk'] / 1e6:.0f} MB"
              f" on disk, lag at most {row['lag'][2]:.2f} s\n  stop {row['stop']} s, start again {row['restart']} s and"
              f" {row['restart_cpu']} s of CPU, then {row['restart_memory'] / 1e6:.0f} MB")
        for name, grown in row["growth"].items():
            print(f"  {name} {'GROWS' if grown > GROWTH else 'stays'}: {grown:+.1f} % over the second half")
        print(f"  disk: {row['disk_change'] / 1000:+.1f} KB for each document that changed", flush=True)
    for less, more in zip(rows, rows[1:]):
        each = more["feeds"] - less["feeds"]
        print(f"from {less['feeds']} to {more['feeds']} feeds: {(more['memory'] - less['memory']) / each:.0f} bytes of"
              f" memory and {(more['disk'] - less['disk']) / each:.0f} on disk a feed")
    return {"rows": rows, "share": arguments.share, "bytes": publisher.small().sizes()[0]}


def items(arguments):
    window = min(32, *arguments.sizes)
    source = publisher.Publisher(publisher.Documents(window, 225, 40))
    copies = {size: COPIES if size < SHORT else 1 for size in arguments.sizes}
    ledgers, number = {}, 0
    for size, count in copies.items():
        ledgers[size] = [f"f{n}" for n in range(number, number + count)]
        number += count
    urls = {f"f{n}": source.url(n) for n in range(number)}
    begin, runs, built = measure.pinned(measure.cores()[0], []), {}, {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = pathlib.Path(folder)
        gateway = stage.Gateway(begin, arguments.bin, folder, configuration("24h", urls, ITEMS))
        try:
            client = stage.Client(gateway)
            for size, names in ledgers.items():
                built[size] = build(client, source, gateway, folder, names, size, window)
            process = gateway.process.pid
            for turn in range(arguments.rounds + 1):
                for size in random.Random(turn).sample(arguments.sizes, len(ledgers)):
                    names = ledgers[size] * (COPIES // copies[size])
                    for found in ("changed", "not_modified"):
                        begun = measure.cpu(process)
                        for name in names:
                            if found == "changed":
                                source.advance([name])
                            if (report := client.poll(name))["outcome"] != found:
                                raise RuntimeError(f"{name} is not {found}: {report}")
                        time.sleep(SETTLING)
                        # The first round warms up.
                        if turn > 0:
                            taken = (measure.cpu(process) - begun) / len(names) * 1e6
                            runs.setdefault((size, found), []).append(taken)
            client.close()
        finally:
            gateway.end()
            source.stop()
    print("µs of CPU a poll by the items in the ledger, and what that is to the shortest in the same round")
    rows, shortest = [], min(arguments.sizes)
    for size in arguments.sizes:
        row = {"items": size, **built[size]}
        for found in ("changed", "not_modified"):
            row[found] = measure.spread(runs[size, found])
            pairs = zip(runs[size, found], runs[shortest, found], strict=True)
            row[f"{found}_ratio"] = measure.spread([a / b for a, b in pairs])
        rows.append(row)
        print(f"{size:7}" + "".join(
            "  {} {:7.0f} ±{:5.0f} {:6.2f} ±{:4.2f}".format(found, *row[found], *row[f"{found}_ratio"])
            for found in ("changed", "not_modified")
        ) + f"   made with {row['built_cpu']:.0f} µs of CPU an item, {row['built_memory']:.0f} B of memory,"
            f" {row['built_disk']:.0f} B on disk", flush=True)
    return {"rows": rows, "window": window}


def build(client, source, gateway, folder, names, size, window):
    """Makes the ledgers of some feeds as long as they are to be: CPU, memory and disk for each item."""
    process = gateway.process.pid
    cpu, memory, disk = measure.cpu(process), measure.memory(process), measure.disk(folder / "data")
    for name in names:
        client.poll(name)
        missing = size - window
        while missing > 0:
            new = min(missing, max(1, window // 2))
            source.advance([name], new)
            report = client.poll(name)
            if report["created"] != new:
                raise RuntimeError(f"{name}: {new} new items were taken for {report}")
            missing -= new
    each = size * len(names)
    return {"built_cpu": (measure.cpu(process) - cpu) / each * 1e6,
            "built_memory": (measure.memory(process) - memory) / each,
            "built_disk": (measure.disk(folder / "data") - disk) / each}


def readers(arguments):
    arguments.readers = ",".join(map(str, arguments.sizes))
    arguments.seconds, rows = arguments.wrk, []
    for row in serving.readers(arguments):
        print(json.dumps(row), flush=True)
        rows.append(row)
    return {"rows": rows}


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
    parser.add_argument("--warm", type=float, help="seconds before the first sample; one interval if it is not said")
    parser.add_argument("--intake", type=int, default=3600, help="seconds that the first polls may take")
    parser.add_argument("--polls", type=float, default=1000 / 6, help="a second")
    parser.add_argument("--share", type=float, default=0.03, help="of polls that find a change")
    parser.add_argument("--large", action="store_true", help="documents of 50 KB instead of 16 KB")
    parser.add_argument("--clients", type=int, default=0, help="that read a feed every second while feeds are sampled")
    parser.add_argument("--unpinned", action="store_true", help="the gateway on all processors")
    arguments = parser.parse_args()
    figures = modes[arguments.mode](arguments)
    if arguments.json:
        measure.report(arguments.json, kind=arguments.mode, **figures)


if __name__ == "__main__":
    sys.exit(main())
