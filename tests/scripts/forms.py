"""Uses every form of every page with headless Chromium, as a person does: types, chooses, clicks. Looks at each page, and
at those that the demonstration tells of, with axe-core (from the registry of npm), in light and dark, wide and narrow.
Exit status 1 where a form does nothing, a button was seen and not used, axe-core finds something, or hostile markup of
a publisher or in a conflict is more than text. Prints the forms; screenshots go to TIDEGATE_SCREENSHOTS (default: a
folder of the target). Needs chromium (in CI it is installed, elsewhere the script passes without).
"""

import base64
import hashlib
import html
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.request
from urllib.parse import quote

from playwright.sync_api import sync_playwright

from forms_conflicts import MARK, Gateway, Publisher, contest, decide, keep_winners, write_anew
from stage import TARGET, TOKEN, WAIT, Server, atom, check, entry, given, program, status

API = "/api/v1/feeds/notices"
AXE = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
# The ways in which each page is looked at: its width, and whether it is dark.
WAYS = [(1180, False), (1180, True), (500, False), (500, True)]
# What the publisher writes in a title and a text. Whatever of it comes to be tells the console, which has its mark.
HOSTILE = f"""<script>console.log('{MARK}');alert(1);fetch('//harbour.example/{MARK}')</script>
<img src=//harbour.example/{MARK} onerror="console.log('{MARK}')"><svg onload="console.log('{MARK}')"></svg>
<iframe srcdoc="<script>parent.console.log('{MARK}')</script>"></iframe><a href="javascript:console.log('{MARK}')">a</a>
</style><style>body{{--{MARK}:1;display:none}}</style><link rel=stylesheet href='//harbour.example/{MARK}'>
</textarea></title></pre></ins></del><base href='//harbour.example/{MARK}/'>
<meta http-equiv=refresh content='0;url=//harbour.example/{MARK}'>"""
# The elements of a page that came to be of it.
CAME_TO_BE = f"""[...document.querySelectorAll(
    'script, iframe, base, img, style, link, meta[http-equiv], [onload], [onerror], a[href^=javascript]'
)].map(element => element.outerHTML).filter(text => text.includes('{MARK}'))"""
# How long the demonstration may take to tell its stories, in seconds, and what their pages must say.
STORY_WAIT = 180
STORIES = {
    "new": "Version", "edit": "", "noise": "no news", "rename": "", "scroll-off": "", "deletion": "deleted",
    "broken": "", "held": "", "hold over": "", "conflict": "Keep the winner", "all seen": "",
}
# The buttons of the page that the browser has, each as its form is sent: method, path, class, name and value.
BUTTONS = """
const said = button => {
    const at = new URL(button.form.action).pathname
        .replace(/^\\/feeds\\/[^/]+/, '/feeds/NAME').replace(/\\/items\\/[^/]+$/, '/items/ID');
    const value = button.name ? `${button.name}=${button.value.replace(/^\\d+$/, 'N')}` : '';
    return `${button.form.method.toUpperCase()} ${at} ${button.form.className} ${value}`.trimEnd();
};
const buttons = [...document.forms].flatMap(form => [...form.querySelectorAll('button')]);
"""


class Person:
    """A page of a browser. Notes which buttons there are, and which of them had the browser go to another page."""

    def __init__(self, page):
        self.page, self.value, self.pick, self.type = page, page.evaluate, page.select_option, page.fill
        self.seen, self.used, self.clicked, self.console = {}, set(), None, []
        page.set_default_timeout(WAIT * 1000)
        page.on("console", lambda said: self.console.append(f"{said.text} {said.location}"))

    def note(self):
        here, buttons = self.value(f"{{ {BUTTONS} [location.pathname, buttons.map(said)] }}")
        for button in buttons:
            self.seen.setdefault(button, here)

    def go(self, address):
        self.page.goto(address)
        check(self.page.url == address, f"{address} leads to {self.page.url}")
        self.clicked = None
        self.note()

    def until(self, expression):
        if self.clicked:
            # On the page that the form leads to.
            expression = f"window.isBefore !== true && ({expression})"
        self.page.wait_for_function(expression)
        self.page.wait_for_load_state()
        self.used |= {self.clicked} - {None}
        self.clicked = None
        self.note()

    def click(self, selector, says=None):
        """Clicks something; then the page has these words."""
        at = f"document.querySelector({json.dumps(selector)})"
        button = self.value(f"{{ {BUTTONS} const at = {at}; buttons.includes(at) ? said(at) : null }}")
        if button:
            self.value("window.isBefore = true")
            self.clicked = button
        self.page.click(selector)
        if says:
            self.says(says)

    def says(self, text):
        self.until(f"document.body && document.body.innerText.includes({json.dumps(text)})")

    def unfold(self, button):
        self.click(f"details:has({button}) summary")

    def picture(self, path, width=1180, height=1300, dark=False):
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.screenshot(path=path, full_page=True)


