"""Holds Atom documents of a running gateway against the feed validator's rules for Feed History.

    feedhistory_rules.py --bin PATH/TO/tidegate [--rounds N]

A publisher served here changes its feed before each poll, by more at times than one archive takes.
After each poll the reader, sync and complete view and all archives are read. Exit status 1 where a
rule is broken, or where none of the cases came up that the rules are about.
"""

import argparse
import random
import re
import sys
import tempfile
import xml.etree.ElementTree as ET

import stage

ATOM = "{http://www.w3.org/2005/Atom}"
HISTORY = "{http://purl.org/syndication/history/1.0}"
TOMBSTONES = "{http://purl.org/atompub/tombstones/1.0}"
SYNC = "{http://www.microsoft.com/schemas/sse}sync"
# What the validator calls the relations of RFC 5005.
RFC5005 = {"current", "first", "last", "next", "next-archive", "prev-archive", "previous"}
# The relations that it knows; others must be addresses.
KNOWN = RFC5005 | {"alternate", "enclosure", "hub", "related", "self", "via"}
# Of paged feeds; beside archive links none may stand but the draft's `previous`.
PAGING = {"first", "last", "next"}

WINDOW = 6
ENTRIES = 4


class Publisher:
    """Two feeds: `news` shows the newest posts, `all` lists every post and says so."""

    def __init__(self):
        self.random = random.Random(5005)
        self.posts, self.gone, self.made = [], [], 0
        self.publish(3)

    def publish(self, count):
        for _ in range(count):
            self.made += 1
            post = {"id": f"urn:post:{self.made}", "title": f"Post {self.made}", "text": "First."}
            self.posts.insert(0, post)

    def change(self, turn):
        shown = self.posts[:WINDOW]
        roll = self.random.randrange(8)
        if roll < 3:
            self.publish(1 + roll)
        elif roll == 3:
            self.publish(9)
        elif roll == 4:
            self.random.choice(shown)["text"] = f"Told anew in turn {turn}."
        elif roll == 5:
            self.random.choice(shown)["id"] = f"urn:moved:{turn}"
        elif roll == 6 and len(self.posts) > 3:
            post = self.random.choice(shown)
            self.posts.remove(post)
            self.gone.append(post["id"])

    def document(self, name):
        complete = name == "all"
        posts = self.posts if complete else self.posts[:WINDOW]
        entries = "".join(
            f"<entry><id>{post['id']}</id><title>{post['title']}</title>"
            f"<link href='http://publisher.example/{post['title'].split()[1]}'/>"
            f"<updated>2026-01-01T00:00:00Z</updated><content>{post['text']}</content></entry>"
            for post in posts
        )
        gone = "".join(
            f"<at:deleted-entry ref='{id}' when='2026-01-02T00:00:00Z'/>" for id in self.gone
        )
        mark = "<fh:complete/>" if complete else ""
        return (
            "<feed xmlns='http://www.w3.org/2005/Atom'"
            " xmlns:fh='http://purl.org/syndication/history/1.0'"
            " xmlns:at='http://purl.org/atompub/tombstones/1.0'>"
            f"<id>urn:feed:{name}</id><title>{name}</title><author><name>A</name></author>{mark}"
            "<link rel='prev-archive' href='http://publisher.example/old'/>"
            "<link rel='next' href='http://publisher.example/page2'/>"
            f"<updated>2026-01-01T00:00:00Z</updated>{entries}{gone}</feed>"
        ).encode()


