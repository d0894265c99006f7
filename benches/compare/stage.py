"""The gateway with one feed, and nginx with the same bytes as files, each on a processor of its own."""

import gzip
import http.client
import http.server
import os
import pathlib
import re
import subprocess
import threading
import time

FEED = "/feeds/bench"
TEXT = (
    "The keeper noted the wind, the <a href=\"https://light.example/log\">log</a> and the ships,"
    " entry %d of watch %d, and wound the clock."
)


def document(items=30, size=1550):
    """An Atom feed whose reader view has about 50 KB."""
    entries = []
    for n in range(items):
        text = " ".join(TEXT % (n, i * 7919 + n * 104729) for i in range(size // 140))
        text = text.replace("<", "&lt;").replace(">", "&gt;")
        entries.append(
            f"<entry><id>tag:light.example,2026:{n}</id><title>Watch {n}</title>"
            f"<link href='https://light.example/{n}'/>"
            f"<updated>2026-01-{28 - n % 28:02}T00:00:00Z</updated>"
            f"<content type='html'>{text}</content></entry>"
        )
    head = (
        "<?xml version='1.0' encoding='utf-8'?><feed xmlns='http://www.w3.org/2005/Atom'>"
        "<title>The light</title><id>urn:light</id><updated>2026-01-28T00:00:00Z</updated>"
    )
    return (head + "".join(entries) + "</feed>").encode()


class Publisher:
    """Serves one document at any path."""

    def __init__(self, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("content-type", "application/atom+xml")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/feed.xml" % self.server.server_address[1]


def fetch(port, path, headers=()):
    """Status, headers and body of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body


def gateway(binary, folder, url, before=()):
    """A running gateway that has taken in the feed: the process and its port."""
    folder = pathlib.Path(folder)
    config = folder / "tidegate.toml"
    config.write_text(
        f"[polling]\nallow_private = true\n\n[[feed]]\nname = \"bench\"\nurl = \"{url}\"\n"
    )
    command = [*before, binary, "serve", "-c", config, "-l", "127.0.0.1:0", "-d", folder / "data"]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    port = int(re.search(r":(\d+)\s*$", process.stdout.readline()).group(1))
    end = time.monotonic() + 120
    while fetch(port, FEED)[0] != 200:
        if time.monotonic() > end:
            raise SystemExit("the gateway did not take in the feed:\n" + (folder / "log").read_text())
        time.sleep(0.2)
    return process, port


def paths(port):
    """What is asked for: name, path and headers."""
    tag = fetch(port, FEED)[1]["etag"]
    return [
        ("identity", FEED, {}),
        ("gzip", FEED, {"accept-encoding": "gzip"}),
        ("304", FEED, {"if-none-match": tag}),
        ("SUP", "/sup.json", {}),
    ]


def nginx(binary, folder, port, tidegate_port, before=()):
    """nginx with the documents of the gateway as files: the process and its worker."""
    folder = pathlib.Path(folder)
    site = folder / "site"
    (site / "feeds").mkdir(parents=True)
    for path in (FEED, "/sup.json"):
        body = fetch(tidegate_port, path)[2]
        (site / path[1:]).write_bytes(body)
        (site / (path[1:] + ".gz")).write_bytes(gzip.compress(body, 6, mtime=0))
    config = folder / "nginx.conf"
    config.write_text(
        "daemon off; worker_processes 1; pid %s/nginx.pid; error_log %s/nginx.log;\n"
        "events { worker_connections 512; }\n"
        "http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;\n"
        "open_file_cache max=100 inactive=600s; open_file_cache_valid 600s;\n"
        "default_type application/atom+xml; gzip_static on;\n"
        "server { listen 127.0.0.1:%d; root %s; } }\n" % (folder, folder, port, site)
    )
    for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        os.makedirs(f"/var/lib/nginx/{name}", exist_ok=True)
    process = subprocess.Popen([*before, binary, "-c", config])
    end = time.monotonic() + 10
    while time.monotonic() < end:
        time.sleep(0.2)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        if children.split():
            return process, int(children.split()[0])
    raise SystemExit("nginx did not start")
