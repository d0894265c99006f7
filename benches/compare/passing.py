#!/usr/bin/env python3
"""CPU time per request that is passed through to an origin: the gateway against nginx as a proxy.

The origin is another nginx, with a page of 10 KB. Both proxies run on one core, wrk and the origin on another where
there is one, and both keep connections to the origin. Runs are short and interleaved, as in serving.py.

    benches/compare/passing.py                       the table, about a minute
    benches/compare/passing.py --json FILE           and its figures in a file
    benches/compare/passing.py --instructions        instructions per request under callgrind

Installs nginx, wrk and valgrind from Debian's packages where they are missing and it may.
"""

import argparse
import contextlib
import pathlib
import sys
import tempfile

import measure
import serving_stage

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tests/scripts"))

import nginx_stage
import origin_stage
import stage

# The most that is aimed at, as a ratio of nginx.
AIM = 1.5
PAGE = 10_000
# The host of the origin, which leads to this machine.
HOST = "localhost"
# What is asked for, and the headers of the request.
PATHS = {"10 KB": ("/page.html", {}), "304": ("/page.html", {"If-None-Match": "TAG"}), "1 KB": ("/small.html", {})}
ONE_PROCESS = "master_process off; worker_processes 1;"
KEPT = "keepalive_requests 1000000000;"
ORIGIN = "server {{ listen 127.0.0.1:{port}; root {root}; default_type text/html; " + KEPT + " }}"
# What a careful operator writes, with the headers that the gateway sends too.
PROXY = (
    """
    upstream origin {{ server {origin}; keepalive 64; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        """
    + KEPT
    + """
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host {origin};
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Host $host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header Forwarded "for=$remote_addr;host=$host;proto=$scheme";
            proxy_set_header Via "1.1 nginx";
            add_header Via "1.1 nginx";
            {more}
        }}
    }}
"""
)


def nginx(program, folder, begin, text, ready):
    return nginx_stage.Server(program, folder, text, ready, ONE_PROCESS, begin)


@contextlib.contextmanager
def servers(arguments, begin=()):
    """Process and address of each server that is measured, by name. `begin`: what their commands begin with."""
    (program,) = measure.programs("nginx")
    server_core, client_core = measure.cores()
    begin = measure.pinned(server_core, begin)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        files = folder / "files"
        files.mkdir()
        for name, size in (("page", PAGE), ("small", PAGE // 10)):
            (files / f"{name}.html").write_text(("<p>Words that fill a page.</p>\n" * PAGE)[:size])
        port = stage.free_port()
        origin = f"http://127.0.0.1:{port}"
        text = ORIGIN.format(port=port, root=files)
        stack.callback(
            nginx(program, folder / "origin", measure.pinned(client_core, []), text, f"{origin}/page.html").end
        )
        at = {}
        if pathlib.Path(arguments.bin).exists():
            (folder / "gateway").mkdir()
            gateway = serving_stage.Gateway(
                begin,
                arguments.bin,
                folder / "gateway",
                f"[polling]\nallow_private = true\n{origin_stage.origin(f'{origin}/', host=HOST)}",
            )
            stack.callback(gateway.end)
            at["tidegate"] = gateway.process.pid, here(gateway.base)
        for name, more in (("nginx", ""), ("nginx, unbuffered", "proxy_buffering off; proxy_request_buffering off;")):
            port = stage.free_port()
            text = PROXY.format(port=port, origin=origin.removeprefix("http://"), more=more)
            base = f"http://127.0.0.1:{port}"
            server = nginx(program, folder / name.replace(", ", "-"), begin, text, f"{base}/page.html")
            stack.callback(server.end)
            at[name] = server.process.pid, here(base)
        yield at


def here(base):
    """An address of this machine with the host of the origin."""
    return base.replace("127.0.0.1", HOST)


def asked(base, target, headers):
    """The headers of a request, once the server has answered one as it should."""
    answer = origin_stage.ask(base, target, base.removeprefix("http://"))
    if answer.status != 200 or len(answer.body) % (PAGE // 10):
        raise RuntimeError(f"{base}{target} is answered {answer.status}, {len(answer.body)} bytes")
    return {name: answer.one("etag") if name == "If-None-Match" else value for name, value in headers.items()}


def instructions(arguments):
    """Instructions per request on each path."""
    valgrind, control = measure.programs("valgrind", "callgrind_control")
    with tempfile.TemporaryDirectory() as folder:
        begin = [valgrind, "--tool=callgrind", "-q", f"--callgrind-out-file={arguments.profile or folder}/callgrind.%p"]
        with servers(arguments, begin) as at:
            print(f"{'':8}" + "".join(f"{server:>20}" for server in at))
            for path, (target, headers) in PATHS.items():
                counts = [
                    measure.instructions(
                        control, process, base, target, asked(base, target, headers), arguments.requests
                    )
                    for process, base in at.values()
                ]
                print(f"{path:8}" + "".join(f"{count:20.0f}" for count in counts))


def compare(arguments):
    """The runs of each path and server."""
    (wrk,) = measure.programs("wrk")
    _, client_core = measure.cores()
    runs = {}
    with servers(arguments) as at:
        for number in range(arguments.rounds + 1):
            for path, (target, headers) in PATHS.items():
                for server, (process, base) in at.items():
                    said = asked(base, target, headers)
                    run = measure.wrk(
                        wrk, client_core, process, base + target, said, arguments.connections, arguments.seconds
                    )
                    # The first round warms both up.
                    if number > 0:
                        runs.setdefault((path, server), []).append(run)
    return runs


def show(runs):
    print(
        "CPU per passed request in µs: medians, and half of the distance between the quartiles. Then what the\n"
        "gateway's is to nginx's in the same round, and requests a second.\n"
    )
    print(f"{'':8}{'server':20}{'CPU':>15}{'ratio':>14}{'aim':>6}{'p99 ms':>10}{'a second':>10}")
    ratios = {}
    for (path, server), made in runs.items():
        line = f"{path:8}{server:20}" + "{:9.2f} ±{:4.2f}".format(*measure.spread([run.cpu for run in made]))
        ours = runs.get((path, "tidegate"))
        if server == "tidegate" or not ours:
            line += " " * 20
        else:
            middle, off = measure.spread([a.cpu / b.cpu for a, b in zip(ours, made, strict=True)])
            ratios[path, server] = middle
            line += f"{middle:8.2f} ±{off:4.2f}" + (f"{AIM:6.2f}" if server == "nginx" else " " * 6)
        print(
            line
            + f"{measure.spread([run.p99 for run in made])[0]:10.2f}"
            + f"{measure.spread([run.rate for run in made])[0]:10.0f}"
        )
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="target/dist/tidegate")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1, help="of each run")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--requests", type=int, default=2000, help="that are counted under callgrind")
    parser.add_argument("--profile", help="a folder for what callgrind writes")
    arguments = parser.parse_args()
    if arguments.instructions:
        return instructions(arguments)
    runs = compare(arguments)
    ratios = show(runs)
    if arguments.json:
        cpu = {
            f"{path}, {server}": measure.spread([run.cpu for run in made])[0] for (path, server), made in runs.items()
        }
        measure.report(
            arguments.json, cpu=cpu, ratios={f"{path}, to {server}": ratio for (path, server), ratio in ratios.items()}
        )


if __name__ == "__main__":
    sys.exit(main())
