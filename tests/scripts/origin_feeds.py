"""What becomes a feed, and what never does: answers and requests that are private, queries that nobody announced, and
what an origin with `pass = "redirect"` does with all of it."""

import json
import time
import typing

import origin_crawl
import origin_stage as lab

# How long what is no feed is given to become one, in seconds.
STILL = 1.5
# How long a look at an address is given, in seconds.
LOOKED = 0.3


def document(name):
    """A feed of two entries."""
    entries = "".join(
        f"<entry><id>urn:{name}:{n}</id><title>{name} {n}</title><updated>2026-01-0{n}T00:00:00Z</updated>"
        f'<link href="http://blog.example/{name}/{n}"/><content>Words {n}.</content></entry>'
        for n in (2, 1)
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><id>urn:{name}</id>'
        f"<title>{name}</title><author><name>N</name></author><updated>2026-01-02T00:00:00Z</updated>{entries}</feed>"
    ).encode()


class Case(typing.NamedTuple):
    """An address that answers with a feed, in a way. `headers` are those of the request."""

    name: str
    becomes: bool | None = False
    answer: list = []
    headers: list = []
    method: str = "GET"
    status: str = "200 OK"
    body: bytes = None
    query: str = ""


CASES = [
    Case("plain", True),
    Case("with max-age", True, ["Cache-Control: public, max-age=60"]),
    Case("with Vary on the encoding", True, ["Vary: Accept-Encoding"]),
    Case("with Set-Cookie", answer=["Set-Cookie: a=1"]),
    Case("private", answer=["Cache-Control: private"]),
    Case("PRIVATE among others", answer=["Cache-Control: max-age=60", 'Cache-Control: x="y, z", PRIVATE']),
    Case("private for a header", answer=['Cache-Control: private="x-user"']),
    Case("no-store", answer=["Cache-Control: no-store"]),
    Case("No-Store behind another", answer=["Cache-Control: max-age=0 , No-Store"]),
    Case("Vary: Cookie", answer=["Vary: Cookie"]),
    Case("vary: accept-encoding, cookie", answer=["Vary: Accept-Encoding, cookie"]),
    Case("Vary: Authorization", answer=["Vary: Authorization"]),
    Case("Vary: *", answer=["Vary: *"]),
    Case("asked with a cookie", headers=["Cookie: a=1"]),
    Case("asked with Authorization", headers=["Authorization: Basic YTpi"]),
    Case("asked by POST", method="POST", body=b"x"),
    Case("a part", status="206 Partial Content", answer=["Content-Range: bytes 0-9/99"], headers=["Range: bytes=0-9"]),
    Case("not found", status="404 Not Found"),
    Case("an error", status="500 Internal Server Error"),
    Case("forbidden", status="403 Forbidden"),
    Case("with a query", query="?format=atom"),
    # Many publishers serve feeds so; either will do.
    Case("as text/html", None, answer=["Content-Type: text/html"]),
]


def path(case):
    return f"/{case.name.lower().translate(str.maketrans(' :,*', '----'))}.xml"


def prepare(site):
    """The addresses of all cases."""
    for case in CASES:
        headers = [*case.answer]
        if not any(line.startswith("Content-Type:") for line in headers):
            headers.append("Content-Type: application/atom+xml")
        site.answers[path(case)] = lab.reply(document(path(case)[1:-4]), case.status, headers)


def passed_through(gate, site):
    """An origin that is passed through."""
    faults, rows, seen = [], [], []
    for case in CASES:
        place = path(case) + case.query
        site.taken()
        answers = [lab.ask(gate.base, place, lab.HOST, case.method, case.headers, case.body) for _ in range(2)]
        if case.becomes:
            lab.until(lambda place=place: f"{site.base}{place}" in lab.known_feeds(gate), 10)
        seen.append((case, place, answers, len(site.taken())))
    time.sleep(STILL)
    feeds = lab.known_feeds(gate)
    if more := len(site.taken()):
        faults.append(f"the origin had {more} requests that no client made")
    for case, place, answers, asked in seen:
        expected = site.answers[path(case)].partition(b"\r\n\r\n")[2]
        known = f"{site.base}{place}" in feeds
        rows.append((case.name, answers[0].status, answers[1].status, asked, "a feed" if known else "none"))
        if case.becomes is not None and known != case.becomes:
            faults.append(f"{case.name}: it {'became' if known else 'did not become'} a feed")
        status = int(case.status.split()[0])
        if [answer.status for answer in answers] != [status, status]:
            faults.append(f"{case.name}: answered {answers[0].status}, {answers[1].status}")
        if case.becomes is False and [answer.body for answer in answers] != [expected, expected]:
            faults.append(f"{case.name}: other bytes than the origin's: {answers[1].body[:100]}")
        if case.becomes is False and asked != 2:
            faults.append(f"{case.name}: two requests of the client were {asked} of the origin")
    lab.table(rows, ("answer", "first", "second", "asked", "becomes"))
    return faults


