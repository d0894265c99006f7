"""Ten feeds of 49,000 items each under a limit of 2 GiB, three of them changing wholly.

    large_feeds.py --bin PATH/TO/tidegate [--feeds N] [--minutes N]

The gateway must stay alive, keep to its memory and let go of it, and serve a small feed all the time.
Exit status 1 where it does not.
"""

import asyncio
import pathlib
import sys
import tempfile
import threading
import time

import clients
import feeds
import stage

LIMIT = 2048
# What may be resident at most, and two minutes after the last change, in megabytes.
PEAK, AFTER = 1229, 400
ENTRIES = 49_000
CHANGED = 3


def limited_group():
    """A control group with a limit on memory, beyond which the kernel kills."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(root, "tidegate-long")
        try:
            group.mkdir(exist_ok=True)
            (group / limit).write_text(str(LIMIT << 20))
            return group
        except OSError as error:
            fault = error
    raise RuntimeError(f"no limit on memory can be set here: {fault}")


def main():
    given = stage.given(feeds=10, minutes=15.0)
    site, faults = stage.Site(), []
    names = [f"large-{n}" for n in range(given.feeds)]
    site.documents["/small.xml"] = feeds.plain("small", 20)
    for name in names:
        site.documents[f"/{name}.xml"] = feeds.plain(name, ENTRIES)
    settings = stage.feeds_of(site, ["small", *names])
    group = limited_group()
    with tempfile.TemporaryDirectory() as root:
        gateway = stage.Gateway(given.bin, root, settings)
        (group / "cgroup.procs").write_text(str(gateway.process.pid))
        reader = clients.GoodClient(clients.Place(gateway.base), "127.0.0.77", lambda: "/feeds/small", 0.2)
        ended = threading.Event()
        watch = threading.Thread(target=lambda: asyncio.run(reader.run(given.minutes * 60, ended)), daemon=True)
        try:
            gateway.poll("small")
            end = time.monotonic() + given.minutes * 60
            watch.start()
            for turn, wanted in enumerate((names, names[:CHANGED])):
                if turn:
                    for name in wanted:
                        site.documents[f"/{name}.xml"] = feeds.plain(
                            name, ENTRIES, "Quite other words than before, all anew. ", turn
                        )
                if late := [name for name in wanted if not feeds.take_in(gateway, name, end)]:
                    faults.append(f"not taken in: {late}")
            time.sleep(120)
            now, peak = gateway.megabytes()
            print(f"two minutes after: {now} MB, peak {peak} MB", flush=True)
            if now > AFTER or peak > PEAK:
                faults.append(f"{now} MB two minutes after, {peak} MB at most: too much")
        except (OSError, RuntimeError) as error:
            faults.append(f"the gateway did not live: {error}")
        finally:
            ended.set()
            if watch.ident:
                watch.join()
            if gateway.process.poll() is not None:
                faults.append(f"the gateway ended with {gateway.process.returncode}")
            gateway.end()
            group.rmdir()
    worst = max(reader.times, default=float("inf"))
    print(f"the small feed: {len(reader.times)} reads, p99 {reader.p99():.2f} s, most {worst:.2f} s")
    if reader.faults:
        faults.append(f"the small feed was not served {len(reader.faults)} times")
    return stage.status(faults)


sys.exit(main())
