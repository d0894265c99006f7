#!/usr/bin/env python3
"""CPU time per cached request: the gateway against nginx, which serves the very same bytes from files.

Both run on one core, wrk on another where there is one. Runs are short and interleaved, so that what
else the machine does is the same for both; what counts are medians of CPU time, which say the same on
a busy machine, where throughput does not.

    benches/compare/serving.py                       the table of ratios, about two minutes
    benches/compare/serving.py --instructions        instructions per request under callgrind
    benches/compare/serving.py --polls 200           p99 of cached reads beside so many polls a second
    benches/compare/serving.py --readers 1,10,100    CPU time by how many connections ask at once

Installs nginx, wrk and valgrind from Debian's packages where they are missing and it may.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import tempfile

import measure
import polled
import serving_stage as stage

# The paths that are compared: what is asked for, and the most that is aimed at, as a ratio of nginx.
PATHS = {
    "50 KB": ("feed", {}, 0.85),
    "gzip": ("feed", {"Accept-Encoding": "gzip"}, 0.80),
    "304": ("feed", {}, 1.00),
    "SUP": ("sup", {}, 0.55),
}
ADDRESSES = {"feed": "/feeds/feed", "sup": "/sup.json?seconds=60"}
CONFIGURATION = """
[polling]
allow_private = true
min_interval = "24h"

[[feed]]
name = "feed"
url = "{address}/feed"
"""


# Lets one client have as many connections as there may be in all, 1024: a proxy has them for many.
TRUSTED = 'trusted_proxies = ["127.0.0.1"]'


@contextlib.contextmanager
def servers(arguments, begin, server=""):
    """The addresses of both servers by name, each with its process and the tag of a 304."""
    nginx, = measure.programs("nginx")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        site = stage.stage.Site()
        site.documents["/feed"] = stage.feed(1, stage.ENTRIES)
        configuration = CONFIGURATION.format(address=site.base)
        gateway = stage.Gateway(begin, arguments.bin, folder, configuration, server)
        stack.callback(gateway.end)
        gateway.poll("feed")
        documents = {name: stage.fetched(gateway.base + at) for name, at in ADDRESSES.items()}
        static = stage.Nginx(begin, nginx, folder / "nginx", documents)
        stack.callback(static.end)
        at = {
            "tidegate": (gateway.process.pid, lambda path: gateway.base + ADDRESSES[PATHS[path][0]]),
            "nginx": (static.process.pid, lambda path: f"{static.base}/same/{PATHS[path][0]}"),
            "bare nginx": (static.process.pid, lambda path: f"{static.base}/plain/{PATHS[path][0]}"),
        }
        yield at


def asked(path, address):
    """The headers of a request for one of the paths."""
    _, headers, _ = PATHS[path]
    return {"If-None-Match": stage.tag(address)} if path == "304" else headers


def compare(arguments):
    """CPU time per request on each path, by server."""
    wrk, = measure.programs("wrk")
    server_core, client_core = measure.cores()
    runs = {}
    with servers(arguments, measure.pinned(server_core, [])) as at:
        for number in range(arguments.rounds + 1):
            for path in PATHS:
                for server, (process, address) in at.items():
                    address = address(path)
                    run = measure.wrk(
                        wrk, client_core, process, address, asked(path, address),
                        arguments.connections, arguments.seconds,
                    )
                    # The first round warms both up.
                    if number > 0:
                        runs.setdefault((path, server), []).append(run)
    return runs


def show_comparison(runs):
    print("CPU per request in µs, and what that is to nginx with the same headers in the same round:\n"
          "medians, and half of the distance between the quartiles. Then the ratios of others to it.\n")
    others = [name for name in dict.fromkeys(server for _, server in runs)
              if name not in ("tidegate", "nginx")]
    print(f"{'':6}{'tidegate':>15}{'nginx':>15}{'ratio':>14}{'aim':>6}"
          + "".join(f"{name:>12}" for name in others))
    for path, (_, _, aim) in PATHS.items():
        ours, theirs = ([run.cpu for run in runs[path, name]] for name in ("tidegate", "nginx"))

        def ratio(figures, theirs=theirs):
            return measure.spread([a / b for a, b in zip(figures, theirs, strict=True)])

        print(f"{path:6}" + "".join("{:9.2f} ±{:4.2f}".format(*measure.spread(each))
                                    for each in (ours, theirs))
              + "{:8.2f} ±{:4.2f}".format(*ratio(ours)) + f"{aim:6.2f}"
              + "".join("{:12.2f}".format(ratio([run.cpu for run in runs[path, name]])[0])
                        for name in others))


def instructions(arguments):
    """Instructions per request on each path."""
    valgrind, control = measure.programs("valgrind", "callgrind_control")
    with tempfile.TemporaryDirectory() as folder:
        kept = arguments.profile or folder
        server_core, _ = measure.cores()
        begin = measure.pinned(server_core, [
            valgrind, "--tool=callgrind", "-q", f"--callgrind-out-file={kept}/callgrind.%p",
        ])
        with servers(arguments, begin) as at:
            counts = {}
            for path in PATHS:
                for server, (process, address) in at.items():
                    address = address(path)
                    base, _, rest = address.removeprefix("http://").partition("/")
                    counts[path, server] = measure.instructions(
                        control, process, base, f"/{rest}", asked(path, address), arguments.requests
                    )
    print(f"{'':8}" + "".join(f"{server:>14}" for server in at))
    for path in PATHS:
        print(f"{path:8}" + "".join(f"{counts[path, server]:14.0f}" for server in at))


def readers(arguments):
    """CPU time per request by how many connections ask at once, row by row."""
    wrk, = measure.programs("wrk")
    server_core, client_core = measure.cores()
    with servers(arguments, measure.pinned(server_core, []), TRUSTED) as at:
        for connections in map(int, arguments.readers.split(",")):
            runs = {}
            for _ in range(arguments.rounds):
                for server, (process, address) in at.items():
                    run = measure.wrk(wrk, client_core, process, address("50 KB"), {}, connections,
                                      arguments.seconds)
                    runs.setdefault(server, []).append(run)
            for server, made in runs.items():
                cpu, off = measure.spread([run.cpu for run in made])
                p99, _ = measure.spread([run.p99 for run in made])
                yield {"connections": connections, "server": server, "cpu": round(cpu, 2),
                       "spread": round(off, 2), "p99": round(p99, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1, help="of each run")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--requests", type=int, default=5000, help="that are counted under callgrind")
    parser.add_argument("--profile", help="a folder for what callgrind writes")
    parser.add_argument("--readers", help="numbers of connections, with commas")
    parser.add_argument("--polls", type=int, help="polls a second beside the reads")
    parser.add_argument("--interval", type=int, default=2, help="seconds between two polls of a feed")
    parser.add_argument("--changing", type=float, default=1.0, help="the part of polls that bring news")
    arguments = parser.parse_args()
    if arguments.instructions:
        instructions(arguments)
    elif arguments.readers:
        for row in readers(arguments):
            print(json.dumps(row), flush=True)
    elif arguments.polls:
        polled.show(arguments)
    else:
        show_comparison(compare(arguments))


if __name__ == "__main__":
    sys.exit(main())