def made(gate, place):
    """The answer for a feed once it is the gateway's own, or the last one before."""
    answer = None

    def is_made():
        nonlocal answer
        answer = lab.ask(gate.base, place)
        return answer.status == 200 and origin_crawl.is_enriched(answer, "atom")

    lab.until(is_made, 10, 0.2)
    return answer


def of_old_readers(gate, site):
    """A feed without ids that is first asked for by readers who have an older copy of it, or understand deltas: it becomes
    a feed, and its ids stay then."""
    items = "".join(
        f"<item><title>Post {n}</title><link>http://blog.example/{n}</link><description>Words {n}.</description></item>"
        for n in (3, 2, 1)
    )
    for n, header in enumerate(
        ('If-None-Match: "old"', "If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT", "A-IM: feed", 'If-None-Match: W/"now"')
    ):
        place = f"/old-{n}.xml"
        rss = f'<rss version="2.0"><channel><title>Old {n}</title><link>http://blog.example/</link>{items}</channel></rss>'

        def answer(wire, message, rss=rss.encode()):
            headers = ["Content-Type: application/rss+xml", 'ETag: W/"now"']
            is_known = message.one("if-none-match") == 'W/"now"'
            status = "304 Not Modified" if is_known else "200 OK"
            wire.connection.sendall(lab.reply(b"" if is_known else rss, status, headers, not is_known))
            return True

        site.answers[place] = answer
        answers = [lab.ask(gate.base, place, headers=[header]), lab.ask(gate.base, place, headers=[header])]
        answers.append(made(gate, place))
        found = [origin_crawl.ids(each.body, "rss") for each in (answers[-1], lab.ask(gate.base, place))]
        if any(each != found[0] for each in found):
            yield f"a feed without ids that is asked for with {header} changes its ids: {[each[:1] for each in found]}"
        statuses = [each.status for each in answers]
        if set(statuses) - {200, 304} or statuses[-1] != 200:
            yield f"a feed that is asked for with {header} is answered {statuses}"
        if f"{site.base}{place}" not in lab.known_feeds(gate):
            yield f"a feed that is asked for with {header} does not become one"


def polled(gate, site, place):
    """What is wrong with a poll of the feed at a path."""
    name = lab.known_feeds(gate)[f"{site.base}{place}"]["name"]
    return gate.feed(name, "/poll", "POST")["error"]


def stays_private(gate, site):
    """A feed that is known, asked for by somebody whom the origin knows, and one that turns private."""
    site.answers["/plain.xml"] = lambda wire, message: not wire.connection.sendall(
        lab.reply(
            document("secret") if message.one("cookie") or message.one("authorization") else document("plain"),
            headers=["Content-Type: application/atom+xml"],
        )
    )
    for header in ("Cookie: who=me", "Authorization: Basic YTpi"):
        lab.ask(gate.base, "/plain.xml", headers=[header])
        answer = lab.ask(gate.base, "/plain.xml")
        if answer.status != 200 or b"secret" in answer.body:
            yield f"what {header} was told is told to everybody: {answer.status} {answer.body[:100]}"
    site.answers["/turning.xml"] = lambda wire, message: not wire.connection.sendall(
        lab.reply(
            document(message.one("x-who") or "nobody"),
            headers=["Content-Type: application/atom+xml", "Cache-Control: private"],
        )
    )
    for who in ("ann", "bob"):
        answer = lab.ask(gate.base, "/turning.xml", headers=[f"X-Who: {who}"])
        if f"urn:{who}<".encode() not in answer.body:
            yield f"{who} is answered {answer.body[:200]}"
    usual = ["Content-Type: application/atom+xml"]
    for number, closed in enumerate(
        (["Cache-Control: private, no-store", "Set-Cookie: a=1"], ["Set-Cookie: a=1"], ["Vary: Cookie"])
    ):
        place = f"/closing-{number}.xml"
        site.answers[place] = lab.reply(document("open"), headers=usual)
        made(gate, place)
        site.answers[place] = lab.reply(document("members"), headers=usual + closed)
        if "is not for everybody" not in (error := polled(gate, site, place) or ""):
            yield f"a poll of a feed that turned private ({closed}) says {error!r}"
        if b"urn:open:2" not in (answer := lab.ask(gate.base, place)).body or b"members" in answer.body:
            yield f"a feed that turned private ({closed}) is answered {answer.status} {answer.body[:200]}"
        site.answers[place] = lab.reply(document("open"), headers=usual)
        if error := polled(gate, site, place):
            yield f"a poll of a feed that is for everybody again says {error!r}"


