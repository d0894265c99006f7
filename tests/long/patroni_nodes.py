"""Three PostgreSQL nodes under Patroni with one etcd, on ports of this machine. The nodes' configuration is
`deploy/cluster/patroni.yml`, with other addresses, folders and passwords."""

import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import stage
import subprocess
import time
import urllib.request

EXAMPLE = pathlib.Path(__file__).parents[2] / "deploy/cluster/patroni.yml"
NODES = 3
# How long the nodes may take to be there, and to follow again, in seconds.
STARTED, FOLLOWS = 90, 90
# What is run, and Debian's package that has it.
NEEDED = {"patroni": "patroni", "patronictl": "patroni", "etcd": "etcd-server"}
# What differs from the example.
MODES = {
    "strict": {},
    "asynchronous": {
        "synchronous_mode_strict: true": "synchronous_mode_strict: false",
        "synchronous_mode: true": "synchronous_mode: false",
    },
}


def newest_postgresql():
    """The folder with PostgreSQL's programs; nothing where there is none."""
    found = pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((path.parent for path in found), key=lambda path: int(path.parent.name), default=None)


def missing():
    """What is not installed that this needs, with the package that has it."""
    lacks = [f"{program} (package {package})" for program, package in NEEDED.items() if not shutil.which(program)]
    return lacks + ([] if newest_postgresql() else ["PostgreSQL's server (package postgresql)"])


def version():
    """The version of Patroni."""
    asked = [shutil.which("patroni"), "--version"]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    said = subprocess.run(asked, check=True, capture_output=True, text=True, env=environment).stdout
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)\.(\d+)", said).groups())


class Node:
    """One node: a Patroni and its PostgreSQL."""

    def __init__(self, cluster, number):
        self.cluster, self.name = cluster, f"node{number + 1}"
        self.folder = cluster.folder / self.name
        self.port, self.rest_port = stage.free_port(), stage.free_port()
        self.data, self.process = self.folder / "data", None
        cluster.make_folder(self.folder)
        self.file = self.folder / "patroni.yml"
        self.file.write_text(self.configuration())

    def configuration(self):
        text = EXAMPLE.read_text()
        cluster = self.cluster
        replaced = {
            "name: node1\n": f"name: {self.name}\n",
            "10.0.0.1:8008": f"127.0.0.1:{self.rest_port}",
            "10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379": f"127.0.0.1:{cluster.etcd_port}",
            " 10.0.0.1:5432\n": f" 127.0.0.1:{self.port}\n",
            " 10.0.0.0/24 ": " 127.0.0.1/32 ",
            "/var/lib/postgresql/15/tidegate\n": f"{self.data}\n",
            "/var/lib/postgresql/tidegate.pgpass": str(self.folder / "pgpass"),
            "/usr/lib/postgresql/15/bin": str(cluster.tools),
            "/var/run/postgresql": str(self.folder),
            "  mode: required\n": "  mode: automatic\n",
            "SUPERUSER-PASSWORD": cluster.passwords["superuser"],
            "REPLICATION-PASSWORD": cluster.passwords["replication"],
            "REWIND-PASSWORD": cluster.passwords["rewind"],
            **MODES[cluster.mode],
        }
        for old, new in replaced.items():
            stage.check(old in text, f"{EXAMPLE} has no {old!r}")
            text = text.replace(old, new)
        return text

    def start(self):
        self.process = self.cluster.run(["patroni", self.file], self.folder, "patroni.log")

    def processes(self):
        """All processes of this node: Patroni, and PostgreSQL's, which run in its folder."""
        found = {self.process.pid} if self.process and self.process.poll() is None else set()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "cwd") == str(self.data):
                    found.add(int(process.name))
        return found

    def walsenders(self):
        """The processes of its PostgreSQL that send to standbys."""
        titles = {}
        for pid in self.processes():
            with contextlib.suppress(OSError):
                titles[pid] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        return {pid for pid, title in titles.items() if b"walsender" in title}

    def signal(self, number):
        """Sends a signal to all of its processes."""
        send(self.processes(), number)

    def kill(self):
        """As if the machine lost its power: nothing of it does anything after any other part ended."""
        while there := self.processes():
            send(there, signal.SIGSTOP)
            send(there, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.02)

    def ask(self, path):
        """Whether Patroni answers 200, and what it says; nothing where it says nothing."""
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest_port}{path}", timeout=1) as answer:
                return answer.status == 200, json.loads(answer.read())
        return False, {}


