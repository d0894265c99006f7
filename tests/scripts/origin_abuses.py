"""Requests that would make a proxy an open one, or two requests of one: each is refused or harmless. Nothing ever
arrives at the origin of somebody else, and no request that was hidden in another."""

import time
import typing

import origin_stage as lab

# How long a request may be on its way after its client was answered, in seconds.
ARRIVES_WITHIN = 3

# A request that must never be seen: the rest of another one is taken for it.
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: blog.test\r\n\r\n"
# What refuses: statuses, of which 0 is an end of the connection without an answer.
REFUSED = {0, 400, 403, 404, 405, 411, 413, 414, 417, 421, 431, 501, 505}

# What ends a request whose body is broken in the middle.
BROKEN = REFUSED | {408, 502}


class Abuse(typing.NamedTuple):
    """Bytes of requests, and the statuses that are allowed for the first. Where `harmless` is given, the request may
    arrive at the origin if that says so of it; otherwise it may not arrive."""

    name: str
    sent: bytes
    allowed: set = frozenset(REFUSED)
    harmless: typing.Callable = None


def head(line, *lines, host=lab.HOST):
    return "\r\n".join([line, *([f"Host: {host}"] if host else []), *lines, "", ""]).encode("latin-1")


def get(target, *lines, host=lab.HOST):
    return head(f"GET {target} HTTP/1.1", *lines, "Connection: close", host=host)


def as_path(path):
    """Whether just this path arrived."""
    return lambda request: request.target == path


def whole(request):
    """Whether a request arrived whose length is said once."""
    framings = request.all("content-length") + request.all("transfer-encoding")
    return len(framings) <= 1 and not any("\n" in value or "\r" in value for _, value in request.headers)


def cut(request):
    """Whether the origin knows of a request that its body is not whole."""
    return not request.whole


def of_targets(trap, origin):
    """Targets, methods and hosts. `trap` is the host and port of somebody else."""
    # Our own pages, for a host that is no origin's.
    own = REFUSED | {200, 307, 308}
    port = trap.partition(":")[2]
    yield Abuse("absolute form, another host", get(f"http://{trap}/x"), own)
    yield Abuse("absolute form, another host, no Host", get(f"http://{trap}/x", host=None), own)
    yield Abuse("absolute form, our host, Host of another", get(f"http://{lab.HOST}/x", host=trap), own, as_path("/x"))
    yield Abuse("absolute form, the origin's own address", get(f"http://{origin}/x"), own)
    yield Abuse("absolute form, user", get(f"http://{lab.HOST}@{trap}/x"), own)
    yield Abuse("absolute form, user and port", get(f"http://{lab.HOST}:80@{trap}/x"), own)
    yield Abuse("absolute form, backslash", get(f"http://{lab.HOST}\\@{trap}/x"), own)
    yield Abuse("absolute form, https", get(f"https://{trap}/x"), own)
    yield Abuse("absolute form, ftp", get(f"ftp://{trap}/x"), own)
    yield Abuse("absolute form, file", get("file:///etc/passwd"), own)
    for target in (
        "@evil.example/",
        f"@{trap}/",
        f":{port}/",
        f":@{trap}/",
        f".{trap}/",
        "x",
        "",
        "?x",
        "#",
        "\\\\evil.example",
    ):
        yield Abuse(f"target {target.replace(port, 'PORT')!r}", get(target))
    yield Abuse("target /@evil", get("/@evil"), REFUSED | {200}, as_path("/@evil"))
    yield Abuse(
        "target with a fragment",
        get(f"/x#@{trap}/"),
        REFUSED | {200},
        lambda request: request.target in ("/x", f"/x#@{trap}/"),
    )
    for path in ("//evil.example/", f"//{trap}/", f"///{trap}/", f"/http://{trap}/", f"/x//{trap}/"):
        yield Abuse(f"path {path.replace(port, 'PORT')}", get(path), REFUSED | {200}, as_path(path))
    yield Abuse("asterisk", get("*"))
    yield Abuse("OPTIONS *", head("OPTIONS * HTTP/1.1", "Connection: close"), REFUSED | {200, 204}, as_path("*"))
    yield Abuse("CONNECT", head(f"CONNECT {trap} HTTP/1.1", host=trap), {400, 404, 405, 501})
    yield Abuse("CONNECT at our host", head(f"CONNECT {trap} HTTP/1.1"), {400, 404, 405, 501})
    yield Abuse("CONNECT to our host", head(f"CONNECT {lab.HOST}:80 HTTP/1.1"), {400, 404, 405, 501})
    yield Abuse("TRACE", head("TRACE / HTTP/1.1", "Connection: close"), {405, 501})
    yield Abuse("TRACK", head("TRACK / HTTP/1.1", "Connection: close"), REFUSED | {200}, as_path("/"))
    for host in (
        trap,
        "evil.example",
        f"{lab.HOST}.evil.example",
        f"x.{lab.HOST}",
        origin,
        "",
        "127.0.0.1",
        "localhost",
    ):
        yield Abuse(
            f"Host: {host.replace(port, 'PORT')}",
            get("/x", host=host) if host else head("GET /x HTTP/1.1", "Host:", "Connection: close", host=None),
            own,
        )
    for host in (
        f"{lab.HOST}@{trap}",
        f"{lab.HOST}:x",
        f"{lab.HOST}/x",
        f"{lab.HOST}, {trap}",
        f"{lab.HOST} {trap}",
        f"{lab.HOST}\\{trap}",
        f"{lab.HOST}#",
        f"{lab.HOST}?",
        "[::1",
        f"{lab.HOST}\0",
        f"{lab.HOST}%00",
    ):
        yield Abuse(f"Host: {host.replace(port, 'PORT')!r}", get("/x", host=host), own)
    # The port of an address is no part of an origin's host; a final dot names the same host.
    yield Abuse("Host with a port that is none", get("/x", host=f"{lab.HOST}:99999"), own, as_path("/x"))
    yield Abuse("Host with another port", get("/x", host=f"{lab.HOST}:1"), REFUSED | {200}, as_path("/x"))
    yield Abuse("Host with a final dot", get("/x", host=f"{lab.HOST}."), own, as_path("/x"))
    yield Abuse("two Hosts", get("/x", f"Host: {trap}"), {400})
    yield Abuse("two Hosts, ours second", get("/x", f"Host: {lab.HOST}", host=trap), {400})
    yield Abuse("the same Host twice", get("/x", f"Host: {lab.HOST}"), {400})
    yield Abuse("no Host", get("/x", host=None), {400})
    yield Abuse("X-Forwarded-Host leads nowhere", get("/x", f"X-Forwarded-Host: {trap}"), {200}, as_path("/x"))
    yield Abuse(
        "X-Original-URL leads nowhere",
        get("/x", "X-Original-URL: /admin", "X-Rewrite-URL: /admin"),
        {200},
        as_path("/x"),
    )


