"""What the scripts about a whole site have in common: nginx with its files, a client that sends addresses as they are
written, an origin that keeps what it was asked, and the gateway."""

import dataclasses
import http.client

import nginx_stage
import stage

# The host of the origin at the gateway.
HOST = "blog.test"

STATIC = """
    types {{
        text/html html; text/css css; image/png png; text/xml xml; application/feed+json json;
    }}
    server {{
        listen {address};
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


def static(program, folder, base):
    """nginx with the files of a folder's `site`, at this address."""
    text = STATIC.format(address=base.removeprefix("http://"), root=folder / "site")
    return nginx_stage.Server(program, folder / "nginx", text, f"{base}/", base=base)


def origin(address, host=HOST):
    """The table of an origin, at its host."""
    return f'[[origin]]\nname = "blog"\nurl = "{address}"\npass = true\nhost = "{host}"\n'


def gateway(program, folder, tables, server=""):
    """A gateway with these tables, whose public address is its own."""
    folder.mkdir()
    address = f"127.0.0.1:{stage.free_port()}"
    # A client has a share of connections by its address; here all have one.
    server = f'public_url = "http://{address}"\n{server}'
    return stage.Gateway(program, folder, f"[polling]\nallow_private = true\n{tables}", server, address)


@dataclasses.dataclass
class Answer:
    """An answer: its status, its headers in order, its body, and whether that ended as its framing says."""

    status: int
    headers: list
    body: bytes
    whole: bool

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
        return Answer(answer.status, answer.getheaders(), got, whole)
    finally:
        connection.close()
