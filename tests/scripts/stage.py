"""What the scripts, the long tests and the comparisons have in common: options, a publisher that serves what it is given,
and the gateway in front of it. Standard library only."""

import argparse
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

TOKEN = "a-token-for-the-scripts"
# How long anything may take, in seconds.
WAIT = 60
TARGET = os.environ.get("CARGO_TARGET_DIR", "target")
# The options that are paths.
PATHS = {"bin", "corpus", "disk", "folder", "old", "out", "page", "scorers", "shim", "work"}


def given(*needed, **usual):
    """What the script was called with: options that it needs, and others with their usual values, `bin` among them. Paths
    are whole. A tuple is of words without an option's name: all of them count where none is named."""
    about = {"description": sys.modules["__main__"].__doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    arguments = argparse.ArgumentParser(**about)
    as_path = lambda text: pathlib.Path(text).resolve()
    usual = {"bin": os.environ.get("TIDEGATE_BIN") or f"{TARGET}/release/tidegate", **usual}
    for name in needed:
        arguments.add_argument(f"--{name}", required=True, type=as_path if name in PATHS else str)
    for name, value in usual.items():
        if isinstance(value, tuple):
            arguments.add_argument(name, nargs="*", default=value, metavar=name.upper(), help=", ".join(value))
            continue
        kind = as_path if name in PATHS else str if value is None else type(value)
        how = {"action": "store_true"} if value is False else {"type": kind, "default": value}
        arguments.add_argument(f"--{name.replace('_', '-')}", **how)
    call = arguments.parse_args()
    for name, value in usual.items():
        if isinstance(value, tuple) and (unknown := set(getattr(call, name)) - set(value)):
            arguments.error(f"no such {name}: {', '.join(unknown)}")
    if not call.bin.exists():
        sys.exit(f"there is no {call.bin}; build it, or name another with TIDEGATE_BIN")
    return call


def program(*names):
    """The path of a foreign program by one of its names. Without it a script passes, but in CI."""
    path = f"{os.environ['PATH']}:/usr/sbin:{TARGET}/tools"
    found = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if not found:
        print(f"no {names[0]} here")
        sys.exit(1 if os.environ.get("CI") else 0)
    return found


def psql(program, url, statement):
    """The rows that a database answers, as texts."""
    command = [program, "-qXAt", "-v", "ON_ERROR_STOP=1", url, "-c", statement]
    quiet = {**os.environ, "PGOPTIONS": "-c client_min_messages=warning"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=quiet)
    return [line.split("|") for line in done.stdout.splitlines()]


def memory(process):
    """Resident memory of a process now and at its peak, in bytes."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return tuple(int(re.search(rf"^{key}:\s+(\d+) kB", status, re.M).group(1)) << 10 for key in ("VmRSS", "VmHWM"))


def disk(folder):
    """Bytes that a folder takes on disk; what is deleted meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_blocks * 512
    return total


def free_port():
    """A port that nobody has just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def check(is_right, fault):
    if not is_right:
        raise RuntimeError(fault)


def until(condition, wait=WAIT, pause=0.05):
    """What a condition answers as soon as that is something, or in the end. Whom it does not reach may come yet."""
    end, found = time.monotonic() + wait, None
    while not found and time.monotonic() < end:
        with contextlib.suppress(OSError):
            found = condition()
        if not found:
            time.sleep(pause)
    return found


def get(address, method="GET", data=None, headers=None, wait=WAIT):
    """The status, the body and the headers of an answer, whatever its status is."""
    request = urllib.request.Request(address, data, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=wait) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


class Server(http.server.ThreadingHTTPServer):
    """A server that runs from its beginning on."""

    daemon_threads, request_queue_size = True, 256

    def __init__(self, handler, address="127.0.0.1"):
        super().__init__((address, 0), handler)
        self.base = "http://%s:%d" % self.server_address[:2]
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 304:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Site:
    """A publisher. `documents` maps a path to a body; its answers are conditional as Apache's are."""

    def __init__(self):
        site, self.documents = self, {}

        class Documents(Handler):
            def do_GET(self):
                body, headers = site.documents.get(self.path), [("content-type", "application/xml")]
                if body is None:
                    self.answer(404, b"not here", headers)
                    return
                tag = '"%s"' % hashlib.sha256(body).hexdigest()[:20]
                is_known = self.headers.get("if-none-match") == tag
                self.answer(304 if is_known else 200, b"" if is_known else body, [*headers, ("etag", tag)])

        self.server = Server(Documents)
        self.base = self.server.base


def entry(id, title, text, updated="2026-01-01T00:00:00Z", more=""):
    """An entry in Atom whose text is HTML."""
    return (f"<entry><id>urn:{id}</id><title>{title}</title><updated>{updated}</updated>{more}"
            f'<content type="html">{text}</content></entry>')


def atom(title, entries, id=None, updated="2026-01-01T00:00:00Z", more=""):
    """A feed in Atom with these entries, the newest first."""
    return (f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:{id or title}</id><title>{title}</title>'
            f"<author><name>N</name></author><updated>{updated}</updated>{more}{''.join(entries)}</feed>").encode()


def rss(base, items):
    """A feed in RSS of a site: its items are numbers with their titles and texts, which are markup."""
    texts = "".join(
        f"<item><guid isPermaLink='false'>post-{n}</guid><title>{title}</title><link>{base}/post/{n}</link>"
        f"<description>{text}</description></item>" for n, title, text in items
    )
    return (f'<rss version="2.0"><channel><title>A feed</title><link>{base}/</link><description>All</description>{texts}'
            "</channel></rss>").encode()


def feeds_of(site, names):
    """The tables of feeds that a site has by these names; the gateway polls them when it is told to."""
    feeds = (f'[[feed]]\nname = "{name}"\nurl = "{site.base}/{name}.xml"\n' for name in names)
    return '[polling]\nallow_private = true\nmin_interval = "1h"\n' + "".join(feeds)


class Ended:
    """What ends with its block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Client:
    """Asks a gateway, with its token."""

    def __init__(self, base, token):
        self.base, self.token = base, token

    def ask(self, path, method="GET", body=None, headers=None):
        """The whole answer's body, as bytes; `urllib.error.HTTPError` where it is an error."""
        data = json.dumps(body).encode() if body is not None else None
        every = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(self.base + path, data, {**every, **(headers or {})}, method=method)
        # Its certificate is of an authority of the scripts' own.
        context = ssl._create_unverified_context() if self.base.startswith("https") else None
        with urllib.request.urlopen(request, timeout=WAIT, context=context) as answer:
            return answer.read()

    def feed(self, name, path="", method="GET", body=None):
        """What the administration says of a feed."""
        return json.loads(self.ask(f"/api/v1/feeds/{name}{path}", method, body))

    def poll(self, name):
        """Polls a feed now; an error where that failed."""
        report = self.feed(name, "/poll", "POST")
        if report["error"]:
            raise RuntimeError(f"{name}: {report['error']}")
        return report


class Program(Client, Ended):
    """A gateway by a command, which has written its token to `data` once it listens."""

    def __init__(self, command, folder, data, log):
        self.log = log.open("ab")
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on (https?://\S+)\n", line)
        if not found:
            raise RuntimeError(f"the gateway did not start: {line!r}, see {log}")
        token = data / "admin-token"
        super().__init__(found.group(1), token.read_text().strip() if token.exists() else None)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=WAIT)
        self.log.close()

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=WAIT)
        self.log.close()

    def megabytes(self):
        """Resident memory now and at its peak."""
        return [used >> 20 for used in memory(self.process.pid)]

    def figures(self):
        """The values of /metrics by name with labels."""
        lines = [line.rpartition(" ") for line in self.ask("/metrics").decode().splitlines() if line[0] != "#"]
        return {name: float(value) for name, _, value in lines}


