"""Looks at the pages for people with a real browser. Standard library only; exit status 1 where
hostile markup runs, loads or is not shown as text.

    browser_pages.py --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import argparse
import html
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request

TOKEN = "a-token-for-the-browser"
# How long a request, and one run of the browser, may take, in seconds.
REQUEST_WAIT = 30
BROWSER_WAIT = 60
# How often a run of the browser that hangs is begun again.
BROWSER_TRIES = 3
# Written by whatever runs; the publisher counts who asks for it.
MARK = "hostile-ran"

SCRIPT = "<script>console.log('{mark}');alert(1);fetch('{origin}/{mark}')</script>"
IMAGE = "<img src=x onerror=\"console.log('{mark}');new Image().src='{origin}/{mark}'\">"
FRAME = "<iframe srcdoc=\"<script>parent.console.log('{mark}')</script>\"></iframe>"
LINK = "<a href=\"javascript:console.log('{mark}')\">a link</a><svg onload=\"console.log('{mark}')\">"
STYLE = "</style><style>body{{display:none}}</style><link rel=stylesheet href='{origin}/{mark}'>"
BREAK = "</textarea></title></pre></ins></del><base href='{origin}/'><meta http-equiv=refresh " \
    "content='0;url={origin}/{mark}'>"

PROSE = (
    "The ferry keeps the winter timetable until the ice has gone: one sailing out at eight, one "
    "back at four, and one more if anybody asks nicely. Masters who steered by the bakery window "
    "may cease, since the lower leading light has a new lamp. Do not feed the gulls; the one with "
    "the white ring is not to be fed under any circumstances. "
)


class Publisher(http.server.BaseHTTPRequestHandler):
    document = ""
    asked = []

    def do_GET(self):
        if self.path != "/feed":
            Publisher.asked.append(self.path)
        body = Publisher.document.encode()
        self.send_response(200)
        self.send_header("content-type", "application/atom+xml; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def entry(number, title, text, updated="2026-05-01T08:00:00Z"):
    return (
        f"<entry><id>urn:example:{number}</id><title type='text'>{html.escape(title)}</title>"
        f"<link href='https://harbour.example/notices/{number}'/><updated>{updated}</updated>"
        "<author><name>The harbour office</name></author>"
        f"<content type='html'>{html.escape(text)}</content></entry>"
    )


def feed(entries):
    return (
        "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:example:feed</id>"
        "<title>Notices of the harbour</title><updated>2026-05-01T08:00:00Z</updated>"
        + "".join(entries) + "</feed>"
    )


def editions(origin):
    """What the publisher says, one after the other."""
    def hostile(text):
        return text.format(mark=MARK, origin=origin)

    everything = hostile(SCRIPT + IMAGE + FRAME + LINK + STYLE + BREAK)
    others = [
        entry(n, f"Notice {n}", f"<p>{PROSE}</p>", f"2026-04-{30 - n:02}T08:00:00Z")
        for n in range(2, 9)
    ]
    edited = PROSE.replace("at eight", "at nine").replace("nicely", "before noon")
    titles = [
        "Ferry on the winter timetable",
        "Ferry on the winter timetable, amended",
        hostile("Ferry " + SCRIPT + IMAGE),
        hostile("Ferry, with regrets " + SCRIPT + BREAK),
    ]
    texts = [PROSE * 3, PROSE + edited + PROSE, PROSE + everything, edited + everything + PROSE]
    return [
        feed([entry(1, title, f"<p>{text}</p>", f"2026-05-0{n}T08:00:00Z")] + others)
        for n, (title, text) in enumerate(zip(titles, texts), 1)
    ]


class Gateway:
    def __init__(self, binary, upstream, folder):
        config = folder / "tidegate.toml"
        config.write_text(
            f'[server]\nlisten = "127.0.0.1:0"\nadmin_token = "{TOKEN}"\n'
            f'[store]\npath = "{folder / "data"}"\n[polling]\nallow_private = true\n'
            f'[[feed]]\nname = "harbour"\nurl = "{upstream}/feed"\n'
        )
        self.process = subprocess.Popen(
            [binary, "serve", "-c", config], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )
        line = self.process.stdout.readline()
        self.base = re.fullmatch(r"listening on (http://\S+)\n", line).group(1)

    def ask(self, path, method="GET", accept="application/json"):
        headers = {"authorization": f"Bearer {TOKEN}", "accept": accept}
        request = urllib.request.Request(self.base + path, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=REQUEST_WAIT) as answer:
            return answer.read().decode()

    def poll(self):
        report = json.loads(self.ask("/api/v1/feeds/harbour/poll", "POST"))
        if report["error"]:
            raise RuntimeError(report["error"])
        return report

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=REQUEST_WAIT)


class Browser:
    def __init__(self, program, out):
        self.program, self.out = program, out

    def run(self, address, *more):
        for attempt in range(BROWSER_TRIES):
            with tempfile.TemporaryDirectory() as profile:
                command = [
                    self.program, "--headless=new", "--no-sandbox", "--disable-gpu",
                    "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                    "--disable-background-networking", "--disable-component-update",
                    "--enable-logging=stderr", "--virtual-time-budget=3000",
                    f"--user-data-dir={profile}", *more, address,
                ]
                try:
                    return subprocess.run(
                        command, capture_output=True, text=True, timeout=BROWSER_WAIT, check=True,
                    )
                except subprocess.TimeoutExpired:
                    if attempt + 1 == BROWSER_TRIES:
                        raise

    def look(self, address):
        """The page as the browser has it, and what its console says."""
        done = self.run(address, "--dump-dom")
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return done.stdout, console

    def picture(self, address, name, size, *more):
        path = self.out / f"{name}.png"
        path.unlink(missing_ok=True)
        self.run(address, f"--screenshot={path}", f"--window-size={size}", *more)
        if path.stat().st_size < 5_000:
            raise RuntimeError(f"{path} shows nothing")


def check(name, page, console, wanted, faults):
    """Hostile markup is text: no element and no attribute of it came to be."""
    def fault(said):
        faults.append(f"{name}: {said}")

    for line in console:
        fault(f"the console says {line}")
    for element in ["<script", "<iframe", "<svg", "<base", "<img", "<style", "<meta http-equiv"]:
        if re.search(re.escape(element), page, re.I):
            fault(f"{element} came to be an element")
    if re.search(r"<[^>]*\son[a-z]+=", page) or re.search(r"href=.?javascript:", page):
        fault("an attribute that runs something came to be")
    for text in wanted:
        if text not in page:
            fault(f"{text!r} is not shown")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--browser", required=True)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    given = arguments.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    with tempfile.TemporaryDirectory() as folder:
        all_editions = editions(origin)
        Publisher.document = all_editions[0]
        gateway = Gateway(given.bin, origin, pathlib.Path(folder))
        try:
            for edition in all_editions:
                Publisher.document = edition
                gateway.poll()
            faults = look_around(gateway, Browser(given.browser, given.out))
        finally:
            gateway.end()
    faults += [f"the browser asked the publisher for {path}" for path in Publisher.asked]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def look_around(gateway, browser):
    reader = gateway.ask("/feeds/harbour", accept="*/*")
    sync_id = re.search(r'sync id="([^"]+)"', reader).group(1)
    address = f"/feeds/harbour/items/{sync_id}"
    item = json.loads(gateway.ask(address))
    assert item["updates"] == 4, item
    as_text = "&lt;script&gt;console.log('" + MARK
    pages = {
        "versions": (address, [as_text, "Ferry on the winter timetable, amended", "tombstone"][:2]),
        "difference": (f"{address}?diff=1..2", ["<ins>", "<del>", "amended</ins>"]),
        "hostile-difference": (f"{address}?diff=3..4", [as_text, "<ins>", "<del>"]),
        "bytes": (f"{address}?version=3", ["&amp;lt;script&amp;gt;"]),
        "dashboard": ("/", ["harbour", "/feeds/harbour/about#kept"]),
        "about": ("/feeds/harbour/about", ["What is kept", "KiB", "At most 100 of an item"]),
    }
    faults = []
    for name, (path, wanted) in pages.items():
        page, console = browser.look(gateway.base + path)
        check(name, page, console, wanted, faults)
    for name in ["versions", "difference", "hostile-difference", "dashboard", "about"]:
        path = gateway.base + pages[name][0]
        browser.picture(path, name, "1180,1300")
        browser.picture(path, f"{name}-dark", "1180,1300", "--force-dark-mode")
        browser.picture(path, f"{name}-phone", "500,1400")
    print(f"{len(pages)} pages looked at; pictures in {browser.out}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
