"""What the programs with a browser have in common: a publisher, the gateway in front of it, and how
they are called and answer. Standard library only. The programs beside it import it, and are run as

    PROGRAM --bin PATH/TO/tidegate --browser PATH/TO/chromium --out FOLDER
"""

import pathlib

import stage
from stage import TOKEN, WAIT, given, status  # noqa: F401  for the programs beside it

# Written by whatever hostile markup runs.
MARK = "hostile-ran"
# A browser without a window, which asks for nothing of its own accord.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
    "--disable-component-update",
]


class Publisher(stage.Handler):
    """Has one document, and none at first."""

    document = ""

    @classmethod
    def open(cls):
        """Starts it, and answers where it is."""
        return stage.Server(cls).base

    def do_GET(self):
        body = Publisher.document.encode()
        self.answer(200 if body else 404, body, [("content-type", "application/atom+xml; charset=utf-8")])


class Gateway(stage.Gateway):
    """The gateway with one feed, `harbour`. `settings` and `feed` are lines of its configuration:
    of everything but the server and the feed, and of the feed beside its name and address."""

    def __init__(self, program, origin, folder, settings="", feed=""):
        harbour = f'[[feed]]\nname = "harbour"\nurl = "{origin}/feed"\n{feed}'
        super().__init__(program, folder, settings + harbour)

    def ask(self, path, method="GET", body=None, accept="*/*"):
        return super().ask(path, method, body, {"accept": accept}).decode()

    def api(self, path, method="GET", body=None):
        return self.feed("harbour", path, method, body)

    def poll(self):
        return super().poll("harbour")
