"""Feeds that are large, for what must bear them."""

import time

import stage


def entry(name, number, text, turn=0):
    more = f'<link href="https://example.org/{name}/{number}"/><published>{stamp(number)}</published>'
    return stage.entry(f"{name}:{number}", f"{name} {number}", text, stamp(number + turn), more)


def stamp(number):
    """A minute for each number, from 2020 on."""
    day, minute = divmod(number, 24 * 60)
    year, day = divmod(day, 336)
    return f"{2020 + year}-{1 + day // 28:02}-{1 + day % 28:02}T{minute // 60:02}:{minute % 60:02}:00Z"


def plain(name, count, text="Some words that a post says. " * 3, turn=0):
    """A feed of `count` entries."""
    return stage.atom(name, (entry(name, n, f"{text} {n}", turn) for n in range(count, 0, -1)))


def one_large(name, length, turn=0):
    """A feed of one entry with `length` bytes of words, every fiftieth of which turns change."""
    words = (
        f"word{n % 977 if n % 50 else n * (turn + 1)} is said here, " for n in range(length // 16)
    )
    return stage.atom(name, [entry(name, 1, "".join(words)[:length], turn)])


def take_in(gateway, name, end):
    """Polls a feed until its document is taken in; whether it was in time."""
    while time.monotonic() < end:
        try:
            report = gateway.poll(name)
        except (OSError, RuntimeError) as error:
            print(f"{name}: {error}", flush=True)
            if gateway.process.poll() is not None:
                raise
            time.sleep(2)
            continue
        now, peak = gateway.megabytes()
        print(f"{name}: {report['outcome']}, created {report['created']}, updated {report['updated']}, "
              f"held {report['held']}: {now} MB, peak {peak} MB", flush=True)
        if not report["held"]:
            return True
        gateway.feed(name, "/hold", "POST", {"action": "release"})
    return False
