"""Far more items than a feed keeps are pushed through it: a publisher whose documents turn over.

    endless_feed.py --bin PATH/TO/tidegate [--total N] [--items N] [--listed N]

Disk and memory must not follow the number of items that ever were, and the complete view must answer.
What leaves, who was away and what comes back are `tests/it/evicted.rs`. Exit status 1 where that is not so.
"""

import subprocess
import sys
import tempfile
import time

import feeds
import stage

# Entries that a document has in common with the one before it.
SHARED = 10
# What memory may grow by in the second half.
GROWTH = 1.35
SPARE_MB = 96
# What the disk may grow by with each item that left: its stub, several times over until the engine cleans
# its file, or the store is compacted.
LEFT_KB = 8
# The engine frees what was replaced on disk in the background, as between two polls; for so many seconds here.
PAUSE = 10


def document(first, last):
    """The posts of these numbers, the newest first."""
    numbers = range(last, first - 1, -1)
    return stage.atom("endless", (feeds.entry("endless", n, f"What post {n} says.") for n in numbers))


def main():
    given = stage.given(total=300_000, items=20_000, listed=5_000)
    site, faults = stage.Site(), []
    limits = f"[publish]\nitems = {given.items}\narchive_entries = 500\narchives = {2 * given.items // 500}\n"
    settings = stage.feeds_of(site, ["endless"]) + limits
    with tempfile.TemporaryDirectory() as root:
        site.documents["/endless.xml"] = document(1, given.listed)
        gateway = stage.Gateway(given.bin, root, settings)
        try:
            gateway.poll("endless")
            half, last = None, given.listed
            while last < given.total:
                begun, last = time.monotonic(), last + given.listed - SHARED
                site.documents["/endless.xml"] = document(last - given.listed + 1, last)
                held = gateway.poll("endless")["held"]
                stage.check(not held, f"held: {held}")
                took = time.monotonic() - begun
                time.sleep(PAUSE)
                state = gateway.feed("endless")["state"]
                living, left = state["counts"]["living"], state["evicted"]["count"]
                _, peak = gateway.megabytes()
                disk = stage.disk(root) >> 20
                print(f"{last}: {living} kept, {left} left, {took:.1f} s, peak {peak} MB, disk {disk} MB", flush=True)
                if living + left != last:
                    faults.append(f"{last} were published, {living} are kept and {left} left")
                if living > given.items + 2 * given.listed:
                    faults.append(f"{living} items are kept, the limit is {given.items}")
                if half is None and last >= given.total / 2:
                    half = (peak, disk, left)
            if peak > half[0] * GROWTH + SPARE_MB:
                faults.append(f"memory grows: {half[0]} MB at half of it, {peak} MB at the end")
            each = ((disk - half[1]) << 10) / (left - half[2])
            print(f"{each:.1f} KB on disk for each item that left in the second half")
            if each > LEFT_KB:
                faults.append(f"disk grows: {half[1]} MB at half of it, {disk} MB at the end")

            begun = time.monotonic()
            complete = gateway.ask("/feeds/endless/complete").decode()
            count, took = complete.count("<entry"), time.monotonic() - begun
            print(f"the complete view: {count} items, {len(complete) >> 20} MB, {took:.1f} s")
            if count != living:
                faults.append(f"the complete view has {count} items, {living} are kept")
        except (OSError, RuntimeError) as error:
            faults.append(f"the gateway did not bear it: {error}")
        finally:
            gateway.end()
        before, compact = stage.disk(root), [given.bin, "compact", "--config", gateway.config, "--data", f"{root}/data"]
        if subprocess.run(compact).returncode:
            faults.append("the store could not be compacted")
        print(f"disk {before >> 20} MB, {stage.disk(root) >> 20} MB once it is compacted")
    return stage.status(faults)


sys.exit(main())
