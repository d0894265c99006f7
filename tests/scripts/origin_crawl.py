"""The gateway in front of a whole site, which nginx serves: a crawl through it equals a crawl of nginx but for the feeds.
Needs nginx (in CI it is installed, elsewhere the script passes without)."""

import json
import pathlib
import re
import sys
import tempfile
import urllib.parse

import origin_site
import origin_stage as lab
import stage

# What belongs to one connection, to the moment, or to the way.
OF_THE_WAY = {"connection", "keep-alive", "transfer-encoding", "date", "via"}
# How long a feed may take until its enriched document is answered, in seconds.
ENRICHED_WITHIN = 15
# The numbers in the ids of a feed, in its own format.
NUMBER = re.compile(rb'urn:article-(\d+)</id|post-(\d+)</guid|"id": ?"(\d+)"')
BOUNDARY = re.compile(rb"[0-9]{20}")


def seen(answer, asked, base):
    """What two answers are compared by. Where one leads is told from the address that was asked, without the host
    that was."""
    headers = []
    for name, value in answer.headers:
        if name.lower() in ("location", "content-location"):
            value = urllib.parse.urljoin(asked, value).removeprefix(base)
        if name.lower() not in OF_THE_WAY:
            headers.append((name.lower(), BOUNDARY.sub(b"BOUNDARY", value.encode()).decode()))
    body = answer.body
    if dict(headers).get("content-type", "").startswith("multipart/"):
        body = BOUNDARY.sub(b"BOUNDARY", body)
    return {"status": answer.status, "headers": sorted(headers), "body": body, "whole": answer.whole}


def differences(what, through, directly):
    for key, value in directly.items():
        if through[key] == value:
            continue
        if key == "headers":
            missing = [pair for pair in value if pair not in through[key]]
            more = [pair for pair in through[key] if pair not in value]
            yield f"{what}: headers: missing {missing}, more {more}"
        elif key == "body":
            yield f"{what}: body: {len(through[key])} bytes instead of {len(value)}: {through[key][:80]}"
        else:
            yield f"{what}: {key}: {through[key]} instead of {value}"


def requests(files, tags):
    """What is asked for: path, method and further headers."""
    paths = [path for path in files if path not in origin_site.FEEDS]
    paths += ["/", "/posts/article-1/", "/posts/article-1", "/posts/", "/not-here", "/page-10k.html?a=%41&b"]
    for path in paths:
        yield path, "GET", []
        yield path, "GET", ["Accept-Encoding: gzip"]
        yield path, "HEAD", []
        yield path, "HEAD", ["Accept-Encoding: gzip"]
        yield path, "POST", ["Content-Type: text/plain"]
    for path in ("/images/board.png", "/page-10k.html", "/theme/css/main.css"):
        tag, modified = tags[path]
        for method in ("GET", "HEAD"):
            for ranges in ("0-99", "-50", "100-", "0-9,20-29", "0-9,-10", "999999-", "9-3", "x"):
                yield path, method, [f"Range: bytes={ranges}"]
            yield path, method, ["Range: bytes=0-99", f"If-Range: {tag}"]
            yield path, method, ["Range: bytes=0-99", 'If-Range: "another"']
            yield path, method, [f"If-None-Match: {tag}"]
            yield path, method, [f'If-None-Match: "another", {tag}']
            yield path, method, [f"If-None-Match: W/{tag}", "Accept-Encoding: gzip"]
            yield path, method, ["If-None-Match: *"]
            yield path, method, ['If-None-Match: "another"']
            yield path, method, [f"If-Modified-Since: {modified}"]
            yield path, method, ["If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT"]
            yield path, method, ['If-Match: "another"']
            yield path, method, ["If-Unmodified-Since: Thu, 01 Jan 2015 00:00:00 GMT"]


def host(gate):
    """The host of the origin with the port of the gateway, as browsers say it."""
    return f"{lab.HOST}:{gate.base.rpartition(':')[2]}"


def crawl(gate, static, files):
    tags = {}
    for path in ("/images/board.png", "/page-10k.html", "/theme/css/main.css"):
        answer = lab.ask(static.base, path)
        tags[path] = answer.one("etag"), answer.one("last-modified")
    compared, faults, ours, theirs = 0, [], host(gate), static.base.removeprefix("http://")
    for path, method, headers in requests(files, tags):
        body = b"some words" if method == "POST" else None
        pair = [
            seen(lab.ask(base, path, name, method, headers, body), f"http://{name}{path}", f"http://{name}")
            for base, name in ((gate.base, ours), (static.base, theirs))
        ]
        compared += 1
        faults += differences(f"{method} {path} {headers}", *pair)
    print(f"crawl: {compared} requests for {len(files)} files, {len(faults)} differences")
    return faults


def is_enriched(gate, path, original):
    """Whether a feed is answered as the gateway has judged it, as what it was and with the ids of its publisher."""
    answer = lab.ask(gate.base, path, host(gate))
    is_same = NUMBER.findall(answer.body) == NUMBER.findall(original.body)
    return answer.status == 200 and answer.one("x-sup-id") and is_same


def run(program, nginx, folder):
    base = f"http://127.0.0.1:{stage.free_port()}"
    files = origin_site.make(folder / "site", base)
    with (
        lab.static(nginx, folder, base) as static,
        lab.gateway(program, folder / "gateway", lab.origin(f"{base}/")) as gate,
    ):
        yield from crawl(gate, static, files)
        for path in origin_site.FEEDS:
            original = lab.ask(static.base, path)
            if not stage.until(lambda path=path, original=original: is_enriched(gate, path, original), ENRICHED_WITHIN):
                yield f"{path} is not enriched, or has other ids: {lab.ask(gate.base, path, host(gate)).body[:400]}"
        # Nothing but the feeds became one.
        known = {feed["url"] for feed in json.loads(gate.ask("/api/v1/feeds?limit=1000"))["feeds"]}
        if more := known - {base + path for path in origin_site.FEEDS}:
            yield f"feeds that are none: {sorted(more)}"


def main():
    given, nginx = stage.given(), stage.program("nginx")
    with tempfile.TemporaryDirectory() as folder:
        return stage.status(list(run(given.bin, nginx, pathlib.Path(folder))))


sys.exit(main())