def announced(gate, site):
    """A query that a page announced which was asked for through the gateway."""
    feed = "/shop.xml"
    site.answers[feed] = lab.reply(document("shop"), headers=["Content-Type: application/atom+xml"])
    site.answers["/page"] = lab.reply(
        b'<!doctype html><html><head><title>T</title><link rel="alternate" type="application/atom+xml" '
        b'href="/shop.xml?format=atom&amp;n=1"></head><body>x</body></html>',
        headers=["Content-Type: text/html; charset=utf-8"],
    )
    # What one person's page announces is his own business.
    secrets = {}
    for name, answer, headers in [
        ("a page asked with a cookie", [], ["Cookie: a=1"]),
        ("a private page", ["Cache-Control: private"], []),
        ("a page asked with Authorization", [], ["Authorization: Basic YTpi"]),
        ("a page with Set-Cookie", ["Set-Cookie: a=1"], []),
    ]:
        secret = f"{feed}?secret={len(name)}"
        body = (
            site.answers["/page"].partition(b"\r\n\r\n")[2].replace(b"/shop.xml?format=atom&amp;n=1", secret.encode())
        )
        site.answers[f"/own-page-{len(name)}"] = lab.reply(body, headers=["Content-Type: text/html", *answer])
        secrets[secret] = name
        if (status := lab.ask(gate.base, f"/own-page-{len(name)}", headers=headers).status) != 200:
            yield f"{name} is answered {status}"
    time.sleep(STILL)
    for secret in secrets:
        lab.ask(gate.base, secret)
    time.sleep(STILL)
    for secret, name in secrets.items():
        if site.base + secret in lab.known_feeds(gate):
            yield f"{name} made a feed of an address with a query"
    url = f"{site.base}{feed}?format=atom&n=1"
    lab.ask(gate.base, f"{feed}?format=atom&n=1")
    time.sleep(STILL)
    if url in lab.known_feeds(gate):
        yield "a query became a feed before a page announced it"
    page = lab.ask(gate.base, "/page")
    if b"/shop.xml?format=atom&amp;n=1" not in page.body:
        yield f"the page is not as it was: {page.body}"

    def asked():
        lab.ask(gate.base, f"{feed}?format=atom&n=1")
        return url in lab.known_feeds(gate)

    if not lab.until(asked, 10, 0.5):
        yield "a query that a page announced does not become a feed"
    lab.ask(gate.base, f"{feed}?format=atom&n=2")
    time.sleep(STILL)
    if f"{site.base}{feed}?format=atom&n=2" in lab.known_feeds(gate):
        yield "a query that nobody announced became a feed after another one was"


