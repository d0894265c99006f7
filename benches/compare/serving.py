#!/usr/bin/env python3
"""CPU time per cached request: the gateway against nginx, which serves the very same bytes from files.

Both run on one core, wrk on another where there is one. Runs are short and interleaved, so that what else the machine
does is the same for both; what counts are medians of CPU time, which say the same on a busy machine, where throughput
does not.

    benches/compare/serving.py                       the table of ratios, about two minutes
    benches/compare/serving.py --instructions        instructions per request under callgrind
    benches/compare/serving.py --documents 1,1000    by how many documents of 50 KB are asked for in turn, and over HTTP/2
    benches/compare/serving.py --polls 200           p99 of cached reads beside so many polls a second

So many --connections ask for --seconds in each of the --rounds; --requests are counted under callgrind or asked over
HTTP/2. Beside reads each feed is polled every --interval seconds, and --changing is the part of polls that bring news.

Needs nginx and wrk; valgrind for instructions, h2load for many documents.
"""

import contextlib
import gzip
import pathlib
import sys
import tempfile
import time
import urllib.request

import measure
import nginx_stage
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
FAST = "keepalive_requests 1000000000; open_file_cache max=50000 inactive=1h; gzip_static on; sendfile on;"
CACHED = "location = /{place}/{name} {{ alias {root}/{name}; default_type {kind};\n{headers} }}"


class Servers(contextlib.ExitStack):
    """What is compared: by its name the process of each server and its address; `paths` are what is asked for, with
    the headers of the request and the most that is aimed at, as a ratio of nginx. `begin`: what their commands begin
    with."""

    def __init__(self, given, server=""):
        super().__init__()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.given, self.server, self.at, self.paths = given, server, {}, {}
        self.begin = measure.pinned(SERVER_CORE, measure.callgrind(self.folder) if given.instructions else ())

    def gateway(self, configuration):
        gateway = measure.Gateway(self.given.bin, self.folder / "gateway", configuration, self.server, self.begin)
        self.callback(gateway.end)
        return gateway

    def nginx(self, name, text, ready, begin=None):
        begin = self.begin if begin is None else begin
        server = nginx_stage.Server(measure.program("nginx"), self.folder / name, text, ready, ONE_PROCESS, begin)
        self.callback(server.end)
        return server.process.pid


def fetch(address, headers=None):
    """The headers of an answer, in their order, and its body."""
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers or {}), timeout=measure.WAIT) as answer:
        return answer.getheaders(), answer.read()


def added(headers):
    """These headers as nginx's configuration adds them, but for what it says by itself."""
    quote = lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "".join(f"add_header {name} {quote(value)};\n" for name, value in headers if name.lower() not in ITS_OWN)


def write(folder, name, body):
    """A document that nginx has in a file, and packed beside it."""
    (folder / name).write_bytes(body)
    (folder / f"{name}.gz").write_bytes(gzip.compress(body, 6, mtime=0))


def cached(servers):
    """A feed of 50 KB and a small SUP document, which nginx has in files."""
    site, files = stage.Site(), servers.folder / "files"
    site.documents["/feed"] = publisher.large().document("feed", 0)
    gateway = servers.gateway(measure.polling("24h", {"feed": f"{site.base}/feed"}))
    gateway.poll("feed")
    files.mkdir()
    places, feed, sup = [], "/feeds/feed", "/sup.json?seconds=60"
    for name, path in (("feed", feed), ("sup", sup)):
        headers, body = fetch(gateway.base + path)
        write(files, name, body)
        kind = dict(headers)["content-type"].partition(";")[0]
        for place, said in (("same", added(headers)), ("plain", "")):
            places.append(CACHED.format(place=place, name=name, root=files, kind=kind, headers=said))
    port = stage.free_port()
    base = f"http://127.0.0.1:{port}"
    text = f"server {{ listen 127.0.0.1:{port} backlog=4096; root {files}; {FAST} {''.join(places)} }}"
    nginx = servers.nginx("nginx", text, f"{base}/same/feed")

    def static(place):
        return nginx, lambda path: f"{base}/{place}/{'sup' if path == sup else 'feed'}"

    servers.at = {"tidegate": (gateway.pid, gateway.base), "nginx": static("same"), "bare nginx": static("plain")}
    servers.paths = {
        "50 KB": (feed, {}, 0.85), "gzip": (feed, {"Accept-Encoding": "gzip"}, 0.80),
        "304": (feed, {"If-None-Match": "TAG"}, 1.00), "SUP": (sup, {}, 0.55),
    }


