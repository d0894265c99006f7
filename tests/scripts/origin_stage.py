"""What the scripts about a whole site have in common: nginx with its files, a client that sends addresses as they are
written, an origin that keeps what it was asked, and the gateway."""

import dataclasses
import http.client
import json

import nginx_stage
import stage

# The host of the origin at the gateway.
HOST = "blog.test"

STATIC = """
    types {{
        text/html html; text/css css; text/plain txt; image/png png; image/svg+xml svg; font/woff woff;
        font/woff2 woff2; application/vnd.ms-fontobject eot; text/xml xml; application/feed+json json;
    }}
    server {{
        listen 127.0.0.1:{port};
        server_name _;
        root {root};
        gzip on;
        # Without it nginx packs nothing for a request with Via, which a gateway has to send (RFC 9110 section 7.6.3).
        gzip_proxied any;
        gzip_types text/css text/xml application/feed+json;
        gzip_vary on;
    }}
"""


def place(base):
    """Host and port of an address."""
    host, _, port = base.removeprefix("http://").partition("/")[0].partition(":")
    return host, int(port)


class Static(stage.Ended):
    """nginx with the files of a folder."""

    def __init__(self, program, folder, root):
        port = stage.free_port()
        self.base = f"http://127.0.0.1:{port}"
        self.folder, self.program, self.text = folder, program, STATIC.format(port=port, root=root)

    def __enter__(self):
        self.server = nginx_stage.Server(self.program, self.folder, self.text, f"{self.base}/")
        return self

    def end(self):
        self.server.end()


def origin(address, at=None, name="blog", **more):
    """The table of an origin, at its host where no path is given."""
    lines = {"name": name, "url": address, "pass": True, **({"at": at} if at else {"host": HOST}), **more}
    return "[[origin]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())


def gateway(program, folder, tables, server="", polling=""):
    """A gateway with these tables, whose public address is its own."""
    folder.mkdir()
    port = stage.free_port()
    # A client has a share of connections by its address; here all have one.
    return stage.Gateway(
        program,
        folder,
        f"[polling]\nallow_private = true\n{polling}\n{tables}",
        f'public_url = "http://127.0.0.1:{port}"\n{server}',
        f"127.0.0.1:{port}",
    )


def known_feeds(gate):
    """The feeds of a gateway by the address of their publisher."""
    feeds, page = {}, {"next": "/api/v1/feeds?limit=1000"}
    while page["next"]:
        path = page["next"][page["next"].index("/api/"):]
        page = json.loads(gate.ask(path))
        feeds.update((feed["url"], feed) for feed in page["feeds"])
    return feeds


@dataclasses.dataclass
class Message:
    """A request that arrived or an answer: its first line or status, its headers in order, its body, and whether that
    ended as its framing says."""

    line: str
    headers: list
    body: bytes = b""
    whole: bool = True
    status: int = 0

    def one(self, name):
        """The value of a header, those of several lines joined; nothing where there is none."""
        return ", ".join(value for found, value in self.headers if found.lower() == name) or None


def ask(base, path, host=HOST, method="GET", headers=(), body=None):
    """The answer to one request."""
    connection = http.client.HTTPConnection(*place(base), timeout=20)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        length = [] if body is None else [f"Content-Length: {len(body)}"]
        for line in [f"Host: {host}", "Connection: close", *headers, *length]:
            name, _, value = line.partition(":")
            connection.putheader(name, value.strip())
        connection.endheaders(body)
        answer = connection.getresponse()
        try:
            got, whole = answer.read(), True
        except http.client.IncompleteRead as error:
            got, whole = error.partial, False
        return Message("", answer.getheaders(), got, whole, answer.status)
    finally:
        connection.close()


class Origin(stage.Ended):
    """An origin whose every answer is the same; `taken` are the requests that arrived since it was called last."""

    def __init__(self):
        origin, self.arrived = self, []

        class Noting(stage.Handler):
            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                origin.arrived.append(Message(self.requestline, self.headers.items(), body))
                self.answer(200, b"ok")

            do_POST = do_GET

        self.server = stage.Server(Noting)
        self.base = self.server.base

    def taken(self):
        found, self.arrived = self.arrived, []
        return found

    def end(self):
        self.server.shutdown()
