"""What the comparisons measure with: CPU time of a process, wrk, and instructions under callgrind."""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import statistics
import subprocess
import time

# Debian's packages of the programs that may be missing.
PACKAGES = {"nginx": "nginx-light", "wrk": "wrk", "valgrind": "valgrind", "callgrind_control": "valgrind",
            "newsboat": "newsboat"}
# How long a program may take to begin or to end, in seconds.
WAIT = 120


def programs(*names):
    """The paths of these programs, which are installed where they are missing and that is allowed."""
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    missing = sorted({PACKAGES[name] for name in names if not shutil.which(name, path=path)})
    if missing:
        quiet = {"stdout": subprocess.DEVNULL, "check": True}
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], **quiet)
    return [shutil.which(name, path=path) for name in names]


def cores():
    """The cores of the server and of its clients: the same one where there is no other."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def pinned(core, command):
    """A command that runs on one core."""
    return ["taskset", "-c", str(core), *map(str, command)]


def cpu(process):
    """How long the threads of a process have run so far, those that ended included, in seconds."""
    # The kernel's name for the CPU clock of another process (clock_getcpuclockid(3)).
    return time.clock_gettime((~process << 3) | 2)


def memory(process):
    """Resident memory of a process in bytes."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) * 1024


def counted(process, name):
    """What the system has counted of what a process reads and writes."""
    counts = pathlib.Path(f"/proc/{process}/io").read_text()
    return int(re.search(rf"^{name}: (\d+)", counts, re.M).group(1))


def written(process):
    """Bytes of the pages that a process made dirty: more than it wrote where the file system has large folios."""
    return counted(process, "write_bytes")


def handed(process):
    """Bytes that a process handed to the system to write."""
    return counted(process, "wchar")


def disk(folder):
    """Bytes that a folder takes on disk; what is deleted meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def report(path, **what):
    """Writes figures to a file of JSON for `plot.py`, with what they were made on."""
    made = {
        "day": datetime.date.today().isoformat(),
        "processors": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "load": round(os.getloadavg()[1], 1),
    }
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Six digits say enough.
    what = json.loads(json.dumps(what), parse_float=lambda digits: float(f"{float(digits):.6g}"))
    path.write_text(json.dumps({"made": made, **what}) + "\n")


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


MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def wrk(program, core, process, address, headers, connections, seconds):
    """Asks `address` as fast as it is answered, and measures what that takes `process`."""
    command = [program, "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    begun = cpu(process)
    out = subprocess.run(
        pinned(core, [*command, address]), stdout=subprocess.PIPE, text=True, check=True,
        timeout=seconds + WAIT,
    ).stdout
    taken = cpu(process) - begun
    if "Non-2xx" in out or "Socket errors" in out:
        raise RuntimeError(f"{address} was not always answered:\n{out}")
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s|m)\b", out).groups()
    return Run(requests, taken / requests * 1e6, rate, float(number) * MILLISECONDS[unit])


def spread(values):
    """Median, and half of the distance between the quartiles, of some figures."""
    if len(values) < 2:
        return values[0], 0.0
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return middle, (third - first) / 2


def ask(connection, request, number):
    """Sends a request so many times over one connection, each when the one before is answered."""
    for _ in range(number):
        connection.sendall(request)
        head = b""
        while b"\r\n\r\n" not in head:
            head += received(connection)
        head, _, body = head.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        status = head.split(b" ", 2)[1]
        left = int(length.group(1)) - len(body) if length and status != b"304" else 0
        while left > 0:
            left -= len(received(connection))
        if status not in (b"200", b"304"):
            raise RuntimeError(f"answered {status.decode()}")


def received(connection):
    data = connection.recv(256 * 1024)
    if not data:
        raise RuntimeError("the connection was closed in the middle of an answer")
    return data


def request(host, path, headers):
    """A request for [`ask`], with the headers that wrk sends."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def instructions(control, process, address, path, headers, number):
    """Instructions of a process under callgrind for each request: the difference between so many
    requests and twice as many, so that what is done once counts nothing."""
    host, _, port = address.removeprefix("http://").partition(":")
    counts = []
    with socket.create_connection((host, int(port)), timeout=WAIT) as connection:
        bytes_sent = request(f"{host}:{port}", path, headers)
        ask(connection, bytes_sent, 200)
        for times in (1, 2):
            before = executed(control, process)
            ask(connection, bytes_sent, number * times)
            counts.append(executed(control, process) - before)
    return (counts[1] - counts[0]) / number


def executed(control, process):
    """How many instructions a process under callgrind has executed."""
    out = subprocess.run(
        [control, "-e", "Ir", str(process)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=WAIT
    ).stdout
    # Threads are counted each by itself.
    found = re.findall(r"^\s*Th ?\d+\s+([\d,]+)", out, re.M)
    if not found:
        raise RuntimeError(f"callgrind says nothing of its instructions:\n{out}")
    return sum(int(number.replace(",", "")) for number in found)