def asked(server, path, headers):
    """The address and the headers of a request, with the tag of what is answered where one is wanted."""
    _, base = server
    address = base(path) if callable(base) else base + path
    if "If-None-Match" in headers:
        found = {name.lower(): value for name, value in fetch(address)[0]}
        headers = {"If-None-Match": found.get("etag", '"any"')}
    return address, headers


def run(given, server, path, headers, connections):
    """One run of wrk."""
    return measure.wrk(CLIENT_CORE, server[0], *asked(server, path, headers), connections, given.seconds)


def compare(given, servers):
    runs, aims = {}, {path: aim for path, (*_, aim) in servers.paths.items()}
    for turn in range(given.rounds + 1):
        for path, (*what, _) in servers.paths.items():
            for name, server in servers.at.items():
                made = run(given, server, *what, given.connections)
                # The first round warms both up.
                if turn > 0:
                    runs.setdefault((path, name), []).append(made)
    rows = {}
    for (path, name), made in runs.items():
        cpu, ours = ([run.cpu for run in each] for each in (made, runs[path, "tidegate"]))
        rows[f"{path}, {name}"] = {
            "µs": measure.spread(cpu), "ratio": measure.ratio(ours, cpu), **({"aim": aims[path]} if name == "nginx" else {}),
            "p99 ms": measure.spread([run.p99 for run in made])[0], "a second": measure.spread([run.rate for run in made])[0],
        }
    measure.show("CPU a request in µs, and what the gateway's is to it in the same round: medians, and half of the distance\n"
                 "between the quartiles.", rows)


def instructions(given, servers):
    """Instructions per request on each path."""
    measure.show("Instructions a request:", {path: {
        name: measure.instructions(server[0], *asked(server, *what), given.requests) for name, server in servers.at.items()
    } for path, (*what, _) in servers.paths.items()})


def show(given, build):
    """Compares servers, by what is given."""
    with Servers(given) as servers:
        build(servers)
        (instructions if given.instructions else compare)(given, servers)


def by_readers(given, numbers):
    """CPU of a cached request by how many connections ask at once: the rows for plot.py."""
    rows = []
    with Servers(given, TRUSTED) as servers:
        cached(servers)
        for connections in numbers:
            for name, server in servers.at.items():
                made = [run(given, server, "/feeds/feed", {}, connections) for _ in range(given.rounds)]
                cpu, off = measure.spread([one.cpu for one in made])
                rows.append({"connections": connections, "server": name, "cpu": round(cpu, 2), "spread": round(off, 2),
                             "p99": round(measure.spread([one.p99 for one in made])[0], 2)})
                print(rows[-1], flush=True)
    return rows


