"""A table of cases: which headers of a request arrive at the origin, and which of its answer at the client, through the
gateway and through nginx. What nginx does is printed; what the gateway does must be as the table says."""

import re
import urllib.parse

import origin_answers
import origin_stage as lab
import stage
from origin_cases import COOKIE, OWN_COOKIE, Case, absent, arrived, compare, is_good, status, target

# The name by which the world knows the site: its host with the port of the gateway's public address.
NAME = re.compile(re.escape(lab.HOST) + r":\d+")
FEED = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><id>urn:news</id>
<updated>2026-01-01T00:00:00Z</updated><entry><id>urn:1</id><title>One</title>
<updated>2026-01-01T00:00:00Z</updated></entry></feed>"""


def to_the_origin(host):
    """Cases of requests. `host` is that of the origin's address."""
    for name in ("Keep-Alive", "TE", "Trailer", "Proxy-Authorization", "Proxy-Connection", "Upgrade"):
        value = {"TE": "trailers", "Upgrade": "websocket"}.get(name, "x=1")
        more = ["Connection: Upgrade"] if name == "Upgrade" else []
        yield absent(name, [f"{name}: {value}", *more])
    yield absent("X-Named", ["Connection: X-Named, close", "X-Named: 1"])
    yield absent("X-Other", ["Connection: close", "Connection: x-other ,, x-more", "X-Other: 1"])
    yield Case("Connection to the origin", arrived("connection"), ["-", "keep-alive"], headers=["Connection: X-Named"])
    yield Case("Connection: Host", arrived("host"), host, headers=["Connection: Host"])
    yield Case(
        "Connection: X-Forwarded-For",
        arrived("x-forwarded-for"),
        "127.0.0.1",
        headers=["Connection: X-Forwarded-For, Forwarded, Via"],
    )
    yield Case(
        "Connection: Content-Length",
        lambda request, _: request.body.decode(),
        "five!",
        method="POST",
        headers=["Connection: Content-Length"],
        body=b"five!",
    )
    yield Case(
        "upgrade is no upgrade",
        status,
        ["200", "400", "426", "501"],
        headers=[
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ],
    )
    yield Case(
        "h2c is no upgrade",
        status,
        ["200", "400", "426", "501"],
        headers=["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"],
    )
    yield absent("HTTP2-Settings", ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA"])
    yield Case("Host", arrived("host"), host)
    yield Case("X-Forwarded-For", arrived("x-forwarded-for"), "127.0.0.1")
    yield Case("X-Forwarded-For, a lie", arrived("x-forwarded-for"), "127.0.0.1", headers=["X-Forwarded-For: 6.6.6.6"])
    yield Case("X-Forwarded-Host", arrived("x-forwarded-host"), NAME)
    yield Case("X-Forwarded-Host, a lie", arrived("x-forwarded-host"), NAME, headers=["X-Forwarded-Host: evil.example"])
    yield Case("X-Forwarded-Proto, a lie", arrived("x-forwarded-proto"), "http", headers=["X-Forwarded-Proto: https"])
    yield Case(
        "Forwarded", arrived("forwarded"), re.compile(r"(?i)(?=.*for=\"?127\.0\.0\.1\"?)(?=.*host=\"?blog\.test)[^,]*")
    )
    yield Case(
        "Forwarded, a lie",
        arrived("forwarded"),
        re.compile(r"(?!.*6\.6\.6\.6)(?i:.*for=\"?127\.0\.0\.1)[^,]*"),
        headers=["Forwarded: for=6.6.6.6;host=evil.example"],
    )
    yield absent("X-Forwarded-Port", ["X-Forwarded-Port: 666"])
    yield Case(
        "X-Forwarded-For, trusted",
        arrived("x-forwarded-for"),
        "192.0.2.7, 127.0.0.1",
        trusted=True,
        headers=["X-Forwarded-For: 192.0.2.7"],
    )
    yield Case(
        "X-Forwarded-Proto, the client's by way of a trusted proxy",
        arrived("x-forwarded-proto"),
        "http",
        trusted=True,
        headers=["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"],
    )
    yield Case(
        "X-Forwarded-Host, the client's by way of a trusted proxy",
        arrived("x-forwarded-host"),
        NAME,
        trusted=True,
        headers=["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Host: evil.example"],
    )
    yield absent("X-Forwarded-Port", ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Port: 666"], trusted=True)
    yield Case(
        "Forwarded, trusted",
        arrived("forwarded"),
        re.compile(r"for=192\.0\.2\.7, for=127\.0\.0\.1;host=\"blog\.test:\d+\";proto=http"),
        trusted=True,
        headers=["Forwarded: for=192.0.2.7;host=evil.example;proto=https"],
    )
    yield Case("Via", arrived("via"), "1.1 tidegate")
    yield Case("Via, one before", arrived("via"), "1.0 fred, 1.1 tidegate", headers=["Via: 1.0 fred"])
    yield Case(
        "Cookie with ours within",
        arrived("cookie"),
        ["a=1; b=2", "a=1;b=2"],
        headers=[f"Cookie: a=1; {OWN_COOKIE}; b=2"],
    )
    yield Case("Cookie, ours alone", arrived("cookie"), "-", headers=[f"Cookie: {OWN_COOKIE}"])
    yield Case(
        "Cookie, several lines",
        lambda request, _: str(sorted(request.one("cookie").replace(",", ";").split("; "))),
        "['a=1', 'b=2']",
        headers=["Cookie: a=1", f"Cookie: {OWN_COOKIE}", "Cookie: b=2"],
    )
    yield Case(
        "Cookie, a name like ours",
        arrived("cookie"),
        f"x{COOKIE}=1; {COOKIE}x=2",
        headers=[f"Cookie: x{COOKIE}=1; {COOKIE}x=2"],
    )
    yield Case(
        "Authorization of the origin's own",
        arrived("authorization"),
        "Basic YTpi",
        headers=["Authorization: Basic YTpi"],
    )
    yield Case(
        "Authorization with our token", arrived("authorization"), "-", headers=[f"Authorization: Bearer {stage.TOKEN}"]
    )
    for name, value in [
        ("Accept-Encoding", "br, gzip"),
        ("Accept", "image/*;q=0.5"),
        ("User-Agent", "a reader"),
        ("Range", "bytes=0-5"),
        ("If-None-Match", '"x", W/"y"'),
        ("Origin", "http://elsewhere.example"),
        ("X-Words", "caf\xe9"),
        ("Cache-Control", "no-cache"),
        ("Referer", "http://blog.test/"),
        ("A-IM", "feed"),
        ("DNT", "1"),
    ]:
        yield Case(f"{name} as it is", arrived(name.lower()), value, headers=[f"{name}: {value}"])
    # Without Accept anything is accepted (RFC 9110 section 12.5.1).
    for name, good in (("User-Agent", "-"), ("Accept", ["-", "*/*"]), ("Accept-Encoding", "-")):
        yield Case(f"{name} where none is", arrived(name.lower()), good)
    yield Case("two lines of one header", arrived("x-many"), "1, 2", headers=["X-Many: 1", "X-Many: 2"])
    for path in (
        "/a%2Fb/%c3%A9?x=%41&&y=+%20;z=[1]|{2}&=",
        "/a//b///c/",
        "/a;b=c/~d/$&'()*+,=:@!",
        "/...",
        "/a..b/.c/d.",
        "/?",
        "/x?a=/../b&c=..",
        "/%25%32%65",
        "/x?u=http://evil.example/",
        "/x?a=b&c=(d)!*",
    ):
        yield Case(f"target {path}", target, f"GET {path} HTTP/1.1", path=path)
    # The only letter that may stand in a query and is written otherwise, which means the same.
    quotes = ["GET /x?a='b' HTTP/1.1", "GET /x?a=%27b%27 HTTP/1.1"]
    yield Case("target with '", target, quotes, path="/x?a='b'")
    # No address has these letters; one that has them is handed on as it is, or refused.
    for path in ("/x'y\"z<>^`{|}[]", '/x?a="b"<c>^`{|}\\', "/caf\xe9?x=\xe9"):
        yield Case(f"target {path}", target, [f"GET {path} HTTP/1.1", "- -"], path=path)
    for method in ("POST", "PUT", "PATCH", "DELETE", "PROPFIND", "PURGE"):
        yield Case(
            f"{method} with a body",
            lambda request, _: f"{request.line.split()[0]} {request.body.decode()}",
            f"{method} words",
            method=method,
            body=b"words",
        )
    yield Case(
        "POST in gzip, chunked",
        status,
        "501",
        method="POST",
        headers=["Transfer-Encoding: gzip, chunked"],
    )
    yield Case("OPTIONS", target, "OPTIONS /case HTTP/1.1", method="OPTIONS")
    yield Case("HEAD", target, "HEAD /case HTTP/1.1", method="HEAD")
    yield Case(
        "GET has no body's framing",
        lambda request, _: str(request.one("content-length")) + str(request.one("transfer-encoding")),
        "NoneNone",
    )
    yield Case(
        "POST without a body",
        lambda request, _: request.one("content-length") or "-",
        ["0", "-"],
        method="POST",
        body=b"",
    )


def run(given, folder):
    site, running = lab.Origin(), []
    try:
        tables = lab.origin(f"{site.base}/")
        ours = lab.gateway(given.bin, folder / "plain", tables)
        running.append(ours)
        trusting = lab.gateway(given.bin, folder / "trusting", tables, 'trusted_proxies = ["127.0.0.1"]')
        running.append(trusting)
        nginx = lab.Proxy(given.nginx, folder / "nginx", site.base)
        running.append(nginx)
        yield from compare(
            [*to_the_origin(site.name), *origin_answers.to_the_client(site.name)], site, ours, trusting, nginx
        )
        yield from below_a_path(given, folder, site, running)
        yield from of_polls(given, folder, site, running)
    finally:
        for each in running:
            each.end()
        site.end()


def below_a_path(given, folder, site, running):
    """Where addresses lead if the origin is below a path, and its own address has a path too."""
    admin = f'admin_listen = "127.0.0.1:{stage.free_port()}"'
    gate = lab.gateway(given.bin, folder / "path", lab.origin(f"{site.base}/deep/", at="/blog/"), admin)
    running.append(gate)
    host = gate.base.removeprefix("http://")
    faults, rows = [], []

    def leads(_, answer):
        return urllib.parse.urljoin(f"{gate.base}/blog/x", answer.one("location") or "")

    for asked, answer, watch, good in [
        ("/blog/", None, target, "GET /deep/ HTTP/1.1"),
        ("/blog/a/b?c", None, target, "GET /deep/a/b?c HTTP/1.1"),
        ("/blog//x", None, target, ["GET /deep//x HTTP/1.1", "- -"]),
        ("/blogger", None, target, "- -"),
        ("/blog", None, target, "- -"),
        ("/BLOG/", None, target, "- -"),
        ("/blog/%2e%2e/up", None, target, "- -"),
        # Many servers take these for steps of a path.
        ("/blog/..%2fup", None, target, "- -"),
        ("/blog/%2e%2e%2Fup", None, target, "- -"),
        ("/blog/x/..%2f..%2fup", None, target, "- -"),
        ("/blog/..%5cup", None, target, "- -"),
        ("/blog/x", f"{site.base}/deep/y", leads, f"{gate.base}/blog/y"),
        ("/blog/x", "/deep/y", leads, f"{gate.base}/blog/y"),
        ("/blog/x", "y?z#f", leads, f"{gate.base}/blog/y?z#f"),
        ("/blog/x", "/other", leads, f"{site.base}/other"),
        ("/blog/x", f"{site.base}/other", leads, f"{site.base}/other"),
        ("/blog/x", "../other", leads, f"{site.base}/other"),
        ("/blog/x", "/deep", leads, f"{site.base}/deep"),
        ("/blog/x", "?q", leads, f"{gate.base}/blog/x?q"),
    ]:
        name = asked if answer is None else f"{asked} leads to {answer}"
        site.answers = {"/deep/x": lab.reply(b"x", "302 Found", [f"Location: {answer}"])}
        site.taken()
        got = lab.ask(gate.base, asked, host)
        found = watch((site.taken() or [lab.Message("- -", [])])[-1], got)
        rows.append(
            (name, found, got.status, "" if is_good(found, good if isinstance(good, list) else [good]) else "FAULT")
        )
        if rows[-1][-1]:
            faults.append(f"below a path: {name}: {found!r} instead of {good!r} ({got.status})")
    lab.table(rows, ("below a path", "leads to", "status", ""))
    return faults


def of_polls(given, folder, site, running):
    """What polls say of the site's name: what passed requests say, and nothing of a client."""
    faults, rows = [], []
    feed = f'[[feed]]\nname = "news"\nurl = "{site.base}/polled.xml"\n'
    for folder_name, more in (("polls", {}), ("polls-by-host", {"send_host": True})):
        site.answers = {"/polled.xml": lab.reply(FEED, headers=["Content-Type: application/atom+xml"])}
        gate = lab.gateway(given.bin, folder / folder_name, lab.origin(f"{site.base}/", **more) + feed)
        running.append(gate)
        name = f"{lab.HOST}:{lab.place(gate.base)[1]}"
        site.taken()
        lab.ask(gate.base, "/case")
        gate.poll("news")
        arrived_now = site.taken()
        passed = next(request for request in arrived_now if "/case" in request.line)
        polled = [request for request in arrived_now if "/polled.xml" in request.line][-1]
        element = f'host="{name}";proto=http'
        for header, good_passed, good_polled in [
            ("host", *([name if more else site.name] * 2)),
            ("x-forwarded-host", name, name),
            ("x-forwarded-proto", "http", "http"),
            ("forwarded", f"for=127.0.0.1;{element}", element),
            ("x-forwarded-for", "127.0.0.1", None),
        ]:
            found = passed.one(header), polled.one(header)
            is_right = found == (good_passed, good_polled)
            rows.append((f"{header}, {folder_name}", found[0], found[1], "" if is_right else "FAULT"))
            if not is_right:
                faults.append(f"{folder_name}: {header}: {found!r} instead of {(good_passed, good_polled)!r}")
    lab.table(rows, ("header", "of a passed request", "of a poll", ""))
    return faults
