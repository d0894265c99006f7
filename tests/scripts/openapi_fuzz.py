"""Asks a running gateway what its description (/api/v1/openapi.json) allows and does not allow, as schemathesis makes it
up: no answer is a failure of the gateway's own, and each is as it is described."""

import json
import pathlib
import subprocess
import sys
import tempfile

import stage

# The longest that all requests together may take, in seconds.
MOST = 120
# What is read of feeds; of an unknown one, and of one that is gone, only that it is answered.
FEEDS = ["news", "notes", "gone", "nobody"]
CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "unsupported_method", "ignored_auth",
]
# What comes with Retry-After is said on purpose.
SETTINGS = """
[checks.not_a_server_error]
expected-statuses = [200, 201, 202, 204, 226, 304, "4xx", 503]
"""
CONFIGURATION = """
[polling]
allow_private = ["{host}"]
[websub]
hub = true
[[feed]]
name = "news"
url = "{base}/news.xml"
"""


def fill(gateway, site):
    """Feeds with something of everything; the sync ids of their items."""
    for numbers in [range(1, 8), range(2, 9)]:
        site.documents["/news.xml"] = stage.rss(site.base, [(n, f"Post {n}", n) for n in numbers])
        gateway.poll("news")
    gateway.feed("notes", method="PUT", body={"local": True, "title": "Notes"})
    for number in range(3):
        gateway.feed("notes", "/items", "POST", {"title": f"Note {number}", "content": "text"})
    gateway.feed("notes", "/webhook", "PUT", {"url": f"{site.base}/hook"})
    # An empty document is held.
    site.documents["/news.xml"] = stage.rss(site.base, [])
    gateway.poll("news")
    gateway.feed("gone", method="PUT", body={"url": f"{site.base}/news.xml"})
    gateway.ask("/api/v1/feeds/gone", "DELETE")
    ids = []
    for feed in ["news", "notes"]:
        ids += [item["sync_id"] for item in gateway.feed(feed, "/items")["items"]]
    return ids


def narrowed(document, ids):
    """The description with the feeds and items that are there, and without what never ends."""
    known = {"name": FEEDS, "id": [*ids[:2], *ids[-3:], "unknown"]}
    for path in document["paths"].values():
        for parameter in path.get("parameters", []):
            parameter["schema"] = {"type": "string", "enum": known[parameter["name"]]}
    for parameter in document["paths"]["/changes"]["get"]["parameters"]:
        if parameter.get("name") == "wait":
            parameter["schema"] = {"enum": [0]}
            parameter["required"] = True
    del document["paths"]["/events"]
    # A page with a form, which is for people and not described.
    del document["paths"]["/feeds/{name}/conflicts"]
    # A page has a form too: whatever is sent, it is answered with a refusal or a page.
    document["paths"]["/feeds/{name}/items/{id}"]["post"] = {
        "responses": {"default": {"description": "The form of a page."}}, "security": [],
    }
    return document


def main():
    options = stage.given(phases="examples,coverage,fuzzing")
    site = stage.Site()
    with tempfile.TemporaryDirectory() as folder:
        host = site.base.removeprefix("http://")
        configuration = CONFIGURATION.format(base=site.base, host=host)
        with stage.Gateway(options.bin, folder, configuration) as gateway:
            ids = fill(gateway, site)
            (pathlib.Path(folder) / "schemathesis.toml").write_text(SETTINGS)
            path = pathlib.Path(folder) / "openapi.json"
            described = json.loads(gateway.ask("/api/v1/openapi.json"))
            path.write_text(json.dumps(narrowed(described, ids)))
            run = subprocess.run(
                [
                    pathlib.Path(sys.executable).parent / "schemathesis", "run", path, "--url", gateway.base,
                    "--header", f"Authorization: Bearer {stage.TOKEN}", "--checks", ",".join(CHECKS),
                    "--phases", options.phases, "--max-time", str(MOST), "--seed", "1",
                    "--max-examples", "20",
                    "--request-timeout", "60", "--warnings", "off", "--no-color", "--continue-on-failure",
                    "--generation-database", "none",
                ],
                cwd=folder,
            )
            if gateway.process.poll() is not None:
                return stage.status(["the gateway ended"])
    return run.returncode


sys.exit(main())
