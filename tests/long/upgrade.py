"""Gateways of one database are replaced one after the other by those of another program, under load.

    upgrade.py --old PATH/TO/tidegate --new PATH/TO/tidegate --url DATABASE [--feeds N] [--every N]

The database may be used: everything is in a schema of its own, which is removed. Readers, consumers, subscribers and
an operator go from gateway to gateway meanwhile, and nobody may notice. Prints how long each step took. upgrade.sh builds
an older program and starts a database for it."""

import argparse
import pathlib
import random
import shutil
import subprocess
import tempfile

import gateways_stage
from gateways_run import Stage, finish


class Upgrade(Stage):
    """The gateways that follow first, then the one that writes: as `docs/operators/cluster.md` says."""

    def begin(self, on_postgres):
        # The older program may not know every key.
        self.fleet.on_postgres = on_postgres
        super().begin()

    def replace(self, which, what):
        self.end(which, what)
        self.fleet.start(which)
        self.fleet.until_shared(f"{what}, and the new one")
        self.goes_on(3)

    def upgrade(self, new, on_postgres):
        first, second = self.others()
        self.fleet.program, self.fleet.on_postgres = new, on_postgres
        self.replace(first, "the first that follows is replaced")
        self.replace(second, "the second that follows is replaced")
        self.fleet.is_headless = True
        self.replace(self.fleet.writer(), "the one that writes is replaced")
        self.fleet.is_headless = False


def check(program, work, on_postgres):
    """Whether a program knows all keys of a configuration."""
    file = work / "check.toml"
    file.write_text("[server]\n" + on_postgres.format(work / "url"))
    return subprocess.run([program, "check", "-c", file], capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--old", "--new", "--url"):
        parser.add_argument(name, required=True)
    parser.add_argument("--feeds", type=int, default=150)
    parser.add_argument("--every", type=int, default=3)
    arguments = parser.parse_args()
    psql = shutil.which("psql") or str(max(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql")))
    schema = f"upgrade_{random.randrange(10 ** 9)}"

    def execute(text):
        command = [psql, arguments.url, "-qAt", "-c", text]
        subprocess.run(command, check=True)

    execute(f"CREATE SCHEMA {schema}")
    work = pathlib.Path(tempfile.mkdtemp(prefix="upgrade"))
    (work / "url").write_text(f"{arguments.url}?options=-csearch_path%3D{schema}")
    newer = gateways_stage.ON_POSTGRES
    # A program that has this key demands a standby without it.
    older = newer if check(arguments.old, work, newer) else newer.replace("require_standby = false\n", "")
    stage = Upgrade(arguments.old, work, work / "url", "false", arguments.feeds, arguments.every, psql)
    try:
        stage.begin(older)
        stage.upgrade(arguments.new, newer)
        stage.rest()
        finish(stage, has_controls=False)
    finally:
        stage.end_all()
        execute(f"DROP SCHEMA {schema} CASCADE")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