def of_paths():
    """Paths that climb, and bytes that no path has."""
    for path in (
        "/../x",
        "/a/../../x",
        "/a/..",
        "/..",
        "/.",
        "/./x",
        "/a/./x",
        "/%2e%2e/x",
        "/%2E%2E/x",
        "/.%2e/x",
        "/%2e./x",
        "/a/%2e",
        "/%2e%2e",
        "/a/%2e%2e?x",
        "/a\\..\\x",
        "/\\x",
        "/a\\",
        "/x\x7f",
        "/x\x01y",
        "/a b",
        "/..\\x",
    ):
        yield Abuse(f"path {path!r}", get(path), {400})
    yield Abuse("NUL", get("/x\0y"), {400})
    yield Abuse("a tab", get("/x\ty"), {400})
    yield Abuse("CR in the target", get("/x\rX-Injected: 1"), {400})
    for path in (
        "/%00",
        "/%0d%0aX-Injected:%201",
        "/%5c..%5cx",
        "/%5C",
        "/..;/x",
        "/%252e%252e/x",
        "/..%2fx",
        "/%2e%2e%2fx",
        "/%2f..%2f",
        "/x%c0%ae%c0%ae/",
        "/%",
        "/%zz",
        "/%u002e",
        "/x?../..",
        "/x?%0d%0aX: y",
        "/caf\xe9",
    ):
        yield Abuse(f"path {path!r}", get(path), REFUSED | {200}, as_path(path))
    yield Abuse("a target of 100 KB", get("/" + "x" * 100_000), REFUSED | {200}, lambda _: True)
    yield Abuse("a header of 1 MB", get("/x", "X: " + "x" * 1_000_000))
    yield Abuse("10,000 headers", get("/x", *(f"X-{n}: 1" for n in range(10_000))))


