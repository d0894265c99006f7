"""p99 of cached reads with and without polls beside them: a publisher on many loopback addresses, so that
politeness towards one host slows down none, and readers that ask at a steady pace."""

import asyncio
import contextlib
import multiprocessing
import pathlib
import random
import socket
import tempfile
import time

import measure
import serving_stage as stage

# Requests a second of the paced reader: far from what the gateway can do.
PACE = 500
# How many seconds pass before anything is measured, for each second of the interval: every feed is new
# at first.
SETTLING = 4
HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/atom+xml\r\netag: \"{tag}\"\r\ncontent-length: {length}\r\n\r\n"


def address(number):
    """A loopback address of its own for each feed."""
    return f"127.1.{number // 250}.{number % 250 + 1}"


class Publisher:
    """Feeds that change when they are asked for: a new entry above, one less below."""

    def __init__(self, feeds, changing, port):
        self.at = {address(number): [number, 1] for number in range(feeds)}
        self.changing, self.port, self.entries = changing, port, {}

    def document(self, host):
        number, first = state = self.at[host]
        if random.random() < self.changing:
            state[1] += 1
        return stage.feed(first, stage.ENTRIES, f"f{number}"), f"{number}-{first}"

    async def answer(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                host = writer.get_extra_info("sockname")[0]
                body, tag = self.document(host)
                if f'"{tag}"' in asked:
                    writer.write(b"HTTP/1.1 304 Not Modified\r\n\r\n")
                else:
                    writer.write(HEAD.format(tag=tag, length=len(body)).encode() + body)
        writer.close()

    async def run(self):
        servers = [await asyncio.start_server(self.answer, host, self.port) for host in self.at]
        await asyncio.gather(*(server.serve_forever() for server in servers))


def publish(feeds, changing, port):
    # What an entry says is made once.
    made, entry = {}, stage.entry
    stage.entry = lambda number, seed: made.setdefault((number, seed), entry(number, seed))
    asyncio.run(Publisher(feeds, changing, port).run())


def paced(base, path, seconds):
    """The delays of answers in milliseconds, each from when it was due to be asked for."""
    host, _, port = base.removeprefix("http://").partition(":")
    request, delays = measure.request(f"{host}:{port}", path, {}), []
    with socket.create_connection((host, int(port)), timeout=measure.WAIT) as connection:
        begun = time.perf_counter()
        for number in range(int(PACE * seconds)):
            due = begun + number / PACE
            time.sleep(max(0.0, due - time.perf_counter()))
            measure.ask(connection, request, 1)
            delays.append((time.perf_counter() - due) * 1000)
    return sorted(delays)


def configuration(feeds, port, interval):
    lines = ['[polling]\nallow_private = true\nhost_spacing = "1s"',
             f'min_interval = "{interval}s"\nmax_interval = "{interval}s"',
             f'[[feed]]\nname = "feed"\nurl = "http://{address(feeds)}:{port}/feed"',
             'min_interval = "24h"\nmax_interval = "24h"']
    lines += [f'[[feed]]\nname = "f{number}"\nurl = "http://{address(number)}:{port}/feed"'
              for number in range(feeds)]
    return "\n".join(lines) + "\n"


def show(arguments):
    wrk, = measure.programs("wrk")
    feeds = arguments.polls * arguments.interval
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    publisher = multiprocessing.Process(
        target=publish, args=(feeds + 1, arguments.changing, port), daemon=True
    )
    for polled in (False, True):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            if not publisher.is_alive():
                publisher.start()
                time.sleep(2)
            number = feeds if polled else 0
            gateway = stage.Gateway(
                [], arguments.bin, pathlib.Path(folder), configuration(number, port, arguments.interval)
            )
            stack.callback(gateway.end)
            gateway.poll("feed")
            time.sleep(SETTLING * arguments.interval if polled else 1)
            figures = measured(gateway, wrk, arguments)
        print(f"{'with' if polled else 'without':8} {figures}", flush=True)


def measured(gateway, wrk, arguments):
    """The delays of reads, and how many polls there were meanwhile."""
    seconds = arguments.seconds * arguments.rounds
    path = "/feeds/feed"
    before, begun = polls(gateway), time.monotonic()
    taken = measure.cpu(gateway.process.pid)
    delays = paced(gateway.base, path, seconds)
    paced_cpu = (measure.cpu(gateway.process.pid) - taken) / seconds
    run = measure.wrk(wrk, measure.cores()[1], gateway.process.pid, gateway.base + path, {},
                      arguments.connections, seconds)
    done = (polls(gateway) - before) / (time.monotonic() - begun)
    middle, last = (delays[int(len(delays) * part)] for part in (0.5, 0.99))
    return (f"{PACE} reads/s: median {middle:.2f} ms, p99 {last:.2f} ms, CPU {paced_cpu:.2f} cores; "
            f"as fast as they can: {run.rate:.0f}/s, p99 {run.p99:.2f} ms; {done:.0f} polls/s")


def polls(gateway):
    """How many polls there have been."""
    lines = gateway.ask("/metrics").decode().splitlines()
    counts = [line.rpartition(" ")[2] for line in lines if line.startswith("tidegate_polls_total")]
    return sum(int(float(count)) for count in counts)
