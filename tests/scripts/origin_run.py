"""The gateway in front of a whole site, part by part; see origin.sh.

    origin_run.py --bin PATH/TO/tidegate --nginx PATH/TO/nginx [PART…]

Exit status 1 where something is not as it should be.
"""

import argparse
import importlib
import pathlib
import sys
import tempfile
import time
import traceback

import stage

PARTS = ["crawl", "readers"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--nginx", required=True)
    arguments.add_argument("parts", nargs="*", metavar="PART", help=" ".join(PARTS))
    given = arguments.parse_args()
    faults = []
    for part in given.parts or PARTS:
        print(f"-- {part}", flush=True)
        began, found = time.monotonic(), []
        with tempfile.TemporaryDirectory() as folder:
            try:
                for fault in importlib.import_module(f"origin_{part}").run(given, pathlib.Path(folder)):
                    found.append(fault)
            except Exception as error:
                traceback.print_exc()
                found.append(f"it ended with {error!r}")
        print(f"-- {part}: {time.monotonic() - began:.0f} s, {len(found)} faults", flush=True)
        faults += [f"{part}: {fault}" for fault in found]
    return stage.status(faults)


sys.exit(main())
