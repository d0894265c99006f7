"""A PostgreSQL of its own for the comparisons, that counts what gateways ask it for."""

import collections
import contextlib
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys

import measure
import serving_stage

# Statements of src/store/postgres/statements.rs, by a part that none before them here has.
STATEMENTS = {
    "LOG": "int8send",
    "PUT": "INSERT INTO tidegate_entry",
    "REMOVE": "DELETE FROM tidegate_entry e USING",
    "CLEAR": "DELETE FROM tidegate_entry WHERE",
    "NOTE": "INSERT INTO tidegate_change",
    "NUMBER": "UPDATE tidegate_change SET position",
    "FORGET_NOTES": "DELETE FROM tidegate_change",
    "COUNTER": "FROM tidegate_counter FOR UPDATE",
    "ADVANCE": "UPDATE tidegate_counter c SET position",
    "LOOK": "LEFT JOIN tidegate_entry s",
    "POSITION": "SELECT position FROM tidegate_counter",
    "LOCK": "pg_advisory_xact_lock",
    "GET_MANY": "AS wanted (class, key)",
    "GET": "SELECT value FROM tidegate_entry",
    "CONTAINS": "SELECT EXISTS (SELECT",
    "PORTION": "AS summed WHERE before",
    "SIZES": "SELECT key, octet_length(value)",
    "BEAT": "INSERT INTO tidegate_gateway",
    "FORGET_GATEWAYS": "DELETE FROM tidegate_gateway",
    "GATEWAYS": "FROM tidegate_gateway",
    "BEGIN_READ": "BEGIN ISOLATION LEVEL",
    "BEGIN": "BEGIN",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "SET": "SET ",
}
# Those that read what feeds have, and those that gateways make by the clock; each numbering begins and commits.
READS = ("GET", "GET_MANY", "PORTION", "CONTAINS", "SIZES")
BY_CLOCK = ("LOG", "NUMBER", "FORGET_NOTES", "COUNTER", "ADVANCE", "LOOK", "BEAT", "FORGET_GATEWAYS", "GATEWAYS")
# Checkpoints and vacuums come when a script asks for them.
SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = ''
shared_preload_libraries = 'pg_stat_statements'
fsync = on
max_connections = 200
shared_buffers = '512MB'
max_wal_size = '8GB'
checkpoint_timeout = '1h'
wal_keep_size = '4GB'
autovacuum = off
"""


class Database:
    """The server, and a role `gateway` that is no superuser, whose statements are counted."""

    def __init__(self, folder):
        candidates = pathlib.Path("/usr/lib/postgresql").glob("*/bin")
        found = sorted(candidates, key=lambda place: int(place.parent.name.split(".")[0]))
        if not found:
            sys.exit("there is no PostgreSQL server here: apt-get install postgresql postgresql-contrib")
        self.folder, self.data, self.tools, self.user = folder, folder / "data", found[-1], []
        folder.mkdir()
        # PostgreSQL does not run as root.
        if os.geteuid() == 0:
            self.user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
            folder.parent.chmod(0o711)
            shutil.chown(folder, "nobody", "nogroup")
        self.port, self.password = serving_stage.stage.free_port(), secrets.token_hex(16)
        word = folder / "password"
        word.write_text(self.password)
        word.chmod(0o644)
        how = ["-U", "operator", "-A", "scram-sha-256", f"--pwfile={word}", "--no-instructions"]
        self.run("initdb", "-D", self.data, *how)
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS.format(port=self.port))
        self.run("pg_ctl", "-D", self.data, "-w", "-l", folder / "log", "start")
        self.pid = int((self.data / "postmaster.pid").read_text().split()[0])
        self.sql("CREATE EXTENSION pg_stat_statements")
        self.sql(f"CREATE ROLE gateway LOGIN PASSWORD '{self.password}'")

    def run(self, program, *arguments):
        """What a program of PostgreSQL prints; a server that it starts would keep a pipe open."""
        out = subprocess.PIPE if program in ("psql", "pg_waldump") else subprocess.DEVNULL
        environment = {**os.environ, "HOME": str(self.folder), "PGPASSWORD": self.password}
        command = [*self.user, self.tools / program, *arguments]
        return subprocess.run(command, cwd="/", env=environment, stdout=out, text=True, check=True).stdout

    def sql(self, text):
        """The rows of a statement, as texts."""
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "operator", "-d", "postgres"]
        plain = ["-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages TO 'warning'"]
        return [line.split("\t") for line in self.run("psql", *address, *plain, "-c", text).splitlines()]

    def space(self, schema):
        """An empty schema; the address of a gateway for it."""
        self.sql(f"CREATE SCHEMA {schema} AUTHORIZATION gateway")
        place = f"127.0.0.1:{self.port}/postgres?sslmode=disable&options=-csearch_path%3D{schema}"
        return f"postgresql://gateway:{self.password}@{place}"

    def cpu(self):
        """Seconds of processor that the server and its connections have taken, those that ended included."""
        ticks = os.sysconf("SC_CLK_TCK")
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        taken = sum(int(field) for field in fields[11:15]) / ticks
        for child in pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                taken += measure.cpu(int(child))
        return taken

    def position(self):
        """Where the WAL ends."""
        return self.sql("SELECT pg_current_wal_insert_lsn()")[0][0]

    def logged(self, begin, end):
        """Bytes of WAL between two positions: of records, and of images of pages that were written for the first time
        since a checkpoint."""
        # pg_waldump takes a range without a record for a mistake.
        if begin == end:
            return 0, 0
        self.sql("SELECT pg_switch_wal()")
        out = self.run("pg_waldump", "-p", self.data / "pg_wal", "-s", begin, "-e", end, "--stats")
        found = re.search(r"^Total\s+\d+\s+(\d+) \[.*?\]\s+(\d+) \[", out, re.M)
        return int(found.group(1)), int(found.group(2))

    def reset(self):
        self.sql("SELECT pg_stat_reset(), pg_stat_statements_reset()")

    def statements(self, column="calls"):
        """How often gateways made each statement since the last reset, or another column of pg_stat_statements."""
        flat = r"regexp_replace(query, '\s+', ' ', 'g')"
        rows = self.sql(f"SELECT {column}, {flat} FROM pg_stat_statements WHERE userid = 'gateway'::regrole")
        counts = collections.Counter()
        for value, query in rows:
            names = [name for name, part in STATEMENTS.items() if part in query]
            counts[names[0] if names else "others"] += float(value)
        return counts

    def stop(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")
