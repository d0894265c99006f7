"""Gateways of one database are replaced one after the other by those of another program, under load.

    upgrade.py --old PATH/TO/tidegate --new PATH/TO/tidegate --url DATABASE [--feeds N] [--every N]

Readers, consumers, subscribers and who makes items go from gateway to gateway meanwhile, and nobody may notice. Prints how
long each step took. upgrade.sh builds an older program and starts a database for it."""

import argparse
import pathlib
import sys
import tempfile

from gateways_run import gateways


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("old", "new", "url"):
        parser.add_argument(f"--{name}", required=True)
    for name, usual in (("feeds", 150), ("every", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()

    def replace(run):
        """As `docs/operators/cluster.md` says."""
        run.fleet.program = given.new
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