def redirected(gate, site):
    """`pass = "redirect"`: what is no feed is at the origin, and feeds are here."""
    faults, rows = [], []
    site.answers["/page.html"] = lab.reply(b"<title>T</title>", headers=["Content-Type: text/html"])
    cases = [
        ("GET", "/page.html", [], 307),
        ("GET", "/page.html?a=%41&b", [], 307),
        ("HEAD", "/page.html", [], 307),
        ("POST", "/page.html", [], 307),
        ("POST", "/plain.xml", [], 307),
        ("PUT", "/x", [], 307),
        ("OPTIONS", "/x", [], 307),
        ("GET", "/not-there", [], 307),
        ("GET", "/private.xml", [], 307),
        ("GET", "/with-set-cookie.xml", [], 307),
        ("GET", "/no-store.xml", [], 307),
        ("GET", "/with-a-query.xml?format=atom", [], 307),
        ("GET", "/with-max-age.xml", ["Cookie: a=1"], 307),
        ("GET", "/with-max-age.xml", ["Authorization: Basic YTpi"], 307),
        ("GET", "/plain.xml", [], 307),
        ("GET", "/plain.xml", [], 200),
        ("HEAD", "/plain.xml", [], 200),
        ("GET", "/with-max-age.xml", [], 307),
        ("GET", "/with-max-age.xml", [], 200),
    ]
    for method, place, headers, status in cases:
        site.taken()
        answer = lab.ask(gate.base, place, lab.HOST, method, headers, b"x" if method in ("POST", "PUT") else None)
        if method == "GET" and not headers:
            # The gateway looks when its client has the answer.
            time.sleep(LOOKED)
        arrived = site.taken()
        where = answer.one("location")
        rows.append((f"{method} {place} {' '.join(headers)}", answer.status, where or "", len(arrived)))
        wrong = []
        if answer.status != status:
            wrong.append(f"status {answer.status} instead of {status}: {answer.body[:100]}")
        if status == 307 and where != f"{site.base}{place}":
            wrong.append(f"it leads to {where}")
        if status == 307 and (method not in ("GET", "HEAD") or headers) and arrived:
            wrong.append("the origin was asked")
        if any(
            message.line.split()[0] not in ("GET", "HEAD") or message.one("cookie") or message.one("authorization")
            for message in arrived
        ):
            wrong.append(f"the origin was asked with what is the client's: {arrived}")
        if answer.status == 200 and method == "GET" and not origin_crawl.is_enriched(answer, "atom"):
            wrong.append("the feed is not enriched")
        faults += [f"redirect: {method} {place} {headers}: {each}" for each in wrong]
    site.taken()
    for _ in range(5):
        lab.ask(gate.base, "/page.html")
    if asked := len(site.taken()):
        faults.append(f"redirect: a page that is known to be none is looked at again: {asked} requests")
    wanted = {f"{site.base}/plain.xml", f"{site.base}/with-max-age.xml"}
    if (found := set(lab.known_feeds(gate))) != wanted:
        faults.append(f"redirect: the feeds are {sorted(found)}")
    lab.table(rows, ('pass = "redirect"', "status", "Location", "asked"))
    return faults


def own_path(given, folder, site):
    """A feed with a path of its own, and what it is not."""
    tables = f'[[feed]]\nname = "plain"\nurl = "{site.base}/with-max-age.xml"\npath = "/atom.xml"\n'
    gate = lab.gateway(given.bin, folder, tables)
    try:
        gate.poll("plain")
        host = gate.base.removeprefix("http://")
        answer, usual = (lab.ask(gate.base, place, host) for place in ("/atom.xml", "/feeds/plain"))
        if answer.status != 200 or origin_crawl.ids(answer.body, "atom") != origin_crawl.ids(usual.body, "atom"):
            yield f"the feed is not at its own path: {answer.status} {answer.body[:100]}"
        elif origin_crawl.self_link(answer.body, "atom") != f"{gate.base}/atom.xml":
            yield f"the self link at its own path is {origin_crawl.self_link(answer.body, 'atom')}"
        if (status := lab.ask(gate.base, "/atom.xml/sync", host).status) != 404:
            yield f"there is something below the path of a feed: {status}"
    finally:
        gate.end()


def run(given, folder):
    site, running = lab.Origin(), []
    prepare(site)
    try:
        gate = lab.gateway(given.bin, folder / "through", lab.origin(f"{site.base}/"))
        running.append(gate)
        yield from passed_through(gate, site)
        yield from announced(gate, site)
        yield from stays_private(gate, site)
        yield from of_old_readers(gate, site)
        listed = json.dumps(sorted(lab.known_feeds(gate)))
        if (
            "secret" in gate.ask("/feeds/" + next(iter(lab.known_feeds(gate).values()))["name"]).decode()
            or "turning" in listed
        ):
            yield "what was private is kept"
        prepare(site)
        other = lab.gateway(given.bin, folder / "redirect", lab.origin(f"{site.base}/", **{"pass": "redirect"}))
        running.append(other)
        yield from redirected(other, site)
        yield from own_path(given, folder / "path", site)
    finally:
        for each in running:
            each.end()
        site.end()