class Look:
    """axe-core, fetched once, and what it finds."""

    def __init__(self, browser, out):
        self.browser, self.out, self.faults = browser, out, []
        path = out / "axe-core-4.14.1.js"
        if not path.exists():
            with urllib.request.urlopen(AXE, timeout=WAIT) as answer:
                packed = answer.read()
            is_same = base64.b64encode(hashlib.sha512(packed).digest()).decode() == AXE_SHA512
            check(is_same, f"{AXE} is not what it was")
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                path.write_bytes(archive.extractfile("package/axe.min.js").read())
        self.program = path.read_text()

    def __call__(self, name, *words):
        """Looks at the page that the browser has, in all ways; it must have these words."""
        self.faults += [f"{name}: this came to be: {element}" for element in self.browser.value(CAME_TO_BE)]
        for width, dark in WAYS:
            way = f"{name}{'-phone' if width < 1000 else ''}{'-dark' if dark else ''}"
            self.browser.picture(self.out / f"{way}.png", width, 1300, dark)
            self.browser.value(self.program + "; true")
            found = self.browser.value("axe.run().then(done => done.violations.map(v => [v.id, v.help, v.nodes[0].html]))")
            for rule, said, element in found:
                self.faults.append(f"{way}: {rule}: {said}: {element[:200]}")
            if (wide := self.browser.value("document.documentElement.scrollWidth - window.innerWidth")) > 0:
                self.faults.append(f"{way}: the page is {wide} pixels wider than the window")
        self.browser.picture(self.out / f"{name}.png")
        text = self.browser.value("document.body.innerText")
        self.faults += [f"{name}: {wanted!r} is not there" for wanted in words if wanted not in text]


