"""A publisher of made-up feeds for the comparisons: a process of its own, with as many loopback addresses as
there are feeds, so that politeness towards one host slows no poll."""

import asyncio
import functools
import gzip
import hashlib
import json
import multiprocessing
import os
import random
import socket
import struct
import sys
import time
import urllib.parse
import urllib.request

import measure
import stage

WORDS = """time year people way day man thing woman life child world school state family student group
country problem hand part place case week company system program question work government number night
point home water room mother area money story fact month lot right study book eye job word business issue
side kind head house service friend father power hour game line end member law car city community name
president team minute idea kid body information back parent face others level office door health person
art war history party result change morning reason research girl guy moment air teacher force education
""".split()
# The most documents that are kept packed, and the most intervals between two requests for a feed.
DOCUMENTS, INTERVALS = 200_000, 1_000_000
# How often the publisher asks whether the script that began it still runs, in seconds.
ALIVE = 2


class Documents:
    """Made-up Atom documents: the same for a feed and a version, whoever asks. Each version has one entry more
    on top and one less below; with `edits`, the entry in the middle is another as well."""

    def __init__(self, entries, words, vocabulary, edits=False):
        self.entries, self.words, self.vocabulary, self.edits = entries, words, WORDS[:vocabulary], edits
        self.packed = {}

    def newest(self, version):
        """The number of the entry on top."""
        return version + self.entries

    def edited(self, version):
        """The number of the entry that this version edits; none, where it edits none."""
        return version + self.entries // 2 if self.edits and version > 0 else None

    def id(self, feed, number):
        """The id of an entry."""
        return f"urn:feed:{feed}:{number}"

    @functools.lru_cache(maxsize=100_000)
    def first_text(self, feed, number):
        """What an entry says in its first version."""
        return " ".join(random.Random(f"{feed} {number}").choices(self.vocabulary, k=self.words))

    def text(self, feed, number, version):
        """What an entry says in a version."""
        text = self.first_text(feed, number)
        edit = self.edit(number, version)
        return f"Edited in version {edit}: {text}" if edit else text

    def edit(self, number, version):
        """The version up to this one that edited an entry; 0 where none did."""
        edit = number - self.entries // 2
        return edit if self.edits and 0 < edit <= version else 0

    def entry(self, feed, number, version):
        published = 1_700_000_000 + number * 60
        updated = published + (86_400 if self.edit(number, version) else 0)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(updated))
        return (
            f"<entry><id>{self.id(feed, number)}</id><title>Post {number} of {feed}</title>"
            f'<link href="http://e.example/{feed}/{number}"/><updated>{stamp}</updated>'
            f'<content type="html">&lt;p&gt;{self.text(feed, number, version)}&lt;/p&gt;</content></entry>\n'
        )

    def document(self, feed, version):
        """The bytes of a document."""
        newest = self.newest(version)
        body = "".join(self.entry(feed, n, version) for n in range(newest, newest - self.entries, -1))
        return (
            '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
            f"<id>urn:feed:{feed}</id><title>Feed {feed}</title><link href=\"http://e.example/{feed}\"/>"
            f"<author><name>A. Writer</name></author><updated>2026-11-20T16:20:05Z</updated>\n{body}</feed>\n"
        ).encode()

    def answer(self, feed, version):
        """A document packed, and its tag. Of each feed the last one is kept."""
        found = self.packed.get(feed)
        if found is None or found[0] != version:
            packed = gzip.compress(self.document(feed, version), 6, mtime=0)
            found = (version, packed, '"' + hashlib.sha256(packed).hexdigest()[:16] + '"')
            if feed in self.packed or len(self.packed) < DOCUMENTS:
                self.packed[feed] = found
        return found[1:]

    def sizes(self):
        """Bytes of a document, and packed."""
        return len(self.document("f0", 0)), len(self.answer("f0", 0)[0])


def large(edits=False):
    """Documents of 50 KB with 32 entries, 10 KB packed."""
    return Documents(32, 225, 40, edits)


def small():
    """Documents of 16 KB with 10 entries, 1.6 KB packed."""
    return Documents(10, 250, 3)


def address(host):
    """The host-th loopback address: 127.1.0.1 and on."""
    return socket.inet_ntoa(struct.pack(">I", 0x7F010001 + host))


