"""Proxies between gateways and their database, in a process of its own: each gateway has a port for each server.

They lose the answer to a commit, or the commit; and they cut a gateway off, as where a cable was pulled: nothing goes
through any more, and no connection ends. Standard library only."""

import asyncio
import contextlib
import json
import queue
import random
import subprocess
import sys
import threading
import time
import urllib.parse

# The message that commits what a gateway wrote. Other transactions end otherwise, or have it within a longer message.
COMMIT = b"Q\0\0\0\x0bCOMMIT\0"
# How long a server may take to note that a connection was cut, and the proxy to answer, in seconds.
CUT_TIME, ANSWER_TIME = 5, 15
# Ways to disturb a commit. "behind": the server gets it, its answer is lost; "ahead": the server does not get it.
BEHIND, AHEAD = "behind", "ahead"
PIECE = 65536


class Proxy:
    """The connections of a gateway to the servers of its database."""

    def __init__(self):
        self.tasks, self.is_through = set(), asyncio.Event()
        self.one_in, self.cut_until, self.at_commit = 0, 0, None
        self.counts, self.next_way = {"commits": 0, BEHIND: 0, AHEAD: 0}, AHEAD
        self.is_through.set()

    async def listen(self, server):
        listening = await asyncio.start_server(lambda *gateway: self.link(gateway, server), "127.0.0.1", 0)
        return listening.sockets[0].getsockname()[1]

    async def link(self, gateway, server):
        """Carries a connection until one side ends it."""
        self.tasks.add(task := asyncio.current_task())
        task.add_done_callback(self.tasks.discard)
        sides = [gateway]
        try:
            await self.is_through.wait()
            sides.append(await asyncio.open_connection(*server))
            ways = [asyncio.ensure_future(self.carry(gateway[0], sides[1][1], self.look_at)),
                    asyncio.ensure_future(self.carry(sides[1][0], gateway[1], lambda data: (data, None)))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if any(way.done() and not way.exception() and way.result() == "cut" for way in ways):
                # The gateway learns at once; the server reads everything before it notes the end.
                gateway[1].transport.abort()
                sides[1][1].write_eof()
                await asyncio.wait(ways, timeout=CUT_TIME)
            for way in ways:
                way.cancel()
        except OSError:
            pass
        finally:
            for _, writer in sides:
                writer.transport.abort()

    async def carry(self, reader, writer, look_at):
        """Carries what comes from one side to the other."""
        while data := await next_piece(reader):
            await self.is_through.wait()
            data, what = look_at(data)
            if what == "off":
                head, data = data
                writer.write(head)
                self.is_through.clear()
                say({"said": "off"})
                await self.is_through.wait()
            writer.write(data)
            await writer.drain()
            if what == "cut":
                return "cut"
        await self.is_through.wait()
        return "ended"

    def look_at(self, data):
        """What goes on to the server, and what else happens at a commit."""
        at = data.find(COMMIT)
        if at < 0:
            return data, None
        self.counts["commits"] += 1
        if self.at_commit:
            at, self.at_commit = at + len(COMMIT) * (self.at_commit == BEHIND), None
            return (data[:at], data[at:]), "off"
        if time.monotonic() < self.cut_until and random.randrange(self.one_in) == 0:
            way, self.next_way = self.next_way, BEHIND if self.next_way == AHEAD else AHEAD
            self.counts[way] += 1
            return data[:at + len(COMMIT) * (way == BEHIND)], "cut"
        return data, None

    def obey(self, do, **how):
        match do:
            case "cut":
                self.one_in, self.cut_until = how["one_in"], time.monotonic() + how["seconds"]
            case "off":
                self.at_commit = how["at_commit"]
            case "heal":
                self.at_commit = None
                self.is_through.set()
            case "count":
                say({"said": "count", **self.counts})


async def next_piece(reader):
    """What comes next; nothing where the connection has ended, in whatever way."""
    with contextlib.suppress(OSError):
        return await reader.read(PIECE)
    return b""


def say(what):
    print(json.dumps(what), flush=True)


async def serve(gateways, servers):
    proxies = [Proxy() for _ in range(gateways)]
    say({"said": "ports", "ports": [[await proxy.listen(server) for server in servers] for proxy in proxies]})
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        command = json.loads(line)
        proxies[command.pop("gateway")].obey(**command)


class Proxies:
    """The database as gateways reach it, each through its own proxy."""

    def __init__(self, url, gateways):
        self.database = urllib.parse.urlsplit(url)
        self.user, _, hosts = self.database.netloc.rpartition("@")
        # What goes through the proxies is read there.
        others = [each for each in self.database.query.split("&") if each and not each.startswith("sslmode=")]
        self.settings = "&".join(["sslmode=disable", *others])
        servers = [(host, int(port or 5432)) for host, _, port in (each.partition(":") for each in hosts.split(","))]
        command = [sys.executable, "-B", __file__, str(gateways), json.dumps(servers)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = {what: queue.SimpleQueue() for what in ("ports", "off", "count")}
        threading.Thread(target=self.hear, daemon=True).start()
        self.ports = self.said["ports"].get(timeout=ANSWER_TIME)["ports"]

    def hear(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.said[said["said"]].put(said)

    def url(self, which):
        """The address of the database for a gateway."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports[which])
        return self.database._replace(netloc=f"{self.user}@{hosts}", query=self.settings).geturl()

    def tell(self, which, do, **how):
        self.process.stdin.write(json.dumps({"do": do, "gateway": which, **how}) + "\n")
        self.process.stdin.flush()

    def cut(self, which, one_in, seconds):
        """Cuts connections of a gateway at one commit in so many, now behind it and now ahead of it."""
        self.tell(which, "cut", one_in=one_in, seconds=seconds)

    def cut_off(self, which, at_commit):
        """Cuts a gateway off at its next commit, which the server gets (`BEHIND`) or not (`AHEAD`)."""
        self.tell(which, "off", at_commit=at_commit)
        try:
            self.said["off"].get(timeout=ANSWER_TIME)
        except queue.Empty:
            raise RuntimeError(f"gateway {which} committed nothing within {ANSWER_TIME} s") from None

    def heal(self, which):
        self.tell(which, "heal")

    def count(self, which):
        """How many commits of a gateway there were, and how many were cut behind and ahead of them."""
        self.tell(which, "count")
        return self.said["count"].get(timeout=ANSWER_TIME)

    def end(self):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), [tuple(server) for server in json.loads(sys.argv[2])]))
