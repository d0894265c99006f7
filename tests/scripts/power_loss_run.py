"""A loss of power at any moment: what was acknowledged is there, and whole. A gateway's writes and syncs are recorded under
a load; images of what its disk may then have are made of the record, and the program opens each. The model is said in
power_loss_images.py. At the end the control (--swallowed): the syncs that make sled's log stable are swallowed, and
images must show it.
"""

import collections
import concurrent.futures
import hashlib
import itertools
import os
import random
import re
import shutil
import stage
import subprocess
import sys
import time
import urllib.error

import power_loss_images as images

# How long an export may take, in seconds: that of an image, with its opening, or of the gateway under its load.
EXPORTED_WITHIN = 300
# Images that are opened at a time.
AT_ONCE = 2
# The control: of images of a log that is not synced, one in seven to one in thirty is wrong.
CONTROL_IMAGES = 100
CONTROL_RECORDS = 3
CONFIGURATION = """
[polling]
allow_private = true
min_interval = "1h"
max_interval = "24h"
"""
# What stands in an entry: its feed, its number, its edition, a digest and the text.
CONTENT = re.compile(r"(\d+)-(\d+)-(\d+):([0-9a-f]{32}):([0-9a-f ]+);")


class Load:
    """Feeds that change round by round: some entries are new, and each third entry that stays is edited."""

    def __init__(self, feeds, entries, text, rounds, at_once):
        self.feeds, self.entries, self.text, self.rounds, self.at_once = feeds, entries, text, rounds, at_once
        self.new = max(1, entries // 10)

    def editions(self, number):
        """The entries of a round, newest first, each with its edition."""
        top = number * self.new + self.entries
        return [(entry, number - (entry + number) % 3) for entry in range(top, top - self.entries, -1)]

    def content(self, feed, entry, edition):
        seed = (feed * 1000003 + entry) * 977 + edition
        text = random.Random(seed).randbytes(self.text // 2).hex()
        text = " ".join(text[at : at + 7] for at in range(0, len(text), 7))
        return f"{feed}-{entry}-{edition}:{hashlib.md5(text.encode()).hexdigest()}:{text};"

    def document(self, feed, number):
        def written(entry, edition):
            updated = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_700_000_000 + entry * 3600))
            return stage.entry(f"f{feed}:{entry}", f"Post {entry}", self.content(feed, entry, edition), updated)

        return stage.atom(f"f{feed}", (written(*one) for one in self.editions(number)))


LOADS = {
    # Small enough that an image is tried within a second or two.
    "small": Load(16, 20, 2000, 20, 16),
    # One of which each fifth image of a log that is not synced did not open.
    "busy": Load(40, 100, 3000, 25, 16),
    # Documents that are a change of many portions each.
    "large": Load(2, 150, 12000, 12, 2),
}


