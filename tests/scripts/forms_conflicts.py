"""Conflicts as a person decides them with a real browser: what `forms.py` does with their page."""

import html
import json
import re
import time

import stage
from stage import TOKEN

# Written by whatever hostile markup runs.
MARK = "hostile-ran"
HOSTILE = f"<script>document.title='{MARK}'</script><img src=x onerror=\"document.title='{MARK}'\">"
OURS = "The ferry sails at nine and again at four"
THEIRS = f"The ferry sails at eight and again at four {HOSTILE}"


class Publisher(stage.Handler):
    """Has one document, and none at first."""

    document = ""

    def do_GET(self):
        body = Publisher.document.encode()
        self.answer(200 if body else 404, body, [("content-type", "application/atom+xml; charset=utf-8")])


class Gateway(stage.Gateway):
    """A gateway with a feed of its own beside its settings, `harbour`, whose other side the publisher is."""

    def __init__(self, program, origin, folder, settings):
        feed = 'local = true\ntitle = "Notices of the harbour"\n'
        super().__init__(program, folder, f'{settings}[[feed]]\nname = "harbour"\nurl = "{origin}/feed"\n{feed}')

    def ask(self, path, method="GET", body=None, accept="*/*"):
        return super().ask(path, method, body, {"accept": accept}).decode()

    def api(self, path, method="GET", body=None):
        return self.feed("harbour", path, method, body)

    def poll(self):
        return super().poll("harbour")


def contest(gateway):
    """Both sides change a new item without knowing of each other."""
    made = {"title": "Ferry, winter timetable", "content": "The ferry sails at nine"}
    sync_id = gateway.api("/items", "POST", made)["sync_id"]
    theirs = {"The ferry sails at nine": html.escape(THEIRS), "Ferry, winter timetable": "Ferry, as the lighthouse has it"}
    contend(gateway, [sync_id], -1, theirs, {"title": "Ferry, winter timetable, amended", "content": OURS})
    return sync_id


def contend(gateway, sync_ids, later=60, theirs={}, ours=None):
    """Both sides change these items, the other one so many seconds from now; `theirs`: what else it says."""
    document = gateway.ask("/feeds/harbour/complete")
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))
    for old, new in theirs.items():
        document = document.replace(old, new)
    for sync_id in sync_ids:
        updates = gateway.api(f"/items/{sync_id}")["updates"] + 1
        document, found = re.subn(
            rf'(<sx:sync [^>]*id="{re.escape(sync_id)}"[^>]*updates=")\d+("[^>]*>)',
            rf'\g<1>{updates}\g<2><sx:history sequence="{updates}" when="{when}" by="lighthouse.example"/>',
            document,
        )
        stage.check(found == 1, f"{sync_id} stands {found} times in the document")
        gateway.api(f"/items/{sync_id}", "PUT", ours or {"title": f"Ours, {updates}", "content": "We said so"})
    # The document must be another than any before.
    Publisher.document = document
    gateway.poll()
    conflicts = gateway.api("/conflicts")
    stage.check(conflicts["count"] == len(sync_ids), f"not in conflict: {conflicts}")


def decide(gateway, browser, out):
    """Looks at the page, takes what lost, and yields what is wrong."""
    address = gateway.base + "/feeds/harbour/conflicts"
    browser.go(gateway.base + "/")
    browser.click("a[href='/feeds/harbour/conflicts'].pill")
    browser.until(f"location.href == {json.dumps(address)}")
    browser.picture(out / "conflict.png", 1180, 1400)
    text = browser.value("document.body.innerText")
    for wanted in [OURS, "The ferry sails at eight", "lighthouse.example", "Keep the winner"]:
        if wanted not in text:
            yield f"{wanted!r} is not shown"
    if browser.value("document.querySelectorAll('main script, main img').length"):
        yield "hostile markup came to be elements"
    browser.click("button[value='0']")
    if browser.value("location.href") != address:
        yield "the form was sent without a token"
    browser.type("input[name=token]", TOKEN)
    browser.click("button[value='0']", "Resolved.")
    if "as the lighthouse has it" not in gateway.ask("/feeds/harbour"):
        yield "readers are not shown what was taken"


def write_anew(gateway, browser, sync_id):
    """The next conflict of the same item, with a text of one's own."""
    contend(gateway, [sync_id])
    browser.go(gateway.base + "/feeds/harbour/conflicts")
    browser.type("input[name=token]", TOKEN)
    browser.click(".choices details summary")
    browser.type("input[name=title]", "Agreed <b>between</b> us")
    browser.type("textarea", "At nine & at eight")
    browser.click("button[value=new]", "Resolved.")
    shown = gateway.api(f"/items/{sync_id}")["title"]
    if shown != "Agreed <b>between</b> us":
        yield f"the new text is not what was written: {shown}"


def keep_winners(gateway, browser, sync_id):
    """Who has signed in keeps one winner, and those of a page with two."""
    other = gateway.api("/items", "POST", {"title": "Gulls", "content": "Do not feed them"})["sync_id"]
    for sync_ids, button, said in [
        ([sync_id], "winner", "Resolved."), ([sync_id, other], "winners", "No item of this feed is in conflict"),
    ]:
        time.sleep(1.1)
        contend(gateway, sync_ids)
        browser.go(gateway.base + "/feeds/harbour/conflicts")
        browser.click(f"button[value={button}]", said)
        if gateway.api("/conflicts")["count"]:
            yield f"the button {button} left conflicts"
