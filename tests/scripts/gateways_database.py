"""Proxies between gateways and their database, a process of its own: each gateway has a port for each server.

They cut connections at a commit, so that its answer is lost, and they cut a gateway off: nothing goes through any
more, and no connection ends, as where a cable was pulled. Standard library only."""

import asyncio
import json
import pathlib
import queue
import random
import re
import struct
import subprocess
import sys
import threading
import time

# What a connection may send first, before its messages have a type: requests for encryption, and to cancel.
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
# Of each message so much is looked at.
LOOKED_AT = 160
# The message that ends a transaction.
COMMIT = b"Q" + struct.pack(">i", 11) + b"COMMIT\0"
# How long a server may take to note that a connection was cut, and the proxy to answer, in seconds.
CUT_TIME, ANSWER_TIME = 5, 10
# Ways to disturb a commit. "behind": the server gets it, its answer is lost; "ahead": the server does not get it.
BEHIND, AHEAD = "behind", "ahead"


class Commits:
    """Finds commits in what a connection sends: COMMIT of a write of entries, and statements that write outside a
    transaction. What is durable by then loses nothing with a commit: the closing of an epoch is none of these."""

    def __init__(self):
        self.is_begun, self.rest, self.skip = False, b"", 0
        self.writing, self.is_bound, self.in_transaction = set(), False, False
        # Statements that move the shard on, and whether the transaction has one.
        self.advancing, self.advances = set(), False

    def find(self, data):
        """The commits in the next bytes: where each ends there, and whether it ends a transaction."""
        if self.skip >= len(data):
            self.skip -= len(data)
            return
        at, before = self.skip, len(self.rest)
        text, self.skip, self.rest = self.rest + data, 0, b""
        while at < len(text):
            header = 1 if self.is_begun else 0
            if len(text) - at < header + 4:
                break
            size = header + int.from_bytes(text[at + header:at + header + 4], "big")
            if len(text) - at < min(size, LOOKED_AT):
                break
            found = self.note(text[at:at + min(size, LOOKED_AT)])
            at += size
            if found:
                yield at - before, found == "transaction"
        self.rest, self.skip = text[at:], max(0, at - len(text))

    def note(self, message):
        """Takes note of a message; says what it commits."""
        if not self.is_begun:
            self.is_begun = int.from_bytes(message[4:8], "big") not in (SSL_REQUEST, GSS_REQUEST)
            return None
        kind, rest = message[:1], message[5:]
        if kind == b"Q":
            said = rest.rstrip(b"\0").upper()
            was_in, self.in_transaction = self.in_transaction, said.startswith(b"BEGIN")
            advances, self.advances = self.advances, False
            return "transaction" if was_in and advances and said == b"COMMIT" else None
        if kind == b"P":
            name, text = (rest.split(b"\0", 2) + [b""])[:2]
            if text.startswith((b"UPDATE", b"INSERT", b"DELETE")):
                self.writing.add(name)
            if b"log_seq = log_seq + 1" in text:
                self.advancing.add(name)
        elif kind == b"B":
            name = rest.split(b"\0", 2)[1]
            self.is_bound = name in self.writing
            self.advances = self.advances or name in self.advancing
        elif kind == b"S":
            is_bound, self.is_bound = self.is_bound, False
            return "statement" if is_bound and not self.in_transaction else None
        return None


class Side(asyncio.Protocol):
    """One side of a connection."""

    def __init__(self, link, name):
        self.link, self.name = link, name

    def connection_made(self, transport):
        self.link.made(self.name, transport)

    def data_received(self, data):
        self.link.received(self.name, data)

    def connection_lost(self, _):
        self.link.lost(self.name)

    def pause_writing(self):
        self.link.is_full[self.name] = True
        self.link.let_read()

    def resume_writing(self):
        self.link.is_full[self.name] = False
        self.link.let_read()


class Link:
    """A connection of a gateway to its database."""

    def __init__(self, proxy, server):
        self.proxy, self.server = proxy, server
        self.sides, self.is_full = {}, {"gateway": False, "database": False}
        self.commits, self.held, self.is_cut, self.is_over = Commits(), b"", False, False

    def made(self, name, transport):
        self.sides[name] = transport
        if name == "gateway":
            self.proxy.links.add(self)
            self.proxy.tasks.add(task := asyncio.ensure_future(self.connect()))
            task.add_done_callback(self.proxy.tasks.discard)
        self.let_read()

    async def connect(self):
        await self.proxy.is_through.wait()
        try:
            await asyncio.get_running_loop().create_connection(lambda: Side(self, "database"), *self.server)
        except OSError:
            self.sides["gateway"].abort()
        if self.is_over and "database" in self.sides:
            self.sides["database"].close()

    def let_read(self):
        """Reads from each side what the other takes; nothing while the gateway is cut off."""
        for name, other in (("gateway", "database"), ("database", "gateway")):
            if name in self.sides and not self.is_over:
                reads = other in self.sides and not self.is_full[other] and self.proxy.is_through.is_set()
                side = self.sides[name]
                side.resume_reading() if reads else side.pause_reading()

    def received(self, name, data):
        if name == "database":
            if not self.is_cut:
                self.sides["gateway"].write(data)
            return
        if self.is_cut:
            return
        for end, is_transaction in list(self.commits.find(data)):
            start = max(0, end - len(COMMIT))
            match self.proxy.meets_commit(is_transaction):
                case "cut behind":
                    return self.cut(data[:end])
                case "cut ahead":
                    return self.cut(data[:start])
                case "off behind":
                    return self.hold(data[:end], data[end:])
                case "off ahead":
                    return self.hold(data[:start], data[start:])
        self.sides["database"].write(data)

    def cut(self, last):
        """Sends these bytes, and ends the connection without an answer to them."""
        self.is_cut = True
        self.sides["database"].write(last)
        # The server reads everything before it notes the end.
        self.sides["database"].write_eof()
        self.sides["gateway"].abort()
        asyncio.get_running_loop().call_later(CUT_TIME, self.sides["database"].abort)

    def hold(self, last, held):
        """Sends these bytes, and the others only once the gateway is no longer cut off."""
        self.sides["database"].write(last)
        self.held = held
        self.proxy.cut_off()

    def heal(self):
        if self.held and "database" in self.sides:
            self.sides["database"].write(self.held)
        self.held = b""
        self.let_read()

    def lost(self, name):
        if self.is_cut and name == "gateway":
            return
        self.is_over = True
        self.proxy.links.discard(self)
        for side in self.sides.values():
            side.close()


