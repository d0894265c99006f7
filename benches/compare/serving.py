#!/usr/bin/env python3
"""CPU time per request: the gateway against nginx. Both run on one core, wrk on another where there is one. Runs are
short and interleaved, so that what else the machine does is the same for both; what counts are medians of CPU time,
which say the same on a busy machine, where throughput does not.

    serving.py cached            cached answers; nginx serves the very same bytes from files, with the same headers
    serving.py passed            requests that are passed on to a site, which is another nginx
    serving.py polls --polls 200 p99 of reads with and without so many polls a second beside them
    serving.py readers --readers 1,10,100,1000 --json FILE
                                 a cached answer by how many connections ask at once, for plot.py
"""

import argparse
import contextlib
import gzip
import pathlib
import sys
import tempfile
import time
import urllib.request

import measure
import nginx_stage
import origin_stage
import publisher
import stage

SERVER_CORE, CLIENT_CORE = measure.cores()
# Lets one client have as many connections as there may be in all: a proxy has them for many.
TRUSTED = 'trusted_proxies = ["127.0.0.1"]'
# Requests a second of the paced reader: far from what the gateway can do.
PACE = 500
# How many seconds pass before anything is measured, for each second of the interval: every feed is new at first.
SETTLING = 4
# What nginx says by itself.
ITS_OWN = {"content-type", "content-length", "content-encoding", "etag", "last-modified", "date", "connection"}
ONE_PROCESS = "master_process off; worker_processes 1;"
FAST = "keepalive_requests 1000000000; open_file_cache max=100 inactive=1h; gzip_static on; sendfile on;"
SITE = "server {{ listen 127.0.0.1:{port}; root {root}; default_type text/html; " + FAST + " }}"
CACHED = "location = /{name} {{ default_type {kind};\n{headers} }}"
# What a careful operator writes, with the headers that the gateway sends too.
PROXY = """
upstream site {{ server {site}; keepalive 64; keepalive_requests 1000000000; }}
server {{
    listen 127.0.0.1:{port} backlog=4096;
    keepalive_requests 1000000000;
    location / {{
        proxy_pass http://site;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host {site};
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        proxy_set_header X-Forwarded-Host $host;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header Via "1.1 nginx";
        add_header Via "1.1 nginx";
        {more}
    }}
}}
"""
HOST = "localhost"


class Servers:
    """What is compared: by its name the process of each server and its address; `paths` are what is asked for, with
    the headers of the request."""

    def __init__(self, stack, folder):
        self.stack, self.folder, self.at, self.paths = stack, folder, {}, {}

    def gateway(self, *arguments):
        gateway = measure.Gateway(*arguments)
        self.stack.callback(gateway.end)
        return gateway

    def nginx(self, name, text, ready, core=SERVER_CORE):
        server = nginx_stage.Server(
            measure.program("nginx"), self.folder / name, text, ready, ONE_PROCESS, measure.pinned(core)
        )
        self.stack.callback(server.end)
        return server.process.pid


def fetch(address, headers=None):
    """The headers of an answer, in their order, and its body."""
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers or {}), timeout=measure.WAIT) as answer:
        return answer.getheaders(), answer.read()


