"""A small site: articles with a picture and a style, a page of 10 KB, Atom, RSS with ids and without, and a JSON Feed."""

import json
import random
import re

import stage

ARTICLES = range(12, 0, -1)
FEEDS = (
    "/feeds/all.atom.xml", "/feeds/all.rss.xml", "/feeds/notes.atom.xml", "/feed.json", "/feeds/without-ids.rss.xml",
)
HEAD = (
    "<!doctype html><html><head><title>{}</title><link rel=stylesheet href=/theme/css/main.css>"
    "<link rel=alternate type=application/atom+xml href=/feeds/all.atom.xml>"
    "<link rel=alternate type=application/feed+json href=/feed.json>"
    "<link rel=alternate type=application/rss+xml href=/feeds/without-ids.rss.xml></head><body>"
)


def text(n):
    return f"<p>What article {n} says. <img src='/images/board.png' alt='A board'></p>" * 9


def atom(address, path, title, numbers):
    entries = (
        stage.entry(f"article-{n}", f"Article {n}", f"<![CDATA[{text(n)}]]>", f"2026-01-{n:02}T08:00:00Z",
                    f"<link href='{address}/posts/article-{n}/' rel='alternate'/>") for n in numbers
    )
    return stage.atom(title, entries, path, more=f"<link href='{address}/'/><link href='{address}{path}' rel='self'/>")


def json_feed(address):
    items = [
        {"id": f"{n}", "url": f"{address}/posts/article-{n}/", "title": f"Article {n}", "content_html": text(n)}
        for n in ARTICLES
    ]
    head = {"version": "https://jsonfeed.org/version/1.1", "title": "A small site", "home_page_url": f"{address}/"}
    return json.dumps({**head, "feed_url": f"{address}/feed.json", "items": items})


def make(folder, address):
    """Writes the site for an address; the paths of its files."""
    rss = stage.rss(address, [(n, f"Article {n}", f"Article {n} in short.") for n in ARTICLES])
    large = HEAD.format("Ten thousand bytes") + "Words that fill a page. " * 500
    files = {
        "/index.html": HEAD.format("A small site") + "".join(f"<a href=/posts/article-{n}/>{n}</a>" for n in ARTICLES),
        "/page-10k.html": large[:10_000],
        "/theme/css/main.css": "p { color: #246 }\n" * 40,
        "/images/board.png": random.Random(1).randbytes(3000),
        "/feeds/all.atom.xml": atom(address, "/feeds/all.atom.xml", "A small site", ARTICLES),
        "/feeds/notes.atom.xml": atom(address, "/feeds/notes.atom.xml", "A small site - notes", ARTICLES[::2]),
        "/feeds/all.rss.xml": rss,
        "/feeds/without-ids.rss.xml": re.sub(b"<guid.*?</guid>", b"", rss),
        "/feed.json": json_feed(address),
    }
    files |= {f"/posts/article-{n}/index.html": HEAD.format(f"Article {n}") + text(n) for n in ARTICLES}
    for path, body in files.items():
        file = folder / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body.encode() if isinstance(body, str) else body)
    return sorted(files)
