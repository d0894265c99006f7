#!/usr/bin/env python3
"""What polls cost: a gateway against a publisher on many loopback addresses.

The publisher is a process of its own, pinned to the last processor; the gateway is pinned to the first.
Each feed is at a loopback address of its own (or shares one, --hosts), so that the one request at a time
that a host is asked slows no poll. Per poll are measured the processor time of the gateway (user and
system), what it handed to the system to write, the requests themselves included (wchar), and the pages of files
that this made dirty (write_bytes); per feed its memory and its disk, as the growth from N to 2N feeds.

    benches/compare/polling.py --binary target/dist/tidegate
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import measure
import publisher


class Gateway:
    """A gateway of so many feeds, with a publisher of its own, and what its polls cost."""

    control = None

    def __init__(self, options, feeds, mode, documents, share, interval, log="warn"):
        self.folder = tempfile.mkdtemp(prefix="tidegate-bench-")
        self.publisher = publisher.Publisher(documents, share, mode != "same")
        lines = [
            '[server]\nlisten = "127.0.0.1:0"\n',
            f'[store]\npath = "{self.folder}/data"\n',
            f'[polling]\nmin_interval = "{interval}s"\nmax_interval = "{interval}s"\nallow_private = true\n',
        ]
        for n in range(feeds):
            lines.append(f'[[feed]]\nname = "f{n}"\nurl = "{self.publisher.url(n, options.hosts)}"\n')
        config = f"{self.folder}/tidegate.toml"
        with open(config, "w") as file:
            file.write("\n".join(lines))
        command = [options.binary, "serve", "-c", config]
        if options.instructions:
            valgrind, self.control = measure.programs("valgrind", "callgrind_control")
            kept = options.profile or self.folder
            tool = ["--tool=callgrind", "-q", "--instr-atstart=no", f"--callgrind-out-file={kept}/callgrind.%p"]
            command = [valgrind, *tool, *command]
        self.errors = open(f"{self.folder}/log", "w")
        self.process = subprocess.Popen(
            command if options.unpinned else measure.pinned(measure.cores()[0], command),
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=dict(os.environ, RUST_LOG=log),
        )
        self.url = self.process.stdout.readline().decode().split()[-1]
        self.pid = self.process.pid

    def disk(self):
        return measure.disk(f"{self.folder}/data")

    def usage(self):
        """Seconds of processor, bytes of pages made dirty and bytes written, resident bytes."""
        return measure.cpu(self.pid), measure.written(self.pid), measure.handed(self.pid), measure.memory(self.pid)

    def settle(self, feeds, limit):
        """Waits until every feed was asked for."""
        if not self.publisher.wait(feeds, limit):
            sys.exit(f"the first polls took longer than {limit} s: {self.publisher.counted()}")

    def count_instructions(self):
        """From here on, under callgrind; what was before is not counted."""
        if self.control:
            subprocess.run([self.control, "-i", "on", str(self.pid)], check=True, stdout=subprocess.DEVNULL)

    def executed(self):
        return measure.executed(self.control, self.pid) if self.control else 0

    def measure(self, seconds):
        """Per poll, over so long."""
        executed = self.executed()
        before, began = self.usage(), self.publisher.counted()
        time.sleep(seconds)
        after, ended = self.usage(), self.publisher.counted()
        polls = max(1, ended["requests"] - began["requests"])
        return {
            "polls": polls,
            "connections": (ended["connections"] - began["connections"]) / polls,
            "changed": (ended["changed"] - began["changed"]) / polls,
            "cpu": (after[0] - before[0]) / polls * 1e6,
            "dirty": (after[1] - before[1]) / polls,
            "written": (after[2] - before[2]) / polls,
            "load": (after[0] - before[0]) / seconds,
            "instructions": (self.executed() - executed) / polls,
        }

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.publisher.stop()
        shutil.rmtree(self.folder)


def cost(options, name, mode, documents, share):
    gateway = Gateway(options, options.feeds, mode, documents, share, options.interval)
    try:
        gateway.settle(options.feeds, 300)
        time.sleep(options.warm)
        gateway.count_instructions()
        runs = [gateway.measure(options.seconds) for _ in range(options.runs)]
    finally:
        gateway.stop()
    for run in runs:
        if options.instructions:
            print(f"{name:<28} {run['polls']:>8} polls  {run['instructions']:>9.0f} instructions", flush=True)
            continue
        print(
            f"{name:<28} {run['polls']:>8} polls  {run['cpu']:>7.1f} µs  {run['written']:>8.0f} B written"
            f"  {run['dirty']:>8.0f} B of pages  {run['connections']:>5.2f} connections"
            f"  {run['changed'] * 100:>5.1f} % changed  load {run['load']:.2f}",
            flush=True,
        )


def growth(options, documents):
    found = []
    for feeds in (options.feeds, 2 * options.feeds):
        gateway = Gateway(options, feeds, "304", documents, 0, options.memory_interval)
        try:
            began = gateway.usage()
            gateway.settle(feeds, 600)
            taken = gateway.usage()
            time.sleep(options.memory_wait)
            usage = gateway.usage()
            found.append((feeds, usage[3], gateway.disk(), taken[0] - began[0]))
        finally:
            gateway.stop()
        print(
            f"{feeds} feeds: {usage[3] / 1e6:.1f} MB resident, {found[-1][2] / feeds / 1024:.1f} KB disk a feed,"
            f" {found[-1][3] / feeds * 1e3:.2f} ms to take one in",
            flush=True,
        )
    (n, memory, disk, _), (m, more, larger, _) = found
    print(
        f"growth from {n} to {m} feeds: {(more - memory) / (m - n) / 1024:.2f} KB memory a feed,"
        f" {(larger - disk) / (m - n) / 1024:.2f} KB disk a feed"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", default="target/dist/tidegate")
    parser.add_argument("--feeds", type=int, default=2000)
    parser.add_argument("--hosts", type=int, default=0, help="so many addresses; one for each feed if 0")
    parser.add_argument("--interval", type=int, default=1, help="seconds between two polls of a feed")
    parser.add_argument("--seconds", type=float, default=10, help="length of a run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--warm", type=float, default=5)
    parser.add_argument("--memory-interval", type=int, default=60)
    parser.add_argument("--memory-wait", type=float, default=90)
    parser.add_argument("--instructions", action="store_true", help="count them, under callgrind: take some 200 feeds")
    parser.add_argument("--profile", help="a folder for what callgrind writes")
    parser.add_argument("--share", type=float, default=0.03, help="of polls that find a change")
    parser.add_argument("--unpinned", action="store_true")
    parser.add_argument("--entries", type=int, default=0, help="of a document, instead of the usual ones")
    parser.add_argument("rows", nargs="*", default=["304", "same", "changing", "memory"])
    options = parser.parse_args()
    large, small = publisher.large(), publisher.small()
    for documents in (large, small):
        whole, packed = documents.sizes()
        print(f"documents of {documents.entries} entries: {whole} bytes, {packed} packed")
    if options.entries:
        large = publisher.Documents(options.entries, 225, 40)
    for row in options.rows:
        if row == "304":
            cost(options, "304, large documents", "304", large, 0)
        elif row == "same":
            cost(options, "same body, large documents", "same", large, 0)
        elif row == "small":
            cost(options, "304, small documents", "304", small, 0)
        elif row == "changing":
            cost(options, "304 and changes, small", "changing", small, options.share)
        elif row == "changing-large":
            cost(options, "304 and changes, large", "changing", large, options.share)
        elif row == "memory":
            growth(options, small)
        else:
            sys.exit(f"no such row: {row}")


if __name__ == "__main__":
    main()
