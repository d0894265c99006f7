"""/subscribe?url= has the gateway ask nobody whom no `[[allow]]` admits."""

import urllib.parse

import origin_stage as lab
import stage


def tried(folder, given, site, trap):
    """/subscribe?url= of what is admitted, and of what is not."""
    admitted = "http://" + site.name + "/blog/"
    allow = f'[[allow]]\nurl = "{admitted}"\n'
    gate = lab.gateway(given.bin, folder / "subscribe", allow)
    # The same, where private addresses are not to be called.
    strict = folder / "strict"
    strict.mkdir()
    closed = stage.Gateway(given.bin, strict, allow, 'public_url = "http://127.0.0.1:1"')
    feed = (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id><title>T</title>'
        b"<updated>2026-01-01T00:00:00Z</updated></feed>"
    )
    site.answers = {
        "/blog/feed.xml": lab.reply(feed, headers=["Content-Type: application/atom+xml"]),
        "/blog/away": lab.reply(b"", "302 Found", [f"Location: {trap.base}/x"]),
        "/blog/page": lab.reply(
            f'<link rel="alternate" type="application/atom+xml" href="{trap.base}/feed.xml">'.encode(),
            headers=["Content-Type: text/html"],
        ),
    }
    host, port = lab.place(site.base)
    refused, faults, rows = {400, 403}, [], []
    cases = [
        ("a feed that is admitted", f"{admitted}feed.xml", {200}, True),
        ("somebody else", f"{trap.base}/feed.xml", refused, False),
        ("a private address", "http://169.254.169.254/latest/meta-data/", refused, False),
        ("a loopback name", "http://localhost:22/", refused, False),
        ("another scheme, https", f"https://{site.name}/blog/feed.xml", refused, False),
        ("another scheme, file", "file:///etc/passwd", refused, False),
        ("another scheme, gopher", f"gopher://{trap.name}/x", refused, False),
        ("another scheme, javascript", "javascript:alert(1)", refused, False),
        ("another port", f"http://{host}:{lab.place(trap.base)[1]}/blog/feed.xml", refused, False),
        ("no port", f"http://{host}/blog/feed.xml", refused, False),
        ("a path that is not below", f"http://{site.name}/other", refused, False),
        ("a path that begins alike", f"http://{site.name}/blogger", refused, False),
        ("a path that climbs", f"http://{site.name}/blog/../other", refused, False),
        ("a path that climbs, encoded", f"http://{site.name}/blog/%2e%2e/other", refused, False),
        ("a path that climbs, backslash", f"http://{site.name}/blog/..\\other", refused, False),
        ("a user", f"http://{site.name}@{trap.name}/blog/", refused, False),
        ("a user, encoded", f"http://{host}%3A{port}@{trap.name}/blog/", refused, False),
        ("a backslash", f"http://{trap.name}\\@{site.name}/blog/", refused, False),
        ("a fragment", f"http://{trap.name}#@{site.name}/blog/", refused, False),
        ("a host below it", f"http://{host}.{trap.name}/blog/", refused, False),
        ("credentials", f"http://u:p@{site.name}/blog/feed.xml", refused | {200}, None),
        ("another spelling of the host", f"http://127.1:{port}/blog/feed.xml", refused | {200}, None),
        ("a redirect to somebody else", f"{admitted}away", None, True),
        ("a page that announces somebody else's", f"{admitted}page", None, True),
        ("nothing", "", refused | {200}, False),
        ("no address", "what", refused, False),
        ("8 KB", admitted + "x" * 8000, None, None),
    ]
    try:
        for gateway, way in ((gate, ""), (closed, ", private ones closed")):
            base, own = gateway.base, gateway.base.removeprefix("http://")
            for name, url, allowed, may_arrive in cases:
                if gateway is closed and may_arrive is False:
                    continue
                path = "/subscribe?url=" + urllib.parse.quote(url, safe="")
                form = ("url=" + urllib.parse.quote(url, safe="")).encode()
                for method, headers, body in (
                    ("GET", ["Accept: application/json"], None),
                    ("GET", ["Accept: text/html"], None),
                    ("POST", ["Content-Type: application/x-www-form-urlencoded"], form),
                ):
                    site.taken()
                    before = trap.opened
                    answer = lab.ask(base, path if method == "GET" else "/subscribe", own, method, headers, body)
                    arrived = site.taken()
                    wrong = []
                    if trap.opened != before:
                        wrong.append("a request arrived at somebody else")
                    if arrived and (may_arrive is False or gateway is closed):
                        wrong.append("a request arrived")
                    if gateway is gate and method == "GET" and allowed and answer.status not in allowed:
                        wrong.append(f"status {answer.status}")
                    if answer.status >= 500 and gateway is gate or answer.status == 0:
                        wrong.append(f"status {answer.status}")
                    if (
                        method == "GET"
                        and headers[0].endswith("html")
                        and b"<script" in answer.body
                        and b"alert(1)" in answer.body
                    ):
                        wrong.append("a script in the page")
                    rows.append((f"{method} {name}{way}", answer.status, len(arrived), "; ".join(wrong)))
                    faults += [f"/subscribe: {method} {name}{way} ({headers[0]}): {each}" for each in wrong]
        lab.table(rows, ("/subscribe", "status", "requests", ""))
    finally:
        gate.end()
        closed.end()
    return faults


def run(given, folder):
    site, trap = lab.Origin(), lab.Origin()
    try:
        yield from tried(folder, given, site, trap)
    finally:
        site.end()
        trap.end()