class Recorded:
    """What a gateway did to its disk under a load, and what it acknowledged."""

    def __init__(self, program, shim, work, load, is_swallowed=False):
        self.program, self.load, self.folder = program, load, work / "run"
        self.folder.mkdir()
        (self.folder / "out").mkdir()
        self.record, self.killed = work / "record", work / "killed"
        self.environment = {
            "LD_PRELOAD": str(shim), "TIDEGATE_RECORD": str(self.record), "TIDEGATE_RECORDED": str(self.folder),
            "TIDEGATE_KILLED": str(self.killed), **({"TIDEGATE_SWALLOWED": "1"} if is_swallowed else {}),
        }
        # Each with its time: what must be there from then on, as (feed, entry) and edition, or a path and its bytes.
        self.acknowledged = []
        # What a file has from its first moment under this name to the end.
        self.whole = {}
        self.site = stage.Site()
        # Of connections that a kill ends.
        self.site.server.handle_error = lambda *_: None

    def note(self, what):
        self.acknowledged.append((time.clock_gettime_ns(time.CLOCK_MONOTONIC), what))

    def start(self):
        os.environ.update(self.environment)
        try:
            self.gateway = stage.Gateway(self.program, self.folder, CONFIGURATION, token=None)
        finally:
            for name in self.environment:
                del os.environ[name]

    def run(self):
        self.start()
        self.note_file("data/admin-token")
        for feed in range(self.load.feeds):
            address = f"{self.site.base}/f{feed}.xml"
            self.gateway.ask(f"/api/v1/feeds/f{feed}", "PUT", {"url": address})
        for number in range(self.load.rounds):
            with concurrent.futures.ThreadPoolExecutor(self.load.at_once) as polls:
                if number in (self.load.rounds // 3, 2 * self.load.rounds // 3):
                    killing = polls.submit(self.kill, 0.7)
                    list(polls.map(lambda feed: self.poll(feed, number, True), range(self.load.feeds)))
                    killing.result()
                    self.start()
                list(polls.map(lambda feed: self.poll(feed, number), range(self.load.feeds)))
            if number % 5 == 4:
                self.export(number)
        self.kill(0)
        # Gateways of images poll, and find nothing.
        self.site.documents.clear()

    def poll(self, feed, number, may_fail=False):
        self.site.documents[f"/f{feed}.xml"] = self.load.document(feed, number)
        try:
            self.gateway.poll(f"f{feed}")
        except (OSError, urllib.error.URLError):
            if may_fail:
                return
            raise
        self.note({(feed, entry): edition for entry, edition in self.load.editions(number)})

    def kill(self, after):
        """Kills the gateway between two records of the shim."""
        time.sleep(after)
        self.killed.touch()
        try:
            self.gateway.process.wait(stage.WAIT)
        finally:
            self.killed.unlink()

    def note_file(self, path):
        self.whole[path] = (self.folder / path).read_bytes()
        self.note({path: self.whole[path]})

    def export(self, number):
        """A copy of the state by the running gateway, in a file."""
        file = f"out/{number}.tidegate"
        token = self.folder / "data/admin-token"
        command = [self.program, "export", self.folder / file, "--gateway", self.gateway.base, "--token-file", token]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=EXPORTED_WITHIN)
        stage.check(done.returncode == 0, f"export: {done.stderr}")
        self.note_file(file)


def found_in(program, image, feeds):
    """What the program finds in an image, (feed, entry) and edition, or what it says instead: all of it can be exported, and
    the last edition of each entry is served."""
    command = [program, "export", image / "exported", "--data", image / "data"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=EXPORTED_WITHIN)
    except subprocess.TimeoutExpired:
        return "it is not exported after %d s" % EXPORTED_WITHIN
    if done.returncode:
        return "it does not open: " + (done.stderr.strip().splitlines() or ["?"])[-1]
    with stage.Gateway(program, image, CONFIGURATION, token=None) as gateway:
        views = [stage.get(f"{gateway.base}/feeds/f{feed}/complete") for feed in range(feeds)]
    found = {}
    for feed, entry, edition, digest, text in CONTENT.findall("".join(text for status, text, _ in views if status == 200)):
        if hashlib.md5(text.encode()).hexdigest() != digest:
            return f"torn: entry {int(entry)} of feed {int(feed)}"
        found[int(feed), int(entry)] = int(edition)
    return found


def fault_of(recorded, image, wanted):
    """What is wrong with an image; `None` where all is there."""
    if not wanted and not (image / "data").exists():
        # It is a moment before there was one.
        return None
    files = {path: content for path, content in wanted.items() if isinstance(path, str)}
    for path, content in files.items():
        if not (image / path).exists() or (image / path).read_bytes() != content:
            return f"{path} is not as it was acknowledged"
    for path, content in recorded.whole.items():
        if (image / path).exists() and (image / path).read_bytes() != content:
            return f"{path} is there in part"
    found = found_in(recorded.program, image, recorded.load.feeds)
    if isinstance(found, str):
        return found
    lost = [key for key, edition in wanted.items() if key not in files and found.get(key, -1) < edition]
    if lost:
        feeds = len({feed for feed, _ in lost})
        return f"opened with less: {len(lost)} acknowledged entries of {feeds} feeds are missing"
    return None


