"""A crawl through the gateway against one of nginx itself: equal but for the feeds, which are the gateway's.

    origin_crawl.py --bin PATH/TO/tidegate --nginx PATH/TO/nginx

Exit status 1 where something is not as it should be.
"""

import gzip
import json
import pathlib
import re
import sys
import tempfile
import urllib.parse
import xml.etree.ElementTree

import origin_site
import origin_stage as lab
import stage

# What belongs to one connection, to the moment, or to the way.
OF_THE_WAY = {"connection", "keep-alive", "transfer-encoding", "date", "via"}
ATOM = "{http://www.w3.org/2005/Atom}"
SYNC = re.compile(rb"<(?:sx|sync):sync\b")
# How long a feed may take until its enriched document is answered, in seconds.
ENRICHED_WITHIN = 15
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


def ids(body, kind):
    """The ids and titles of a feed's entries, in their order; of what is none of its kind, how it begins."""
    try:
        return entries(body, kind)
    except (ValueError, KeyError, xml.etree.ElementTree.ParseError):
        return [(None, body[:80])]


def entries(body, kind):
    if kind == "jsonfeed":
        return [(item.get("id"), item.get("title")) for item in json.loads(body)["items"]]
    root = xml.etree.ElementTree.fromstring(body)
    if kind == "atom":
        return [(entry.findtext(f"{ATOM}id"), entry.findtext(f"{ATOM}title")) for entry in root.iter(f"{ATOM}entry")]
    return [(item.findtext("guid"), item.findtext("title")) for item in root.iter("item")]


def self_link(body, kind):
    """The address that a feed says it has."""
    if kind == "jsonfeed":
        return json.loads(body).get("feed_url") if body.startswith(b"{") else None
    links = xml.etree.ElementTree.fromstring(body).iter(f"{ATOM}link")
    return next((link.get("href") for link in links if link.get("rel") == "self"), None)


def is_enriched(answer, kind):
    if kind == "jsonfeed":
        return b'"_' in answer.body or "x-sup-id" in {name.lower() for name, _ in answer.headers}
    return bool(SYNC.search(answer.body))


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


def redirects(gate):
    """Where the folder without its slash leads, however the host is spelt."""
    for name in (lab.HOST, lab.HOST.upper(), host(gate)):
        found = lab.ask(gate.base, "/posts/article-1", name).one("location")
        found = found and urllib.parse.urljoin(f"http://{name}/posts/article-1", found).lower()
        if found not in (f"http://{each}/posts/article-1/".lower() for each in (name, host(gate))):
            yield f"the folder without its slash leads to {found} where {name} is asked"


def feeds(gate, static):
    """Each feed three times: its first answer, the second, and the enriched one."""
    faults = []
    public, ours = gate.base, host(gate)
    for path, kind in origin_site.FEEDS.items():
        original = lab.ask(static.base, path)
        first = lab.ask(gate.base, path, ours)
        second = lab.ask(gate.base, path, ours)
        third = stage.until(
            lambda path=path, kind=kind: (answer := lab.ask(gate.base, path, ours)).status == 200
            and is_enriched(answer, kind)
            and answer,
            ENRICHED_WITHIN,
        )
        if (first.status, second.status) != (200, 200) or not third:
            faults.append(f"{path}: {first.status}, {second.status}, enriched: {bool(third)}: {first.body[:200]}")
            continue
        found = [ids(answer.body, kind) for answer in (first, second, third)]
        # The first reader has the publisher's own document.
        if kind == "no ids":
            found[0] = found[1]
        if not found[0] == found[1] == found[2]:
            faults.append(f"{path}: ids changed from one answer to the next: {[each[:2] for each in found]}")
        published = ids(original.body, kind)
        if kind == "no ids":
            if [title for _, title in found[0]] != [title for _, title in published]:
                faults.append(f"{path}: other titles than the publisher's")
            if not all(guid for guid, _ in found[2]):
                faults.append(f"{path}: entries without ids")
        elif found[0] != published:
            faults.append(f"{path}: other ids than the publisher's: {found[0][:2]}, {published[:2]}")
        if (said := self_link(third.body, kind)) != f"http://{ours}{path}":
            faults.append(f"{path}: its self link is {said}")
        name = next((feed["name"] for url, feed in lab.known_feeds(gate).items() if url == static.base + path), None)
        # In the container of the document.
        views = [f"<{public}/feeds/{name}/sync{query}>" for query in ("", "?as=jsonfeed")]
        if not any(view in (third.one("link") or "") for view in views):
            faults.append(f"{path}: Link leads to no sync view of {name}: {third.one('link')}")
        if lab.ask(gate.base, f"/feeds/{name}/sync", gate.base.removeprefix("http://")).status != 200:
            faults.append(f"{path}: /feeds/{name}/sync is not there")
        faults += conditional(gate, path, kind, third)
    return faults


def conditional(gate, path, kind, answer):
    """HEAD, 304 and gzip of a feed that is known."""
    head = lab.ask(gate.base, path, host(gate), "HEAD")
    if (head.status, head.one("etag"), head.body) != (200, answer.one("etag"), b""):
        yield f"{path}: HEAD is {head.status}, {head.one('etag')} instead of {answer.one('etag')}"
    again = lab.ask(gate.base, path, host(gate), headers=[f"If-None-Match: {answer.one('etag')}"])
    if (again.status, again.body) != (304, b""):
        yield f"{path}: If-None-Match is answered {again.status}"
    packed = lab.ask(gate.base, path, host(gate), headers=["Accept-Encoding: gzip"])
    if packed.one("content-encoding") != "gzip" or ids(gzip.decompress(packed.body), kind) != ids(answer.body, kind):
        yield f"{path}: as gzip it is another: {packed.one('content-encoding')}"
    page = lab.ask(gate.base, path, host(gate), headers=["Accept: text/html"])
    # What calls itself a feed would be saved.
    own = answer.one("content-type")
    if page.one("content-type") != (own if "json" in own else "application/xml; charset=utf-8"):
        yield f"{path}: a browser gets {page.one('content-type')}"


def run(given, folder):
    static = lab.Static(given.nginx, folder / "nginx", folder / "site")
    files, gate = origin_site.make(folder / "site", static.base), None
    try:
        static.begin()
        gate = lab.gateway(given.bin, folder / "gateway", lab.origin(f"{static.base}/"))
        yield from crawl(gate, static, files)
        yield from redirects(gate)
        yield from feeds(gate, static)
        # Nothing but the feeds became one.
        more = set(lab.known_feeds(gate)) - {static.base + path for path in origin_site.FEEDS}
        if more:
            yield f"feeds that are none: {sorted(more)}"
    finally:
        if gate:
            gate.end()
        static.end()


def main():
    with tempfile.TemporaryDirectory() as folder:
        return stage.status(list(run(stage.given("bin", "nginx"), pathlib.Path(folder))))


sys.exit(main())
