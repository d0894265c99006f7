"""The gateway gets and renews its certificate from Pebble, with a name server that leads every name here.

    acme_order.py --bin PATH/TO/tidegate
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import stage

NAMES = ["feeds.example.org", "news.example.org"]
# How long a certificate is good, in seconds: it is renewed after two thirds.
VALIDITY = 60


class NameServer:
    """Leads every name to 127.0.0.1, but for those that were told otherwise."""

    def __init__(self, folder):
        self.port, self.management = stage.free_port(), stage.free_port()
        self.process = subprocess.Popen(
            ["pebble-challtestsrv", "-defaultIPv6", "", "-dns01", f"127.0.0.1:{self.port}", "-http01", "", "-https01", "",
             "-tlsalpn01", "", "-management", f"127.0.0.1:{self.management}"],
            stdout=(folder / "names.log").open("wb"), stderr=subprocess.STDOUT,
        )
        wait_for("the name server", lambda: self.lead("nowhere.example.org", "127.0.0.2"))

    def lead(self, name, address):
        body = json.dumps({"host": name, "addresses": [address]}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.management}/add-a", body, method="POST")
        with urllib.request.urlopen(request, timeout=stage.WAIT) as answer:
            return answer.status == 200


class Pebble:
    """An authority that looks for proof at a port of this machine. It forgets all when it ends."""

    def __init__(self, folder, names, port, listen=None):
        self.folder, self.names, self.looked_at = folder, names, port
        self.port, self.management = listen or stage.free_port(), stage.free_port()
        configuration = folder / "pebble.json"
        configuration.write_text(json.dumps({"pebble": {
            "listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{self.management}",
            "certificate": str(folder / "host.pem"), "privateKey": str(folder / "host.key"),
            "httpPort": stage.free_port(), "tlsPort": port, "certificateValidityPeriod": VALIDITY,
        }}))
        self.process = subprocess.Popen(
            ["pebble", "-config", configuration, "-dnsserver", f"127.0.0.1:{names.port}"],
            env={**os.environ, "PEBBLE_VA_NOSLEEP": "1"},
            stdout=(folder / "pebble.log").open("ab"), stderr=subprocess.STDOUT,
        )
        self.directory = f"https://localhost:{self.port}/dir"
        wait_for("pebble", self.root)

    def root(self):
        """The certificate at the root of what it hands out."""
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        address = f"https://localhost:{self.management}/roots/0"
        with urllib.request.urlopen(address, timeout=stage.WAIT, context=context) as answer:
            return answer.read().decode()

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=stage.WAIT)


def wait_for(what, found, seconds=stage.WAIT):
    """What `found` answers, as soon as that is something."""
    until, last = time.monotonic() + seconds, None
    while time.monotonic() < until:
        try:
            answer = found()
            if answer:
                return answer
        except OSError as error:
            last = error
        time.sleep(0.2)
    raise RuntimeError(f"{what}: nothing in {seconds} s; {last}")


def ask(port, name, roots, path="/healthz"):
    """The certificate that is shown for a name, where its chain leads to a root and it is good now; and the answer."""
    context = ssl.create_default_context(cadata=roots)
    raw = socket.create_connection(("127.0.0.1", port), timeout=stage.WAIT)
    with context.wrap_socket(raw, server_hostname=name) as stream:
        shown = stream.getpeercert()
        head = f"GET {path} HTTP/1.1\r\nhost: {name}\r\nauthorization: Bearer {stage.TOKEN}\r\nconnection: close\r\n\r\n"
        stream.sendall(head.encode())
        answer = b"".join(iter(lambda: stream.recv(4096), b""))
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"{name}: {answer[:80]!r}")
    return shown, answer.decode()


def handshake(port, name, roots):
    return ask(port, name, roots)[0]


class Program:
    """The gateway that asks for certificates."""

    def __init__(self, bin, folder, port, directory, names, believed=None):
        self.folder = folder
        listed = ", ".join(f'"{name}"' for name in names)
        (folder / "tidegate.toml").write_text(
            f'[server]\nlisten = "127.0.0.1:{port}"\npublic_url = "https://{names[0]}"\nadmin_token = "{stage.TOKEN}"\n'
            f'acme_names = [{listed}]\nacme_agreed = true\nacme_contact = "admin@example.org"\n'
            f'acme_directory = "{directory}"\n[polling]\nca_file = "{believed or folder / "ca.pem"}"\n'
            '[[feed]]\nname = "list"\nlocal = true\n'
        )
        self.process = subprocess.Popen(
            [bin, "serve", "--config", folder / "tidegate.toml", "--data", folder / "data"],
            stdout=subprocess.PIPE, stderr=(folder / "gateway.log").open("ab"), text=True,
        )
        line = self.process.stdout.readline()
        if line != f"listening on https://127.0.0.1:{port}\n":
            raise RuntimeError(f"the gateway did not start: {line!r}")

    def said(self):
        return (self.folder / "gateway.log").read_text()

    def orders(self):
        """How often a certificate was asked for in this folder."""
        return self.said().count("asks for a certificate")

    def end(self):
        self.process.terminate()
        if self.process.wait(timeout=stage.WAIT) != 0:
            raise RuntimeError("the gateway ended badly")


def modes(folder):
    """What is kept, with its rights."""
    return {file.name.split("-")[0]: oct(file.stat().st_mode & 0o777) for file in (folder / "data/acme").iterdir()}


def run(bin, folder):
    faults = []

    def expect(is_so, what):
        print(("ok      " if is_so else "WRONG   ") + what)
        if not is_so:
            faults.append(what)

    # By which Pebble itself is asked.
    stage.certify(folder, "localhost")
    names, port = NameServer(folder), stage.free_port()
    pebble = Pebble(folder, names, port)
    gateway = Program(bin, folder, port, pebble.directory, NAMES)
    lone = None
    try:
        roots = pebble.root()
        first = wait_for("a certificate", lambda: handshake(port, NAMES[0], roots))
        listed = sorted(value for kind, value in first["subjectAltName"])
        expect(listed == sorted(NAMES), f"the certificate has the names: {listed}")
        expect(handshake(port, NAMES[1], roots)["serialNumber"] == first["serialNumber"], "each name is answered with it")
        expires = int(ssl.cert_time_to_seconds(first["notAfter"]))
        _, metrics = ask(port, NAMES[0], roots, "/metrics")
        told = re.search(r"^tidegate_certificate_expiry_seconds(?:{})? (\S+)$", metrics, re.MULTILINE)
        expect(told and float(told[1]) == expires, f"the metrics say when it expires: {told and told[0]}")
        expect(modes(folder) == {"account": "0o600", "certificate": "0o600"}, f"only its owner reads it: {modes(folder)}")

        gateway.end()
        gateway = Program(bin, folder, port, pebble.directory, NAMES)
        again = handshake(port, NAMES[0], roots)
        is_same = again["serialNumber"] == first["serialNumber"]
        expect(is_same and gateway.orders() == 1, "a restart shows it again and asks for none")

        until, shown = time.monotonic() + 2 * VALIDITY, first
        while shown["serialNumber"] == first["serialNumber"] and time.monotonic() < until:
            time.sleep(0.2)
            # Not excused: an expired one is refused here.
            shown = handshake(port, NAMES[0], roots)
        expect(shown["serialNumber"] != first["serialNumber"], "another one came while the first was good")

        # An authority that was made anew knows no account, and has another root.
        old_roots = roots
        pebble.end()
        pebble = Pebble(folder, names, port, listen=pebble.port)
        roots = pebble.root()
        wait_for("a refusal", lambda: "accountDoesNotExist" in gateway.said(), VALIDITY * 2)
        _, metrics = ask(port, NAMES[0], old_roots, "/metrics")
        failures = re.search(r"^tidegate_certificate_failures(?:{})? (\S+)$", metrics, re.MULTILINE)
        expect(failures and float(failures[1]) == 1, f"the metrics count the failure: {failures and failures[0]}")
        gateway.process.send_signal(signal.SIGHUP)
        wait_for("a certificate of the new authority", lambda: handshake(port, NAMES[0], roots))
        expect(len(list((folder / "data/acme").glob("account-*.unknown"))) == 1, "the account that is unknown was put aside")

        gateway.end()
        # Where no certificate was ever got, the gateway lives all the same.
        (folder / "lone").mkdir()
        lone_port = stage.free_port()
        lone = Program(bin, folder / "lone", lone_port, pebble.directory, ["lone.example.org"], folder / "ca.pem")
        health = [bin, "health", "--config", folder / "lone/tidegate.toml"]
        expect(subprocess.run(health, timeout=stage.WAIT).returncode == 0, "a gateway without a certificate lives")
        lone.end()
        expect(subprocess.run(health, timeout=stage.WAIT, capture_output=True).returncode == 1, "one that ended does not")

        names.lead("elsewhere.example.org", "127.0.0.2")
        gateway = Program(bin, folder, port, pebble.directory, [NAMES[0], "elsewhere.example.org"])
        said = "the authority has no proof that elsewhere.example.org is this gateway's"
        wait_for("the reason", lambda: said in gateway.said())
        expect(True, "a name that leads elsewhere is named, with the authority's words")
        expect(bool(handshake(port, NAMES[0], roots)), "the certificate before goes on being shown")
    finally:
        for running in (gateway, lone, pebble, names):
            if running:
                running.process.kill()
    return stage.status(faults)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bin", required=True, type=pathlib.Path)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            sys.exit(run(chosen.bin.resolve(), folder))
        except RuntimeError as error:
            for log in ("gateway.log", "pebble.log"):
                if (folder / log).exists():
                    print(f"-- {log}\n{(folder / log).read_text()[-4000:]}", file=sys.stderr)
            sys.exit(f"{error}")


if __name__ == "__main__":
    main()
