"""A table of cases: which headers of a request arrive at the origin, and which of its answer at the client, through the
gateway and through nginx. What nginx does is printed; what the gateway does must be as the table says."""

import re
import typing
import urllib.parse

import origin_stage as lab
import stage

# The gateway's own cookie, and a token of its administration.
COOKIE = "tidegate-session"
OWN = [f"{COOKIE}=0123456789abcdef"]


class Case(typing.NamedTuple):
    """A case. `watch` says in a text what came of the request that arrived and the answer to it; `good` is that text,
    a list of texts, or a pattern."""

    name: str
    watch: typing.Callable
    good: object
    headers: list = []
    answer: bytes = lab.reply(b"an answer")
    method: str = "GET"
    path: str = "/case"
    body: bytes = None
    trusted: bool = False


def arrived(name):
    """A watch for a header of the request that arrived."""
    return lambda request, _: request.one(name) or "-"


def answered(name):
    """A watch for a header of the answer, its lines apart."""
    return lambda _, answer: " | ".join(answer.all(name)) or "-"


def status(_, answer):
    return f"{answer.status}{'' if answer.whole else ', cut'}"


def leads_to(name):
    """A watch for where an answer leads from the address that was asked."""
    def watch(_, answer):
        found = answer.one(name)
        return "-" if found is None else urllib.parse.urljoin(f"http://{lab.HOST}/case", found)
    return watch


def target(request, _):
    return request.line


def body_and_status(_, answer):
    return f"{answer.status} {answer.body.decode('latin-1')}{'' if answer.whole else ', cut'}"


def absent(name, lines, **more):
    return Case(f"{name} to the origin", arrived(name.lower()), "-", headers=lines, **more)


