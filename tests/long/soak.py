"""Small feeds that change all the time, and clients that read them: what memory does meanwhile.

    soak.py --bin PATH/TO/tidegate [--feeds N] [--clients N] [--minutes N]

Each feed changes once a minute: an entry comes, the oldest goes, one is edited. Exit status 1 where a
reader was not served, or where resident memory ends above the limit.
"""

import asyncio
import random
import sys
import tempfile
import time

import clients
import feeds
import stage

ENTRIES = 32
# Megabytes after the last change, with all at its limit (docs/operators/sizing.md): 128 of documents, three
# times the 64 of the engine's pages, and 30 for the rest.
LIMIT = 128 + 3 * 64 + 30
VIEWS = ["", "", "", "/sync", "/complete"]


def document(name, turn, edits):
    entries = (
        feeds.entry(name, number, f"{WORDS} {number} {edits.get(number, 0)}", edits.get(number, 0))
        for number in range(turn + ENTRIES, turn, -1)
    )
    return stage.atom(name, entries)


WORDS = "Some words that a post says, and some that another says. " * 24


async def change(site, names, ended):
    """Changes each feed once a minute, one after the other."""
    turns, edits, choose = dict.fromkeys(names, 0), {name: {} for name in names}, random.Random(7)
    while time.monotonic() < ended:
        for name in names:
            turns[name] += 1
            edited = turns[name] + choose.randrange(1, ENTRIES)
            edits[name][edited] = edits[name].get(edited, 0) + 1
            site.documents[f"/{name}.xml"] = document(name, turns[name], edits[name])
            await asyncio.sleep(60 / len(names))
            if time.monotonic() >= ended:
                return


async def watch(gateway, began, ended, seen):
    while time.monotonic() < ended:
        seen.append((time.monotonic() - began, gateway.megabytes()[0]))
        if len(seen) % 6 == 1:
            print(f"{seen[-1][0] / 60:5.1f} min: {seen[-1][1]} MB", flush=True)
        await asyncio.sleep(10)


async def soak(given, site, gateway, names, faults, seen):
    began = time.monotonic()
    ended = began + given.minutes * 60
    choose, place = random.Random(5), clients.Place(gateway.base)
    path = lambda: f"/feeds/{choose.choice(names)}{choose.choice(VIEWS)}"
    readers = [clients.GoodClient(place, f"127.0.1.{n % 200 + 1}", path, 0.4) for n in range(given.clients)]
    await asyncio.gather(
        change(site, names, ended),
        watch(gateway, began, ended + 120, seen),
        *(reader.run(given.minutes * 60) for reader in readers),
    )
    faults += [fault for reader in readers for fault in reader.faults]
    print(f"{sum(len(reader.times) for reader in readers)} answers")


def main():
    given = stage.given(feeds=200, clients=50, minutes=60.0)
    site, faults, seen = stage.Site(), [], []
    names = [f"feed-{n}" for n in range(given.feeds)]
    for name in names:
        site.documents[f"/{name}.xml"] = document(name, 0, {})
    settings = (
        '[polling]\nallow_private = true\nmin_interval = "30s"\nmax_interval = "1m"\n'
        + "".join(f'[[feed]]\nname = "{name}"\nurl = "{site.base}/{name}.xml"\n' for name in names)
    )
    with tempfile.TemporaryDirectory() as root:
        with stage.Gateway(given.bin, root, settings) as gateway:
            for name in names:
                gateway.poll(name)
            asyncio.run(soak(given, site, gateway, names, faults, seen))
            print(f"resident at the end {seen[-1][1]} MB, peak {gateway.megabytes()[1]} MB")
            print(f"the data folder takes {stage.disk(root) >> 20} MB")
            if seen[-1][1] > LIMIT:
                faults.append(f"{seen[-1][1]} MB are resident at the end, the limit is {LIMIT}")
    return stage.status(faults)


sys.exit(main())
