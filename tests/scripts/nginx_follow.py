"""The gateway behind nginx: a shared cache must hide no change that SUP told of, and what is passed on to a site arrives
as it came. Needs nginx (in CI it is installed, elsewhere the script passes without)."""

import json
import pathlib
import random
import sys
import tempfile
import time

import nginx_stage
import origin_stage as lab
import stage

FEEDS, ROUNDS = 20, 15
# How many of them change in a round.
CHANGED = 5
# How long a change may take until the SUP document lists it: two seconds, and a slow machine.
LISTED_WITHIN = 20


def document(name, posts):
    """An Atom feed of posts; each bears its number."""
    numbers = range(posts, max(0, posts - 10), -1)
    return stage.atom(name, (stage.entry(f"{name}:{n}", f"{name} number {n}", f"Text {n}.") for n in numbers))


def follow_sup(program, server, folder):
    """An aggregator that reads through the cache what SUP lists, round by round."""
    chance = random.Random(2)
    site, posts = stage.Site(), {f"feed-{n}": 3 for n in range(FEEDS)}
    for name, count in posts.items():
        site.documents[f"/{name}.xml"] = document(name, count)
    port = stage.free_port()
    settings = stage.feeds_of(site, posts), f'public_url = "http://127.0.0.1:{port}"'
    faults, hits, asked = [], 0, 0
    with stage.Gateway(program, folder, *settings) as gateway, nginx_stage.proxy(
        server, folder / "nginx", port, gateway.base, nginx_stage.CACHE
    ) as nginx:
        for name in posts:
            gateway.poll(name)
        ids, known, since = {}, {}, {}
        for name in posts:
            *_, headers = stage.get(f"{nginx.base}/feeds/{name}")
            ids[headers["x-sup-id"].rpartition("#")[2]] = name
            since[name] = stage.get(f"{nginx.base}/feeds/{name}/sync")[1].partition('until="')[2].partition('"')[0]
        for sup_id, update in json.loads(stage.get(f"{nginx.base}/sup.json")[1])["updates"]:
            known[sup_id] = max(update, known.get(sup_id, ""))
        for turn in range(ROUNDS):
            changed = set(chance.sample(sorted(posts), CHANGED))
            for name in changed:
                posts[name] += 1
                site.documents[f"/{name}.xml"] = document(name, posts[name])
                gateway.poll(name)
            heard, began = set(), time.monotonic()
            while not changed <= heard and time.monotonic() - began < LISTED_WITHIN:
                for sup_id, update in json.loads(stage.get(f"{nginx.base}/sup.json")[1])["updates"]:
                    name = ids.get(sup_id)
                    if name is None or update <= known.get(sup_id, ""):
                        continue
                    known[sup_id] = update
                    heard.add(name)
                    newest = f"{name} number {posts[name]}<"
                    sync = f"{nginx.base}/feeds/{name}/sync"
                    for place in (f"{nginx.base}/feeds/{name}", sync, f"{sync}?since={since[name]}"):
                        _, body, headers = stage.get(place)
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


def pass_on(program, server, folder):
    """A whole site by its own server: it gets what the client wrote."""
    faults, arrived, base = [], [], f"http://127.0.0.1:{stage.free_port()}"
    upload, trusted = b"x" * (2 << 20), 'trusted_proxies = ["127.0.0.1"]'

    class Site(stage.Handler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            arrived.append((self.requestline, len(body), self.headers.get_all("x-forwarded-host")))
            self.answer(200, b"ok")

        do_POST = do_GET

    with lab.gateway(program, folder / "gateway", lab.origin(f"{stage.Server(Site).base}/"), trusted) as gateway:
        servers = nginx_stage.site_server(base.removeprefix("http://"), gateway.base)
        with nginx_stage.Server(server, folder / "nginx", servers, f"{base}/healthz"):
            for method, path, body in [
                ("GET", "/a%2Fb", None), ("GET", "/a//b?c=%2F", None), ("GET", "/metrics", None),
                ("GET", "/t/token", None), ("POST", "/upload", upload),
            ]:
                arrived.clear()
                headers = ["X-Forwarded-Host: evil.example"]
                answer = lab.ask(base, path, method=method, headers=headers, body=body)
                wanted = (f"{method} {path} HTTP/1.1", len(body or b""), [f"{lab.HOST}:{lab.place(gateway.base)[1]}"])
                if answer.status != 200 or arrived[-1:] != [wanted]:
                    faults.append(f"{method} {path}: {answer.status}, arrived as {arrived[-1:]} instead of {wanted}")
    print(f"in front of a site: {len(faults)} faults")
    return faults


def main():
    given, nginx, faults = stage.given(), stage.program("nginx"), []
    for look in (follow_sup, pass_on):
        with tempfile.TemporaryDirectory() as folder:
            faults += look(given.bin, nginx, pathlib.Path(folder))
    return stage.status(faults)


sys.exit(main())
