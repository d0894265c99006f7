"""Which headers of an answer arrive at the client, and what becomes of answers that are none."""

import re

import origin_stage as lab
from origin_cases import COOKIE, OWN_COOKIE, Case, answered, body_and_status, leads_to, raw, removed, status


def to_the_client(host):
    """Cases of answers."""
    yield removed("X-Hop", ["Connection: X-Hop", "X-Hop: 1"])
    for name in ("Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Trailer", "Upgrade", "TE"):
        yield removed(name, [f"{name}: x"])
    yield Case(
        "Set-Cookie, three",
        answered("set-cookie"),
        "a=1; Path=/ | b=2; Expires=Wed, 01 Jan 2031 00:00:00 GMT | a=3",
        answer=lab.reply(
            b"x",
            headers=[
                "Set-Cookie: a=1; Path=/",
                "X-Between: 1",
                "Set-Cookie: b=2; Expires=Wed, 01 Jan 2031 00:00:00 GMT",
                "Set-Cookie: a=3",
            ],
        ),
    )
    yield Case(
        "Set-Cookie, ours among them",
        answered("set-cookie"),
        "a=1",
        answer=lab.reply(
            b"x", headers=[f"Set-Cookie: {OWN_COOKIE}; Path=/", "Set-Cookie: a=1", f"Set-Cookie:  {COOKIE} =x"]
        ),
    )
    for name in ("Location", "Content-Location"):
        for value, good in [
            (f"http://{host}/new?x=1#y", f"http://{lab.HOST}/new?x=1#y"),
            ("/new", f"http://{lab.HOST}/new"),
            ("new", f"http://{lab.HOST}/new"),
            ("http://elsewhere.example/new", "http://elsewhere.example/new"),
            ("//elsewhere.example/x", "http://elsewhere.example/x"),
            (f"//{host}/x", f"http://{lab.HOST}/x"),
            (f"http://{host}//evil.example/x", f"http://{lab.HOST}//evil.example/x"),
            (
                f"http://{host}/\\evil.example/x",
                [f"http://{lab.HOST}/\\evil.example/x", f"http://{lab.HOST}//evil.example/x"],
            ),
            (f"http://{host}.evil.example/", f"http://{host}.evil.example/"),
            (f"http://{host}@evil.example/", f"http://{host}@evil.example/"),
            (f"https://{host}/new", f"https://{host}/new"),
            (f"http://{host}", [f"http://{lab.HOST}/", f"http://{lab.HOST}"]),
            # In Latin-1, and in UTF-8.
            (f"http://{host}/\xfc", [f"http://{lab.HOST}/%FC", f"http://{lab.HOST}/\xfc"]),
            (f"http://{host}/\xc3\xbc", [f"http://{lab.HOST}/%C3%BC", f"http://{lab.HOST}/\xc3\xbc"]),
        ]:
            yield Case(
                f"{name} {value.replace(host, 'ORIGIN')}",
                leads_to(name.lower()),
                good,
                answer=lab.reply(b"x", "302 Found", [f"{name}: {value}"]),
            )
    for value, good in [
        (f"0; url=http://{host}/new?x#y", "0;url=/new?x#y"),
        ("5;URL='new'", "5;url=/new"),
        ("5", "5"),
        ("0; url=http://elsewhere.example/", "0; url=http://elsewhere.example/"),
    ]:
        yield Case(
            f"Refresh {value.replace(host, 'ORIGIN')}",
            answered("refresh"),
            good,
            answer=lab.reply(b"x", headers=[f"Refresh: {value}"]),
        )
    yield Case("Via to the client", answered("via"), "1.1 tidegate")
    yield Case(
        "Via to the client, one before",
        answered("via"),
        ["1.0 fred, 1.1 tidegate", "1.0 fred | 1.1 tidegate"],
        answer=lab.reply(b"x", headers=["Via: 1.0 fred"]),
    )
    for name, value in [
        ("Server", "a server"),
        ("Date", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("Strict-Transport-Security", "max-age=1"),
        ("Content-Security-Policy", "default-src 'self'"),
        ("Cache-Control", "max-age=5"),
        ("ETag", 'W/"x"'),
        ("Age", "7"),
        ("Vary", "Accept"),
        ("X-Words", "caf\xe9"),
        ("Link", "</x>; rel=next"),
        ("WWW-Authenticate", 'Basic realm="x"'),
        ("X-Frame-Options", "DENY"),
    ]:
        yield Case(
            f"{name} as it is", answered(name.lower()), value, answer=lab.reply(b"x", headers=[f"{name}: {value}"])
        )
    yield Case(
        "no header is added",
        lambda _, answer: str(
            sorted(
                name.lower()
                for name, _ in answer.headers
                if name.lower() not in ("date", "connection", "via", "content-length", "transfer-encoding")
            )
        ),
        "['content-type']",
    )
    for code in (
        "201 Created",
        "206 Partial Content",
        "300 Multiple Choices",
        "401 Unauthorized",
        "418 I'm a teapot",
        "451 Unavailable",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "599 Odd",
    ):
        yield Case(f"status {code}", body_and_status, f"{code.split()[0]} words", answer=lab.reply(b"words", code))
    yield Case(
        "204",
        body_and_status,
        "204 ",
        answer=lab.reply(b"", "204 No Content", length=False, headers=["X: Content-Length"]),
    )
    yield Case(
        "304",
        body_and_status,
        "304 ",
        answer=lab.reply(b"", "304 Not Modified", ['ETag: "x"', "X: content-length"], False),
    )
    yield Case(
        "chunked",
        body_and_status,
        "200 some words",
        answer=lab.reply(
            b"5\r\nsome \r\n5;x=y\r\nwords\r\n0\r\n\r\n", headers=["Transfer-Encoding: chunked"], length=False
        ),
    )
    yield Case("until it is closed", body_and_status, "200 some words", answer=lab.reply(b"some words", length=False))
    yield Case("HTTP/1.0", body_and_status, "200 some words", answer=b"HTTP/1.0 200 OK\r\n\r\nsome words")
    yield Case(
        "103 before it",
        body_and_status,
        "200 words",
        answer=b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + lab.reply(b"words"),
    )
    yield Case(
        "100 before it", body_and_status, "200 words", answer=b"HTTP/1.1 100 Continue\r\n\r\n" + lab.reply(b"words")
    )
    yield Case("HEAD's Content-Length", answered("content-length"), "5", answer=lab.reply(b"words"), method="HEAD")
    yield from broken_answers()


def broken_answers():
    """Answers that are none, each 502, or cut where they are."""
    for name, answer in [
        ("closed before it", b""),
        ("no HTTP", b"what is this?\r\n\r\n"),
        ("half of a head", b"HTTP/1.1 200 OK\r\nX: "),
        ("two Content-Lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nwords"),
        ("a negative Content-Length", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nwords"),
        ("101 that nobody asked for", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
        ("a head of 2 MB", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2_000_000 + b"\r\nContent-Length: 1\r\n\r\nx"),
        ("NUL in a header", b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\nx"),
    ]:
        yield Case(f"answer: {name}", status, "502", answer=raw(answer))
    yield Case(
        "answer: cut by length",
        status,
        re.compile("200, cut|502"),
        answer=raw(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nwords"),
    )
    yield Case(
        "answer: cut by chunk",
        status,
        re.compile("200, cut|502"),
        answer=raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n"),
    )
    yield Case(
        "answer: a chunk's size that is none",
        status,
        re.compile("200, cut|502"),
        answer=raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\nxyz\r\nwords\r\n0\r\n\r\n"),
    )
    yield Case(
        "answer: length and chunked",
        body_and_status,
        re.compile("200 words|502.*", re.S),
        answer=raw(
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwords\r\n0\r\n\r\n"
        ),
    )
    yield Case(
        "answer: more than its length",
        body_and_status,
        "200 wor",
        answer=raw(
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nwordsHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        ),
    )
