"""A conflict from its beginning to its end with a real browser. Standard library only; exit status 1
where something is not as it should be.

    conflicts.py --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import html
import json
import sys
import tempfile
import time

from browser_pipe import Browser, free_the_pipe
from browser_stage import MARK, TOKEN, Gateway, Publisher, given, status

HOSTILE = f"<script>document.title='{MARK}'</script><img src=x onerror=\"document.title='{MARK}'\">"
OURS = "The ferry sails at nine and again at four"
THEIRS = f"The ferry sails at eight and again at four {HOSTILE}"


SETTINGS = (
    '[store]\nkind = "memory"\n'
    '[polling]\nallow_private = true\nhost_spacing = "0s"\nmin_interval = "1h"\n'
)


def contest(gateway):
    """Both sides change one item without knowing of each other."""
    made = gateway.api("/items", "POST", {
        "title": "Ferry, winter timetable", "content": "The ferry sails at nine",
        "link": "https://harbour.example/ferry", "author": "The harbour office",
    })
    document = gateway.ask("/feeds/harbour/complete")
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))
    theirs = document.replace('updates="1"', 'updates="2"', 1).replace(
        "<sx:history",
        f'<sx:history sequence="2" when="{when}" by="lighthouse.example"/><sx:history', 1,
    )
    theirs = theirs.replace("The ferry sails at nine", html.escape(THEIRS))
    theirs = theirs.replace("Ferry, winter timetable", "Ferry, as the lighthouse has it", 1)
    time.sleep(1.1)
    gateway.api(f"/items/{made['sync_id']}", "PUT", {
        "title": "Ferry, winter timetable, amended", "content": OURS,
        "link": "https://harbour.example/ferry", "author": "The harbour office",
    })
    # The document must be another than any before.
    Publisher.document = theirs
    gateway.poll()
    return made["sync_id"]


def decide(gateway, browser, out):
    """Looks at the page, decides, and yields what is wrong."""
    address = gateway.base + "/feeds/harbour/conflicts"
    if gateway.api("/conflicts")["count"] != 1:
        yield "nothing is in conflict: " + json.dumps(gateway.api("/conflicts"))
        return
    browser.go(gateway.base + "/")
    browser.click("a[href='/feeds/harbour/conflicts'].pill")
    browser.until(f"location.href == {json.dumps(address)}")
    for name, width, dark in [
        ("conflict", 1180, False), ("conflict-dark", 1180, True), ("conflict-phone", 500, False),
    ]:
        browser.picture(out / f"{name}.png", width, 1400, dark)
    browser.picture(out / "conflict.png")
    text = browser.value("document.body.innerText")
    for wanted in [OURS, "The ferry sails at eight", "lighthouse.example", "Keep the winner"]:
        if wanted not in text:
            yield f"{wanted!r} is not shown"
    if browser.value("document.querySelectorAll('main script, main img').length"):
        yield "hostile markup came to be elements"
    if not browser.value("document.querySelectorAll('ins, del').length"):
        yield "no difference is marked"

    # Without the token nothing is sent, and with a wrong one nothing is done.
    browser.click("button[value='0']")
    if browser.value("location.href") != address:
        yield "the form was sent without a token"
    browser.type("input[name=token]", "wrong")
    browser.click("button[value='0']")
    browser.until("document.body.innerText.includes('Nothing was changed')")
    if gateway.api("/conflicts")["count"] != 1:
        yield "a wrong token resolved something"

    browser.go(address)
    browser.type("input[name=token]", TOKEN)
    browser.click("button[value='0']")
    browser.until("document.body.innerText.includes('Resolved.')")
    browser.picture(out / "conflict-resolved.png", 1180, 600)
    if TOKEN in browser.value("location.href"):
        yield "the token stands in an address"
    if gateway.api("/conflicts")["count"] != 0:
        yield "the conflict is there still"
    if "as the lighthouse has it" not in gateway.ask("/feeds/harbour"):
        yield "readers are not shown what was taken"


def write_anew(gateway, browser, sync_id):
    """The next conflict of the same item, with a text of one's own."""
    document = gateway.ask("/feeds/harbour/complete")
    item = gateway.api(f"/items/{sync_id}")
    updates = item["updates"] + 1
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    theirs = document.replace(f'updates="{updates - 1}"', f'updates="{updates}"', 1).replace(
        "<sx:history", f'<sx:history sequence="{updates}" when="{when}" by="lighthouse.example"/>'
        "<sx:history", 1,
    )
    gateway.api(f"/items/{sync_id}", "PUT", {"title": "Ours again", "content": "We said so"})
    Publisher.document = theirs
    gateway.api("/poll", "POST")
    address = gateway.base + "/feeds/harbour/conflicts"
    browser.go(address)
    browser.type("input[name=token]", TOKEN)
    browser.value("document.querySelector('.choices details').open = true")
    browser.value("document.querySelector('input[name=title]').value = ''")
    browser.value("document.querySelector('textarea').value = ''")
    browser.type("input[name=title]", "Agreed <b>between</b> us")
    browser.type("textarea", "At nine & at eight")
    browser.click("button[value=new]")
    browser.until("document.body.innerText.includes('Resolved.')")
    shown = gateway.api(f"/items/{sync_id}")["title"]
    if shown != "Agreed <b>between</b> us":
        yield f"the new text is not what was written: {shown}"


def main():
    call = given()
    free_the_pipe()
    origin = Publisher.open()
    feed = 'local = true\ntitle = "Notices of the harbour"\n'
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as profile:
        gateway = Gateway(call.bin, origin, folder, SETTINGS, feed)
        browser = Browser(call.browser, profile)
        try:
            sync_id = contest(gateway)
            faults = list(decide(gateway, browser, call.out))
            faults += write_anew(gateway, browser, sync_id)
            if browser.value("document.title").find(MARK) >= 0:
                faults.append("hostile markup ran")
        finally:
            browser.end()
            gateway.end()
    if not faults:
        print(f"conflicts were looked at and resolved; pictures in {call.out}")
    return status(faults)


if __name__ == "__main__":
    sys.exit(main())
