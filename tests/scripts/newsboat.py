"""newsboat with a folder of its own. Standard library only."""

import pathlib
import sqlite3

# The least time between two changes that it is to see, in seconds: libcurl takes what is not newer by
# Last-Modified, whole seconds, for what it has.
SECOND = 1.1


class Newsboat:
    """The reader, with these feeds."""

    name, needs = "newsboat", "newsboat"

    def __init__(self, folder, addresses):
        self.folder = pathlib.Path(folder)
        self.command = [
            "newsboat", "-u", self.folder / "urls", "-C", self.folder / "config", "-c", self.folder / "cache.db",
            "-x", "reload",
        ]
        (self.folder / "urls").write_text("".join(f"{address}\n" for address in addresses))
        (self.folder / "config").write_text("reload-threads 2\ndownload-retries 1\nmax-items 0\n")

    def posts(self, address):
        """The titles that it has of a feed, and whether each is unread."""
        with sqlite3.connect(self.folder / "cache.db") as database:
            return database.execute(
                "SELECT title, unread FROM rss_item WHERE feedurl = ? ORDER BY title", (address,)
            ).fetchall()

    def texts(self, address):
        """The text that it has of each title of a feed."""
        with sqlite3.connect(self.folder / "cache.db") as database:
            return dict(database.execute("SELECT title, content FROM rss_item WHERE feedurl = ?", (address,)))

    def all_read(self):
        with sqlite3.connect(self.folder / "cache.db") as database:
            database.execute("UPDATE rss_item SET unread = 0")
