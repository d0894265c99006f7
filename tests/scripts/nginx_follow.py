"""Follows SUP through nginx's cache, and passes on what a gateway in front of a site gets through nginx.

    nginx_follow.py --bin PATH/TO/tidegate --nginx PATH/TO/nginx [--rounds N]

Exit status 1 where a change is missed, or the site is told another address than the client's.
"""

import json
import pathlib
import random
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import nginx_stage
import origin_stage as lab
import stage

FEEDS = 20
# How many of them change in a round.
CHANGED = 5
# How long a change may take until the SUP document lists it: two seconds, and a slow machine.
LISTED_WITHIN = 20


def document(name, posts):
    """An Atom feed of posts; each bears its number."""
    numbers = range(posts, max(0, posts - 10), -1)
    return stage.atom(name, (stage.entry(f"{name}:{n}", f"{name} number {n}", f"Text {n}.") for n in numbers))


def fetch(address):
    """The body, the headers and what nginx's cache said."""
    with urllib.request.urlopen(address, timeout=stage.WAIT) as answer:
        return answer.read().decode(), answer.headers


def follow_sup(given, folder):
    """An aggregator that reads through the cache what SUP lists, round by round."""
    chance = random.Random(2)
    site, posts = stage.Site(), {f"feed-{n}": 3 for n in range(FEEDS)}
    for name, count in posts.items():
        site.documents[f"/{name}.xml"] = document(name, count)
    port = stage.free_port()
    settings = stage.feeds_of(site, posts), f'public_url = "http://127.0.0.1:{port}"'
    faults, hits, asked = [], 0, 0
    with stage.Gateway(given.bin, folder, *settings) as gateway, nginx_stage.Nginx(
        given.nginx, folder / "nginx", port, gateway.base, more=nginx_stage.CACHE
    ) as nginx:
        for name in posts:
            gateway.poll(name)
        ids, known, since = {}, {}, {}
        for name in posts:
            _, headers = fetch(f"{nginx.base}/feeds/{name}")
            ids[headers["x-sup-id"].rpartition("#")[2]] = name
            until, _ = fetch(f"{nginx.base}/feeds/{name}/sync")
            since[name] = until.partition('until="')[2].partition('"')[0]
        for sup_id, update in json.loads(fetch(f"{nginx.base}/sup.json")[0])["updates"]:
            known[sup_id] = max(update, known.get(sup_id, ""))
        for turn in range(given.rounds):
            changed = set(chance.sample(sorted(posts), CHANGED))
            for name in changed:
                posts[name] += 1
                site.documents[f"/{name}.xml"] = document(name, posts[name])
                gateway.poll(name)
            heard, began = set(), time.monotonic()
            while not changed <= heard and time.monotonic() - began < LISTED_WITHIN:
                for sup_id, update in json.loads(fetch(f"{nginx.base}/sup.json")[0])["updates"]:
                    name = ids.get(sup_id)
                    if name is None or update <= known.get(sup_id, ""):
                        continue
                    known[sup_id] = update
                    heard.add(name)
                    newest = f"{name} number {posts[name]}<"
                    sync = f"{nginx.base}/feeds/{name}/sync"
                    for place in (
                        f"{nginx.base}/feeds/{name}", sync, f"{sync}?since={since[name]}"
                    ):
                        body, headers = fetch(place)
                        asked += 1
                        hits += headers["x-cache"] == "HIT"
                        if newest not in body:
                            faults.append(f"round {turn}: {place} lacks its newest post")
                    since[name] = body.partition('until="')[2].partition('"')[0]
                time.sleep(0.2)
            if not changed <= heard:
                faults.append(f"round {turn}: never listed: {sorted(changed - heard)}")
        print(f"through nginx's cache: {asked} reads, {hits} out of it, {len(faults)} faults")
    return faults


def pass_on(given, folder):
    """A whole site by its own server: it gets what the client wrote."""
    faults, base = [], f"http://127.0.0.1:{stage.free_port()}"
    upload, trusted = b"x" * (2 << 20), 'trusted_proxies = ["127.0.0.1"]'
    with (
        lab.Origin() as site,
        lab.gateway(given.bin, folder / "gateway", lab.origin(f"{site.base}/"), trusted) as gateway,
        nginx_stage.Server(
            given.nginx, folder / "nginx",
            nginx_stage.site_server(base.removeprefix("http://"), gateway.base), f"{base}/healthz",
        ),
    ):
        for method, path, body in [
            ("GET", "/a%2Fb", None), ("GET", "/a//b?c=%2F", None), ("GET", "/metrics", None),
            ("GET", "/t/token", None), ("POST", "/upload", upload),
        ]:
            site.taken()
            headers = ["X-Forwarded-Host: evil.example"]
            answer = lab.ask(base, path, method=method, headers=headers, body=body)
            found = (site.taken() or [lab.Message("- -", [])])[-1]
            if found.line != f"{method} {path} HTTP/1.1" or answer.status != 200:
                faults.append(f"{method} {path} arrived as {found.line}, {answer.status}")
            elif len(found.body or b"") != len(body or b""):
                faults.append(f"{method} {path} arrived with {len(found.body or b'')} bytes")
            elif found.one("x-forwarded-host") != f"{lab.HOST}:{lab.place(gateway.base)[1]}":
                faults.append(f"{method} {path}: the site is told {found.one('x-forwarded-host')}")
        print(f"in front of a site: {len(faults)} faults")
    return faults


def main():
    given = stage.given("bin", "nginx", rounds=15)
    faults = []
    for look in (follow_sup, pass_on):
        with tempfile.TemporaryDirectory() as folder:
            faults += look(given, pathlib.Path(folder))
    return stage.status(faults)


sys.exit(main())
