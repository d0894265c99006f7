"""A gateway with a feed of 50 KB, and nginx with the very same bytes in files."""

import functools
import gzip
import http.client
import itertools
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tests/scripts"))

import measure
import stage

# Entries of the feed, and words in each: about 50 KB, and 10 KB of them as gzip.
ENTRIES, WORDS = 32, 190
# What nginx says by itself.
ITS_OWN = {"content-type", "content-length", "content-encoding", "etag", "last-modified", "date",
           "connection"}

NGINX = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 65;
    keepalive_requests 1000000000;
    open_file_cache max=100 inactive=1h;
    open_file_cache_valid 1h;
    gzip_static on;
    server_tokens off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address} backlog=4096;
        root {folder}/files;
        default_type application/octet-stream;
        location /plain/ {{ }}
        location = /same/feed {{
            default_type application/atom+xml;
{feed}
        }}
        location = /same/sup {{
            default_type application/json;
{sup}
        }}
    }}
}}
"""


@functools.cache
def vocabulary():
    """The words of all entries, those that come often first, and how often each does."""
    chance, letters = random.Random("words"), "etaoinshrdlucmfwypvbgkqjxz"
    words = [
        "".join(chance.choices(letters, range(26, 0, -1), k=chance.randint(2, 9)))
        for _ in range(400)
    ]
    return words, list(itertools.accumulate(1 / place for place in range(1, 401)))


def entry(number, seed):
    """An entry of the scripted feeds: the same for the same number."""
    chance = random.Random(f"{seed} {number}")
    words, often = vocabulary()
    text = " ".join(chance.choices(words, cum_weights=often, k=WORDS))
    day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + number * 3600))
    return (
        f"<entry><id>tag:example.org,2026:{seed}/{number}</id><title>Post {number}</title>"
        f'<link href="http://example.org/{seed}/{number}"/><updated>{day}</updated>'
        f'<content type="html">&lt;p&gt;{text}&lt;/p&gt;</content></entry>\n'
    )


def feed(first, number, seed="feed"):
    """A feed of so many entries, the newest first, of which the oldest is `first`."""
    entries = "".join(entry(n, seed) for n in range(first + number - 1, first - 1, -1))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>tag:example.org,2026:{seed}</id><title>{seed}</title>"
        f'<link href="http://example.org/{seed}"/><updated>2026-01-01T00:00:00Z</updated>'
        f"<author><name>A. Writer</name></author>\n{entries}</feed>\n"
    ).encode()


class Gateway(stage.Gateway):
    """A gateway whose program begins with some other words: `taskset`, `valgrind`."""

    def __init__(self, begin, program, *args, **more):
        wrapper = pathlib.Path(args[0]) / "begin"
        command = " ".join(f"'{word}'" for word in [*begin, program])
        wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        wrapper.chmod(0o700)
        super().__init__(wrapper, *args, **more)


class Client:
    """One connection to a gateway, which is kept."""

    def __init__(self, gateway):
        self.connection = http.client.HTTPConnection(gateway.base.removeprefix("http://"), timeout=measure.WAIT)

    def ask(self, method, path, headers):
        self.connection.request(method, path, headers=headers)
        return self.connection.getresponse().read()

    def poll(self, name):
        """Polls a feed now, and answers the report; an error where that failed or the document was held."""
        token = {"authorization": f"Bearer {stage.TOKEN}"}
        report = json.loads(self.ask("POST", f"/api/v1/feeds/{name}/poll", token))
        if report.get("outcome") in (None, "failed") or report["held"]:
            raise RuntimeError(f"{name} was not read: {report}")
        return report

    def read(self, path):
        """The body of an answer, packed."""
        return self.ask("GET", path, {"accept-encoding": "gzip"})

    def close(self):
        self.connection.close()


def quoted(text):
    """A text as nginx's configuration has it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Nginx:
    """nginx with the documents of a gateway in files, below `/plain` with its own headers alone, and
    below `/same` with all those that the gateway says."""

    def __init__(self, begin, program, folder, documents):
        (folder / "files/plain").mkdir(parents=True)
        (folder / "files/same").mkdir()
        said = {}
        for name, (headers, body) in documents.items():
            for place in ("plain", "same"):
                (folder / "files" / place / name).write_bytes(body)
                (folder / "files" / place / f"{name}.gz").write_bytes(gzip.compress(body, 6, mtime=0))
            said[name] = "".join(
                f"            add_header {header} {quoted(value)};\n"
                for header, value in headers if header.lower() not in ITS_OWN
            )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        configuration = folder / "nginx.conf"
        configuration.write_text(NGINX.format(folder=folder, address=address, **said))
        # As root it would become another user, who may not read below the folder.
        user = ["-g", "user root;"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [*begin, program, "-p", folder, "-c", configuration, "-e", folder / "error.log", *user]
        )
        self.base = f"http://{address}"
        while self.process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.base}/plain/feed", timeout=measure.WAIT).read()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"nginx did not start: see {folder}/error.log")

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=measure.WAIT)


def fetched(address, headers=None):
    """The headers of an answer, in their order, and its body."""
    asked = urllib.request.Request(address, headers=headers or {})
    with urllib.request.urlopen(asked, timeout=measure.WAIT) as answer:
        return answer.getheaders(), answer.read()


def tag(address):
    """The entity tag of a representation; any, where it has none."""
    return dict((name.lower(), value) for name, value in fetched(address)[0]).get("etag", '"any"')