class Server:
    """What the process of the publisher knows: the version of each feed, and when it was asked for."""

    def __init__(self, documents, validators, share):
        self.documents, self.validators, self.share = documents, validators, share
        self.versions, self.asked, self.intervals = {}, {}, []
        self.counted = {"requests": 0, "changed": 0}
        self.dice = random.Random(1)

    def control(self, path, parameters):
        """What the script says and asks: an answer as JSON."""
        if path == "/advance":
            feeds = parameters["feed"] if "feed" in parameters else list(self.versions)
            for feed in feeds:
                self.versions[feed] = self.versions.get(feed, 0) + int(parameters.get("by", ["1"])[0])
        if path == "/intervals":
            intervals, self.intervals = sorted(self.intervals), []
            return intervals
        return {**self.counted, "feeds": len(self.asked)}

    def respond(self, head):
        """The answer to a request, and whether the connection ends with it."""
        target = head.split(b" ", 2)[1].decode()
        if not target.startswith("/f"):
            path, _, query = target.partition("?")
            body = json.dumps(self.control(path, urllib.parse.parse_qs(query))).encode()
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body), False
        feed, now, head = target[1:], time.monotonic(), head.lower()
        self.counted["requests"] += 1
        if feed in self.asked and len(self.intervals) < INTERVALS:
            self.intervals.append(now - self.asked[feed])
        self.asked[feed] = now
        if feed in self.versions and self.share and self.dice.random() < self.share:
            self.versions[feed] += 1
            self.counted["changed"] += 1
        packed, tag = self.documents.answer(feed, self.versions.setdefault(feed, 0))
        closes = b"connection: close" in head
        common = b"Date: Fri, 20 Nov 2026 16:20:05 GMT\r\nServer: bench\r\n" + (b"Connection: close\r\n" if closes else b"")
        if self.validators:
            common += b"ETag: %b\r\n" % tag.encode()
            if b"if-none-match: " + tag.encode() in head:
                return b"HTTP/1.1 304 Not Modified\r\n%b\r\n" % common, closes
        if b"gzip" in head:
            body, common = packed, common + b"Content-Encoding: gzip\r\n"
        else:
            body = gzip.decompress(packed)
        common += b"Content-Type: application/atom+xml\r\nContent-Length: %d\r\n" % len(body)
        return b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (common, body), closes

    async def serve(self, port):
        server = self

        class Connection(asyncio.Protocol):
            def connection_made(self, transport):
                self.transport, self.rest = transport, b""

            def data_received(self, data):
                *heads, self.rest = (self.rest + data).split(b"\r\n\r\n")
                for head in heads:
                    answer, closes = server.respond(head)
                    self.transport.write(answer)
                    if closes:
                        self.transport.close()

        script = os.getppid()
        listening = await asyncio.get_running_loop().create_server(Connection, "0.0.0.0", port, backlog=4096)
        await listening.start_serving()
        while os.getppid() == script:
            await asyncio.sleep(ALIVE)


def run(port, core, *server):
    os.sched_setaffinity(0, {core})
    asyncio.run(Server(*server).serve(port))


class Publisher(stage.Ended):
    """The process, pinned to the last processor. `share` of the requests for a feed find another version;
    without `validators` an answer has no tag, so that the same document is read again and again."""

    def __init__(self, documents, share=0.0, validators=True):
        self.documents = documents
        self.port = stage.free_port()
        server = self.port, max(os.sched_getaffinity(0)), documents, validators, share
        self.process = multiprocessing.Process(target=run, args=server, daemon=True)
        self.process.start()
        if not stage.until(self.counted, 5):
            sys.exit("the publisher does not answer")

    def url(self, number):
        """The address of a feed, at a host of its own."""
        return f"http://{address(number)}:{self.port}/f{number}"

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=measure.WAIT) as answer:
            return json.load(answer)

    def counted(self):
        """How many requests for feeds there were, for how many feeds, and how many found a change by chance."""
        return self.ask("/counted")

    def advance(self, feeds=(), by=1):
        """Changes these feeds, or all that were asked for so far, by so many versions."""
        self.ask("/advance?" + urllib.parse.urlencode({"feed": feeds, "by": by}, doseq=True))

    def intervals(self):
        """The seconds between two requests for a feed since this was asked last, sorted."""
        return self.ask("/intervals")

    def end(self):
        self.process.kill()
        self.process.join()