def send(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Cluster:
    """The three nodes and etcd, below a folder. `mode` is one of `MODES`."""

    def __init__(self, folder, mode):
        self.folder, self.mode, self.tools = folder, mode, newest_postgresql()
        # Neither PostgreSQL nor etcd has to run as root.
        self.user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
        self.passwords = {name: secrets.token_hex(16) for name in ("superuser", "replication", "rewind", "tidegate")}
        self.etcd_port, self.etcd_peer_port = stage.free_port(), stage.free_port()
        self.etcd, self.logs = None, []
        self.make_folder(folder)
        self.nodes = [Node(self, number) for number in range(NODES)]

    def make_folder(self, folder):
        folder.mkdir(parents=True)
        if self.user:
            shutil.chown(folder, self.user["user"], self.user["group"])

    def run(self, command, folder, log):
        self.logs.append((folder / log).open("ab"))
        environment = {"PATH": f"{self.tools}:{os.environ['PATH']}", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        command = [shutil.which(command[0]), *map(str, command[1:])]
        return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=self.logs[-1], stderr=self.logs[-1], start_new_session=True, **self.user)

    def start(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.etcd_peer_port))
        folder = self.folder / "etcd"
        self.make_folder(folder)
        self.etcd = self.run([
            "etcd", "--data-dir", folder / "data", "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ], folder, "etcd.log")
        # The first one makes the database, and leads.
        self.nodes[0].start()
        self.until("the first node leads", STARTED, lambda: self.leader() is self.nodes[0])
        for node in self.nodes[1:]:
            node.start()
        self.until_whole()
        leader = f"postgresql://postgres:{self.passwords['superuser']}@127.0.0.1:{self.nodes[0].port}/postgres"
        for statement in (f"CREATE ROLE tidegate LOGIN PASSWORD '{self.passwords['tidegate']}'",
                          "CREATE DATABASE tidegate OWNER tidegate"):
            stage.psql(self.tools / "psql", leader, statement)

    def end(self):
        for node in self.nodes:
            if node.process:
                node.kill()
        if self.etcd:
            self.etcd.kill()
            self.etcd.wait()
        for log in self.logs:
            log.close()

    def url(self):
        """The address for the gateways, with all nodes."""
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"postgresql://tidegate:{self.passwords['tidegate']}@{hosts}/tidegate?sslmode=disable"

    def leader(self, but=None):
        """The node that takes writes, other than `but`; nothing where there is none."""
        return next((node for node in self.nodes if node is not but and node.ask("/primary")[0]), None)

    def synchronous_standby(self):
        return next((node for node in self.nodes if node.ask("/synchronous")[0]), None)

    def is_whole(self):
        """Whether one leads, the others follow it, and one of them synchronously where one has to."""
        leader, needed = self.leader(), 0 if self.mode == "asynchronous" else 1
        said = leader.ask("/patroni")[1] if leader else {}
        streaming = [one["sync_state"] for one in said.get("replication", []) if one["state"] == "streaming"]
        is_named = not needed or self.synchronous_standby() is not None
        return len(streaming) == NODES - 1 and streaming.count("sync") == needed and is_named

    def until(self, what, seconds, is_it):
        is_in_time = stage.until(is_it, seconds, 0.1)
        stage.check(is_in_time, f"{what}: not within {seconds} s; {[node.ask('/patroni')[1] for node in self.nodes]}")

    def until_whole(self):
        self.until("all nodes follow", FOLLOWS, self.is_whole)

    def switchover(self):
        """Hands over to the synchronous standby, as an operator does."""
        node = self.nodes[0]
        command = ["patronictl", "-c", str(node.file), "switchover", "--force", "tidegate"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(node.folder), "LC_ALL": "C.UTF-8"}
        subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment)