class Proxy:
    """The connections of a gateway to the servers of its database."""

    def __init__(self, number):
        self.number, self.links, self.tasks = number, set(), set()
        self.is_through, self.cuts, self.at_commit, self.next_way = asyncio.Event(), None, None, AHEAD
        self.counts = {"transaction": 0, "statement": 0, BEHIND: 0, AHEAD: 0}
        self.is_through.set()

    async def listen(self, server):
        listening = await asyncio.get_running_loop().create_server(
            lambda: Side(Link(self, server), "gateway"), "127.0.0.1", 0)
        return listening.sockets[0].getsockname()[1]

    def one_in(self, is_transaction):
        """How many commits one is cut of; of the writes, which are fewer, nearly twice as many."""
        return (self.cuts["one_in"] + is_transaction) // (1 + is_transaction)

    def meets_commit(self, is_transaction):
        """What happens at a commit."""
        self.counts["transaction" if is_transaction else "statement"] += 1
        if self.at_commit and is_transaction:
            way, self.at_commit = self.at_commit, None
            return f"off {way}"
        if self.cuts and time.monotonic() < self.cuts["until"] and random.randrange(self.one_in(is_transaction)) == 0:
            # Now the one and now the other.
            way = self.next_way if is_transaction else BEHIND
            if is_transaction:
                self.next_way = AHEAD if way == BEHIND else BEHIND
            self.counts[way] += 1
            return f"cut {way}"
        return None

    def cut_off(self):
        self.is_through.clear()
        for link in self.links:
            link.let_read()
        say({"said": "off", "gateway": self.number})

    def heal(self):
        self.at_commit = None
        self.is_through.set()
        for link in list(self.links):
            link.heal()


def say(what):
    print(json.dumps(what), flush=True)


def obey(proxies, command):
    proxy = proxies[command["gateway"]]
    match command["do"]:
        case "cut":
            proxy.cuts = {"one_in": command["one_in"], "until": time.monotonic() + command["seconds"]}
        case "off" if command["at_commit"]:
            proxy.at_commit = command["at_commit"]
        case "off":
            proxy.cut_off()
        case "heal":
            proxy.heal()
        case "count":
            say({"said": "count", "gateway": proxy.number, **proxy.counts})


async def serve(gateways, servers):
    proxies = [Proxy(number) for number in range(gateways)]
    say({"said": "ports", "ports": [[await proxy.listen(server) for server in servers] for proxy in proxies]})
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        obey(proxies, json.loads(line))


class Database:
    """The database as gateways reach it, each through its own proxy."""

    def __init__(self, url, gateways):
        found = re.fullmatch(r"(\w+://(?:[^/@]*@)?)([^/@]+)(/[^?]*)?(?:\?(.*))?", url)
        self.begin, hosts, self.name, given = found.groups()
        # What goes through the proxies is read there.
        others = [each for each in (given or "").split("&") if each and not each.startswith("sslmode=")]
        self.settings = "&".join(["sslmode=disable", *others])
        servers = [(host, int(port or 5432)) for host, _, port in (each.partition(":") for each in hosts.split(","))]
        self.process = subprocess.Popen([sys.executable, "-B", __file__, str(gateways), json.dumps(servers)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = {what: queue.SimpleQueue() for what in ("ports", "off", "count")}
        threading.Thread(target=self.hear, daemon=True).start()
        self.ports = self.said["ports"].get(timeout=ANSWER_TIME)["ports"]

    def hear(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.said[said["said"]].put(said)

    def address(self, which, folder):
        """A file with the address for a gateway."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[which])
        file = pathlib.Path(folder) / f"database-{which}.url"
        file.write_text(f"{self.begin}{hosts}{self.name or '/'}?{self.settings}\n")
        file.chmod(0o600)
        return file

    def tell(self, which, what, **how):
        self.process.stdin.write(json.dumps({"do": what, "gateway": which, **how}) + "\n")
        self.process.stdin.flush()

    def cut(self, which, one_in, seconds):
        """Cuts connections of a gateway at one commit in so many."""
        self.tell(which, "cut", one_in=one_in, seconds=seconds)

    def cut_off(self, which, at_commit=None):
        """Cuts a gateway off; if asked for, at its next commit, which the server gets (`BEHIND`) or not (`AHEAD`)."""
        self.tell(which, "off", at_commit=at_commit)
        try:
            self.said["off"].get(timeout=ANSWER_TIME)
        except queue.Empty:
            raise RuntimeError(f"gateway {which} committed nothing within {ANSWER_TIME} s") from None

    def heal(self, which):
        self.tell(which, "heal")

    def count(self, which):
        """How many commits of a gateway there were, and how many of them were cut."""
        self.tell(which, "count")
        return self.said["count"].get(timeout=ANSWER_TIME)

    def end(self):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), [tuple(server) for server in json.loads(sys.argv[2])]))
