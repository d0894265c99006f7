"""A film of what people do with the gateway: the demonstration with each of its stories, then a feed that is added
by its site's address, followed in newsboat, an edit and a deletion on its pages, a hold, a conflict, a backup and a
gateway that goes on from it. Each scene is looked at with axe-core, and leaves pictures. Exit status 1 where something
is not as it should be.

    film.py --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import newsboat
from accessibility import axe, check
from browser_pipe import Browser, free_the_pipe
from browser_stage import TOKEN, WAIT, Gateway, Publisher, given, status
from forms import document, page
from forms_conflicts import contest
from stage import free_port

# How often the publisher of the demonstration changes: twice as often as for people.
EVERY = "2s"
# How long the demonstration may take to tell everything, in seconds.
STORY_WAIT = 180
# The scenes are looked at by a desk in daylight, and on a phone in the dark.
WAYS = [(1180, False), (500, True)]
# The stories, and what their pages must say.
STORIES = {
    "new": "Version", "edit": "", "noise": "no news", "rename": "", "scroll-off": "", "deletion": "deleted",
    "broken": "", "held": "", "hold over": "", "conflict": "Keep the winner", "all seen": "",
}
# What the site in the second part is called.
FEED = "notices-of-the-harbour"


class Film:
    """The browser, and what it has seen."""

    def __init__(self, browser, program, out):
        self.browser, self.program, self.out = browser, program, out
        self.faults, self.number = [], 0

    def scene(self, name, *words):
        """Looks at the page that the browser has; it must have these words."""
        self.number += 1
        shown = f"film-{self.number:02}-{name.replace(' ', '-')}"
        check(self.browser, self.program, shown, self.out, self.faults, WAYS)
        text = self.browser.value("document.body.innerText")
        for wanted in words:
            if wanted not in text:
                self.faults.append(f"{shown}: {wanted!r} is not on {self.browser.value('location.href')}")

    def until(self, words):
        self.browser.until(f"document.body.innerText.includes({json.dumps(words)})")


class Reader(newsboat.Newsboat):
    """newsboat, with one feed."""

    def __init__(self, folder, address):
        super().__init__(folder, [address])
        self.address = address

    def read(self):
        """Reloads, and answers the titles that it has and which of them are unread, in the order of the titles."""
        time.sleep(newsboat.SECOND)
        subprocess.run(
            self.command, check=True, timeout=WAIT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        )
        return self.posts(self.address)


def demonstration(call, film):
    """Follows the demonstration from page to page, as it tells."""
    demo = subprocess.Popen(
        [call.bin, "demo", "--listen", "127.0.0.1:0", "--every", EVERY],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(line) for line in demo.stdout], daemon=True).start()
    try:
        base = lines.get(timeout=WAIT).removeprefix("listening on ").strip()
        film.browser.go(base + "/")
        film.scene("overview", "lighthouse", "harbour")
        missing, end = dict(STORIES), time.monotonic() + STORY_WAIT
        while missing:
            line = lines.get(timeout=max(0.1, end - time.monotonic()))
            said = re.fullmatch(r" *\d+:\d\d  (\S+(?: \S+)*) {2,}(\S.*)  (http://\S+)\n", line)
            if not said or said.group(1) not in missing:
                continue
            kind, words, address = said.groups()
            title = re.search(r"“([^”]*)”", words)
            film.browser.go(address)
            film.scene(kind, *filter(None, [missing.pop(kind), title and title.group(1)]))
        film.browser.go(base + "/feeds/lighthouse")
        film.scene("feed in a browser", "give this address to your feed reader")
        film.browser.go(base + "/feeds/lighthouse/changes")
        film.scene("changes")
    except queue.Empty:
        film.faults.append(f"the demonstration told nothing of: {', '.join(missing)}")
    finally:
        demo.terminate()
        demo.wait(timeout=WAIT)


def sign_in(film, gateway):
    film.browser.go(gateway.base + "/session")
    film.browser.type("input[name=token]", TOKEN)
    film.browser.click("main button")
    film.browser.until("location.pathname == '/'")


def posts(*numbers):
    """A document of these posts; the fourth one bears a correction from the seventh on."""
    corrected = {4: "Four, corrected"} if 7 in numbers else {}
    return document([(number, corrected.get(number, f"What post {number} says")) for number in numbers])


def add(film, gateway):
    """Adds a feed by the address of its site, and answers its name."""
    Publisher.document = page(("/feed", "The harbour, in short"))
    film.browser.go(gateway.base + "/add")
    film.browser.type("input[name=url]", Publisher.address)
    film.scene("add a site")
    film.browser.click("form.search button")
    film.until("The harbour, in short")
    film.scene("the feeds of a site")
    Publisher.document = posts(6, 5, 4, 3, 2, 1)
    film.browser.click("ul.found button")
    film.until("How it would be judged")
    film.scene("preview", "Notice 6")
    film.browser.click("button[value=add]")
    film.until("was added")
    film.scene("added")
    names = {feed["name"] for feed in json.loads(gateway.ask("/api/v1/feeds"))["feeds"]} - {"harbour"}
    return names.pop()


def act(film, gateway, name, button, words):
    """Presses a button of a feed's page."""
    film.browser.go(f"{gateway.base}/feeds/{name}/about")
    film.browser.click(f"button[value={button}]")
    film.until(words)


def expect(film, reader, what, wanted):
    """What the reader has, by title: unread or not."""
    found = reader.read()
    if found != wanted:
        film.faults.append(f"newsboat after {what}: {found}, not {wanted}")


