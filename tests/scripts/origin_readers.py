"""newsboat is subscribed to the addresses of a site's own feeds, through the gateway, while the site is edited: nothing
is there twice, and nothing is unread again but what is new. A feed's first request takes hardly longer than at the
publisher."""

import collections
import statistics
import subprocess
import time

import newsboat
import origin_crawl
import origin_site
import origin_stage as lab
import stage

# A name that leads to this machine wherever curl resolves it (RFC 6761, section 6.3).
NAME = "blog.localhost"
# How long the publisher thinks, and by how much longer the first answer may take, in seconds.
DELAY, LONGER = 0.3, 0.05
# How many feeds are asked for the first time, for a median.
FRESH = 7
# How long a feed may take to be made, in seconds.
MADE_WITHIN = 15
# How long newsboat may take for a round, in seconds.
READER_WAIT = 120


class Publisher(stage.Site):
    """The output of the generator, from memory."""

    def __init__(self, folder):
        super().__init__()
        folder.mkdir()
        self.source = origin_site.Source(folder, self.base)
        self.publish()

    def publish(self):
        self.source.make()
        self.documents.update({path: file.read_bytes() for path, file in self.source.files().items()})


def first_requests(gate, site, host):
    """How much longer the first answer of a feed takes than the publisher's own, as medians."""
    atom, without = site.documents["/feeds/all.atom.xml"], site.documents["/feeds/without-ids.rss.xml"]
    site.documents["/warm.xml"] = atom
    lab.ask(gate.base, "/warm.xml", host)
    faults = []
    for name, document in (("with ids", atom), ("without ids", without)):
        times = collections.defaultdict(list)
        for n in range(FRESH):
            path = f"/fresh/{name.replace(' ', '-')}-{n}.xml"
            # Another feed, not another address of the same one.
            site.documents[path] = document.replace(b"A small site", f"Site {name} {n}".encode())
            for way, base in (("directly", site.base), ("first", gate.base), ("second", gate.base)):
                began = time.monotonic()
                answer = lab.ask(base, path, host)
                times[way].append(time.monotonic() - began)
                if answer.status != 200:
                    faults.append(f"{path}: {way}: {answer.status}: {answer.body[:200]}")
        medians = {way: statistics.median(each) * 1000 for way, each in times.items()}
        print(
            f"a feed {name}: "
            + ", ".join(f"{way} {median:.0f} ms" for way, median in medians.items())
            + f", the slowest first one {max(times['first']) * 1000:.0f} ms"
        )
        if name == "with ids" and medians["first"] > medians["directly"] + LONGER * 1000:
            faults.append(
                f"the first request of a feed takes {medians['first']:.0f} ms, {medians['directly']:.0f} directly"
            )
    return faults


def changes(source):
    """What the author does, one after another: what it is called, and the titles that are new."""
    articles = source.articles
    title, text, day = articles["article-9"]
    articles["article-9"] = title, text + " Corrected, and that is all.", day
    yield "an edit", set()
    title, text, day = articles["article-8"]
    articles["article-8"] = f"{title}, with another title", text, day
    yield "another title", set()
    del articles["article-7"]
    yield "a deletion", set()
    articles["article-6-renamed"] = articles.pop("article-6")
    yield "a rename", set()
    yield "a quiet round", set()
    articles["article-13"] = "Article 13", "What article 13 says.", 13
    yield "a new article", {"Article 13"}
    articles["article-11"] = (articles["article-11"][0], "All that article 11 says is new.", 11)
    articles["article-10-renamed"] = articles.pop("article-10")
    articles["article-14"] = "Article 14", "What article 14 says.", 14
    yield "all at once", {"Article 14"}


