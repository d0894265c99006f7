"""Compares the gateway's views, as feedparser reads them, with the upstream documents.

    feedparser_views.py --bin PATH/TO/tidegate --corpus DIR [--at-least N]

DIR holds one folder a series with an index.jsonl; the last good document of each is served here,
polled by a gateway started here, and its reader and sync views are compared with it. Exit status 1
where anything differs.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import tempfile
import urllib.request

import feedparser

import stage

# The most documents of a series that are looked at for a good one, from the last back.
LOOK_BACK = 40
# The most differences of one feed that are printed.
SHOWN = 8
# What feedparser calls ill-formed but reads as it should.
HARMLESS = (feedparser.CharacterEncodingOverride, feedparser.NonXMLContentType)


def parse(body, base):
    return feedparser.parse(
        body, response_headers={"content-location": base, "content-type": "application/xml"}
    )


def is_good(parsed):
    flaw = parsed.get("bozo_exception")
    return bool(parsed.entries) and (not parsed.bozo or isinstance(flaw, HARMLESS))


def last_good(folder):
    lines = (folder / "index.jsonl").read_text(encoding="utf-8").splitlines()
    files = [json.loads(line)["file"] for line in lines if line.strip()]
    bodies = ((folder / name).read_bytes() for name in files[::-1][:LOOK_BACK])
    return next((body for body in bodies if is_good(parse(body, "http://upstream.example/"))), None)


def plain(text):
    return re.sub(r"\s+", " ", text or "").strip()


def items(parsed):
    """(id or None, title) in order. Entries may share an id."""
    return [(plain(e.get("id")) or None, plain(e.get("title"))) for e in parsed.entries]


def compare_reader(upstream, view):
    if len(upstream) != len(view):
        yield f"reader view has {len(view)} items, upstream {len(upstream)}"
    for place, ((id_wanted, title_wanted), (id_found, title_found)) in enumerate(zip(upstream, view)):
        if not id_found:
            yield f"item {place} has no id"
        if id_wanted is not None and id_wanted != id_found:
            yield f"item {place} has the id {id_found!r}, upstream {id_wanted!r}"
        if title_wanted != title_found:
            yield f"item {place} has the title {title_found!r}, upstream {title_wanted!r}"


def compare_sync(reader, sync):
    # At the first document nothing has gone yet, so both views have the same items.
    wanted, found = collections.Counter(reader), collections.Counter(sync)
    for item in wanted - found:
        yield f"sync view lacks {item!r}"
    for item in found - wanted:
        yield f"sync view has {item!r}, the reader view has not"


def compare(document, upstream, address):
    """What differs, one by one; `document` is what is served at the address `upstream`."""
    # Each is read at its own address: relative references must still lead to the publisher.
    views = []
    for url in (address, f"{address}/sync"):
        with urllib.request.urlopen(url, timeout=stage.WAIT) as answer:
            views.append(parse(answer.read(), url))
        if not is_good(views[-1]):
            yield f"{url} is ill-formed or empty: {views[-1].get('bozo_exception')}"
    reader, sync = map(items, views)
    yield from compare_reader(items(parse(document, upstream)), reader)
    yield from compare_sync(reader, sync)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--corpus", required=True, type=pathlib.Path)
    arguments.add_argument("--at-least", type=int, default=30)
    given = arguments.parse_args()

    series = sorted(index.parent for index in given.corpus.glob("*/index.jsonl"))
    documents = {folder.name: last_good(folder) for folder in series}
    if left_out := [name for name, document in documents.items() if document is None]:
        print(f"no good document among the last {LOOK_BACK} of: {', '.join(left_out)}")
    documents = {name: document for name, document in documents.items() if document is not None}
    if len(documents) < given.at_least:
        sys.exit(f"only {len(documents)} feeds to compare, {given.at_least} are wanted")

    site, faults = stage.Site(), []
    site.documents = {f"/{name}.xml": document for name, document in documents.items()}
    settings = '[polling]\nallow_private = true\nhost_spacing = "0s"\n' + "".join(
        f'[[feed]]\nname = "{name}"\nurl = "{site.base}/{name}.xml"\n' for name in documents
    )
    with tempfile.TemporaryDirectory() as folder:
        gateway = stage.Gateway(given.bin, folder, settings)
        try:
            for name, document in documents.items():
                gateway.poll(name)
                address = f"{gateway.base}/feeds/{name}"
                found = list(compare(document, f"{site.base}/{name}.xml", address))
                print(f"{name:28} {'DIFFERENT' if found else 'same'}")
                faults += [f"{name}: {line}" for line in found[:SHOWN]]
        finally:
            gateway.end()
    print(f"{len(documents)} feeds read through the gateway")
    return stage.status(faults)


if __name__ == "__main__":
    sys.exit(main())
