"""Bodies are handed on as they come, in both directions and within bounded memory, and every wait for an origin
ends."""

import collections
import concurrent.futures
import json
import pathlib
import re
import socket
import threading
import time

import origin_stage as lab
import stage

# The large bodies, and by how much memory may grow meanwhile, in bytes.
LARGE, GROWTH = 20_000_000, 8_000_000
# How long a piece may be on its way, and how long a wait for an origin that says nothing may last, in seconds.
ON_ITS_WAY, SILENCE = 5, 90

# Clients that ask for one address at the same time; slow requests side by side, and how long each takes, in seconds.
TOGETHER, SLOW, SLOWNESS = 10, 30, 3


def resident(process):
    """Resident memory of a process, in bytes."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


class Peak:
    """The most memory that a process has while the block lasts, and what it had before."""

    def __init__(self, process):
        self.process, self.over = process, threading.Event()

    def __enter__(self):
        self.before = self.most = resident(self.process)
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        while not self.over.wait(0.005):
            self.most = max(self.most, resident(self.process))

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    @property
    def growth(self):
        return self.most - self.before


def answer_as_it_comes(gate, site, _):
    """The first bytes of an answer arrive before the last are sent, however it is framed."""
    for name, framing in [
        ("chunked", "Transfer-Encoding: chunked"),
        ("by length", "Content-Length: 20"),
        ("until it is closed", "X: y"),
        ("an event stream", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked"),
    ]:
        chunked, goes_on = "chunked" in framing, threading.Event()

        def send(wire, _, framing=framing, chunked=chunked, goes_on=goes_on):
            first, last = (
                (b"a\r\n0123456789\r\n", b"a\r\nabcdefghij\r\n0\r\n\r\n") if chunked else (b"0123456789", b"abcdefghij")
            )
            wire.connection.sendall(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode() + first)
            if goes_on.wait(ON_ITS_WAY):
                wire.connection.sendall(last)
            return False

        site.answers["/slow"] = send
        with lab.connect(gate.base, ON_ITS_WAY) as connection:
            connection.sendall(lab.request("/slow", lab.HOST))
            got = b""
            try:
                while b"0123456789" not in got and (piece := connection.recv(lab.PIECE)):
                    got += piece
                early = b"0123456789" in got
                goes_on.set()
                while piece := connection.recv(lab.PIECE):
                    got += piece
            except TimeoutError:
                early = False
            if not early or b"abcdefghij" not in got:
                yield f"an answer, {name}, is not handed on as it comes: {got[-200:]}"


def request_as_it_comes(gate, site, _):
    """The first bytes of a request's body arrive before the last are sent."""
    for name, framing, first, last in [
        ("by length", "Content-Length: 10", b"01234", b"56789"),
        ("chunked", "Transfer-Encoding: chunked", b"5\r\n01234\r\n", b"5\r\n56789\r\n0\r\n\r\n"),
    ]:
        arrived, whole = threading.Event(), []

        def take(wire, message, chunked=name == "chunked", arrived=arrived, whole=whole):
            while b"01234" not in wire.ahead and wire.more():
                pass
            arrived.set()
            whole.append(wire.read_body(message))
            wire.connection.sendall(lab.reply(b"taken"))
            return False

        site.answers["/upload"] = take
        with lab.connect(gate.base) as connection:
            head = f"POST /upload HTTP/1.1\r\nHost: {lab.HOST}\r\nConnection: close\r\n{framing}\r\n\r\n".encode()
            connection.sendall(head + first)
            early = arrived.wait(ON_ITS_WAY)
            connection.sendall(last)
            answer = lab.Wire(connection).answer()
        if not early or not answer or answer.body != b"taken" or whole[0].body != b"0123456789":
            yield f"a body, {name}, is not handed on as it comes: early {early}, {answer}, {whole}"
        elif not (
            whole[0].one("content-length") == "10"
            if name == "by length"
            else "chunked" in (whole[0].one("transfer-encoding") or "")
        ):
            yield f"a body, {name}, arrives otherwise: {whole[0].headers}"


def answer_before_the_body(gate, site, _):
    """An origin that answers and closes while the body is still on its way: its answer reaches the client."""

    def refuse(wire, _):
        wire.connection.sendall(lab.reply(b"too much", "413 Content Too Large", ["Connection: close"]))
        wire.connection.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
        return False

    site.answers["/upload"] = refuse
    with lab.connect(gate.base) as connection:
        connection.sendall(f"POST /upload HTTP/1.1\r\nHost: {lab.HOST}\r\nContent-Length: 1000\r\n\r\nwords".encode())
        try:
            answer = lab.Wire(connection).answer()
        except OSError as error:
            answer = error
    if not isinstance(answer, lab.Message) or (answer.status, answer.body) != (413, b"too much"):
        yield f"an answer before the whole body is lost: {answer}"


