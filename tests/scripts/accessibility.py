"""Walks through the pages as a person does who signs in and acts, and checks each with axe-core, in light
and dark, wide and narrow. Standard library only; exit status 1 where axe-core finds something.

    accessibility.py --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import base64
import hashlib
import io
import json
import sys
import tarfile
import tempfile
import urllib.request

import forms
from browser_pipe import free_the_pipe
from browser_stage import WAIT, Gateway, Publisher, given, status

AXE = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz"
AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
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


def walk(gateway, browser, program, out, origin):
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
    faults += forms.sign_in(gateway, browser, look)
    faults += forms.act_on_feed(gateway, browser, look)
    forms.add(gateway, browser, out, origin, look)
    visit("session", "/session")
    faults += forms.sign_out(gateway, browser)
    return faults


def main():
    call = given()
    free_the_pipe()
    program = axe(call.out)
    origin = Publisher.open()
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(call.bin, origin, folder, forms.settings(origin))
        try:
            forms.set_up(gateway, origin)
            browser = forms.Person(call.browser, folder + "/profile")
            try:
                faults = walk(gateway, browser, program, call.out, origin)
            finally:
                browser.end()
        finally:
            gateway.end()
    print(f"pages were looked at in {len(WAYS)} ways each; pictures in {call.out}")
    return status(faults)


if __name__ == "__main__":
    sys.exit(main())