class Rules:
    def __init__(self):
        self.broken, self.checked = [], 0

    def demand(self, held, where, said):
        self.checked += 1
        if not held:
            self.broken.append(f"{where}: {said}")

    def document(self, body, own):
        """The rules of one document; gives its links, ids and feed-level updated."""
        root = ET.fromstring(body)
        self.demand(root.tag == ATOM + "feed", own, "it is no Atom feed")
        children = [child.tag for child in root]
        for name in ["id", "title", "updated"]:
            found = children.count(ATOM + name)
            self.demand(found == 1, own, f"{found} {name} in its head (MissingElement)")
        first = children.index(ATOM + "entry") if ATOM + "entry" in children else len(children)
        behind = [tag for tag in children[first:] if tag.startswith(ATOM) and tag != ATOM + "entry"]
        self.demand(not behind, own, f"{behind} behind entries (MisplacedMetadata)")

        links = {}
        for link in root.findall(ATOM + "link"):
            links.setdefault(link.get("rel", "alternate"), []).append(link.get("href"))
        selves = links.get("self", [])
        self.demand(selves == [own], own, f"self is {selves} (MissingSelf, SelfDoesntMatchLocation)")
        for rel, hrefs in links.items():
            known = rel in KNOWN or re.match(r"https?://", rel)
            self.demand(known, own, f"the relation {rel} (UnregisteredAtomLinkRel)")
            if rel in RFC5005:
                self.demand(len(hrefs) == 1, own, f"{rel} leads to {hrefs}")
        one = {rel: hrefs[0] for rel, hrefs in links.items()}
        is_archive = HISTORY + "archive" in children
        is_complete = HISTORY + "complete" in children
        if is_complete:
            others = [rel for rel in one if rel in RFC5005 and one[rel] not in selves]
            self.demand(not others, own, f"{others} (FeedRelInCompleteFeed, CurrentNotSelf…)")
            self.demand(not is_archive, own, "it is an archive and complete")
        if is_archive:
            self.demand("current" in one, own, "no current (MissingCurrentInArchive)")
        paging = PAGING & set(one)
        self.demand(not paging, own, f"{paging} beside archive links")
        if "previous" in one:
            same = one.get("prev-archive") == one["previous"]
            self.demand(same, own, "previous is not prev-archive")

        entries = root.findall(ATOM + "entry")
        ids = [entry.findtext(ATOM + "id") for entry in entries]
        self.demand(len(ids) == len(set(ids)), own, "an id stands there twice (DuplicateEntries)")
        for entry in entries:
            inner = {link.get("rel") for link in entry.findall(ATOM + "link")} & RFC5005
            self.demand(not inner, own, f"{inner} in an entry (FeedHistoryRelInEntry)")
        gone = {deletion.get("ref"): deletion.get("when")
                for deletion in root.findall(TOMBSTONES + "deleted-entry")}
        states = {}
        for entry in entries:
            sync = entry.find(SYNC)
            state = State(entry.findtext(ATOM + "id"), entry, sync.get("deleted") == "true")
            states[state.id] = state
            if state.deleted:
                # RFC 6721 section 3: an entry that says that it is newer would stay.
                later = gone.get(state.id, state.updated) >= state.updated
                self.demand(later, own, f"{state.id} is said to be deleted before it was updated")
            else:
                self.demand(state.id not in gone, own, f"{state.id} is there and deleted")
        updated = root.findtext(ATOM + "updated")
        return Document(one, states, gone, updated, is_archive, is_complete)


class State:
    """An entry as its document has it."""

    def __init__(self, id, entry, deleted):
        self.id, self.deleted = id, deleted
        self.updated = entry.findtext(ATOM + "updated")
        self.said = (entry.find(SYNC).get("updates"), entry.findtext(ATOM + "title"),
                     entry.findtext(ATOM + "content"))


class Document:
    def __init__(self, links, states, gone, updated, is_archive, is_complete):
        self.links, self.states, self.gone, self.updated = links, states, gone, updated
        self.is_archive, self.is_complete = is_archive, is_complete


def read(gateway, address):
    return gateway.ask(address.removeprefix(gateway.base))


def without_next(body):
    return re.sub(rb'<link rel="next-archive"[^>]*/>', b"", body)


def rises(rules, past, address, body, updated):
    """What changes says that it is newer."""
    before = past.get(address)
    if before and before[0] != body:
        rules.demand(updated > before[1], address, f"updated {updated} is not after {before[1]}")
    past[address] = (body, updated)


