#!/usr/bin/env python3
"""CPU time per request that is passed through to an origin: the gateway against nginx as a proxy.

The origin is another nginx, with a page of 10 KB. Both proxies run on one core, wrk and the origin on another where
there is one, and both keep connections to the origin. Runs are short and interleaved, as in serving.py.

    benches/compare/passing.py                       the table, about a minute
    benches/compare/passing.py --instructions        instructions per request under callgrind
"""

import sys

import measure
import origin_stage
import serving
import stage

# The most that is aimed at, as a ratio of nginx.
AIM = 1.5
PAGE = 10_000
# The host of the origin, which leads to this machine.
HOST = "localhost"
ORIGIN = "server {{ listen 127.0.0.1:{port}; root {root}; default_type text/html; " + serving.FAST + " }}"
# What a careful operator writes, with the headers that the gateway sends too.
PROXY = """
upstream origin {{ server {origin}; keepalive 64; keepalive_requests 1000000000; }}
server {{
    listen 127.0.0.1:{port} backlog=4096;
    keepalive_requests 1000000000;
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


def passed(servers):
    """Pages of 10 KB and of 1 KB of a site."""
    files = servers.folder / "files"
    files.mkdir()
    for name, size in (("page", PAGE), ("small", PAGE // 10)):
        (files / f"{name}.html").write_text(("<p>Words that fill a page.</p>\n" * PAGE)[:size])
    port = stage.free_port()
    origin, text = f"127.0.0.1:{port}", ORIGIN.format(port=port, root=files)
    servers.nginx("origin", text, f"http://{origin}/page.html", measure.pinned(serving.CLIENT_CORE))
    table = origin_stage.origin(f"http://{origin}/", host=HOST)
    gateway = servers.gateway(f"[polling]\nallow_private = true\n{table}")
    servers.at["tidegate"] = gateway.pid, gateway.base.replace("127.0.0.1", HOST)
    for name, more in (("nginx", ""), ("nginx, unbuffered", "proxy_buffering off; proxy_request_buffering off;")):
        port = stage.free_port()
        text = PROXY.format(port=port, origin=origin, more=more)
        process = servers.nginx(name.replace(", ", "-"), text, f"http://127.0.0.1:{port}/page.html")
        servers.at[name] = process, f"http://{HOST}:{port}"
    servers.paths = {
        "10 KB": ("/page.html", {}, AIM), "304": ("/page.html", {"If-None-Match": "TAG"}, AIM),
        "1 KB": ("/small.html", {}, AIM),
    }


if __name__ == "__main__":
    sys.exit(serving.show(serving.options(), passed))
