"""nginx and Caddy with TLS by the configurations of deploy/, in front of a gateway: both take them, say who the client
is, and let events through as they come.

    packages_proxies.py --nginx PATH --caddy PATH

An empty path leaves that proxy out.
"""

import contextlib
import http.client
import pathlib
import ssl
import subprocess
import sys
import tempfile

import nginx_stage
import stage

CADDYFILE = pathlib.Path(__file__).resolve().parents[2] / "deploy/caddy/Caddyfile"


def start_nginx(program, folder, port, gateway, tls):
    trusted = folder.parent / "ca.pem"
    server = nginx_stage.server(f"127.0.0.1:{port}", gateway, tls=tls)
    return nginx_stage.Server(program, folder, server, lambda: ask(port, trusted, "/healthz")[0] == 200).process


def start_caddy(program, folder, port, gateway, tls):
    folder.mkdir()
    subprocess.run(
        [program, "validate", "--config", CADDYFILE, "--adapter", "caddyfile"],
        check=True, capture_output=True, env={"HOME": str(folder), "PATH": "/usr/bin"},
    )
    text = CADDYFILE.read_text()
    for old, new in [
        ("\nfeeds.example.org {\n", f"\n{{\n\tadmin off\n\tgrace_period 2s\n\tauto_https disable_redirects\n\thttps_port {port}\n}}\n"
         f"https://localhost:{port} {{\n\ttls {tls[0]} {tls[1]}\n"),
        ("reverse_proxy 127.0.0.1:8080 {", f"reverse_proxy {gateway.removeprefix('http://')} {{"),
    ]:
        if text.count(old) != 1:
            sys.exit(f"{CADDYFILE} has not one {old!r}")
        text = text.replace(old, new)
    (folder / "Caddyfile").write_text(text)
    return subprocess.Popen(
        [program, "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"],
        env={"HOME": str(folder), "PATH": "/usr/bin"}, stderr=(folder / "log").open("wb"),
    )


def connect(port, trusted):
    context = ssl.create_default_context(cafile=trusted)
    return http.client.HTTPSConnection("localhost", port, timeout=stage.WAIT, context=context)


def ask(port, trusted, path, headers=None):
    connection = connect(port, trusted)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def check(name, start, program, folder, given):
    folder = folder / name
    folder.mkdir()
    stage.certify(folder, "localhost")
    tls, trusted, port = (folder / "host.pem", folder / "host.key"), folder / "ca.pem", stage.free_port()
    settings = f'public_url = "https://localhost:{port}"\ntrusted_proxies = ["127.0.0.1"]'
    feed = '[polling]\nallow_private = true\n[[feed]]\nname = "news"\nlocal = true\n'
    with stage.Gateway(given.bin, folder, feed, settings) as gateway, contextlib.ExitStack() as ends:
        proxy = start(program, folder / "proxy", port, gateway.base, tls)
        ends.callback(proxy.wait, timeout=stage.WAIT)
        ends.callback(proxy.terminate)
        status, _ = stage.until(lambda: ask(port, trusted, "/healthz"))
        listed = ask(port, trusted, "/sup.json", {"Forwarded": "for=192.0.2.9"})[1]
        if status != 200 or f"https://localhost:{port}/sup.json" not in listed:
            return [f"{name}: {status}, {listed[:400]}"]
        # An event goes out while the stream is open. Whoever ends waits for streams.
        connection = ends.enter_context(contextlib.closing(connect(port, trusted)))
        connection.request("GET", "/events")
        stream = ends.enter_context(contextlib.closing(connection.getresponse()))
        gateway.feed("news", "/items", "POST", {"title": "through the proxy"})
        if not stage.until(lambda: b"news" in stream.readline(), pause=0):
            return [f"{name}: the event never came"]
        log = (folder / "gateway.log").read_text()
        return [f"{name}: {log}"] if "trusted_proxies" in log else []


def main():
    given = stage.given("nginx", "caddy")
    faults, tried = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, start, program in [("nginx", start_nginx, given.nginx), ("caddy", start_caddy, given.caddy)]:
            if program:
                tried.append(name)
                faults += check(name, start, program, pathlib.Path(folder), given)
    print(f"with TLS in front: {', '.join(tried)}, {len(faults)} faults")
    sys.exit(stage.status(faults))


if __name__ == "__main__":
    main()
