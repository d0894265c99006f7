"""What the scripts about a whole site have in common: a client that sends the bytes that it is given, an origin that
answers with the bytes that it is given, nginx in front of both, and the gateway."""

import dataclasses
import json
import socket
import threading
import time

import nginx_stage
import stage

# The host of the origin at the gateway.
HOST = "blog.test"
# The bytes that are read at once.
PIECE = 1 << 16
# How long a client waits for an answer, in seconds.
ANSWER_WAIT = 20

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
# As manuals show it, and streaming like the gateway.
PROXY = """
    upstream origin {{ server {origin}; keepalive 64; }}
    server {{
        listen 127.0.0.1:{port};
        server_name _;
        client_max_body_size 0;
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_request_buffering off;
            proxy_set_header Host {origin};
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Host $host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_redirect http://{origin}/ /;
            proxy_read_timeout 5s;
        }}
        location = /nginx-ready {{ return 204; }}
    }}
"""


def place(base):
    """Host and port of an address."""
    host, _, port = base.removeprefix("http://").partition("/")[0].partition(":")
    return host, int(port)


class Static:
    """nginx with the files of a folder."""

    def __init__(self, program, folder, root):
        port = stage.free_port()
        self.base = f"http://127.0.0.1:{port}"
        self.folder, self.program, self.text = folder, program, STATIC.format(port=port, root=root)
        self.server = None

    def begin(self):
        self.server = nginx_stage.Server(self.program, self.folder, self.text, f"{self.base}/")
        return self

    def end(self):
        if self.server:
            self.server.end()


class Proxy(nginx_stage.Server):
    """nginx as a proxy in front of an origin."""

    def __init__(self, program, folder, origin, **more):
        port = stage.free_port()
        self.base = f"http://127.0.0.1:{port}"
        text = PROXY.format(port=port, origin="%s:%d" % place(origin))
        super().__init__(program, folder, text, f"{self.base}/nginx-ready", **more)


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
    """A request that arrived or an answer: its first line, its headers in order, its body, and whether that ended as
    its framing says."""

    line: str
    headers: list
    body: bytes = b""
    whole: bool = True

    @property
    def status(self):
        parts = self.line.split(" ")
        return int(parts[1]) if self.line.startswith("HTTP/") and len(parts) > 1 else 0

    @property
    def target(self):
        return self.line.split(" ")[1]

    def all(self, name):
        """The values of a header, in their order."""
        return [value for found, value in self.headers if found.lower() == name]

    def one(self, name):
        """The value of a header, those of several lines joined; nothing where there is none."""
        return ", ".join(self.all(name)) or None


class Wire:
    """One connection, read message by message."""

    def __init__(self, connection):
        self.connection, self.ahead = connection, b""

    def more(self):
        piece = self.connection.recv(PIECE)
        self.ahead += piece
        return bool(piece)

    def until(self, mark):
        """What comes before a mark, which is taken away; nothing where the connection ends before it."""
        while mark not in self.ahead:
            if not self.more():
                return None
        found, _, self.ahead = self.ahead.partition(mark)
        return found

    def exactly(self, length):
        while len(self.ahead) < length and self.more():
            pass
        found, self.ahead = self.ahead[:length], self.ahead[length:]
        return found

    def head(self):
        """A message without its body; nothing where none came."""
        text = self.until(b"\r\n\r\n")
        if text is None:
            return None
        line, *lines = text.decode("latin-1").split("\r\n")
        pairs = [each.partition(":") for each in lines]
        return Message(line, [(name, value.strip()) for name, _, value in pairs])

    def read_body(self, message, bodyless=False):
        """Reads the body of a message by its framing."""
        length = message.one("content-length")
        answer = message.line.startswith("HTTP/")
        if bodyless or answer and (message.status in (204, 304) or message.status < 200):
            return message
        if (message.one("transfer-encoding") or "").lower().endswith("chunked"):
            while True:
                size = self.until(b"\r\n")
                if size is None:
                    message.whole = False
                    return message
                size = int(size.partition(b";")[0], 16)
                if size == 0:
                    trailers = self.until(b"\r\n") if not self.ahead.startswith(b"\r\n") else self.exactly(2)
                    while trailers not in (b"", b"\r\n", None):
                        trailers = self.until(b"\r\n")
                    message.whole = trailers is not None
                    return message
                message.body += self.exactly(size)
                if self.exactly(2) != b"\r\n":
                    message.whole = False
                    return message
        if length is not None:
            message.body = self.exactly(int(length))
            message.whole = len(message.body) == int(length)
        elif answer:
            while self.more():
                pass
            message.body, self.ahead = self.ahead, b""
        return message

    def answer(self, bodyless=False):
        """The next answer that is a final one."""
        while True:
            message = self.head()
            if message is None or message.status >= 200 or message.status == 101:
                return message and self.read_body(message, bodyless)


def connect(base, wait=ANSWER_WAIT, client=""):
    """A connection to an address, from one of this machine's where that is given."""
    connection = socket.create_connection(place(base), timeout=wait, source_address=(client, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def exchange(base, request, wait=ANSWER_WAIT, bodyless=False, client=""):
    """The answers to the bytes of one or more requests, until the connection ends or is quiet. A request says
    `Connection: close` where it is the last."""
    with connect(base, wait, client) as connection:
        wire, answers = Wire(connection), []
        try:
            connection.sendall(request)
            while (answer := wire.answer(bodyless)) is not None:
                answers.append(answer)
        except (OSError, ValueError):
            pass
        return answers


def request(path, host, method="GET", headers=(), body=None):
    """The bytes of a request, the last of its connection."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def ask(base, path, host=HOST, method="GET", headers=(), body=None, wait=ANSWER_WAIT):
    """The answer to one request; one without a status where there is none."""
    answers = exchange(base, request(path, host, method, headers, body), wait, method == "HEAD")
    return answers[0] if answers else Message("", [], whole=False)


def reply(body=b"", status="200 OK", headers=("Content-Type: text/plain",), length=True):
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if length else [])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


class Origin:
    """An origin that answers paths with the bytes, or by the functions, in `answers`: a function gets the connection
    and the request, and answers whether it may be used again. `arrived` lists the requests; `opened` counts
    connections."""

    def __init__(self, read_bodies=True):
        self.answers, self.arrived, self.opened = {}, [], 0
        self.read_bodies = read_bodies
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.base = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.name = "%s:%d" % place(self.base)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.opened += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        wire = Wire(connection)
        with connection:
            try:
                while (message := wire.head()) is not None:
                    answer = self.answers.get(message.target.partition("?")[0], reply(b"an answer"))
                    if message.one("expect") and not callable(answer):
                        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    self.arrived.append(message)
                    if callable(answer):
                        if not answer(wire, message):
                            return
                        continue
                    wire.read_body(message)
                    bodyless = message.line.startswith("HEAD ")
                    connection.sendall(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if bodyless else answer)
                    if not bodyless and b"content-length" not in answer.lower() and b"chunked" not in answer.lower():
                        return
            except (OSError, ValueError):
                pass

    def taken(self):
        """The requests that arrived since this was asked the last time."""
        found, self.arrived = self.arrived, []
        return found

    def end(self):
        self.listener.close()


def until(condition, wait=stage.WAIT, pause=0.05):
    """What a condition answers as soon as that is something, or in the end."""
    end = time.monotonic() + wait
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return found


def table(rows, head):
    """Prints rows of texts, one below the other."""
    rows = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [min(max(len(row[n]) for row in rows), 60) for n in range(len(head))]
    for row in rows:
        print("  ".join(cell[:60].ljust(width) for cell, width in zip(row, widths)).rstrip())
