"""Cases of requests and answers that are tried through the gateway and through nginx, and the table of what came."""

import re
import typing
import urllib.parse

import origin_stage as lab

# The gateway's own cookie.
COOKIE = "tidegate-session"
OWN_COOKIE = f"{COOKIE}=0123456789abcdef"


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


def unmarked(text):
    """A header without what tells one gateway from another in `Via`."""
    return re.sub(r"(?<=1\.1 tidegate)-\w+", "", text)


def arrived(name):
    """A watch for a header of the request that arrived."""
    return lambda request, _: unmarked(request.one(name) or "-")


def answered(name):
    """A watch for a header of the answer, its lines apart."""
    return lambda _, answer: unmarked(" | ".join(answer.all(name)) or "-")


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
