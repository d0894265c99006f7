"""One hostile client of each kind and a good one, at different loopback addresses.

    hostile_clients.py --bin PATH/TO/tidegate [--nginx PATH/TO/nginx] [--seconds N]
    hostile_clients.py --bin PATH/TO/tidegate --reads

Directly, and where nginx is given both through it as a trusted proxy; the good client must be answered soon (P99). With
`--reads`, public addresses that read much are asked for, many at once, of the largest item and the largest feed: memory
must stay below PEAK, and most of what the reads took must be given back. Exit status 1 where one of that is not so.
"""

import asyncio
import contextlib
import json
import multiprocessing
import pathlib
import sys
import tempfile
import time

import clients
import feeds
import nginx_stage
import stage

# The good client's p99, in seconds.
P99 = 0.5
# The addresses of the good client and the hostile ones.
GOOD, HOSTILE = "127.0.0.77", "127.0.0.66"
# The entries of the large feed, and the bytes of the large item.
ENTRIES, LARGE = 49_000, 4_700_000
# How long the large feed may take to be taken in, in seconds.
TAKEN_IN = 300
# Reads at once, from how many addresses (one alone gets no more than its share), the memory that they may take in
# megabytes, and after how many seconds most of it is given back.
AT_ONCE, CLIENTS, PEAK, GIVEN_BACK = 300, 6, 600, 60


def kinds(item):
    """The kinds of hostile clients by name."""
    views = [
        f"/feeds/large{view}?as={container}&sx={dialect}"
        for view in ("", "/sync", "/complete")
        for container in ("atom", "rss", "pox", "json", "jsonfeed", "opml")
        for dialect in ("sse", "feedsync")
    ]
    return {
        "nobody": None,
        "idle connections": clients.idle_connections,
        "slow heads": clients.slow_heads,
        "event streams": clients.repeated(["/events"], 256),
        "diffs": clients.repeated([f"{item}?diff=1..2"], 300),
        "versions": clients.repeated([item], 300, "accept: application/json\r\n"),
        "containers": clients.repeated(views, 20),
        "about": clients.repeated(["/feeds/large/about"], 100),
        "complete": clients.repeated(["/feeds/large/complete"], 100),
        "the past": clients.repeated([f"/feeds/large?as-of=2026-01-{day:02}T00:00:00Z" for day in range(1, 29)], 50),
        "bodies": clients.large_bodies,
    }


def measure(place, attack, seconds):
    """The good client's times beside an attack, which is a process of its own: what the hostile
    client does with its answers is no business of the good one."""
    hostile = None
    if attack:
        attacking = lambda: asyncio.run(attack(place, HOSTILE))
        hostile = multiprocessing.get_context("fork").Process(target=attacking, daemon=True)
        hostile.start()
    try:
        # It has begun when the good one begins to ask.
        time.sleep(1)
        good = clients.GoodClient(place, GOOD, lambda: "/feeds/small")
        asyncio.run(good.run(seconds))
        return good
    finally:
        if hostile:
            hostile.kill()
            hostile.join()


def start(program, folder, site, server):
    names = ("small", "large", "item")
    gateway = stage.Gateway(program, folder, stage.feeds_of(site, names), server)
    for name in names:
        feeds.take_in(gateway, name, time.monotonic() + TAKEN_IN)
    return gateway


async def flood(place, path, headers):
    async def one(number):
        try:
            async with asyncio.timeout(120):
                return (await place.get(f"127.0.1.{1 + number % CLIENTS}", path, headers))[0]
        except (OSError, TimeoutError, ValueError, IndexError) as error:
            return type(error).__name__

    return await asyncio.gather(*(one(number) for number in range(AT_ONCE)))


def many_reads(gateway, item):
    """What each of the large addresses takes; yields what takes too much."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # What taking the feeds in took is no business of the reads.
    time.sleep(GIVEN_BACK)
    for path, headers in (
        (f"{item}?diff=1..2", ""), (item, ""), (item, "accept: application/json\r\n"), (f"{item}?version=1", ""),
        ("/feeds/large/about", ""), ("/feeds/large/complete", ""), ("/feeds/large/complete?as=jsonfeed", ""),
        (f"/feeds/large?as-of={now}", ""),
    ):
        before, _ = gateway.megabytes()
        # The peak begins anew.
        pathlib.Path(f"/proc/{gateway.process.pid}/clear_refs").write_text("5")
        answers = asyncio.run(flood(clients.Place(gateway.base), path, headers))
        _, peak = gateway.megabytes()
        time.sleep(GIVEN_BACK)
        after, _ = gateway.megabytes()
        found = {str(answer): answers.count(answer) for answer in set(answers)}
        line = f"{path}: before {before} MB, peak {peak} MB, after {after} MB, {found}"
        print(line, flush=True)
        if peak > PEAK or after > before + (peak - before) // 2 + 16:
            yield line


def hostile(given, gateway, item, places):
    """The good client beside each kind; yields where it waits too long."""
    for kind, attack in kinds(item).items():
        for way, place in places.items():
            good = measure(place, attack, given.seconds)
            now, peak = gateway.megabytes()
            line = (
                f"{kind}, {way}: p99 {good.p99() * 1000:.0f} ms of {len(good.times)}, "
                f"{len(good.faults)} failed, memory {now} MB, peak {peak} MB"
            )
            print(line, flush=True)
            if good.p99() > P99 or good.faults:
                yield f"{line} {sorted(set(good.faults))}"


def main():
    given = stage.given(nginx=None, seconds=20.0, reads=False)
    site, faults = stage.Site(), []
    site.documents["/small.xml"] = feeds.plain("small", 20)
    site.documents["/large.xml"] = feeds.plain("large", ENTRIES)
    site.documents["/item.xml"] = feeds.one_large("item", LARGE)
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        port = stage.free_port()
        # Each address is a client of its own, unless a proxy speaks for all.
        server = "" if given.reads else f'trusted_proxies = ["127.0.0.1"]\npublic_url = "http://127.0.0.1:{port}"\n'
        with contextlib.ExitStack() as ends:
            gateway = ends.enter_context(start(given.bin, folder, site, server))
            site.documents["/item.xml"] = feeds.one_large("item", LARGE, turn=1)
            gateway.poll("item")
            listed = json.loads(gateway.ask("/feeds/item?as=json"))["items"]
            item = "/feeds/item/items/" + listed[0]["sync"]["id"]
            places = {"directly": clients.Place(gateway.base)}
            if given.nginx:
                nginx = ends.enter_context(nginx_stage.proxy(given.nginx, folder / "nginx", port, gateway.base))
                places["through nginx"] = clients.Place(nginx.base)
            faults += many_reads(gateway, item) if given.reads else hostile(given, gateway, item, places)
    return stage.status(faults)


if __name__ == "__main__":
    sys.exit(main())
