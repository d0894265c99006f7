"""Gateways of one database are replaced one after the other by those of another program, under load. Readers, consumers,
subscribers and who makes items go from gateway to gateway meanwhile, and nobody may notice. Prints how long each step
took. upgrade.sh builds an older program and starts a database for it.
"""

import pathlib
import sys
import tempfile

import stage
from gateways_run import gateways


def main():
    given = stage.given("old", "url", feeds=150, every=3)

    def replace(run):
        """As `docs/operators/cluster.md` says."""
        run.fleet.program = given.bin
        for which in run.fleet.all:
            with run.fault(f"gateway {which} replaced", [which]):
                run.fleet.gateways[which].end()
                # So that changes are made without it.
                run.settle("others poll")
                run.fleet.start(which)

    with tempfile.TemporaryDirectory(prefix="upgrade") as work:
        gateways(given.old, pathlib.Path(work), given.url, None, given.feeds, given.every, [replace])


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"upgrade: {error}")