def of_framing():
    """What two servers could read as one request or as two."""

    def post(*lines, body=b"", version="1.1"):
        return head(f"POST /first HTTP/{version}", *lines) + body

    inner = len(HIDDEN)
    chunked = "Transfer-Encoding: chunked"
    either = REFUSED | {200}
    end = b"0\r\n\r\n"
    # Refused, or read as chunked with the connection closed behind it (RFC 9112 section 6.3): the rest is no request.
    for name, lines in [
        ("Content-Length and chunked", (f"Content-Length: {inner + 5}", chunked)),
        ("chunked and Content-Length", (chunked, f"Content-Length: {inner + 5}")),
        ("chunked, chunked", ("Transfer-Encoding: chunked, chunked", f"Content-Length: {inner + 5}")),
    ]:
        yield Abuse(
            name, post(*lines, body=end + HIDDEN), either, lambda request: whole(request) and request.body == b""
        )
    yield Abuse(
        "chunked and a short Content-Length",
        post(chunked, "Content-Length: 4", body=b"%x\r\n%s\r\n" % (inner, HIDDEN) + end),
        either,
        lambda request: whole(request) and request.body == HIDDEN,
    )
    yield Abuse("two Content-Lengths", post("Content-Length: 0", f"Content-Length: {inner}", body=HIDDEN), {400})
    yield Abuse("a list of Content-Lengths", post(f"Content-Length: 0, {inner}", body=HIDDEN), {400})
    yield Abuse(
        "the same Content-Length twice",
        post(f"Content-Length: {inner}", f"Content-Length: {inner}", body=HIDDEN),
        either,
        whole,
    )
    for value in (f"+{inner}", "-1", "0x10", "1 6", "", "1e1", "99999999999999999999999", f"{inner}\x0b", "\xb2"):
        yield Abuse(f"Content-Length: {value!r}", post(f"Content-Length: {value}", body=HIDDEN), REFUSED)
    for value in (
        "xchunked",
        "identity, chunked, identity",
        "chunked, identity",
        "\x0bchunked",
        "gzip, x",
        "chunked\0",
        '"chunked"',
        "",
    ):
        yield Abuse(
            f"Transfer-Encoding: {value!r}",
            post(f"Transfer-Encoding: {value}", f"Content-Length: {inner + 5}", body=end + HIDDEN),
            REFUSED,
        )
    yield Abuse("gzip, chunked", post("Transfer-Encoding: gzip, chunked", body=end), {501})
    yield Abuse("two Transfer-Encodings", post(chunked, "Transfer-Encoding: identity", body=end + HIDDEN), REFUSED)
    yield Abuse("chunked in HTTP/1.0", post(chunked, body=end + HIDDEN, version="1.0"), REFUSED)
    for line in (
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding\0: chunked",
        "Transfer-Encoding\x0b: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\r\n\tz",
        "X: y\rTransfer-Encoding: chunked",
        "X: y\r\rz",
        "X: y\0z",
        "X Y: z",
        ": z",
        "no colon",
        "X\x7f: y",
        "X(: y",
        "Content-Length : 5",
        "X: y\x01z",
    ):
        yield Abuse(f"line {line!r}", post(line, f"Content-Length: {inner + 5}", body=end + HIDDEN), REFUSED)
    yield Abuse(
        "a line that ends in LF alone",
        post("X: y\nX-Second: z", "Content-Length: 0", "Connection: close"),
        either,
        whole,
    )
    yield Abuse(
        "Transfer_Encoding",
        post("Transfer_Encoding: chunked", f"Content-Length: {inner + 5}", "Connection: close", body=end + HIDDEN),
        either,
        lambda request: request.one("transfer-encoding") is None and len(request.body) == inner + 5,
    )
    for size in ("0x5", "+5", "-5", " 5", "5 5", "", "g", "FFFFFFFFFFFFFFFFF", "10000000000000005", "5\0", "5\r"):
        yield Abuse(
            f"chunk's size {size!r}", post(chunked, body=size.encode() + b"\r\nwords\r\n" + end + HIDDEN), BROKEN, cut
        )
    yield Abuse(
        "an extension of 100 KB",
        post(chunked, "Connection: close", body=b"5;" + b"x" * 100_000 + b"\r\nwords\r\n" + end),
        BROKEN | {200},
        lambda request: not request.whole or request.body == b"words",
    )
    for body, what in [
        (b"5\nwords\n0\n\n" + HIDDEN, "LF alone"),
        (b"5\r\nwordsX\r\n" + end + HIDDEN, "more than its size"),
        (b"5\r\nwords" + end + HIDDEN, "no CRLF behind it"),
    ]:
        yield Abuse(f"chunk: {what}", post(chunked, body=body), BROKEN, cut)
    yield Abuse(
        "chunk's size with an extension",
        post(chunked, "Connection: close", body=b'5;a="b"\r\nwords\r\n' + end),
        either,
        lambda request: request.body == b"words",
    )
    yield Abuse(
        "chunk's size with zeros",
        post(chunked, "Connection: close", body=b"0000005\r\nwords\r\n000\r\n\r\n"),
        either,
        lambda request: request.body == b"words",
    )
    yield Abuse(
        "trailers that are headers",
        post(
            chunked,
            "Connection: close",
            body=b"5\r\nwords\r\n0\r\nHost: evil.example\r\nContent-Length: 9\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n",
        ),
        either,
        lambda request: request.all("host") != ["evil.example"] and request.body == b"words",
    )
    yield Abuse(
        "a body with GET",
        head("GET /first HTTP/1.1", f"Content-Length: {inner}", "Connection: close") + HIDDEN,
        either,
        lambda request: len(request.body) == inner,
    )
    yield Abuse("HTTP/0.9", b"GET /first\r\n\r\n")
    yield Abuse("HTTP/2.0 in words", b"GET /first HTTP/2.0\r\nHost: blog.test\r\n\r\n")
    yield Abuse(
        "HTTP/1.2", b"GET /first HTTP/1.2\r\nHost: blog.test\r\nConnection: close\r\n\r\n", either, as_path("/first")
    )
    yield Abuse("a method that is none", b"GE(T /first HTTP/1.1\r\nHost: blog.test\r\n\r\n")
    yield Abuse(
        "a method in small letters",
        b"get /first HTTP/1.1\r\nHost: blog.test\r\nConnection: close\r\n\r\n",
        either,
        as_path("/first"),
    )
    yield Abuse("an empty line before it", b"\r\n" + get("/first"), either, as_path("/first"))