def follow(film, gateway, reader, name):
    """An edit, a deletion and a held document, on the pages and in the reader."""
    read, unread = 0, 1
    titles = [f"Notice {number}" for number in range(1, 8)]
    expect(film, reader, "its first reload", [(title, unread) for title in titles[:6]])
    reader.all_read()

    Publisher.document = posts(7, 6, 5, 4, 3, 2)
    act(film, gateway, name, "poll", "1 created, 1 updated")
    film.scene("polled", "Notice 4")
    listed = json.loads(gateway.ask(f"/feeds/{name}/items?show=edited", accept="application/json"))
    film.browser.go(f"{gateway.base}/feeds/{name}/items/{listed['items'][0]['sync_id']}?diff=1..2")
    film.scene("an edit", "corrected", "Notice 4")
    expect(film, reader, "an edit", [*((title, read) for title in titles[:6]), (titles[6], unread)])
    reader.all_read()

    # Deletions are told at once, where a person wants that; by default a day must confirm them.
    film.browser.go(f"{gateway.base}/feeds/{name}/edit")
    film.browser.value("document.querySelector('select[name=deletions]').value = '\"eager\"'")
    film.scene("edit the feed")
    film.browser.click("form.choices button")
    film.until("The feed was changed.")

    # The fifth is gone while older ones stay, and one that had slid off came back: it was withdrawn.
    for told in ["", "<!-- again -->"]:
        Publisher.document = posts(7, 6, 4, 3, 2, 1) + told
        act(film, gateway, name, "poll", "Polled")
    film.browser.go(f"{gateway.base}/feeds/{name}/items?show=deleted")
    film.scene("a deletion", "Notice 5")
    if "Notice 5</title>" in gateway.ask(f"/feeds/{name}", accept="application/atom+xml"):
        film.faults.append("readers are shown what was deleted")
    all_read = [(title, read) for title in titles]
    expect(film, reader, "a deletion", all_read)

    # Another text and title everywhere: held, until a person says that it is meant.
    texts = [(number, f"All of it was written anew, for reasons of {number}") for number in (7, 6, 4, 3, 2, 1)]
    Publisher.document = document(texts).replace("Notice ", "Harbour notice ")
    act(film, gateway, name, "poll", "Release the held document")
    film.scene("a held document", "Drop the held document")
    expect(film, reader, "a hold", all_read)
    film.browser.click("button[value=release]")
    film.browser.until("document.querySelector('button[value=release]') === null")
    film.scene("released")
    found = reader.read()
    if len(found) != len(titles) or any(new for _, new in found):
        film.faults.append(f"newsboat after a release: {found}")
    return found


def resolve(film, gateway):
    """A conflict of a feed that is written here, decided by a person."""
    contest(gateway)
    film.browser.go(gateway.base + "/feeds/harbour/conflicts")
    film.scene("a conflict", "Keep the winner")
    film.browser.click("button[value='0']")
    film.until("Resolved.")
    film.scene("resolved")


def back_up(call, film, gateway, folder):
    """Has the gateway write everything to a file while it runs, and answers another folder that goes on from it."""
    file, other = folder / "backup.tg", folder / "restored"
    other.mkdir()
    for words in [
        ["export", file, "--config", folder / "tidegate.toml", "--data", folder / "data"],
        ["import", file, "--data", other / "data"],
    ]:
        done = subprocess.run([call.bin, *words], capture_output=True, text=True, timeout=WAIT, check=False)
        if done.returncode:
            film.faults.append(f"{words[0]}: {done.stderr}")
    return other


def site(call, film):
    """Everything that is done with a site of one's own."""
    settings = '[polling]\nallow_private = true\nhost_spacing = "0s"\nmin_interval = "1h"\n'
    local = 'local = true\ntitle = "Notices of the harbour"\n'
    listen = f"127.0.0.1:{free_port()}"
    Publisher.address = Publisher.open()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        gateway = Gateway(call.bin, Publisher.address, folder, settings, local, listen)
        try:
            sign_in(film, gateway)
            name = add(film, gateway)
            address = f"{gateway.base}/feeds/{name}"
            (folder / "newsboat").mkdir()
            reader = Reader(folder / "newsboat", address) if shutil.which("newsboat") else None
            if reader:
                before = follow(film, gateway, reader, name)
            resolve(film, gateway)
            other = back_up(call, film, gateway, folder)
            items = gateway.ask(f"/feeds/{name}/items", accept="application/json")
        finally:
            gateway.end()
        gateway = Gateway(call.bin, Publisher.address, other, settings, local, listen)
        try:
            if gateway.ask(f"/feeds/{name}/items", accept="application/json") != items:
                film.faults.append("what came back from the backup is not what was there")
            film.browser.go(f"{gateway.base}/feeds/{name}/items?show=deleted")
            film.scene("restored", "Notice 5")
            film.browser.go(gateway.base + "/")
            film.scene("overview of what was restored", name)
            if reader:
                expect(film, reader, "a restore", before)
        finally:
            gateway.end()
        return reader is not None


def main():
    call = given()
    free_the_pipe()
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(call.browser, profile)
        film = Film(browser, axe(call.out), call.out)
        try:
            demonstration(call, film)
            has_newsboat = site(call, film)
        finally:
            browser.end()
    without = "" if has_newsboat else ", without newsboat, which is not here"
    print(f"{film.number} scenes{without}; pictures in {call.out}")
    return status(film.faults)


if __name__ == "__main__":
    sys.exit(main())