def choices(entries, first, count, kind, seed):
    """At which entries images are made, and how."""
    chance = random.Random(seed)
    if kind == "random":
        moments = sorted(chance.randrange(first, len(entries)) for _ in range(count))
        # Each tenth shows that what is durable opens.
        choose = lambda number: images.Nothing() if number % 10 == 9 else images.Chosen(seed * 1_000_003 + number)
        return [(moment, choose(number)) for number, moment in enumerate(moments)]
    moments = [number for _, number in images.unsynced_moments(entries, first)]
    moments, made = moments[: count // 2], []
    for turn, number in enumerate(itertools.islice(itertools.cycle(moments), count)):
        way = "all but one" if turn % 2 else "only one"
        made.append((number, images.Within() if turn < len(moments) else images.Chosen(seed + turn, way)))
    return sorted(made, key=lambda one: one[0])


def try_images(recorded, entries, made, work, is_control):
    """Opens each image, in a control until one is wrong; how many there were, and the faults with how often each came."""
    required, acknowledged = {}, iter(sorted(recorded.acknowledged, key=lambda one: one[0]))
    upcoming = next(acknowledged, None)
    disk, faults, tried, running = images.Disk(), collections.Counter(), 0, []
    made = iter(made)
    choice = next(made, None)

    def judge(image, wanted, name):
        try:
            fault = fault_of(recorded, image, wanted)
        except (RuntimeError, OSError) as error:
            fault = str(error)
        shutil.rmtree(image)
        return fault, name

    def collect(future):
        fault, name = future.result()
        if fault:
            fault = re.sub(r"\S*/image-\d+\S*|\d+ acknowledged|of \d+ feeds", "…", fault)
            fault = fault.removesuffix("; restore it from a copy, or move it away and start anew")
            faults[f"{fault} [{name}]"] += 1

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, entry in enumerate(entries):
            while choice and choice[0] == number and not (is_control and faults):
                while upcoming and upcoming[0] < entry.time:
                    required.update(upcoming[1])
                    upcoming = next(acknowledged, None)
                image = work / f"image-{tried}"
                image.mkdir()
                disk.write(image, choice[1])
                running.append(pool.submit(judge, image, dict(required), choice[1].name))
                tried += 1
                while len(running) > 2 * AT_ONCE:
                    collect(running.pop(0))
                choice = next(made, None)
            disk.step(entry)
            if not choice:
                break
        for future in running:
            collect(future)
    return tried, faults


def one_load(options, name, is_swallowed=False):
    """Records a load and tries images of it; how many are wrong."""
    work = options.work / (name + ("-swallowed" if is_swallowed else ""))
    work.mkdir()
    recorded = Recorded(options.bin, options.shim, work, LOADS[name], is_swallowed)
    began = time.monotonic()
    recorded.run()
    entries = images.read_record(recorded.record)
    stray = images.stray_path(entries, recorded.folder)
    stage.check(not stray, f"the record does not tell all that was done to {stray}")
    # The first entry behind the first acknowledgement.
    begins = min(at for at, _ in recorded.acknowledged)
    first = next(number for number, entry in enumerate(entries) if entry.time > begins)
    written = sum(entry.count for entry in entries if entry.kind == "w")
    print(f"{name}: {len(recorded.acknowledged)} acknowledged, {written >> 20} MiB written in {len(entries)} entries, "
          f"{time.monotonic() - began:.0f} s", flush=True)
    wrong = 0
    for kind in ["unsynced"] if is_swallowed else ["unsynced", "random"]:
        count = CONTROL_IMAGES if is_swallowed else options.images
        made = choices(entries, first, count, kind, options.seed)
        tried, faults = try_images(recorded, entries, made, work, is_swallowed)
        stage.check(tried, "no image was tried")
        print(f"{name}, {kind}: {faults.total()} of {tried} images are wrong", flush=True)
        for fault, count in faults.most_common():
            print(f"    {count:4}  {fault}", flush=True)
        wrong += faults.total()
    shutil.rmtree(work)
    return wrong


def main():
    # Images are of each kind under each load. The control swallows syncs, which must be noticed.
    options = stage.given("shim", "work", loads="small", images=12, seed=1, swallowed=False)
    loads = options.loads.split(",")
    try:
        if options.swallowed:
            wrong = any(one_load(options, name, True) for name in loads * CONTROL_RECORDS)
        else:
            wrong = sum(one_load(options, name) for name in loads)
    except (RuntimeError, OSError, subprocess.SubprocessError) as fault:
        sys.exit(f"FAILED: {fault}")
    if options.swallowed and not wrong:
        sys.exit("FAILED: syncs were swallowed, and no image shows it")
    if wrong and not options.swallowed:
        sys.exit(f"FAILED: {wrong} images are not as they must be")


if __name__ == "__main__":
    main()