def quote(text):
    """A text as nginx's configuration has it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def cached(given, servers):
    """A feed of 50 KB and a small SUP document, which nginx has in files."""
    site, files = stage.Site(), servers.folder / "files"
    site.documents["/feed"] = publisher.large().document("feed", 0)
    gateway = servers.gateway(
        given.bin, servers.folder / "gateway", measure.polling("24h", {"feed": f"{site.base}/feed"}), TRUSTED
    )
    gateway.poll("feed")
    files.mkdir()
    places = []
    feed, sup = "/feeds/feed", "/sup.json?seconds=60"
    for name, path in (("feed", feed), ("sup", sup)):
        headers, body = fetch(gateway.base + path)
        (files / name).write_bytes(body)
        (files / f"{name}.gz").write_bytes(gzip.compress(body, 6, mtime=0))
        said = "".join(
            f"add_header {header} {quote(value)};\n" for header, value in headers if header.lower() not in ITS_OWN
        )
        places.append(CACHED.format(name=name, kind=dict(headers)["content-type"].partition(";")[0], headers=said))
    port = stage.free_port()
    base = f"http://127.0.0.1:{port}"
    text = f"server {{ listen 127.0.0.1:{port} backlog=4096; root {files}; {FAST} {''.join(places)} }}"
    nginx = servers.nginx("nginx", text, f"{base}/feed")
    servers.at = {
        "tidegate": (gateway.pid, gateway.base),
        "nginx": (nginx, lambda path: f"{base}/{'sup' if path == sup else 'feed'}"),
    }
    servers.paths = {
        "50 KB": (feed, {}), "gzip": (feed, {"Accept-Encoding": "gzip"}),
        "304": (feed, {"If-None-Match": "TAG"}), "SUP": (sup, {}),
    }


def passed(given, servers):
    """Pages of 10 KB and of 1 KB of a site."""
    files = servers.folder / "files"
    files.mkdir()
    for name, size in (("page", 10_000), ("small", 1000)):
        (files / f"{name}.html").write_text(("<p>Words that fill a page.</p>\n" * size)[:size])
    port = stage.free_port()
    site = f"127.0.0.1:{port}"
    servers.nginx("site", SITE.format(port=port, root=files), f"http://{site}/page.html", CLIENT_CORE)
    table = origin_stage.origin(f"http://{site}/", host=HOST)
    gateway = servers.gateway(given.bin, servers.folder / "gateway", f"[polling]\nallow_private = true\n{table}", TRUSTED)
    servers.at["tidegate"] = gateway.pid, gateway.base.replace("127.0.0.1", HOST)
    for name, more in (("nginx", ""), ("nginx, unbuffered", "proxy_buffering off; proxy_request_buffering off;")):
        port = stage.free_port()
        text = PROXY.format(port=port, site=site, more=more)
        process = servers.nginx(name.replace(", ", "-"), text, f"http://127.0.0.1:{port}/page.html")
        servers.at[name] = process, f"http://{HOST}:{port}"
    servers.paths = {
        "10 KB": ("/page.html", {}), "304": ("/page.html", {"If-None-Match": "TAG"}), "1 KB": ("/small.html", {})
    }


def run(given, server, path, headers, connections):
    """One run of wrk, with the tag of what is answered where one is wanted."""
    process, base = server
    address = base(path) if callable(base) else base + path
    if "If-None-Match" in headers:
        found = {name.lower(): value for name, value in fetch(address)[0]}
        headers = {"If-None-Match": found.get("etag", '"any"')}
    return measure.wrk(CLIENT_CORE, process, address, headers, connections, given.seconds)


def compare(given, servers):
    runs = {}
    for turn in range(given.rounds + 1):
        for path, what in servers.paths.items():
            for name, server in servers.at.items():
                made = run(given, server, *what, given.connections)
                # The first round warms both up.
                if turn > 0:
                    runs.setdefault((path, name), []).append(made)
    print("CPU a request in µs, and what the gateway's is to it in the same round: medians, and half of the distance\n"
          f"between the quartiles.\n\n{'':8}{'server':20}{'µs':>16}{'ratio':>15}{'p99 ms':>10}{'a second':>10}")
    for (path, name), made in runs.items():
        cpu, ours = ([run.cpu for run in each] for each in (made, runs[path, "tidegate"]))
        print(f"{path:8}{name:20}" + "{:9.2f} ±{:5.2f}".format(*measure.spread(cpu))
              + "{:8.2f} ±{:5.2f}".format(*measure.ratio(ours, cpu))
              + f"{measure.spread([run.p99 for run in made])[0]:10.2f}{measure.spread([run.rate for run in made])[0]:10.0f}")


def by_readers(given, servers):
    rows = []
    for connections in map(int, given.readers.split(",")):
        for name, server in servers.at.items():
            made = [run(given, server, "/feeds/feed", {}, connections) for _ in range(given.rounds)]
            cpu, off = measure.spread([one.cpu for one in made])
            rows.append({"connections": connections, "server": name, "cpu": round(cpu, 2), "spread": round(off, 2),
                         "p99": round(measure.spread([one.p99 for one in made])[0], 2)})
            print(rows[-1], flush=True)
    measure.report(given.json, kind="readers", rows=rows)


def paced(base, path, seconds):
    """The delays of answers in milliseconds, each from when it was due to be asked for, sorted."""
    client, delays = measure.Connection(stage.Client(base, None)), []
    begun = time.perf_counter()
    for number in range(int(PACE * seconds)):
        due = begun + number / PACE
        time.sleep(max(0.0, due - time.perf_counter()))
        client.ask("GET", path, {})
        delays.append((time.perf_counter() - due) * 1000)
    client.close()
    return sorted(delays)


def beside_polls(given, folder):
    """Reads of one feed while no other is polled, and while many are."""
    source = publisher.Publisher(publisher.large(), given.changing)
    seconds = given.seconds * given.rounds
    for number in (0, given.polls * given.interval):
        # The feed that is read has an address of its own, and does not change.
        urls = {f"f{n}": source.url(n) for n in range(1, number + 1)}
        own = f'[[feed]]\nname = "feed"\nurl = "{source.url(0)}"\nmin_interval = "24h"\nmax_interval = "24h"\n'
        text = measure.polling(f"{given.interval}s", urls) + own
        gateway = measure.Gateway(given.bin, folder / f"gateway-{number}", text)
        try:
            gateway.poll("feed")
            time.sleep(SETTLING * given.interval if number else 1)
            before, begun = source.counted()["requests"], time.monotonic()
            delays = paced(gateway.base, "/feeds/feed", seconds)
            made = measure.wrk(
                CLIENT_CORE, gateway.pid, f"{gateway.base}/feeds/feed", {}, given.connections, seconds
            )
            polls = (source.counted()["requests"] - before) / (time.monotonic() - begun)
        finally:
            gateway.end()
        middle, last = (delays[int(len(delays) * part)] for part in (0.5, 0.99))
        print(f"{polls:5.0f} polls/s: {PACE} reads/s have a median of {middle:.2f} ms, p99 {last:.2f} ms; "
              f"as fast as they can {made.rate:.0f}/s, p99 {made.p99:.2f} ms", flush=True)
    source.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["cached", "passed", "polls", "readers"])
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1, help="of each run")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--readers", default="1,10,100,1000")
    parser.add_argument("--polls", type=int, default=200, help="a second")
    parser.add_argument("--interval", type=int, default=5, help="seconds between two polls of a feed")
    parser.add_argument("--changing", type=float, default=0.03, help="the share of polls that find a change")
    parser.add_argument("--json", help="a file for plot.py")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        if given.what == "polls":
            return beside_polls(given, folder)
        servers = Servers(stack, folder)
        (passed if given.what == "passed" else cached)(given, servers)
        (by_readers if given.what == "readers" else compare)(given, servers)


if __name__ == "__main__":
    sys.exit(main())
