#!/usr/bin/env python3
"""What polls cost: a gateway against a publisher on many loopback addresses.

The publisher is a process of its own, pinned to the last processor; the gateway is pinned to the first.
Each feed is at a loopback address of its own (or shares one, --hosts), so that the one request at a time
that a host is asked slows no poll. Per poll are measured the processor time of the gateway (user and
system), what it wrote to disk (write_bytes) and in all (wchar); per feed its memory and its disk, as the
growth from N to 2N feeds.

    benches/compare/polling.py --binary target/release/tidegate
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

import measure

WORDS = """time year people way day man thing woman life child world school state family student group
country problem hand part place case week company system program question work government number night
point home water room mother area money story fact month lot right study book eye job word business issue
side kind head house service friend father power hour game line end member law car city community name
president team minute idea kid body information back parent face others level office door health person
art war history party result change morning reason research girl guy moment air teacher force education
""".split()


class Documents:
    """Made-up Atom documents: the same for a feed and a version, whoever asks."""

    def __init__(self, entries, words, vocabulary):
        self.entries, self.words, self.vocabulary = entries, words, WORDS[:vocabulary]
        self.made = {}

    def entry(self, feed, number):
        dice = random.Random(f"{feed} {number}")
        text = " ".join(dice.choice(self.vocabulary) for _ in range(self.words))
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_790_000_000 + number * 3600))
        return (
            f"<entry><id>urn:feed:{feed}:{number}</id><title>Post {number} of {feed}</title>"
            f'<link href="http://e.example/{feed}/{number}"/><updated>{stamp}</updated>'
            f'<content type="html">&lt;p&gt;{text}&lt;/p&gt;</content></entry>\n'
        )

    def answer(self, feed, version):
        """Document, packed, and its tag. Each version has one entry more on top and one less below."""
        found = self.made.get((feed, version))
        if found is None:
            newest = version + self.entries
            body = "".join(self.entry(feed, n) for n in range(newest, newest - self.entries, -1))
            text = (
                '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
                f"<id>urn:feed:{feed}</id><title>Feed {feed}</title>"
                f"<updated>2026-11-20T16:20:05Z</updated>\n{body}</feed>\n"
            ).encode()
            packed = gzip.compress(text, 6, mtime=0)
            tag = '"' + hashlib.sha256(packed).hexdigest()[:16] + '"'
            found = (packed, tag, len(text))
            self.made[(feed, version)] = found
            self.made.pop((feed, version - 1), None)
        return found


def publish(port, mode, documents, share):
    """Serves until it is killed. `mode`: "304", "same" or "changing"."""
    import asyncio

    counted = {"requests": 0, "connections": 0, "changed": 0}
    versions = {}
    dice = random.Random(1)

    class Connection(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport, self.rest = transport, b""
            counted["connections"] += 1

        def data_received(self, data):
            self.rest += data
            while True:
                head, end, rest = self.rest.partition(b"\r\n\r\n")
                if not end:
                    return
                self.rest = rest
                self.respond(head)

        def respond(self, head):
            path = head.split(b" ", 2)[1].decode()
            if path == "/counted":
                body = json.dumps(counted).encode()
                self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                return
            feed = path[1:]
            counted["requests"] += 1
            if feed in versions and share and dice.random() < share:
                versions[feed] += 1
                counted["changed"] += 1
            version = versions.setdefault(feed, 0)
            packed, tag, _ = documents.answer(feed, version)
            closes = b"Connection: close\r\n" if b"onnection: close" in head else b""
            common = b"Date: Fri, 20 Nov 2026 16:20:05 GMT\r\nServer: bench\r\n" + closes
            if mode != "same" and f"if-none-match: {tag}".encode() in head:
                self.transport.write(
                    b"HTTP/1.1 304 Not Modified\r\n%bETag: %b\r\n\r\n" % (common, tag.encode())
                )
            else:
                validator = b"" if mode == "same" else b"ETag: %b\r\n" % tag.encode()
                self.transport.write(
                    b"HTTP/1.1 200 OK\r\n%b%bContent-Type: application/atom+xml\r\n"
                    b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
                    % (common, validator, len(packed), packed)
                )
            if closes:
                self.transport.close()

    async def serve():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Connection, "0.0.0.0", port, backlog=4096)
        await server.serve_forever()

    asyncio.run(serve())


def address(host):
    """The host-th loopback address: 127.1.0.1 and on."""
    return socket.inet_ntoa(struct.pack(">I", 0x7F010001 + host))


class Gateway:
    """A gateway of so many feeds, with a publisher of its own."""

    def __init__(self, options, feeds, mode, documents, share, interval, log="warn"):
        self.folder = tempfile.mkdtemp(prefix="tidegate-bench-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.port = port
        self.publisher = os.fork()
        if self.publisher == 0:
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
            publish(port, mode, documents, share)
            os._exit(0)
        lines = [
            '[server]\nlisten = "127.0.0.1:0"\n',
            f'[store]\nkind = "{options.store}"\npath = "{self.folder}/data"\n',
            f'[polling]\nmin_interval = "{interval}s"\nmax_interval = "{interval}s"\nallow_private = true\n',
        ]
        hosts = options.hosts or feeds
        for n in range(feeds):
            lines.append(f'[[feed]]\nname = "f{n}"\nurl = "http://{address(n % hosts)}:{port}/f{n}"\n')
        config = f"{self.folder}/tidegate.toml"
        with open(config, "w") as file:
            file.write("\n".join(lines))
        self.wait_for_publisher()
        first = str(min(os.sched_getaffinity(0)))
        pin = [] if options.unpinned else ["taskset", "-c", first]
        self.control = None
        if options.instructions:
            valgrind, self.control = measure.programs("valgrind", "callgrind_control")
            pin += [valgrind, "--tool=callgrind", "-q", "--instr-atstart=no"]
            pin += [f"--callgrind-out-file={options.profile or self.folder}/callgrind.%p"]
        self.errors = open(f"{self.folder}/log", "w")
        self.process = subprocess.Popen(
            pin + [options.binary, "serve", "-c", config],
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=dict(os.environ, RUST_LOG=log),
        )
        self.url = self.process.stdout.readline().decode().split()[-1]
        self.pid = self.process.pid

    def wait_for_publisher(self):
        for _ in range(100):
            try:
                self.counted()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("the publisher does not answer")

    def counted(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/counted", timeout=30) as answer:
            return json.load(answer)

    def usage(self):
        """Seconds of processor, bytes written to disk, bytes written in all, resident bytes."""
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        with open(f"/proc/{self.pid}/io") as file:
            io = dict(line.split(": ") for line in file.read().splitlines())
        with open(f"/proc/{self.pid}/status") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        resident = int(status["VmRSS"].split()[0]) * 1024
        return cpu, int(io["write_bytes"]), int(io["wchar"]), resident

    def disk(self):
        total = 0
        for folder, _, names in os.walk(f"{self.folder}/data"):
            for name in names:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
        return total

    def settle(self, feeds, limit):
        """Waits until every feed was asked for, and the gateway has nothing left to do but to poll."""
        end = time.time() + limit
        while self.counted()["requests"] < feeds:
            if time.time() > end:
                sys.exit(f"the first polls took longer than {limit} s: {self.counted()}")
            time.sleep(0.2)

    def count_instructions(self):
        """From here on, under callgrind; what was before is not counted."""
        if self.control:
            subprocess.run([self.control, "-i", "on", str(self.pid)], check=True, stdout=subprocess.DEVNULL)

    def executed(self):
        return measure.executed(self.control, self.pid) if self.control else 0

    def measure(self, seconds):
        """Per poll, over so long."""
        executed = self.executed()
        before, began = self.usage(), self.counted()
        time.sleep(seconds)
        after, ended = self.usage(), self.counted()
        polls = max(1, ended["requests"] - began["requests"])
        return {
            "polls": polls,
            "connections": (ended["connections"] - began["connections"]) / polls,
            "changed": (ended["changed"] - began["changed"]) / polls,
            "cpu": (after[0] - before[0]) / polls * 1e6,
            "disk": (after[1] - before[1]) / polls,
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
        os.kill(self.publisher, signal.SIGKILL)
        os.waitpid(self.publisher, 0)
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
            f"{name:<28} {run['polls']:>8} polls  {run['cpu']:>7.1f} µs  {run['disk']:>8.0f} B to disk"
            f"  {run['written']:>8.0f} B written  {run['connections']:>5.2f} connections"
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
    parser.add_argument("--binary", default="target/release/tidegate")
    parser.add_argument("--store", choices=["sled", "fjall"], default="sled", help="store.kind")
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
    large, small = Documents(32, 225, 40), Documents(10, 250, 3)
    for documents in (large, small):
        packed, _, whole = documents.answer("f0", 0)
        print(f"documents of {documents.entries} entries: {whole} bytes, {len(packed)} packed")
    if options.entries:
        large = Documents(options.entries, 225, 40)
    for row in options.rows:
        if row == "304":
            cost(options, "304, large documents", "304", large, 0)
        elif row == "same":
            cost(options, "same body, large documents", "same", large, 0)
        elif row == "small":
            cost(options, "304, small documents", "304", small, 0)
        elif row == "changing":
            cost(options, "304 and changes, small", "changing", small, options.share)
        elif row == "memory":
            growth(options, small)
        else:
            sys.exit(f"no such row: {row}")


if __name__ == "__main__":
    main()