def look(gateway, rules, name, past):
    """Reads everything of a feed; `past` is what was read before. How many archives are new."""
    reader = f"{gateway.base}/feeds/{name}"
    body = read(gateway, reader)
    shown = rules.document(body, reader)
    rules.demand(not shown.is_archive and not shown.is_complete, reader, "it is marked")
    rules.demand(not any(s.deleted for s in shown.states.values()), reader, "it shows a tombstone")
    rises(rules, past, reader, body, shown.updated)

    chain, newer, document, new = [], None, shown, 0
    address = shown.links.get("prev-archive")
    while address:
        body = read(gateway, address)
        later, document = document, rules.document(body, address)
        chain.append(document)
        rules.demand(document.is_archive, address, "it is not marked as an archive")
        links = document.links
        rules.demand(links.get("current") == reader, address, "current is not the reader view")
        rules.demand(links.get("next-archive") == newer, address, "next-archive leads elsewhere")
        rules.demand(
            document.updated < later.updated,
            address,
            f"updated {document.updated} is not before {later.updated} of what came after it",
        )
        if len(chain) > 1 or "prev-archive" in links:
            chained = {"prev-archive", "next-archive"} & set(links)
            rules.demand(chained, address, "it leads nowhere (ArchiveIncomplete)")
        new += address not in past
        old = past.setdefault(address, without_next(body))
        rules.demand(old == without_next(body), address, "it changed")
        listed = len(document.states) + len(document.gone)
        rules.demand(0 < listed <= ENTRIES, address, f"{listed} entries")
        newer, address = address, links.get("prev-archive")

    # Who reads back to the beginning and honours deletions has what the complete view has.
    held = {}
    for document in chain[::-1] + [shown]:
        held.update(document.states)
        for ref in document.gone:
            held.pop(ref, None)
    complete = f"{reader}/complete"
    body = read(gateway, complete)
    whole = rules.document(body, complete)
    rises(rules, past, complete, body, whole.updated)
    living = {id: state.said for id, state in whole.states.items() if not state.deleted}
    tombstones = len(whole.states) - len(living)
    rules.demand(
        whole.is_complete == (name == "all" and not tombstones),
        complete,
        f"marked {whole.is_complete} with {tombstones} tombstones",
    )
    rules.demand(not whole.gone and not whole.is_archive, complete, "deletions, or an archive")
    found = {id: state.said for id, state in held.items()}
    rules.demand(found == living, complete, f"not what the archives lead to: {found} {living}")

    sync = f"{reader}/sync"
    body = read(gateway, sync)
    window = rules.document(body, sync)
    rises(rules, past, sync, body, window.updated)
    rules.demand(not window.is_archive and not window.is_complete, sync, "it is marked")
    rules.demand("prev-archive" not in window.links, sync, "it leads to archives")
    # All that happens here is within the window.
    same = {i: s.said for i, s in window.states.items()} == {i: s.said for i, s in whole.states.items()}
    rules.demand(same, sync, "it does not show what the complete view does")
    dead = {id for id, state in window.states.items() if state.deleted}
    rules.demand(set(window.gone) == dead, sync, f"{window.gone} are said to be deleted, not {dead}")
    return new, len(chain), len(dead)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    arguments.add_argument("--rounds", type=int, default=60)
    arguments = arguments.parse_args()
    publisher, rules, past = Publisher(), Rules(), {"news": {}, "all": {}}
    site = stage.Site()
    settings = f"[polling]\nallow_private = true\n[publish]\narchive_entries = {ENTRIES}\n" + "".join(
        f'[[feed]]\nname = "{name}"\nurl = "{site.base}/{name}"\ndeletions = "eager"\n' for name in past
    )
    archives, burst, deleted = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        gateway = stage.Gateway(arguments.bin, folder, settings)
        try:
            for turn in range(arguments.rounds):
                for name in past:
                    site.documents[f"/{name}"] = publisher.document(name)
                    gateway.poll(name)
                    new, archives, dead = look(gateway, rules, name, past[name])
                    burst, deleted = max(burst, new), max(deleted, dead)
                publisher.change(turn)
        finally:
            gateway.end()
    for broken in rules.broken[:20]:
        print(broken)
    print(
        f"{rules.checked} conditions held against, {len(rules.broken)} broken; {archives} archives, "
        f"up to {burst} of one poll, {deleted} deletions"
    )
    if rules.broken or archives < 5 or burst < 2 or not deleted:
        sys.exit(1)


if __name__ == "__main__":
    main()
