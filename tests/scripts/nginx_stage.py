"""nginx in front of a gateway, with a configuration of its own and no right to anything else."""

import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

import stage

CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_processes auto;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache keys_zone=feeds:4m;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header Connection "";
    server {{
        listen {address};
        location {path} {{
            proxy_pass {gateway}/;
            {more}
        }}
    }}
}}
"""
# A cache as manuals show it: what may be kept is kept, and old copies are asked about.
CACHE = """
            proxy_cache feeds;
            proxy_cache_revalidate on;
            proxy_cache_lock on;
            add_header X-Cache $upstream_cache_status;
"""


def free_port(address="127.0.0.1"):
    with socket.socket() as found:
        found.bind((address, 0))
        return found.getsockname()[1]


class Nginx:
    """Hands `path` of its own address on to a gateway."""

    def __init__(self, program, folder, port, gateway, path="/", more=""):
        folder = pathlib.Path(folder)
        folder.mkdir()
        address = f"127.0.0.1:{port}"
        (folder / "nginx.conf").write_text(CONFIGURATION.format(
            folder=folder, address=address, gateway=gateway, path=path, more=more
        ))
        # As root it would become another user, who may not write below the folder.
        self.process = subprocess.Popen([
            program, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log",
            "-g", "user root;" if pathlib.Path.home() == pathlib.Path("/root") else "",
        ])
        self.base = f"http://{address}"
        for _ in range(stage.WAIT * 10):
            try:
                urllib.request.urlopen(f"{self.base}{path}healthz", timeout=stage.WAIT).read()
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError(f"nginx did not start: see {folder}/error.log")

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=stage.WAIT)
