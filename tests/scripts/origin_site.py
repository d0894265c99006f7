"""A small site by pelican: articles with pictures, lists, Atom and RSS. A JSON Feed, an RSS feed without ids and a page
of 10 KB are written beside them.

    origin_site.py FOLDER [ADDRESS]
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree
import zlib

SETTINGS = """
AUTHOR = "N. N."
SITENAME = "A small site"
SITEURL = "{address}"
PATH = "content"
OUTPUT_PATH = "output"
DELETE_OUTPUT_DIRECTORY = True
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
LOAD_CONTENT_CACHE = False
STATIC_PATHS = ["images"]
ARTICLE_URL = "posts/{{slug}}/"
ARTICLE_SAVE_AS = "posts/{{slug}}/index.html"
FEED_DOMAIN = SITEURL
FEED_ALL_ATOM = "feeds/all.atom.xml"
FEED_ALL_RSS = "feeds/all.rss.xml"
CATEGORY_FEED_ATOM = "feeds/{{slug}}.atom.xml"
TRANSLATION_FEED_ATOM = AUTHOR_FEED_ATOM = AUTHOR_FEED_RSS = None
"""
ARTICLES = 12
# Where the feeds of the site are, and what each is.
FEEDS = {
    "/feeds/all.atom.xml": "atom",
    "/feeds/all.rss.xml": "rss",
    "/feeds/notes.atom.xml": "atom",
    "/feeds/letters.atom.xml": "atom",
    "/feed.json": "jsonfeed",
    "/feeds/without-ids.rss.xml": "no ids",
}
# The page of a size that is known.
LARGE_PAGE, LARGE_PAGE_BYTES = "/page-10k.html", 10_000
GUID = re.compile(r"<guid[^>]*>.*?</guid>", re.S)
ATOM = "{http://www.w3.org/2005/Atom}"


def picture(width, height):
    """A PNG of two colours."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + b"".join(b"\x20\x60\xa0" if (x // 8 + y // 8) % 2 else b"\xf0\xe8\xd8" for x in range(width))
        for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


class Source:
    """What the site is made of. `articles` maps a slug to title, text and the number of its day."""

    def __init__(self, folder, address):
        self.folder, self.address = pathlib.Path(folder), address
        self.output = self.folder / "output"
        self.articles = {
            f"article-{n}": (f"Article {n}", f"What article {n} says. " * 20, n) for n in range(1, ARTICLES + 1)
        }

    def make(self):
        """Runs the generator anew over all that there is."""
        content = self.folder / "content"
        (content / "images").mkdir(parents=True, exist_ok=True)
        (content / "images/board.png").write_bytes(picture(96, 64))
        for old in content.glob("*.rst"):
            old.unlink()
        for slug, (title, text, day) in self.articles.items():
            (content / f"{slug}.rst").write_text(
                f"{title}\n{'#' * len(title)}\n\n:date: 2026-{1 + day // 28:02}-{1 + day % 28:02} 08:00\n"
                f":category: {'notes' if day % 2 else 'letters'}\n:slug: {slug}\n:summary: {title} in short.\n\n"
                f"{text}\n\n.. image:: {{static}}/images/board.png\n   :alt: A board\n"
            )
        settings = self.folder / "settings.py"
        settings.write_text(SETTINGS.format(address=self.address))
        subprocess.run(
            [sys.executable, "-m", "pelican", "content", "-s", settings, "--quiet"],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.write_beside()

    def write_beside(self):
        """What pelican does not make."""
        atom = (self.output / "feeds/all.atom.xml").read_text()
        rss = (self.output / "feeds/all.rss.xml").read_text()
        (self.output / "feeds/without-ids.rss.xml").write_text(GUID.sub("", rss))
        items = [
            {
                "id": entry.findtext(f"{ATOM}id"),
                "url": entry.find(f"{ATOM}link").get("href"),
                "title": entry.findtext(f"{ATOM}title"),
                "content_html": entry.findtext(f"{ATOM}content"),
            }
            for entry in xml.etree.ElementTree.fromstring(atom).iter(f"{ATOM}entry")
        ]
        (self.output / "feed.json").write_text(
            json.dumps(
                {
                    "version": "https://jsonfeed.org/version/1.1",
                    "title": "A small site",
                    "home_page_url": f"{self.address}/",
                    "feed_url": f"{self.address}/feed.json",
                    "items": items,
                },
                indent=1,
            )
        )
        links = "".join(
            f'<link rel="alternate" type="{kind}" href="{place}">'
            for kind, place in [
                ("application/atom+xml", "/feeds/all.atom.xml"),
                ("application/feed+json", "/feed.json"),
                ("application/rss+xml", "/feeds/without-ids.rss.xml"),
            ]
        )
        page = f"<!doctype html><html><head><title>Ten thousand bytes</title>{links}</head><body><p>"
        end = "</p></body></html>\n"
        words = "Words that fill a page. " * LARGE_PAGE_BYTES
        (self.output / LARGE_PAGE[1:]).write_text(page + words[: LARGE_PAGE_BYTES - len(page) - len(end)] + end)

    def files(self):
        """The path of each file at the server, sorted, and its file."""
        return {f"/{file.relative_to(self.output)}": file for file in sorted(self.output.rglob("*")) if file.is_file()}


if __name__ == "__main__":
    Source(sys.argv[1], (sys.argv[2:] or ["http://127.0.0.1:8000"])[0]).make()
