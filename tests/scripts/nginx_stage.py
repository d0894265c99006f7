"""nginx in front of a gateway, with a configuration of its own and no right to anything else."""

import pathlib
import subprocess

import stage

CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache keys_zone=feeds:4m;
    {server}
}}
"""
# The servers that are handed out, whose names and files are those of their operator: for the gateway's own address, and
# for a site that it stands in front of.
SERVER = pathlib.Path(__file__).resolve().parents[2] / "deploy/nginx/tidegate.conf"
SITE = SERVER.with_name("site.conf")
# A cache as manuals show it: what may be kept is kept, and old copies are asked about.
CACHE = """
            proxy_cache feeds;
            proxy_cache_revalidate on;
            proxy_cache_lock on;
            add_header X-Cache $upstream_cache_status;
"""


def server(address, gateway, more="", tls=None):
    """The server that is handed out, at another address, in front of this gateway. `tls`: a certificate and its
    key; without them it speaks plain HTTP."""
    handed_out = "location / {\n        proxy_pass http://127.0.0.1:8080;"
    changes = [(handed_out, f"location / {{ {more}\n        proxy_pass {gateway};")]
    return changed(SERVER, "feeds.example.org", changes, address, tls)


def site_server(address, gateway):
    """The server for a site that is handed out, at another address and in plain HTTP, in front of this gateway."""
    changes = [("proxy_pass http://127.0.0.1:8080;", f"proxy_pass {gateway};")]
    return changed(SITE, "blog.example.org", changes, address, None)


def changed(file, host, changes, address, tls):
    """A server that is handed out for a host, with these changes, at another address."""
    text = file.read_text()
    changes += [
        ("listen 443 ssl http2;", f"listen {address} ssl http2;" if tls else f"listen {address};"),
        (f"server_name {host};", "server_name _;"),
    ]
    for key, name, at in [("ssl_certificate", "fullchain", 0), ("ssl_certificate_key", "privkey", 1)]:
        old = f"{key} /etc/letsencrypt/live/{host}/{name}.pem;"
        changes.append((old, f"{key} {tls[at]};" if tls else ""))
    for old, new in changes:
        if text.count(f"    {old}") != 1:
            raise ValueError(f"{file} has not one {old!r}")
        text = text.replace(f"    {old}", f"    {new}")
    return text


class Server(stage.Ended):
    """nginx with these servers, once it answers: `ready` is an address or asks for itself. `base`: its own address.
    `begin`: what its command begins with."""

    def __init__(self, program, folder, servers, ready, processes="worker_processes auto;", begin=(), base=None):
        self.base = base
        folder.mkdir()
        (folder / "nginx.conf").write_text(processes + CONFIGURATION.format(folder=folder, server=servers))
        # As root it would become another user, who may not write below the folder.
        self.process = subprocess.Popen([
            *begin, program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log",
            "-g", "user root;" if pathlib.Path.home() == pathlib.Path("/root") else "",
        ])
        answers = ready if callable(ready) else lambda: stage.get(ready)[0] == 200
        stage.check(stage.until(answers), f"nginx did not start: see {folder}/error.log")

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=stage.WAIT)


def proxy(program, folder, port, gateway, more=""):
    """nginx that hands its own address on to a gateway."""
    base = f"http://127.0.0.1:{port}"
    return Server(program, folder, server(f"127.0.0.1:{port}", gateway, more), f"{base}/healthz", base=base)
