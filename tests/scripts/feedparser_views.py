"""Compares the gateway's views, as feedparser reads them, with the upstream documents.

    feedparser_views.py --bin PATH/TO/tidegate --corpus DIR [--at-least N]

DIR holds one folder a series with an index.jsonl; the last good document of each is served here,
polled by a gateway started here, and its reader and sync views are compared with it. Exit status 1
where anything differs.
"""

import argparse
import collections
import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import feedparser

# The most documents of a series that are looked at for a good one, from the last back.
LOOK_BACK = 40
# How long the gateway may take to start, and to have every feed polled, in seconds.
START_WAIT = 30
POLL_WAIT = 240
# How long one request may take, in seconds.
REQUEST_WAIT = 20
# The most differences of one feed that are printed.
SHOWN = 8

# What feedparser calls ill-formed but reads as it should.
HARMLESS = (feedparser.CharacterEncodingOverride, feedparser.NonXMLContentType)


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".xml": "application/xml"}

    def log_message(self, *_):
        pass


def parse(body, base):
    return feedparser.parse(
        body, response_headers={"content-location": base, "content-type": "application/xml"}
    )


def is_good(parsed):
    flaw = parsed.get("bozo_exception")
    return bool(parsed.entries) and (not parsed.bozo or isinstance(flaw, HARMLESS))


def last_good(folder):
    with open(os.path.join(folder, "index.jsonl"), encoding="utf-8") as index:
        files = [json.loads(line)["file"] for line in index if line.strip()]
    for name in files[::-1][:LOOK_BACK]:
        path = os.path.join(folder, name)
        with open(path, "rb") as document:
            body = document.read()
        if is_good(parse(body, "http://upstream.example/")):
            return path
    return None


def plain(text):
    return re.sub(r"\s+", " ", text or "").strip()


def items(parsed):
    """(id or None, title) in order. Entries may share an id."""
    return [(plain(e.get("id")) or None, plain(e.get("title"))) for e in parsed.entries]


def fetch(url):
    with urllib.request.urlopen(url, timeout=REQUEST_WAIT) as answer:
        return answer.read()


def wait_for(url, deadline):
    why = "no time was left"
    while time.monotonic() < deadline:
        try:
            return fetch(url)
        except (urllib.error.URLError, OSError) as error:
            why = str(error)
            time.sleep(0.25)
    raise TimeoutError(f"{url} did not answer in time: {why}")


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


def compare(document, upstream, address, deadline):
    """What differs, one by one; `document` is what is served at the address `upstream`."""
    # Each is read at its own address: relative references must still lead to the publisher.
    reader = parse(wait_for(address, deadline), address)
    sync = parse(fetch(f"{address}/sync"), f"{address}/sync")
    for what, parsed in (("reader", reader), ("sync", sync)):
        if not is_good(parsed):
            yield f"{what} view is ill-formed or empty: {parsed.get('bozo_exception')}"
    with open(document, "rb") as published:
        yield from compare_reader(items(parse(published.read(), upstream)), items(reader))
    yield from compare_sync(items(reader), items(sync))


def start(binary, folder, config, log):
    gateway = subprocess.Popen(
        [binary, "serve", "--allow-private", "-c", config, "-d", os.path.join(folder, "data"),
         "-l", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=log, text=True,
    )
    lines = []
    reader = threading.Thread(target=lambda: lines.append(gateway.stdout.readline()), daemon=True)
    reader.start()
    reader.join(START_WAIT)
    said = re.match(r"listening on (http://\S+)", lines[0] if lines else "")
    if not said:
        gateway.kill()
        gateway.wait()
        raise RuntimeError(f"the gateway did not start; it said {lines!r}")
    return gateway, said.group(1)


def configuration(names, port):
    text = '[polling]\nhost_spacing = "0s"\n'
    for name in names:
        text += f'[[feed]]\nname = "{name}"\nurl = "http://127.0.0.1:{port}/{name}.xml"\n'
    return text


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--corpus", required=True)
    arguments.add_argument("--at-least", type=int, default=30)
    given = arguments.parse_args()

    folder = tempfile.mkdtemp(prefix="tidegate-feedparser-")
    served = os.path.join(folder, "served")
    os.mkdir(served)
    documents, left_out = {}, []
    for name in sorted(os.listdir(given.corpus)):
        if os.path.isfile(os.path.join(given.corpus, name, "index.jsonl")):
            document = last_good(os.path.join(given.corpus, name))
            if document is None:
                left_out.append(name)
                continue
            documents[name] = shutil.copy(document, os.path.join(served, f"{name}.xml"))
    if len(documents) < given.at_least:
        sys.exit(f"only {len(documents)} feeds to compare, {given.at_least} are wanted")
    if left_out:
        print(f"no good document among the last {LOOK_BACK} of: {', '.join(left_out)}")

    handler = functools.partial(Quiet, directory=served)
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    port = upstream.server_address[1]
    config = os.path.join(folder, "tidegate.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(configuration(documents, port))

    log_path = os.path.join(folder, "log")
    with open(log_path, "wb") as log:
        gateway, address = start(given.bin, folder, config, log)
        different = compared = 0
        try:
            deadline = time.monotonic() + POLL_WAIT
            for name, document in documents.items():
                try:
                    upstream_address = f"http://127.0.0.1:{port}/{name}.xml"
                    found = list(
                        compare(document, upstream_address, f"{address}/feeds/{name}", deadline)
                    )
                except (TimeoutError, OSError) as error:
                    found = [str(error)]
                compared += not found
                different += bool(found)
                print(f"{name:28} {'DIFFERENT' if found else 'same'}")
                for line in found[:SHOWN]:
                    print(f"    {line}")
                if len(found) > SHOWN:
                    print(f"    and {len(found) - SHOWN} more")
        finally:
            gateway.terminate()
            try:
                status = gateway.wait(30)
            except subprocess.TimeoutExpired:
                gateway.kill()
                status = "killed: it did not stop within 30 s"
            upstream.shutdown()
    if status != 0:
        print(f"the gateway ended with status {status}")
    if different or status != 0:
        with open(log_path, "rb") as log:
            print("The end of its log:")
            print(log.read()[-4000:].decode("utf-8", "replace"))
        sys.exit(f"{different} of {len(documents)} feeds differ")
    shutil.rmtree(folder)
    print(f"{compared} feeds read the same through the gateway")


if __name__ == "__main__":
    main()
