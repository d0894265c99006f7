"""A gateway on a socket that somebody else opened, as systemd does: it answers there, keeps the socket over a
restart, and says no to what it cannot use."""

import os
import socket
import subprocess
import sys
import tempfile

import stage
from stage import WAIT, free_port


def activate(folder, address, *program, more=()):
    """systemd-socket-activate waits for the first client, and becomes the program."""
    command = ["systemd-socket-activate", "-l", address, *more, *program]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ask(port):
    # The socket may not be open yet.
    return stage.until(lambda: stage.get(f"http://127.0.0.1:{port}/healthz"))


def main():
    program = str(stage.given().bin)
    for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        serve = [program, "serve", "--listen", "127.0.0.1:1", "--data", "data"]
        gateway = activate(folder, f"127.0.0.1:{port}", *serve)
        answer = ask(port)[1]
        line = gateway.stdout.readline()
        gateway.terminate()
        _, log = gateway.communicate(timeout=WAIT)
        # It wins over --listen.
        if answer != "ok\n" or line != f"listening on http://127.0.0.1:{port}\n":
            sys.exit(f"{answer!r}, {line!r}: {log}")
        if gateway.returncode != 0:
            sys.exit(f"it ended with status {gateway.returncode}: {log}")
        # A socket of all addresses needs a public address, and a datagram is none.
        for address, more, said in [
            (f"0.0.0.0:{port}", [], "server.public_url"),
            (f"127.0.0.1:{port}", ["-l", f"127.0.0.1:{free_port()}"], "2 sockets were handed over"),
        ]:
            refused = activate(folder, address, *serve[:2], "--data", "data", more=more)
            # It begins with the first client, and may be gone before that one is answered.
            stage.until(lambda: refused.poll() is not None or socket.create_connection(("127.0.0.1", port)).close())
            _, log = refused.communicate(timeout=WAIT)
            if refused.returncode != 2 or said not in log:
                sys.exit(f"{address}: status {refused.returncode}, {log}")
    print("a socket that was handed over is listened on")


if __name__ == "__main__":
    main()
