"""What the comparisons measure with: a gateway on one core, its processor time, wrk, and instructions under callgrind."""

import contextlib
import dataclasses
import datetime
import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/scripts"))

import stage

# Debian's packages of the programs whose names are others.
PACKAGES = {"nginx": "nginx-light", "callgrind_control": "valgrind", "h2load": "nghttp2-client"}
# Has wrk ask for the paths of a file in turn.
IN_TURN = """
local requests, at = {}, 0
function init(args)
    for line in io.lines(args[1]) do requests[#requests + 1] = wrk.format(nil, line) end
end
function request()
    at = at % #requests + 1
    return requests[at]
end
"""
# How long a program may take to begin or to end, in seconds.
WAIT = 120
# The requests before instructions are counted.
WARM = 200
MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def program(name):
    """The path of a program; an error that names its package where it is missing."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    stage.check(found, f"there is no {name} here: install Debian's package {PACKAGES.get(name, name)}")
    return found


def given(**usual):
    """What a comparison was called with, which measures the build that packages are made of."""
    return stage.given(bin="target/dist/tidegate", **usual)


def cores():
    """The cores of the server and of its clients: the same one where there is no other."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def pinned(core, command=()):
    """A command that runs on one core."""
    return ["taskset", "-c", str(core), *map(str, command)]


def cpu(process):
    """How long the threads of a process have run so far, those that ended included, in seconds."""
    # The kernel's name for the CPU clock of another process (clock_getcpuclockid(3)).
    return time.clock_gettime((~process << 3) | 2)


def written(process):
    """Bytes that a process handed to the system to write."""
    counts = pathlib.Path(f"/proc/{process}/io").read_text()
    return int(re.search(r"^wchar: (\d+)", counts, re.M).group(1))


def spread(values):
    """Median, and half of the distance between the quartiles, of some figures."""
    if len(values) < 2:
        return values[0], 0.0
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return middle, (third - first) / 2


def ratio(figures, others):
    """The same of each figure in what the other of its round is."""
    return spread([one / other for one, other in zip(figures, others, strict=True)])


def show(title, rows):
    """A table of rows by their names: each a mapping of columns to numbers, or to numbers with what they are off by."""
    def written(value):
        if isinstance(value, tuple):
            return f"{written(value[0])} ±{value[1]:.2g}"
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"

    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [["", *columns]] + [
        [name, *(written(row[column]) if column in row else "-" for column in columns)] for name, row in rows.items()
    ]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    print(f"\n{title}\n")
    for cells in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), flush=True)


def report(path, **what):
    """Writes figures to a file of JSON for `plot.py`, with what they were made on; nothing without a path."""
    if not path:
        return
    made = {
        "day": datetime.date.today().isoformat(),
        "processors": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "load": round(os.getloadavg()[1], 1),
    }
    # Six digits say enough.
    what = json.loads(json.dumps(what), parse_float=lambda digits: float(f"{float(digits):.6g}"))
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(json.dumps({"made": made, **what}) + "\n")


@dataclasses.dataclass
class Run:
    """What one run of wrk came to."""

    requests: int
    # Microseconds of the server's CPU time for each request.
    cpu: float
    # Requests a second.
    rate: float
    # Milliseconds within which 99 of 100 were answered.
    p99: float


def asked(core, process, command, headers, seconds=0):
    """What a program says that asks for something with these headers, and the seconds of CPU time that this takes `process`."""
    headers = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    begun = cpu(process)
    command = pinned(core, [program(command[0]), *headers, *command[1:]])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=seconds + WAIT)
    return done.stdout, cpu(process) - begun


def wrk(core, process, address, headers, connections, seconds, paths=None):
    """Asks `address`, or for the paths of a file there in turn, as fast as it is answered, and measures what that takes
    `process`."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", address]
    if paths:
        script = paths.with_suffix(".lua")
        script.write_text(IN_TURN)
        command += ["-s", script, "--", paths]
    out, taken = asked(core, process, command, headers, seconds)
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(f"{address} was not always answered:\n{out}")
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s|m)\b", out).groups()
    return Run(requests, taken / requests * 1e6, rate, float(number) * MILLISECONDS[unit])


def h2load(core, process, addresses, headers, connections, requests):
    """Asks for the addresses of a file in turn over HTTP/2; microseconds of `process` a request."""
    command = ["h2load", "-t1", f"-c{connections}", "-m1", f"-n{requests}", "-i", addresses]
    out, taken = asked(core, process, command, headers)
    if f"{requests} succeeded, 0 failed, 0 errored" not in out:
        raise RuntimeError(f"it was not always answered:\n{out}")
    return taken / requests * 1e6


def callgrind(folder):
    """What a command begins with whose instructions are counted."""
    return [program("valgrind"), "--tool=callgrind", "-q", f"--callgrind-out-file={folder}/callgrind.%p"]


def executed(process):
    """How many instructions a process under callgrind has executed."""
    command = [program("callgrind_control"), "-e", "Ir", str(process)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT).stdout
    # Threads are counted each by itself.
    found = re.findall(r"^\s*Th ?\d+\s+([\d,]+)", out, re.M)
    if not found:
        raise RuntimeError(f"callgrind says nothing of its instructions:\n{out}")
    return sum(int(number.replace(",", "")) for number in found)


def instructions(process, address, headers, number):
    """Instructions of a process under callgrind for each request: the difference between so many requests and twice as
    many, so that what is done once counts nothing."""
    base, path = re.fullmatch(r"(http://[^/]+)(/.*)", address).groups()
    with contextlib.closing(Connection(base)) as connection:
        counts = []
        for times in (0, 1, 2):
            before = executed(process)
            for _ in range(number * times or WARM):
                connection.ask("GET", path, headers)
            counts.append(executed(process) - before)
    return (counts[2] - counts[1]) / number


class Gateway(stage.Gateway):
    """A gateway whose command begins with some other words: on the first core, where nothing else is said."""

    def __init__(self, program, folder, configuration, server="", begin=pinned(cores()[0])):
        pathlib.Path(folder).mkdir(exist_ok=True)
        super().__init__(program, folder, configuration, server, begin=begin)
        self.pid = self.process.pid


class Connection(http.client.HTTPConnection):
    """One connection to a gateway, which is kept."""

    def __init__(self, base):
        super().__init__(base.removeprefix("http://"), timeout=WAIT)

    def ask(self, method, path, headers):
        """The body of an answer, which is no error."""
        # No header that wrk does not send.
        self.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            self.putheader(name, value)
        self.endheaders()
        answer = self.getresponse()
        body = answer.read()
        if answer.status not in (200, 304):
            raise RuntimeError(f"{path} is answered {answer.status}: {body[:200]}")
        return body

    def poll(self, name):
        """Polls a feed now, and answers the report; an error where that failed or the document was held."""
        report = json.loads(self.ask("POST", f"/api/v1/feeds/{name}/poll", {"authorization": f"Bearer {stage.TOKEN}"}))
        if report.get("outcome") in (None, "failed") or report["held"]:
            raise RuntimeError(f"{name} was not read: {report}")
        return report


def polling(interval, urls, more=""):
    """A gateway's configuration with a feed for each of the addresses by name."""
    feeds = "".join(f'[[feed]]\nname = "{name}"\nurl = "{url}"\n' for name, url in urls.items())
    return f'{more}\n[polling]\nallow_private = true\nmin_interval = "{interval}"\nmax_interval = "{interval}"\n{feeds}'