def demonstration(binary, look):
    """Goes to each page that the demonstration tells of."""
    demo = subprocess.Popen(
        [binary, "demo", "--listen", "127.0.0.1:0", "--every", "2s"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    missing, ending = dict(STORIES), threading.Timer(STORY_WAIT, demo.terminate)
    ending.start()
    try:
        while missing and (line := demo.stdout.readline()):
            said = re.fullmatch(r" *\d+:\d\d  (\S+(?: \S+)*) {2,}(\S.*)  (http://\S+)\n", line)
            if said and said.group(1) in missing:
                title = re.search(r"“([^”]*)”", said.group(2))
                look.browser.go(said.group(3))
                look(f"demo-{said.group(1)}", *filter(None, [missing.pop(said.group(1)), title and title.group(1)]))
    finally:
        ending.cancel()
        demo.terminate()
        demo.wait(timeout=WAIT)
    if missing:
        yield f"the demonstration told nothing of: {', '.join(missing)}"


def document(entries):
    """A feed of these numbers and texts, newest first, of which the oldest is hostile."""
    entries = [(number, text + HOSTILE * (number == 1)) for number, text in entries]
    texts = (
        entry(number, f"Notice {number}{html.escape(HOSTILE) * (number == 1)}", html.escape(text),
              f"2026-05-0{number}T08:00:00Z", f"<link href='https://harbour.example/{number}'/>")
        for number, text in entries
    )
    return atom("Notices of the harbour", texts, "feed", more="<link href='https://harbour.example/'/>").decode()


def page(*feeds):
    """A page of the publisher that names these feeds."""
    links = "".join(
        f"<link rel='alternate' type='application/atom+xml' href='{path}' title='{title}'>" for path, title in feeds
    )
    return f"<!doctype html><html><head><title>Harbour</title>{links}</head></html>"


def set_up(gateway, origin):
    """A feed of the API, which may be paused, with a difference to look at."""
    Publisher.document = document([(3, "Three"), (2, "Two"), (1, "One")])
    gateway.ask(API, "PUT", {"url": origin + "/notices"})
    gateway.ask(f"{API}/poll", "POST")
    Publisher.document = document([(3, "Three"), (2, "Two"), (1, "One, corrected")])
    gateway.ask(f"{API}/poll", "POST")


def look_for(gateway, browser):
    """The forms that anybody may use."""
    browser.go(gateway.base + "/")
    browser.type("input[name=q]", "/notices")
    browser.pick("select[name=show]", "all")
    browser.pick("select[name=sort]", "title")
    browser.click("form.search button")
    browser.until("location.search.includes('q=%2Fnotices')")
    browser.go(gateway.base + "/feeds/notices/items")
    browser.type("input[name=q]", "Notice")
    browser.pick("select[name=show]", "edited")
    browser.click("form.search button")
    browser.until("location.search.includes('show=edited')")


def subscribe(gateway, browser, origin):
    Publisher.document = page(("/tides", "The tides"), ("/ice", "The ice"))
    browser.go(gateway.base + "/subscribe")
    browser.type("input[name=url]", origin)
    browser.click("form[method=get] button", "The ice")
    Publisher.document = document([(2, "Two"), (1, "One")])
    browser.click("form[method=post] button", "point your feed reader at")


def sign_in(gateway, browser, look):
    """Who signs in comes back to the page, and has buttons. Yields what is wrong."""
    browser.go(gateway.base + "/feeds/notices/about")
    browser.click("a[href^='/session']")
    browser.until("document.querySelector('input[name=token]') !== null")
    look("sign-in")
    browser.type("input[name=token]", "wrong")
    browser.click("main button", "is not that of this gateway")
    browser.type("input[name=token]", TOKEN)
    browser.click("main button", "Poll now")
    if TOKEN in browser.value("document.cookie + location.href"):
        yield "the token can be read by scripts or stands in an address"


def act_on_feed(gateway, browser, look):
    Publisher.document = document([(4, "Four"), (3, "Three, corrected"), (2, "Two"), (1, "One, corrected")])
    browser.click("button[value=poll]", "Polled: 1 created, 1 updated.")
    look("about-signed-in")
    # A document that drops most of the feed is held, until a person says what it is.
    Publisher.document = document([])
    browser.click("button[value=poll]", "Release the held document")
    look("held")
    browser.go(gateway.base + "/")
    look("overview-held")
    browser.click("a[href='/feeds/notices/about#held']", "Drop the held document")
    browser.click("button[value=drop]", "was dropped")
    Publisher.document = document([(1, "One, corrected")])
    browser.click("button[value=poll]", "Release the held document")
    browser.click("button[value=release]", "was released")
    for button, wanted in [("pause", "button[value=resume]"), ("resume", "button[value=pause]")]:
        browser.click(f"button[value={button}]")
        browser.until(f"document.querySelector({json.dumps(wanted)}) !== null")
    browser.click("button[value=backfill]", "older documents are being read")
    # What is said of a feed is changed by a form.
    browser.click("a[href='/feeds/notices/edit']")
    browser.until("document.querySelector('select[name=deletions]') !== null")
    look("edit")
    browser.pick("select[name=deletions]", '"off"')
    browser.click("form.choices button", "The feed was changed.")
    if json.loads(gateway.ask(API))["options"]["deletions"] != "off":
        yield "the form changed nothing"


def act_on_items(gateway, browser, sync_id):
    """An item that is made here is deleted, restored and redacted."""
    browser.go(f"{gateway.base}/feeds/harbour/items/{sync_id}")
    browser.click("button[value=delete]", "Deleted: subscribers get its tombstone.")
    browser.click("button[value=restore]", "Restored: it is in the feed again.")
    browser.unfold("button[value=redact]")
    browser.type("input[name=id]", sync_id)
    browser.type("input[name=reason]", "somebody asked for it")
    browser.click("button[value=redact]", "Redacted: ")


def add(gateway, browser, out, origin, look):
    # A list is uploaded.
    browser.go(gateway.base + "/add/list")
    look("list")
    listed = out / "walk-list.opml"
    listed.write_text(
        "<opml version='2.0'><body><outline text='Sea &amp; shore'>"
        f"<outline text='Floods' xmlUrl='{origin}/floods'/><outline text='None' xmlUrl='gopher://x/'/>"
        "</outline></body></opml>"
    )
    browser.page.set_input_files("input[name=list]", listed)
    browser.click("form.choices button", "1 feed added.")
    look("list-done")
    # A site is typed, its page names a feed, which is looked at and added.
    Publisher.document = page(("/short", "The harbour, in short"))
    browser.go(gateway.base + "/add")
    look("add")
    browser.type("input[name=url]", origin)
    browser.click("form.search button", "The harbour, in short")
    look("add-found")
    Publisher.document = document([(2, "Two"), (1, "One")])
    browser.click("ul.found button", "How it would be judged")
    look("add-preview")
    browser.type("input[name=name]", "in-short")
    browser.click("button[value=add]", "was added")
    # Whoever wants no feed any more types its name.
    browser.unfold("button[value=remove]")
    browser.type("form input[name=name]", "in-short")
    browser.click("button[value=remove]", "was deleted: its address answers 410")


def sign_out(gateway, browser):
    browser.go(gateway.base + "/session")
    browser.click("main button")
    browser.until("location.pathname == '/'")
    browser.go(gateway.base + "/feeds/notices/about")
    if browser.value("document.querySelector('button[value=poll]') !== null"):
        yield "who signed out can act still"


def visit(gateway, browser, look):
    """The pages that have no form of their own, or another one."""
    listed = json.loads(gateway.ask("/feeds/notices/items?show=edited", accept="application/json"))
    item, as_text, asked = f"/feeds/notices/items/{listed['items'][0]['sync_id']}", f"<script>console.log('{MARK}')", quote(HOSTILE)
    for name, path, *words in [
        ("overview", "/"), ("overview-search", f"/?q={asked}&show=problems"), ("recent", "/recent", as_text),
        ("items", "/feeds/notices/items", as_text), ("found-items", f"/feeds/notices/items?q={asked}"),
        ("item", item, as_text), ("difference", f"{item}?diff=1..2", as_text),
        ("changes", "/feeds/notices/changes?as=html", as_text), ("conflicts", "/feeds/notices/conflicts"),
        ("not-found", f"/feeds/{quote('<script>', safe='')}"), ("bad-query", "/?page=x"), ("about", "/feeds/notices/about"),
        # Who opens a feed in a browser gets a page.
        ("feed", "/feeds/notices"),
    ]:
        browser.go(gateway.base + path)
        look(name, *words)
    if browser.value("document.contentType") != "text/html":
        yield "a browser that goes to a feed gets no page"


def walk(gateway, browser, origin, out, look):
    """Goes from page to page, and yields what is wrong."""
    sync_id = contest(gateway)
    yield from decide(gateway, browser, out)
    yield from write_anew(gateway, browser, sync_id)
    if browser.value("document.title").find(MARK) >= 0:
        yield "hostile markup ran"
    set_up(gateway, origin)
    look_for(gateway, browser)
    subscribe(gateway, browser, origin)
    yield from visit(gateway, browser, look)
    yield from sign_in(gateway, browser, look)
    yield from act_on_feed(gateway, browser, look)
    yield from keep_winners(gateway, browser, sync_id)
    act_on_items(gateway, browser, sync_id)
    add(gateway, browser, out, origin, look)
    browser.go(gateway.base + "/session")
    look("session")
    yield from sign_out(gateway, browser)
    browser.value("console.log('heard')")
    if "heard" not in str(browser.console):
        yield "the console of the browser is not heard"
    yield from (f"the console says {line}" for line in browser.console if MARK in line)
    for button in sorted(browser.seen):
        print(f"{'used' if button in browser.used else 'NOT USED':8} {button}    first seen at {browser.seen[button]}")
        if button not in browser.used:
            yield f"nobody used the button {button} of {browser.seen[button]}"


def main():
    call, chromium = given(), program("chromium", "chromium-browser")
    out = pathlib.Path(os.environ.get("TIDEGATE_SCREENSHOTS") or f"{TARGET}/screenshots")
    out.mkdir(parents=True, exist_ok=True)
    origin = Server(Publisher).base
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as browsers:
        settings = f'[polling]\nallow_private = true\nhost_spacing = "0s"\nmin_interval = "1h"\n[[allow]]\nurl = "{origin}/"\n'
        with (
            Gateway(call.bin, origin, folder, settings) as gateway,
            browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as started,
        ):
            browser = Person(started.new_page())
            look = Look(browser, out)
            faults = [*walk(gateway, browser, origin, out, look), *demonstration(call.bin, look), *look.faults]
    return status(faults)


if __name__ == "__main__":
    sys.exit(main())
