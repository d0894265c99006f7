"""Looks at the pages for people with a real browser. Standard library only; exit status 1 where
hostile markup runs, loads or is not shown as text.

    browser_pages.py --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import html
import json
import re
import sys
import tempfile
import time
from urllib.parse import quote

from browser_pipe import Browser, free_the_pipe
from browser_stage import MARK, Gateway, Publisher, given, status

# How the pictures begin that pages draw themselves.
OWN_PICTURES = {"about": '<svg viewBox="0 0 ', "dashboard": '<svg class="spark" viewBox="0 0 '}

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


def check(name, page, console, wanted, faults):
    """Hostile markup is text: no element and no attribute of it came to be."""
    def fault(said):
        faults.append(f"{name}: {said}")

    for line in console:
        fault(f"the console says {line}")
    # A feed's page draws one picture of its own, and the overview one for each of its two feeds at most.
    markup = page.replace(OWN_PICTURES.get(name, ""), "", 2) if name in OWN_PICTURES else page
    for element in ["<script", "<iframe", "<svg", "<base", "<img", "<style", "<meta http-equiv"]:
        if re.search(re.escape(element), markup, re.I):
            fault(f"{element} came to be an element")
    if re.search(r"<[^>]*\son[a-z]+=", page) or re.search(r"href=.?javascript:", page):
        fault("an attribute that runs something came to be")
    for text in wanted:
        if text not in page:
            fault(f"{text!r} is not shown")


def main():
    call = given()
    free_the_pipe()
    origin = Publisher.open()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as profile:
        all_editions = editions(origin)
        Publisher.document = all_editions[0]
        gateway = Gateway(call.bin, origin, folder, "[polling]\nallow_private = true\n")
        browser = Browser(call.browser, profile)
        try:
            for edition in all_editions:
                Publisher.document = edition
                gateway.poll()
            faults = look_around(gateway, browser, call.out)
        finally:
            browser.end()
            gateway.end()
    faults += [f"the browser asked the publisher for {path}" for path in Publisher.asked]
    return status(faults)


def look_around(gateway, browser, out):
    reader = gateway.ask("/feeds/harbour")
    sync_id = re.search(r'sync id="([^"]+)"', reader).group(1)
    address = f"/feeds/harbour/items/{sync_id}"
    item = json.loads(gateway.ask(address, accept="application/json"))
    assert item["updates"] == 4, item
    as_text = "&lt;script&gt;console.log('" + MARK
    pages = {
        "versions": (address, [as_text, "Ferry on the winter timetable, amended", "tombstone"][:2]),
        "difference": (f"{address}?diff=1..2", ["<ins>", "<del>", "amended</ins>"]),
        "hostile-difference": (f"{address}?diff=3..4", [as_text, "<ins>", "<del>"]),
        "bytes": (f"{address}?version=3", ["&amp;lt;script&amp;gt;"]),
        "dashboard": ("/", ["harbour", "/feeds/harbour/about", "changes in 30 days"]),
        "items": ("/feeds/harbour/items", [as_text, f'href="{address}"', "current"]),
        "found-items": ("/feeds/harbour/items?q=" + quote(SCRIPT), ["No item matches", "&lt;script&gt;"][:1]),
        "recent": ("/recent", [as_text, "edited", f'href="{address}"']),
        "changes": ("/feeds/harbour/changes?as=html", [as_text, "<ins>", "edited"]),
        "sign-in": ("/session?to=" + quote("/feeds/harbour/about?" + SCRIPT), ["Admin token"]),
        "error": ("/feeds/" + quote(SCRIPT, safe=""), ["There is nothing here", "All feeds"]),
        "about": ("/feeds/harbour/about", ["in the feed", "What is kept", "KiB", "At most 100 of an item"]),
    }
    faults = []
    for name, (path, wanted) in pages.items():
        browser.console.clear()
        browser.go(gateway.base + path)
        # What hostile markup began had the time to end.
        time.sleep(0.3)
        page = browser.value("document.documentElement.outerHTML")
        # That its console is heard at all, and what it says of other addresses than its own.
        browser.value("console.log('heard')")
        said = [line for line in browser.console if f'"url": "{gateway.base}{path}"' not in line]
        if "'heard'" not in (heard := said.pop()).replace('"', "'"):
            faults.append(f"{name}: the console is not heard: {heard}")
        check(name, page, said, wanted, faults)
        for way, width, dark in [("", 1180, False), ("-dark", 1180, True), ("-phone", 500, False)]:
            browser.picture(out / f"{name}{way}.png", width, 1300, dark)
            if (out / f"{name}{way}.png").stat().st_size < 5_000:
                faults.append(f"the picture {name}{way} shows nothing")
    print(f"{len(pages)} pages looked at; pictures in {out}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