class Gateway(Program):
    """A gateway that runs in `folder` with the given configuration, which needs no `[server]`: `server` holds further
    lines of that table. Without a token it makes one, and keeps it. `begin`: what its command begins with."""

    def __init__(self, program, folder, configuration, server="", listen="127.0.0.1:0", token=TOKEN, begin=()):
        folder = pathlib.Path(folder)
        self.config = folder / "tidegate.toml"
        own = f'admin_token = "{token}"\n' if token else ""
        self.config.write_text(f'[server]\nlisten = "{listen}"\n{own}{server}\n{configuration}')
        command = [*begin, program, "serve", "--config", self.config, "--data", folder / "data"]
        super().__init__(command, None, folder / "data", folder / "gateway.log")
        self.token = token or self.token


def certify(folder, host):
    """An authority of our own, `ca.pem`, and a certificate of it for a host, `host.pem` with `host.key`."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    (folder / "host.ext").write_text(f"subjectAltName=DNS:{host}\nbasicConstraints=CA:FALSE\n")
    openssl("req", "-x509", *curve, "-days", 2, "-subj", "/CN=test authority",
            "-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    openssl("req", *curve, "-subj", f"/CN={host}", "-keyout", folder / "host.key", "-out", folder / "host.csr")
    openssl("x509", "-req", "-in", folder / "host.csr", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key",
            "-CAcreateserial", "-days", 2, "-extfile", folder / "host.ext", "-out", folder / "host.pem")


def status(faults):
    """Prints what is not as it should be, and answers the exit status."""
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0
