"""Clients of a gateway that mean well or ill, each from a loopback address of its own."""

import asyncio
import contextlib
import time

# How long one request of a good client may take before it counts as failed, in seconds.
REQUEST_WAIT = 30
# The bytes that are read at once.
PIECE = 1 << 16


class Place:
    """Where a gateway, or a proxy in front of it, is reached."""

    def __init__(self, base):
        host, _, port = base.removeprefix("http://").partition(":")
        self.host, self.port = host, int(port)

    async def connect(self, source):
        return await asyncio.open_connection(self.host, self.port, local_addr=(source, 0))

    def request(self, path, method="GET", headers=""):
        return (
            f"{method} {path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\n"
            f"connection: close\r\n{headers}\r\n"
        ).encode()

    async def get(self, source, path, headers=""):
        """Status and length of one answer over a connection of its own."""
        reader, writer = await self.connect(source)
        try:
            writer.write(self.request(path, headers=headers))
            await writer.drain()
            line = await reader.readline()
            length = 0
            while piece := await reader.read(PIECE):
                length += len(piece)
            return int(line.split()[1]) if line else 0, length
        finally:
            writer.close()


class GoodClient:
    """Asks again and again for what `path` answers, and notes how long each answer took."""

    def __init__(self, place, source, path, pause=0.05):
        self.place, self.source, self.path, self.pause = place, source, path, pause
        self.times, self.faults = [], []

    async def run(self, seconds, ended=None):
        """Until the seconds are over, or `ended` is set (a `threading.Event`)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (ended and ended.is_set()):
            began = time.monotonic()
            try:
                path = self.path()
                async with asyncio.timeout(REQUEST_WAIT):
                    status, _ = await self.place.get(self.source, path)
                if status != 200:
                    self.faults.append(f"{path}: {status}")
            except (OSError, TimeoutError) as error:
                self.faults.append(f"{path}: {type(error).__name__}")
            self.times.append(time.monotonic() - began)
            await asyncio.sleep(self.pause)

    def p99(self):
        return sorted(self.times)[int(len(self.times) * 0.99)] if self.times else float("inf")


async def idle_connections(place, source, count=1100):
    """Opens connections and says nothing; opens what was closed again."""
    held = []
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [writer.close() for _, writer in held])
        while True:
            held = [pair for pair in held if not pair[0].at_eof()]
            for _ in range(count - len(held)):
                with contextlib.suppress(OSError):
                    held.append(await place.connect(source))
            await asyncio.sleep(0.5)


async def slow_heads(place, source, count=600):
    """Sends the head of a request a byte a second."""

    async def one():
        while True:
            with contextlib.suppress(OSError):
                _, writer = await place.connect(source)
                with contextlib.closing(writer):
                    for byte in place.request("/feeds/small") * 20:
                        writer.write(bytes([byte]))
                        await writer.drain()
                        await asyncio.sleep(1)
            await asyncio.sleep(1)

    await asyncio.gather(*(one() for _ in range(count)))


def repeated(paths, at_once, headers=""):
    """A client that asks for these addresses, so many at once, without a pause."""

    async def attack(place, source):
        async def one(number):
            while True:
                with contextlib.suppress(OSError, ValueError, IndexError):
                    await place.get(source, paths[number % len(paths)], headers)
                number += at_once
                await asyncio.sleep(0.01)

        await asyncio.gather(*(one(number) for number in range(at_once)))

    return attack


async def large_bodies(place, source, count=20):
    """Posts ten megabytes where a form of some hundred bytes is meant."""
    length = 10 << 20

    async def one():
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await place.connect(source)
                with contextlib.closing(writer):
                    kind = "content-type: application/x-www-form-urlencoded\r\n"
                    writer.write(place.request("/websub", "POST", f"{kind}content-length: {length}\r\n"))
                    for _ in range(length // PIECE):
                        writer.write(b"x" * PIECE)
                        await writer.drain()
                    await reader.read(PIECE)
            await asyncio.sleep(0.05)

    await asyncio.gather(*(one() for _ in range(count)))