def large_bodies(gate, site, _):
    """Twenty megabytes in each direction past an origin and a client that are slow."""

    def take(wire, message):
        left = int(message.one("content-length")) - len(wire.ahead)
        time.sleep(1)
        while left > 0 and (piece := wire.connection.recv(lab.PIECE)):
            left -= len(piece)
        wire.connection.sendall(lab.reply(str(left).encode()))
        return False

    site.answers["/upload"] = take
    # What is made once is made before memory is looked at.
    lab.ask(gate.base, "/upload", method="POST", body=b"x")
    with Peak(gate.process) as peak:
        answer = lab.ask(gate.base, "/upload", method="POST", body=b"x" * LARGE, wait=60)
    print(f"a body of {LARGE >> 20} MB to the origin: {answer.status}, memory grew by {peak.growth >> 10} KB")
    if answer.body != b"0":
        yield f"a large body does not arrive: {answer.status} {answer.body[:200]}"
    if peak.growth > GROWTH:
        yield f"memory grew by {peak.growth} for a body of {LARGE} to the origin"

    def give(wire, message):
        wire.connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: %d\r\n\r\n" % LARGE
        )
        for _ in range(LARGE // 100_000):
            wire.connection.sendall(b"y" * 100_000)
        return True

    site.answers["/download"] = give
    with Peak(gate.process) as peak, lab.connect(gate.base) as connection:
        connection.sendall(lab.request("/download", lab.HOST))
        time.sleep(1)
        answer = lab.Wire(connection).answer()
    print(f"a body of {LARGE >> 20} MB to the client: {answer.status}, memory grew by {peak.growth >> 10} KB")
    if answer.body != b"y" * LARGE:
        yield f"a large answer does not arrive: {answer.status} {len(answer.body)}"
    if peak.growth > GROWTH:
        yield f"memory grew by {peak.growth} for a body of {LARGE} to the client"


def expects_continue(gate, site, _):
    """A client that waits for 100 gets it, and an origin that refuses the body is heard."""
    lines = f"Host: {lab.HOST}\r\nConnection: close\r\nContent-Length: 5\r\nExpect: 100-continue"
    head = f"POST /expect HTTP/1.1\r\n{lines}\r\n\r\n"
    site.answers["/expect"] = lab.reply(b"taken")
    with lab.connect(gate.base, ON_ITS_WAY) as connection:
        connection.sendall(head.encode())
        wire = lab.Wire(connection)
        try:
            first = wire.head()
            connection.sendall(b"words")
            answer = wire.answer()
        except TimeoutError:
            first = answer = None
    if not first or first.status != 100 or not answer or answer.body != b"taken":
        yield f"Expect: 100-continue is answered {first}, {answer}"

    def refuse(wire, _):
        wire.connection.sendall(lab.reply(b"no", "417 Expectation Failed", ["Connection: close"]))
        return False

    site.answers["/expect"] = refuse
    with lab.connect(gate.base, ON_ITS_WAY) as connection:
        connection.sendall(head.encode())
        try:
            answer = lab.Wire(connection).answer()
        except OSError as error:
            answer = error
    if not isinstance(answer, lab.Message) or answer.status != 417:
        yield f"an origin that refuses an expected body is answered {answer}"


def silent_origin(gate, site, _):
    """An origin that takes the request and says nothing: 504 in the end."""
    over = threading.Event()
    site.answers["/silent"] = lambda *_: over.wait(SILENCE) and False
    began = time.monotonic()
    answer = lab.ask(gate.base, "/silent", wait=SILENCE)
    taken = time.monotonic() - began
    over.set()
    print(f"an origin that says nothing: {answer.status} after {taken:.1f} s")
    yield from is_problem("an origin that says nothing", answer, 504)


def unreachable(gate, site, given, folder):
    """An origin that nobody is at: 502 at once."""
    port = stage.free_port()
    other = lab.gateway(given.bin, folder / "refused", lab.origin(f"http://127.0.0.1:{port}/"))
    try:
        for method in ("GET", "POST"):
            began = time.monotonic()
            answer = lab.ask(other.base, "/x", method=method, body=b"x" if method == "POST" else None)
            print(f"an origin that nobody is at, {method}: {answer.status} after {time.monotonic() - began:.2f} s")
            yield from is_problem("an origin that nobody is at", answer, 502)
    finally:
        other.end()


def is_problem(name, answer, status):
    """Whether an answer is a problem document of this status."""
    if answer.status != status:
        yield f"{name} is answered {answer.status} {answer.body[:200]}"
        return
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = {}
    if answer.one("content-type") != "application/problem+json" or not found.get("title"):
        yield f"{name}: no problem document: {answer.one('content-type')} {answer.body[:200]}"


def client_that_leaves(gate, site, _):
    """A client that goes away in the middle: the origin is not read on to the end."""
    ended = threading.Event()

    def endless(wire, _):
        wire.connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.connection.settimeout(ON_ITS_WAY)
        try:
            for _ in range(20_000):
                wire.connection.sendall(b"2000\r\n" + b"z" * 0x2000 + b"\r\n")
        except OSError:
            ended.set()
        return False

    site.answers["/endless"] = endless
    with lab.connect(gate.base) as connection:
        connection.sendall(lab.request("/endless", lab.HOST))
        connection.recv(lab.PIECE)
    if not ended.wait(ON_ITS_WAY):
        yield "the origin is read on after the client has left"


def side_by_side(gate, site, _):
    """Clients that ask for addresses that nobody has asked for yet do not wait for each other."""
    for status in ("200 OK", "404 Not Found", "500 Internal Server Error"):
        path = f"/together-{status[:3]}"

        def answer(wire, _, status=status):
            time.sleep(0.5)
            wire.connection.sendall(lab.reply(b"words", status, ["Content-Type: text/html"]))
            return True

        site.answers[path] = answer
        with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
            got = list(pool.map(lambda _, path=path: lab.ask(gate.base, path), range(TOGETHER)))
        found = collections.Counter((each.status, each.body) for each in got)
        if list(found) != [(int(status[:3]), b"words")]:
            yield f"{TOGETHER} requests at the same time for a page that is {status} are answered {found}"
    for n in range(SLOW):
        site.answers[f"/slow-{n}"] = lambda wire, _: time.sleep(SLOWNESS) or not wire.connection.sendall(
            lab.reply(b"slow")
        )
    site.answers["/quick"] = lab.reply(b"quick")
    with concurrent.futures.ThreadPoolExecutor(SLOW) as pool:
        slow = [pool.submit(lab.ask, gate.base, f"/slow-{n}") for n in range(SLOW)]
        time.sleep(0.5)
        began = time.monotonic()
        quick = lab.ask(gate.base, "/quick")
        taken = time.monotonic() - began
        got = collections.Counter(each.result().status for each in slow)
        whole = time.monotonic() - began
    print(f"beside {SLOW} requests that take {SLOWNESS} s, all over after {whole:.1f} s, another takes {taken:.2f} s")
    if quick.body != b"quick" or taken > 1:
        yield f"beside {SLOW} slow requests another one is answered {quick.status} after {taken:.2f} s"
    if got != {200: SLOW} or whole > 2 * SLOWNESS:
        yield f"{SLOW} slow requests are answered {dict(got)} after {whole:.1f} s"


def closing_origin(gate, site, _):
    """An origin that closes each connection behind its answer without a word: no GET is lost by it. A POST may be that
    was sent meanwhile, since nobody knows whether it was heard; nginx loses some too."""

    def close(wire, message):
        wire.read_body(message)
        wire.connection.sendall(lab.reply(b"words"))
        return False

    site.answers["/closing"] = close
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        methods = ["GET", "POST", "GET"] * 100
        body = {"POST": b"words"}
        asked = [pool.submit(lab.ask, gate.base, "/closing", method=each, body=body.get(each)) for each in methods]
        found = collections.Counter((method, each.result().status) for method, each in zip(methods, asked))
    print(f"an origin that closes each connection: {dict(found)}")
    if {status for method, status in found if method == "GET"} != {200} or found["POST", 200] < 80:
        yield f"an origin that closes each connection makes {dict(found)}"


def run(given, folder):
    site, running = lab.Origin(), []
    try:
        gate = lab.gateway(given.bin, folder / "gateway", lab.origin(f"{site.base}/"))
        running.append(gate)
        # It takes long: beside the others.
        silent = []
        waiting = threading.Thread(target=lambda: silent.extend(silent_origin(gate, site, given)))
        waiting.start()
        for part in (
            answer_as_it_comes,
            request_as_it_comes,
            answer_before_the_body,
            large_bodies,
            expects_continue,
            client_that_leaves,
            side_by_side,
            closing_origin,
        ):
            yield from part(gate, site, given)
        yield from unreachable(gate, site, given, folder)
        waiting.join()
        yield from silent
    finally:
        for each in running:
            each.end()
        site.end()