def read(reader):
    done = subprocess.run(
        reader.command,
        env={"HOME": str(reader.folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=READER_WAIT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"newsboat ended with {done.returncode}: {done.stdout[-500:]}")


def numbers(posts):
    """How often each article is there: its title begins with its number."""
    return collections.Counter(" ".join(title.replace(",", "").split()[:2]) for title, _ in posts)


def follow(gates, site, addresses, folder):
    """Rounds of changes. `addresses` maps where newsboat reads a feed to the publisher's path of it; those that are
    his own tell what is so without the gateway, and count for nothing."""
    behind = [address for address in addresses if not address.startswith(site.base)]
    # One each: newsboat takes two entries of one id for one, whatever feeds they are in.
    readers, faults, rows = {}, [], []
    for number, address in enumerate(addresses):
        readers[address] = newsboat.Newsboat(make(folder / str(number)), [address])
        read(readers[address])
        found = readers[address].posts(address)
        if address in behind and len(found) != origin_site.ARTICLES:
            faults.append(f"{address}: {len(found)} of {origin_site.ARTICLES} articles at the beginning")
    for what, new in changes(site.source):
        for reader in readers.values():
            reader.all_read()
        time.sleep(newsboat.SECOND)
        site.publish()
        for gate in gates:
            for url, feed in lab.known_feeds(gate).items():
                if url.removeprefix(site.base) in addresses.values():
                    gate.poll(feed["name"])
        for address, path in addresses.items():
            read(readers[address])
            posts = readers[address].posts(address)
            twice = sorted(title for title, count in numbers(posts).items() if count > 1)
            again = sorted(title for title, unread in posts if unread and title not in new)
            missing = sorted(new - {title for title, unread in posts if unread})
            rows.append((what, address, len(posts), ", ".join(twice), ", ".join(again), ", ".join(missing)))
            texts = readers[address].texts(address)
            # What the summary says is not edited, and a feed of summaries shows no edit of the text.
            late = sorted(
                title
                for title, text, _ in site.source.articles.values()
                if title not in texts or path.endswith(".atom.xml") and text.strip() not in texts[title]
            )
            for word, found in (
                ("not as it is now", late),
                ("twice", twice),
                ("unread again", again),
                ("not new", missing),
            ):
                if found and address in behind:
                    faults.append(f"{what}: {address} ({path}): {word}: {found}")
    lab.table(rows, ("change", "newsboat reads", "posts", "twice", "unread again", "not new"))
    return faults


def run(given, folder):
    site, running = Publisher(folder / "site"), []
    site.delay = DELAY
    try:
        through = lab.gateway(given.bin, folder / "through", lab.origin(f"{site.base}/", host=NAME))
        running.append(through)
        redirect = lab.gateway(
            given.bin, folder / "redirect", lab.origin(f"{site.base}/", at="/blog/", **{"pass": "redirect"})
        )
        running.append(redirect)
        port = through.base.rpartition(":")[2]
        host = f"{NAME}:{port}"
        yield from first_requests(through, site, host)
        site.delay = 0
        paths = ("/feeds/all.atom.xml", "/feeds/without-ids.rss.xml", "/feeds/all.rss.xml")
        addresses = {f"http://{host}{path}": path for path in paths}
        addresses |= {f"{redirect.base}/blog{path}": path for path in paths}
        # Somebody else was the first reader of each, who may see entries without ids twice.
        for address in addresses:
            base, host = address.removesuffix(addresses[address]), address.split("/")[2]
            place = addresses[address] if host.startswith(NAME) else f"/blog{addresses[address]}"
            server = through.base if host.startswith(NAME) else base.removesuffix("/blog")
            if not lab.until(lambda: b"sx:sync" in lab.ask(server, place, host).body, MADE_WITHIN):
                yield f"{address} does not become a feed"
        addresses |= {f"{site.base}{path}": path for path in paths}
        yield from follow((through, redirect), site, addresses, make(folder / "newsboat"))
        yield from names(through, host)
    finally:
        for each in running:
            each.end()


def make(folder):
    folder.mkdir()
    return folder


def names(gate, host):
    """The self link of a feed is the address that newsboat was told."""
    answer = lab.ask(gate.base, "/feeds/all.atom.xml", host)
    if (said := origin_crawl.self_link(answer.body, "atom")) != f"http://{host}/feeds/all.atom.xml":
        yield f"the self link of the feed at {host} is {said}"