def removed(name, lines, **more):
    return Case(f"{name} to the client", answered(name.lower()), "-", answer=lab.reply(b"x", headers=lines), **more)


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
    yield Case("Connection: X-Forwarded-For", arrived("x-forwarded-for"), "127.0.0.1",
               headers=["Connection: X-Forwarded-For, Forwarded, Via"])
    yield Case("Connection: Content-Length", lambda request, _: request.body.decode(), "five!", method="POST",
               headers=["Connection: Content-Length"], body=b"five!")
    yield Case("upgrade is no upgrade", status, ["200", "400", "426", "501"],
               headers=["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="])
    yield Case("h2c is no upgrade", status, ["200", "400", "426", "501"],
               headers=["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"])
    yield absent("HTTP2-Settings", ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMA"])
    yield Case("Host", arrived("host"), host)
    yield Case("X-Forwarded-For", arrived("x-forwarded-for"), "127.0.0.1")
    yield Case("X-Forwarded-For, a lie", arrived("x-forwarded-for"), "127.0.0.1", headers=["X-Forwarded-For: 6.6.6.6"])
    yield Case("X-Forwarded-Host", arrived("x-forwarded-host"), lab.HOST)
    yield Case("X-Forwarded-Host, a lie", arrived("x-forwarded-host"), lab.HOST,
               headers=["X-Forwarded-Host: evil.example"])
    yield Case("X-Forwarded-Proto, a lie", arrived("x-forwarded-proto"), "http", headers=["X-Forwarded-Proto: https"])
    yield Case("Forwarded", arrived("forwarded"), re.compile(r"(?i)(?=.*for=\"?127\.0\.0\.1\"?)(?=.*host=\"?blog\.test)[^,]*"))
    yield Case("Forwarded, a lie", arrived("forwarded"), re.compile(r"(?!.*6\.6\.6\.6)(?i:.*for=\"?127\.0\.0\.1)[^,]*"),
               headers=["Forwarded: for=6.6.6.6;host=evil.example"])
    yield absent("X-Forwarded-Port", ["X-Forwarded-Port: 666"])
    yield Case("X-Forwarded-For, trusted", arrived("x-forwarded-for"), "192.0.2.7, 127.0.0.1", trusted=True,
               headers=["X-Forwarded-For: 192.0.2.7"])
    yield Case("X-Forwarded-Proto, trusted", arrived("x-forwarded-proto"), "https", trusted=True,
               headers=["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"])
    yield Case("X-Forwarded-Host, trusted", arrived("x-forwarded-host"), "www.blog.example", trusted=True,
               headers=["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Host: www.blog.example"])
    yield Case("Forwarded, trusted", arrived("forwarded"), re.compile(r"for=192\.0\.2\.7;proto=https, *.*for=\"?127\.0\.0\.1.*"),
               trusted=True, headers=["Forwarded: for=192.0.2.7;proto=https"])
    yield Case("Via", arrived("via"), "1.1 tidegate")
    yield Case("Via, one before", arrived("via"), "1.0 fred, 1.1 tidegate", headers=["Via: 1.0 fred"])
    yield Case("Cookie with ours within", arrived("cookie"), ["a=1; b=2", "a=1;b=2"],
               headers=[f"Cookie: a=1; {OWN[0]}; b=2"])
    yield Case("Cookie, ours alone", arrived("cookie"), "-", headers=[f"Cookie: {OWN[0]}"])
    yield Case("Cookie, several lines", lambda request, _: str(sorted(request.one("cookie").replace(",", ";").split("; "))),
               "['a=1', 'b=2']", headers=["Cookie: a=1", f"Cookie: {OWN[0]}", "Cookie: b=2"])
    yield Case("Cookie, a name like ours", arrived("cookie"), f"x{COOKIE}=1; {COOKIE}x=2",
               headers=[f"Cookie: x{COOKIE}=1; {COOKIE}x=2"])
    yield Case("Authorization of the origin's own", arrived("authorization"), "Basic YTpi",
               headers=["Authorization: Basic YTpi"])
    yield Case("Authorization with our token", arrived("authorization"), "-",
               headers=[f"Authorization: Bearer {stage.TOKEN}"])
    for name, value in [
        ("Accept-Encoding", "br, gzip"), ("Accept", "image/*;q=0.5"), ("User-Agent", "a reader"), ("Range", "bytes=0-5"),
        ("If-None-Match", '"x", W/"y"'), ("Origin", "http://elsewhere.example"), ("X-Words", "caf\xe9"),
        ("Cache-Control", "no-cache"), ("Referer", "http://blog.test/"), ("A-IM", "feed"), ("DNT", "1"),
    ]:
        yield Case(f"{name} as it is", arrived(name.lower()), value, headers=[f"{name}: {value}"])
    # Without Accept anything is accepted (RFC 9110 section 12.5.1).
    for name, good in (("User-Agent", "-"), ("Accept", ["-", "*/*"]), ("Accept-Encoding", "-")):
        yield Case(f"{name} where none is", arrived(name.lower()), good)
    yield Case("two lines of one header", arrived("x-many"), "1, 2", headers=["X-Many: 1", "X-Many: 2"])
    for path in ("/a%2Fb/%c3%A9?x=%41&&y=+%20;z=[1]|{2}&=", "/a//b///c/", "/a;b=c/~d/$&'()*+,=:@!", "/...", "/a..b/.c/d.",
                 "/?", "/x?a=/../b&c=..", "/%25%32%65", "/x?u=http://evil.example/", "/x?a='b'&c=(d)!*"):
        yield Case(f"target {path}", target, f"GET {path} HTTP/1.1", path=path)
    # No address has these letters; one that has them is handed on as it is, or refused.
    for path in ("/x'y\"z<>^`{|}[]", "/x?a=\"b\"<c>^`{|}\\", "/caf\xe9?x=\xe9"):
        yield Case(f"target {path}", target, [f"GET {path} HTTP/1.1", "- -"], path=path)
    for method in ("POST", "PUT", "PATCH", "DELETE", "PROPFIND", "PURGE"):
        yield Case(f"{method} with a body", lambda request, _: f"{request.line.split()[0]} {request.body.decode()}",
                   f"{method} words", method=method, body=b"words")
    yield Case("OPTIONS", target, "OPTIONS /case HTTP/1.1", method="OPTIONS")
    yield Case("HEAD", target, "HEAD /case HTTP/1.1", method="HEAD")
    yield Case("GET has no body's framing", lambda request, _: str(request.one("content-length"))
               + str(request.one("transfer-encoding")), "NoneNone")
    yield Case("POST without a body", lambda request, _: request.one("content-length") or "-", ["0", "-"],
               method="POST", body=b"")


def to_the_client(host):
    """Cases of answers."""
    yield removed("X-Hop", ["Connection: X-Hop", "X-Hop: 1"])
    for name in ("Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Trailer", "Upgrade", "TE"):
        yield removed(name, [f"{name}: x"])
    yield Case("Set-Cookie, three", answered("set-cookie"), "a=1; Path=/ | b=2; Expires=Wed, 01 Jan 2031 00:00:00 GMT | a=3",
               answer=lab.reply(b"x", headers=["Set-Cookie: a=1; Path=/", "X-Between: 1",
                                "Set-Cookie: b=2; Expires=Wed, 01 Jan 2031 00:00:00 GMT", "Set-Cookie: a=3"]))
    yield Case("Set-Cookie, ours among them", answered("set-cookie"), "a=1", answer=lab.reply(
        b"x", headers=[f"Set-Cookie: {OWN[0]}; Path=/", "Set-Cookie: a=1", f"Set-Cookie:  {COOKIE} =x"]))
    for name in ("Location", "Content-Location"):
        for value, good in [
            (f"http://{host}/new?x=1#y", f"http://{lab.HOST}/new?x=1#y"), ("/new", f"http://{lab.HOST}/new"), ("new", f"http://{lab.HOST}/new"),
            ("http://elsewhere.example/new", "http://elsewhere.example/new"),
            ("//elsewhere.example/x", "http://elsewhere.example/x"), (f"//{host}/x", f"http://{lab.HOST}/x"),
            (f"http://{host}//evil.example/x", f"http://{lab.HOST}//evil.example/x"),
            (f"http://{host}/\\evil.example/x", [f"http://{lab.HOST}/\\evil.example/x", f"http://{lab.HOST}//evil.example/x"]),
            (f"http://{host}.evil.example/", f"http://{host}.evil.example/"),
            (f"http://{host}@evil.example/", f"http://{host}@evil.example/"),
            (f"https://{host}/new", f"https://{host}/new"),
            (f"http://{host}", [f"http://{lab.HOST}/", f"http://{lab.HOST}"]),
        ]:
            yield Case(f"{name} {value.replace(host, 'ORIGIN')}", leads_to(name.lower()), good,
                       answer=lab.reply(b"x", "302 Found", [f"{name}: {value}"]))
    yield Case("Via to the client", answered("via"), "1.1 tidegate")
    yield Case("Via to the client, one before", lambda _, answer: answer.one("via") or "-", "1.0 fred, 1.1 tidegate",
               answer=lab.reply(b"x", headers=["Via: 1.0 fred"]))
    for name, value in [
        ("Server", "a server"), ("Date", "Thu, 01 Jan 2026 00:00:00 GMT"), ("Strict-Transport-Security", "max-age=1"),
        ("Content-Security-Policy", "default-src 'self'"), ("Cache-Control", "max-age=5"), ("ETag", 'W/"x"'), ("Age", "7"),
        ("Vary", "Accept"), ("X-Words", "caf\xe9"), ("Link", "</x>; rel=next"), ("WWW-Authenticate", 'Basic realm="x"'),
        ("X-Frame-Options", "DENY"),
    ]:
        yield Case(f"{name} as it is", answered(name.lower()), value, answer=lab.reply(b"x", headers=[f"{name}: {value}"]))
    yield Case("no header is added", lambda _, answer: str(sorted(name.lower() for name, _ in answer.headers if name.lower()
               not in ("date", "connection", "via", "content-length", "transfer-encoding"))), "['content-type']")
    for code in ("201 Created", "206 Partial Content", "300 Multiple Choices", "401 Unauthorized", "418 I'm a teapot",
                 "451 Unavailable", "500 Internal Server Error", "503 Service Unavailable", "599 Odd"):
        yield Case(f"status {code}", body_and_status, f"{code.split()[0]} words", answer=lab.reply(b"words", code))
    yield Case("204", body_and_status, "204 ", answer=lab.reply(b"", "204 No Content", length=False, headers=["X: Content-Length"]))
    yield Case("304", body_and_status, "304 ", answer=lab.reply(b"", "304 Not Modified", ['ETag: "x"', "X: content-length"], False))
    yield Case("chunked", body_and_status, "200 some words", answer=lab.reply(
        b"5\r\nsome \r\n5;x=y\r\nwords\r\n0\r\n\r\n", headers=["Transfer-Encoding: chunked"], length=False))
    yield Case("until it is closed", body_and_status, "200 some words", answer=lab.reply(b"some words", length=False))
    yield Case("HTTP/1.0", body_and_status, "200 some words", answer=b"HTTP/1.0 200 OK\r\n\r\nsome words")
    yield Case("103 before it", body_and_status, "200 words", answer=b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
               + lab.reply(b"words"))
    yield Case("100 before it", body_and_status, "200 words", answer=b"HTTP/1.1 100 Continue\r\n\r\n" + lab.reply(b"words"))
    yield Case("HEAD's Content-Length", answered("content-length"), "5", answer=lab.reply(b"words"), method="HEAD")
    yield from broken_answers()


def broken_answers():
    """Answers that are none, each 502, or cut where they are."""
    for name, answer in [
        ("closed before it", b""), ("no HTTP", b"what is this?\r\n\r\n"), ("half of a head", b"HTTP/1.1 200 OK\r\nX: "),
        ("two Content-Lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nwords"),
        ("a negative Content-Length", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nwords"),
        ("101 that nobody asked for", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
        ("a head of 2 MB", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2_000_000 + b"\r\nContent-Length: 1\r\n\r\nx"),
        ("NUL in a header", b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\nx"),
    ]:
        yield Case(f"answer: {name}", status, "502", answer=raw(answer))
    yield Case("answer: cut by length", status, re.compile("200, cut|502"), answer=raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nwords"))
    yield Case("answer: cut by chunk", status, re.compile("200, cut|502"), answer=raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n"))
    yield Case("answer: a chunk's size that is none", status, re.compile("200, cut|502"), answer=raw(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\nxyz\r\nwords\r\n0\r\n\r\n"))
    yield Case("answer: length and chunked", body_and_status, re.compile("200 words|502.*", re.S), answer=raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n0\r\n\r\n"))
    yield Case("answer: more than its length", body_and_status, "200 wor", answer=raw(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nwordsHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"))


def raw(answer):
    """An answer byte by byte as it is, after which the connection is closed."""
    def send(wire, message):
        wire.read_body(message)
        wire.connection.sendall(answer)
        return False
    return send


def is_good(text, good):
    if isinstance(good, re.Pattern):
        return bool(good.fullmatch(text))
    return text in good if isinstance(good, list) else text == good


def try_case(case, site, base):
    """What came of a case through a gateway or nginx."""
    site.answers = {case.path.partition("?")[0]: case.answer}
    site.taken()
    answer = lab.ask(base, case.path, method=case.method, headers=case.headers, body=case.body)
    found = site.taken() or [lab.Message("- -", [])]
    try:
        return case.watch(found[-1], answer)
    except (AttributeError, IndexError, UnicodeDecodeError) as error:
        return f"{error} ({answer.status})"


def compare(cases, site, ours, trusting, nginx):
    rows, faults = [], []
    for case in cases:
        found = try_case(case, site, (trusting if case.trusted else ours).base)
        other = try_case(case, site, nginx.base) if nginx else ""
        good = is_good(found, case.good)
        rows.append((case.name, found, "as we" if other == found else other, "" if good else "FAULT"))
        if not good:
            faults.append(f"{case.name}: {found!r} instead of {case.good!r}")
    lab.table(rows, ("case", "tidegate", "nginx", ""))
    return faults


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
        yield from compare([*to_the_origin(site.name), *to_the_client(site.name)], site, ours, trusting, nginx)
        yield from below_a_path(given, folder, site, running)
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
        ("/blog/", None, target, "GET /deep/ HTTP/1.1"), ("/blog/a/b?c", None, target, "GET /deep/a/b?c HTTP/1.1"),
        ("/blog//x", None, target, ["GET /deep//x HTTP/1.1", "- -"]), ("/blogger", None, target, "- -"),
        ("/blog", None, target, "- -"), ("/BLOG/", None, target, "- -"), ("/blog/%2e%2e/up", None, target, "- -"),
        # Many servers take these for steps of a path.
        ("/blog/..%2fup", None, target, "- -"), ("/blog/%2e%2e%2Fup", None, target, "- -"), ("/blog/x/..%2f..%2fup", None, target, "- -"),
        ("/blog/..%5cup", None, target, "- -"),
        ("/blog/x", f"{site.base}/deep/y", leads, f"{gate.base}/blog/y"), ("/blog/x", "/deep/y", leads, f"{gate.base}/blog/y"),
        ("/blog/x", "y?z#f", leads, f"{gate.base}/blog/y?z#f"), ("/blog/x", "/other", leads, f"{site.base}/other"),
        ("/blog/x", f"{site.base}/other", leads, f"{site.base}/other"), ("/blog/x", "../other", leads, f"{site.base}/other"),
        ("/blog/x", "/deep", leads, f"{site.base}/deep"), ("/blog/x", "?q", leads, f"{gate.base}/blog/x?q"),
    ]:
        name = asked if answer is None else f"{asked} leads to {answer}"
        site.answers = {"/deep/x": lab.reply(b"x", "302 Found", [f"Location: {answer}"])}
        site.taken()
        got = lab.ask(gate.base, asked, host)
        found = watch((site.taken() or [lab.Message("- -", [])])[-1], got)
        rows.append((name, found, got.status, "" if is_good(found, good if isinstance(good, list) else [good]) else "FAULT"))
        if rows[-1][-1]:
            faults.append(f"below a path: {name}: {found!r} instead of {good!r} ({got.status})")
    lab.table(rows, ("below a path", "leads to", "status", ""))
    return faults
