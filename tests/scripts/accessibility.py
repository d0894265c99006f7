"""Walks through the pages as a person does who signs in and acts, and checks each with axe-core, in light
and dark, wide and narrow. Standard library only; exit status 1 where axe-core finds something.

    accessibility.py --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import base64
import hashlib
import html
import io
import json
import sys
import tarfile
import tempfile
import urllib.request

from browser_pipe import Browser, free_the_pipe
from browser_stage import TOKEN, WAIT, Gateway, Publisher, given, status

AXE = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
PAGE = (
    "<!doctype html><html><head><title>Harbour</title>"
    "<link rel='alternate' type='application/atom+xml' href='/feed' title='The harbour, in short'></head></html>"
)
API = "/api/v1/feeds/notices"
# The ways in which each page is looked at: its width, and whether it is dark.
WAYS = [(1180, False), (1180, True), (500, False), (500, True)]


def axe(out):
    """The program that checks a page, fetched once."""
    path = out / "axe-core-4.14.1.js"
    if not path.exists():
        with urllib.request.urlopen(AXE, timeout=WAIT) as answer:
            packed = answer.read()
        if base64.b64encode(hashlib.sha512(packed).digest()).decode() != AXE_SHA512:
            raise RuntimeError(f"{AXE} is not what it was")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            path.write_bytes(archive.extractfile("package/axe.min.js").read())
    return path.read_text()


def document(entries):
    """A feed of these numbers and texts, newest first."""
    texts = "".join(
        f"<entry><id>urn:example:{number}</id><title>Notice {number}</title>"
        f"<link href='https://harbour.example/{number}'/><updated>2026-05-0{number}T08:00:00Z</updated>"
        f"<author><name>The harbour office</name></author><content type='html'>{html.escape(text)}</content></entry>"
        for number, text in entries
    )
    return (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>Notices of the harbour</title><id>urn:example:feed</id>"
        f"<updated>2026-05-01T08:00:00Z</updated><link href='https://harbour.example/'/>{texts}</feed>"
    )


def check(browser, program, name, out, faults, ways=WAYS):
    """Looks at the page that the browser has, in all ways."""
    for width, dark in ways:
        way = f"{name}{'-phone' if width < 1000 else ''}{'-dark' if dark else ''}"
        browser.picture(out / f"{way}.png", width, 1300, dark)
        browser.value(program + "; true")
        done = browser.call(
            "Runtime.evaluate", awaitPromise=True, returnByValue=True,
            expression="axe.run().then(done => done.violations.map(v => [v.id, v.help, v.nodes[0].html]))",
        )
        if "exceptionDetails" in done:
            raise RuntimeError(f"{way}: {done['exceptionDetails']}")
        for rule, words, element in done["result"]["value"]:
            faults.append(f"{way}: {rule}: {words}: {element[:200]}")
        wide = browser.value("document.documentElement.scrollWidth - window.innerWidth")
        if wide > 0:
            faults.append(f"{way}: the page is {wide} pixels wider than the window")


def walk(gateway, browser, program, out):
    """Goes from page to page, and answers what is wrong."""
    faults = []
    listed = json.loads(gateway.ask("/feeds/notices/items?show=edited", accept="application/json"))
    sync_id = listed["items"][0]["sync_id"]
    item = f"/feeds/notices/items/{sync_id}"

    def look(name):
        check(browser, program, f"walk-{name}", out, faults)

    def visit(name, path):
        browser.go(gateway.base + path)
        look(name)

    visit("overview", "/")
    visit("overview-search", "/?q=nothing&show=problems")
    visit("recent", "/recent")
    visit("items", "/feeds/notices/items")
    visit("item", item)
    visit("difference", f"{item}?diff=1..2")
    visit("changes", "/feeds/notices/changes?as=html")
    visit("conflicts", "/feeds/notices/conflicts")
    visit("not-found", "/feeds/nobody")
    visit("bad-query", "/?page=x")
    visit("about", "/feeds/notices/about")
    # Who opens a feed in a browser gets a page.
    visit("feed", "/feeds/notices")
    if browser.value("document.contentType") != "text/html":
        faults.append("a browser that goes to a feed gets no page")
    browser.go(gateway.base + "/feeds/notices/about")

    # Who signs in comes back to the page, and has buttons.
    browser.click("a[href^='/session']")
    browser.until("document.querySelector('input[name=token]') !== null")
    look("sign-in")
    browser.type("input[name=token]", "wrong")
    browser.click("main button")
    browser.until("document.body.innerText.includes('is not that of this gateway')")
    browser.type("input[name=token]", TOKEN)
    browser.click("main button")
    browser.until("document.body.innerText.includes('Poll now')")
    if TOKEN in browser.value("document.cookie + location.href"):
        faults.append("the token can be read by scripts or stands in an address")
    Publisher.document = document([(4, "Four"), (3, "Three, corrected"), (2, "Two"), (1, "One, corrected")])
    browser.click("button[value=poll]")
    browser.until("document.body.innerText.includes('Polled: 1 created, 1 updated.')")
    look("about-signed-in")

    # A document that drops most of the feed is held, until a person says what it is.
    Publisher.document = document([])
    browser.click("button[value=poll]")
    browser.until("document.body.innerText.includes('Release the held document')")
    look("held")
    visit("overview-held", "/")
    browser.click("a[href='/feeds/notices/about#held']")
    browser.until("document.body.innerText.includes('Drop the held document')")
    browser.click("button[value=drop]")
    browser.until("document.body.innerText.includes('was dropped')")
    browser.click("button[value=pause]")
    browser.until("document.querySelector('button[value=resume]') !== null")
    browser.click("button[value=resume]")
    browser.until("document.querySelector('button[value=pause]') !== null")
    # What is said of a feed is changed by a form.
    browser.click("a[href='/feeds/notices/edit']")
    browser.until("document.querySelector('select[name=deletions]') !== null")
    look("edit")
    browser.value("document.querySelector('select[name=deletions]').value = '\"off\"'")
    browser.click("form.choices button")
    browser.until("document.body.innerText.includes('The feed was changed.')")
    if json.loads(gateway.ask(API))["options"]["deletions"] != "off":
        faults.append("the form changed nothing")

    # A list is uploaded.
    browser.go(gateway.base + "/add/list")
    look("list")
    listed = out / "walk-list.opml"
    listed.write_text(
        "<opml version='2.0'><body><outline text='Sea &amp; shore'>"
        f"<outline text='Tides' xmlUrl='{Publisher.address}/tides'/><outline text='None' xmlUrl='gopher://x/'/>"
        "</outline></body></opml>"
    )
    browser.choose("input[name=list]", listed)
    browser.click("form.choices button")
    browser.until("document.body.innerText.includes('1 feed added.')")
    look("list-done")

    # A site is typed, its page names a feed, which is looked at and added.
    feed = document([(2, "Two"), (1, "One")])
    Publisher.document = PAGE
    browser.go(gateway.base + "/add")
    look("add")
    browser.type("input[name=url]", Publisher.address)
    browser.click("form.search button")
    browser.until("document.body.innerText.includes('The harbour, in short')")
    look("add-found")
    Publisher.document = feed
    browser.click("ul.found button")
    browser.until("document.body.innerText.includes('How it would be judged')")
    look("add-preview")
    browser.click("button[value=add]")
    browser.until("document.body.innerText.includes('was added')")
    if len(json.loads(gateway.ask("/api/v1/feeds"))["feeds"]) != 4:
        faults.append("the feed was not added")

    visit("session", "/session")
    browser.click("main button")
    browser.until("location.pathname == '/'")
    browser.go(gateway.base + "/feeds/notices/about")
    if browser.value("document.querySelector('button[value=poll]') !== null"):
        faults.append("who signed out can act still")
    return faults


def main():
    call = given()
    free_the_pipe()
    program = axe(call.out)
    origin = Publisher.address = Publisher.open()
    with tempfile.TemporaryDirectory() as folder:
        settings = '[polling]\nallow_private = true\nhost_spacing = "0s"\nmin_interval = "1h"\n'
        gateway = Gateway(call.bin, origin, folder, settings)
        try:
            # A feed of the API, which may be paused, with a difference to look at.
            Publisher.document = document([(3, "Three"), (2, "Two"), (1, "One")])
            gateway.ask(API, "PUT", {"url": origin + "/feed"})
            gateway.ask(f"{API}/poll", "POST")
            Publisher.document = document([(3, "Three"), (2, "Two"), (1, "One, corrected")])
            gateway.ask(f"{API}/poll", "POST")
            browser = Browser(call.browser, folder + "/profile")
            try:
                faults = walk(gateway, browser, program, call.out)
            finally:
                browser.end()
        finally:
            gateway.end()
    print(f"pages were looked at in {len(WAYS)} ways each; pictures in {call.out}")
    return status(faults)


if __name__ == "__main__":
    sys.exit(main())