class Attempt(typing.NamedTuple):
    """An abuse that was sent, and by which address: the origin knows by it whose a request is, since one may arrive
    after its client was answered."""

    abuse: Abuse
    client: str
    status: int


def attempts(abuses, base, trap, network):
    """Sends each abuse by an address of its own, and answers how that went. With each comes whether somebody else got
    a connection meanwhile."""
    for number, abuse in enumerate(abuses):
        client = f"127.{network}.{number // 250}.{number % 250 + 1}"
        before = trap.opened
        answers = lab.exchange(base, abuse.sent, wait=2, client=client)
        yield Attempt(abuse, client, answers[0].status if answers else 0), trap.opened != before


def faults_of(attempt, arrived):
    """What is wrong with an attempt by what arrived of it."""
    abuse = attempt.abuse
    if any("/hidden" in request.line for request in arrived):
        yield f"the hidden request arrived: {[request.line for request in arrived]}"
    if abuse.harmless is None and arrived:
        yield f"it arrived: {arrived[0].line[:80]}"
    elif arrived and not (len(arrived) == 1 and abuse.harmless(arrived[0])):
        yield f"it arrived as {[(each.line[:80], each.headers, each.body[:80]) for each in arrived]}"
    if attempt.status not in abuse.allowed:
        yield f"status {attempt.status}"


def client_of(request):
    """Whose a request is, as the proxy says."""
    return (request.one("x-forwarded-for") or "").rpartition(",")[2].strip()


def run(given, folder):
    site, trap, running = lab.Origin(), lab.Origin(), []
    try:
        gate = lab.gateway(given.bin, folder / "gateway", lab.origin(f"{site.base}/"))
        running.append(gate)
        nginx = lab.Proxy(given.nginx, folder / "nginx", site.base)
        running.append(nginx)
        yield from compare([*of_targets(trap.name, site.name), *of_paths(), *of_framing()], gate, nginx, site, trap)
        # It still answers.
        if lab.ask(gate.base, "/").status != 200:
            yield "the gateway does not answer any more"
    finally:
        for each in running:
            each.end()
        site.end()
        trap.end()


def compare(abuses, gate, nginx, site, trap):
    site.taken()
    others = [attempt for attempt, _ in attempts(abuses, nginx.base, trap, 2)]
    time.sleep(ARRIVES_WITHIN)
    other_arrived, opened_by_nginx = site.taken(), trap.opened
    ours, trapped = zip(*attempts(abuses, gate.base, trap, 1))
    time.sleep(ARRIVES_WITHIN)
    # A request of which only a part is there by now ends when its connection does.
    arrived = site.taken()

    def by(attempt, requests):
        return [request for request in requests if client_of(request) == attempt.client]

    def wrong():
        for attempt, opened in zip(ours, trapped):
            faults = [*faults_of(attempt, by(attempt, arrived))]
            yield [*faults, *(["somebody else got a connection"] if opened else [])]

    lab.until(lambda: not any(wrong()), wait=1)
    faults, rows = [], []
    for attempt, other, found in zip(ours, others, wrong()):
        counts = (len(by(attempt, arrived)), other.status, len(by(other, other_arrived)))
        rows.append((attempt.abuse.name, attempt.status, *counts, "; ".join(found)))
        faults += [f"{attempt.abuse.name}: {each}" for each in found]
    clients = {attempt.client for attempt in ours}
    faults += [f"nobody sent what arrived: {each.line[:80]}" for each in arrived if client_of(each) not in clients]
    if trap.opened != opened_by_nginx and not any(trapped):
        faults.append("somebody else got a connection")
    lab.table(rows, ("abuse", "tidegate", "arrived", "nginx", "arrived", ""))
    return faults
