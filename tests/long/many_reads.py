"""Public addresses that read much, 300 at once on the largest item and the largest feed.

    many_reads.py --bin PATH/TO/tidegate

The peak of resident memory must stay below 600 MB, and most of what the reads took must be given
back within a minute. Exit status 1 where that does not hold.
"""

import argparse
import asyncio
import json
import pathlib
import sys
import tempfile
import time

import clients
import feeds
import hostile_clients
import process
import stage

# From so many addresses: one client alone gets no more than its share of connections.
AT_ONCE, CLIENTS = 300, 6
PEAK, GIVEN_BACK = 600, 60


async def flood(place, path, headers):
    async def one(number):
        try:
            async with asyncio.timeout(120):
                return (await place.get(f"127.0.1.{1 + number % CLIENTS}", path, headers))[0]
        except (OSError, TimeoutError, ValueError, IndexError) as error:
            return type(error).__name__

    return await asyncio.gather(*(one(number) for number in range(AT_ONCE)))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    given = arguments.parse_args()
    site, faults = stage.Site(), []
    site.documents["/small.xml"] = feeds.plain("small", 20)
    site.documents["/large.xml"] = feeds.plain("large", hostile_clients.ENTRIES)
    site.documents["/item.xml"] = feeds.one_large("item", hostile_clients.LARGE)
    with tempfile.TemporaryDirectory() as root:
        gateway = hostile_clients.start(given.bin, pathlib.Path(root), site, "")
        try:
            site.documents["/item.xml"] = feeds.one_large("item", hostile_clients.LARGE, turn=1)
            gateway.poll("item")
            item = "/feeds/item/items/" + json.loads(
                gateway.ask("/feeds/item?as=json")
            )["items"][0]["sync"]["id"]
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            place = clients.Place(gateway.base)
            # What taking the feeds in took is no business of the reads.
            time.sleep(GIVEN_BACK)
            for path, headers in (
                (f"{item}?diff=1..2", ""), (item, ""), (item, "accept: application/json\r\n"),
                (f"{item}?version=1", ""), ("/feeds/large/about", ""), ("/feeds/large/complete", ""),
                ("/feeds/large/complete?as=jsonfeed", ""), (f"/feeds/large?as-of={now}", ""),
            ):
                before, _ = process.memory(gateway.process)
                process.reset_peak(gateway.process)
                answers = asyncio.run(flood(place, path, headers))
                _, peak = process.memory(gateway.process)
                time.sleep(GIVEN_BACK)
                after, _ = process.memory(gateway.process)
                found = {str(answer): answers.count(answer) for answer in set(answers)}
                line = f"{path}: before {before} MB, peak {peak} MB, after {after} MB, {found}"
                print(line, flush=True)
                if peak > PEAK or after > before + (peak - before) // 2 + 16:
                    faults.append(line)
        finally:
            gateway.end()
    return stage.status(faults)


if __name__ == "__main__":
    sys.exit(main())
