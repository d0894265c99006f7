"""Feeds that are large, for what must bear them."""


def entry(name, number, text, turn=0):
    return (
        f"<entry><id>urn:{name}:{number}</id><title>{name} {number}</title>"
        f'<link href="https://example.org/{name}/{number}"/>'
        f"<published>{stamp(number)}</published><updated>{stamp(number + turn)}</updated>"
        f'<content type="html">{text}</content></entry>'
    )


def stamp(number):
    """A minute for each number, from 2020 on."""
    day, minute = divmod(number, 24 * 60)
    year, day = divmod(day, 336)
    return f"{2020 + year}-{1 + day // 28:02}-{1 + day % 28:02}T{minute // 60:02}:{minute % 60:02}:00Z"


def feed(name, entries):
    """A whole Atom document, newest entry first as given."""
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:{name}</id><title>Feed {name}</title>'
        f"<author><name>N</name></author><updated>2026-11-01T08:00:00Z</updated>"
        f"{''.join(entries)}</feed>"
    ).encode()


def plain(name, count, text="Some words that a post says. " * 3, turn=0):
    """A feed of `count` entries."""
    return feed(name, (entry(name, n, f"{text} {n}", turn) for n in range(count, 0, -1)))


def one_large(name, length, turn=0):
    """A feed of one entry with `length` bytes of words, every fiftieth of which turns change."""
    words = (
        f"word{n % 977 if n % 50 else n * (turn + 1)} is said here, " for n in range(length // 16)
    )
    return feed(name, [entry(name, 1, "".join(words)[:length], turn)])