def by_documents(given, number):
    """CPU of a cached request where so many documents are asked for in turn, over HTTP/1 and HTTP/2."""
    with Servers(given, 'memory = "2GiB"') as servers:
        names, files = [f"f{n}" for n in range(number)], servers.folder / "feeds"
        gateway = servers.gateway("".join(f'[[feed]]\nname = "{name}"\nlocal = true\n' for name in names))
        files.mkdir()
        source = publisher.large()
        for name in names:
            text = "<p>".join(source.first_text(name, number) for number in range(source.entries))
            gateway.feed(name, "/items", "POST", {"title": name, "content_html": text})
            headers, body = fetch(f"{gateway.base}/feeds/{name}")
            write(files, name, body)
            fetch(f"{gateway.base}/feeds/{name}", {"Accept-Encoding": "gzip"})
        ports = stage.free_port(), stage.free_port()
        listen = f"listen 127.0.0.1:{ports[0]} backlog=4096; listen 127.0.0.1:{ports[1]} http2 backlog=4096;"
        text = f"server {{ {listen} root {servers.folder}; {FAST} default_type application/atom+xml;\n{added(headers)} }}"
        plain, http2 = (f"http://127.0.0.1:{port}" for port in ports)
        nginx = servers.nginx("nginx", text, f"{plain}/feeds/f0")
        at, rows = {"tidegate": (gateway.pid, gateway.base, gateway.base), "nginx": (nginx, plain, http2)}, {}
        for path, headers in (("50 KB", {}), ("gzip", {"Accept-Encoding": "gzip"})):
            runs = {}
            for turn in range(given.rounds + 1):
                for name, (process, base, other) in at.items():
                    paths, addresses = servers.folder / f"{name}.1", servers.folder / f"{name}.2"
                    paths.write_text("".join(f"/feeds/{feed}\n" for feed in names))
                    addresses.write_text("".join(f"{other}/feeds/{feed}\n" for feed in names))
                    made = measure.wrk(CLIENT_CORE, process, base, headers, given.connections, given.seconds, paths).cpu
                    again = measure.h2load(CLIENT_CORE, process, addresses, headers, given.connections, given.requests)
                    # The first round warms both up.
                    if turn > 0:
                        runs.setdefault((1, name), []).append(made)
                        runs.setdefault((2, name), []).append(again)
            for version in (1, 2):
                ours, theirs = (runs[version, name] for name in at)
                rows[f"{path}, HTTP/{version}"] = {
                    **{name: measure.spread(runs[version, name]) for name in at}, "ratio": measure.ratio(ours, theirs)
                }
        measure.show(f"CPU a request in µs, {number} documents:", rows)


def paced(base, path, seconds):
    """The delays of answers in milliseconds, each from when it was due to be asked for, sorted."""
    client, delays = measure.Connection(base), []
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
    seconds = given.seconds * given.rounds
    with publisher.Publisher(publisher.large(), given.changing) as source:
        for number in (0, given.polls * given.interval):
            # The feed that is read has an address of its own, and does not change.
            urls = {f"f{n}": source.url(n) for n in range(1, number + 1)}
            own = f'[[feed]]\nname = "feed"\nurl = "{source.url(0)}"\nmin_interval = "24h"\nmax_interval = "24h"\n'
            text = measure.polling(f"{given.interval}s", urls) + own
            with measure.Gateway(given.bin, folder / f"gateway-{number}", text) as gateway:
                gateway.poll("feed")
                time.sleep(SETTLING * given.interval if number else 1)
                before, begun = source.counted()["requests"], time.monotonic()
                delays = paced(gateway.base, "/feeds/feed", seconds)
                made = measure.wrk(CLIENT_CORE, gateway.pid, f"{gateway.base}/feeds/feed", {}, given.connections, seconds)
                polls = (source.counted()["requests"] - before) / (time.monotonic() - begun)
            middle, last = (delays[int(len(delays) * part)] for part in (0.5, 0.99))
            print(f"{polls:5.0f} polls/s: {PACE} reads/s have a median of {middle:.2f} ms, p99 {last:.2f} ms; "
                  f"as fast as they can {made.rate:.0f}/s, p99 {made.p99:.2f} ms", flush=True)


def options(**more):
    """What scripts that compare servers are called with."""
    return measure.given(rounds=7, seconds=1, connections=16, instructions=False, requests=5000, **more)


def main():
    given = options(polls=0, interval=2, changing=1.0, documents=None)
    if given.documents:
        for number in given.documents.split(","):
            by_documents(given, int(number))
        return None
    if not given.polls:
        return show(given, cached)
    with tempfile.TemporaryDirectory() as folder:
        beside_polls(given, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
