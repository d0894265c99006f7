"""Runs the commands of README.md and docs/ as they are written there: each must succeed.

Every line of a `sh` block runs, in order, in one shell for each document, in a folder of its own, and so does every
line of a `text` block of commands. Lines that begin with `cargo` or start a gateway are left out; what would never end is
ended after seconds. Addresses on port 8080 are those of a demonstration or of a gateway on a free port. What an installed
gateway is told runs in installed_run.py. Needs curl.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Which documents are read beside which gateway: the demonstration, one that was started with nothing
# else, and none.
BY_DEMO = ["README.md", "docs/readers.md", "docs/subscribers.md"]
BY_SERVE = ["docs/api.md", "docs/operators/install.md", "docs/operators/metrics.md", "docs/operators/private.md"]
BY_NONE = ["docs/operators/backup.md", "docs/operators/configuration.md"]
# Its commands are of all three kinds.
COMMANDS = "docs/cli.md"
# What the lines of `text` blocks begin with that are commands.
WORDS = r"(cargo|cd|certbot|curl|docker|find|install|kubectl|mv|nginx|pg_dump|psql|runuser|sudo|systemctl|tidegate|umask) "
# Those that run elsewhere or nowhere: other programs, an installed gateway, a database (postgres.sh), sites that are made
# up (origin.sh, nginx.sh), what is in conflict or held (forms.sh), and what is answered.
ELSEWHERE = (
    r"(cargo|certbot|docker|kubectl|pg_dump|psql|sudo) |(cd|find|install|runuser|systemctl) .*tidegate|systemctl .*nginx"
    r"|curl .*https://[a-z.]*(blog|gw|feeds)\.example|curl .*/(hold|delete)$|umask .*feeds\.example|.* && nginx"
    r"|tidegate (item resolve|feed hold|reincarnate -c) |tidegate (export|import) .*(--gateway|--config|copy\.tg)|[{]"
)
# What example.org publishes.
FEED = stage.atom("News", [stage.entry(1, "One", "One.")])
# How often the publisher of the demonstration changes, and how long the documents' pauses are then.
EVERY, PAUSE = "1s", 4
# How long a document may take, and the demonstration until it has what the documents speak of.
DOCUMENT_WAIT, DEMO_WAIT = 180, 60

# curl: errors of HTTP are errors, and a failure in the middle of a pipe counts too. Its own 23 is a
# reader that has read enough, 28 the end of a time that the document sets.
PRELUDE = r"""
set -eu
export HOME=$PWD
mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions
fpath=([1]="$HOME") # as zsh counts
tidegate() { "$TIDEGATE" "$@"; }
curl() {
    local status=0
    command curl -sS --fail-with-body "$@" || status=$?
    case $status in 0 | 23 | 28) ;; *) echo "$status: curl $*" >>failed ;; esac
    return "$status"
}
"""


def lines(document):
    """The commands of a document, with what continues a line."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = []
    for kind, block in re.findall(r"^ *```(sh|text)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        of_block = [line.strip() for line in block.replace("\\\n", " ").splitlines() if line.strip()]
        if kind == "sh" or re.match(WORDS, of_block[0]):
            found += of_block
    return found


# Of which kind a command is.
is_elsewhere = re.compile(ELSEWHERE).match
is_server = re.compile(r"cargo |tidegate (serve|demo)\b").match
is_offline = re.compile(
    r"(?:TIDEGATE_\w+=\S+ )?tidegate (check|replay|merge|export|compact|import|reincarnate|completions|man)\b"
).match
is_client = re.compile(r"tidegate (feed|item|list|reader) ").match


def typed(line):
    """The line with its pauses cut, with an end, and with a check of what it assigns."""
    line = re.sub(r"^sleep \d+$", f"sleep {PAUSE}", line)
    line = re.sub(r"--max-time \d+", f"--max-time {PAUSE}", line)
    if line.startswith("curl -N ") or re.match(r"tidegate sup (?!--once)", line):
        endless = re.sub(r"^tidegate", '"$TIDEGATE"', line)
        return f"timeout {PAUSE} {endless} || [ $? -eq 124 ]"
    assigned = re.match(r"([A-Za-z]+)=", line)
    return f'{line}\n: "${{{assigned.group(1)}:?is empty}}"' if assigned else line


def run(program, document, wanted, folder, base, upstream=None):
    """Runs the lines of a document that are wanted; how many there were. `upstream`: what stands in for
    https://example.org."""
    chosen = [line for line in lines(document) if wanted(line) and not is_elsewhere(line)]
    port = base.rsplit(":", 1)[-1] or "0"
    script = PRELUDE + "set -v\n" + "\n".join(typed(IDS.get(line, line)) for line in chosen)
    script = script.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    if upstream:
        script = script.replace("https://example.org/", f"{upstream}/")
    script += "\n[ ! -e failed ] || { cat failed; exit 1; }\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env={**os.environ, "TIDEGATE": program, "TIDEGATE_URL": base},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DOCUMENT_WAIT,
    )
    if done.returncode != 0:
        said = done.stdout.decode("utf-8", "replace")[-4000:]
        sys.exit(f"{said}\n{document}: a command ended with status {done.returncode}")
    print(f"{document}: {len(chosen)} lines")
    return len(chosen)


def wait_for(base, sign):
    """Until the demonstration has come to what the documents speak of."""
    if not stage.until(lambda: sign in stage.get(f"{base}/feeds/lighthouse")[1], DEMO_WAIT, 0.5):
        sys.exit(f"the demonstration's reader view has no {sign!r}")


def record(base, folder):
    """The files that the examples of the command line name."""
    view, plain, listed = (
        stage.get(base + path)[1] for path in ("/feeds/lighthouse/sync", "/feeds/lighthouse", "/subscriptions.opml")
    )
    foreign = re.sub(r"<sx:s.*?(</sx:s\w+>|/>)", "", listed).replace("127.0.0.1", "feeds.example")
    for name, text in [
        ("local.xml", view), ("incoming.xml", view), ("local.opml", listed), ("incoming.opml", listed),
        ("subscriptions.opml", foreign), ("monday.xml", plain), ("tuesday.xml", plain),
        ("recorded/news/a.xml", plain), ("recorded/monday/a.xml", plain),
    ]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# Lines that name items, with the ids of those that are there.
IDS = {}


def publish(gateway, site, folder):
    """The feeds and items that the commands name, and the files."""
    for numbers in ["321", "432"]:
        entries = (stage.entry(n, n, n, f"2026-01-0{n}T00:00:00Z") for n in numbers)
        site.documents["/news.xml"] = stage.atom("News", entries)
        if numbers == "321":
            gateway.feed("news", "", "PUT", {"url": f"{site.base}/news.xml"})
        gateway.poll("news")
    gateway.feed("diary", "", "PUT", {"local": True})
    made = gateway.feed("diary", "/items", "POST", {"title": "One"})["sync_id"]
    gateway.ask(f"/api/v1/feeds/diary/items/{made}", "DELETE")
    ids = lambda view: re.findall(r'<sx:sync[^>]* id="([^"]+)"', stage.get(f"{gateway.base}/feeds/news{view}")[1])
    current = ids("")
    gone = [one for one in ids("/complete") if one not in current]
    named = {"show": current[0], "redact": current[1], "delete": gone[0], "restore": made}
    for line in lines(COMMANDS):
        if "…" in line and not is_elsewhere(line):
            IDS[line] = re.sub(r"\S+…", named[line.split()[2]], line)
    (folder / "hook-secret").write_text("a secret of enough letters\n")


def main():
    program = str(stage.given().bin)
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(ROOT / "config", folder / "config")
        online = lambda line: not (is_server(line) or is_offline(line) or is_client(line))
        demo = [program, "demo", "--listen", "127.0.0.1:0", "--every", EVERY]
        begun = lambda command, where: stage.Program(command, where, where / "tidegate-data", where / "log")
        with begun(demo, folder) as gateway:
            wait_for(gateway.base, 'updates="2"')
            wait_for(gateway.base, 'rel="prev-archive"')
            for document in [*BY_DEMO, COMMANDS]:
                count += run(program, document, online, folder, gateway.base)
            record(gateway.base, folder)
        # Not the folder's own `config`: the examples begin with a gateway without any.
        alone = folder / "alone"
        alone.mkdir()
        with begun([program, "serve", "--listen", "127.0.0.1:0"], alone) as gateway:
            for document in BY_SERVE:
                count += run(program, document, online, alone, gateway.base)
        site = stage.Site()
        site.documents["/atom.xml"] = FEED
        allowing = [program, "serve", "--listen", "127.0.0.1:0", "--allow-private"]
        with begun(allowing, alone) as gateway:
            publish(gateway, site, alone)
            shutil.copy(folder / "subscriptions.opml", alone)
            gateway_of = lambda document: run(program, document, is_client, alone, gateway.base, site.base)
            count += sum(gateway_of(document) for document in [COMMANDS, "README.md"])
            # A backup is made while it runs, too.
            online_copy = [program, "export", "online.tg", "--gateway", gateway.base]
            subprocess.run(online_copy, cwd=alone, check=True, stdout=subprocess.DEVNULL)
        for document in [*BY_NONE, COMMANDS, "README.md", "docs/operators/install.md"]:
            # What a document exports, moves and imports is not the next one's.
            for left in ["tidegate-data", "another-folder"]:
                shutil.rmtree(folder / left, ignore_errors=True)
            (folder / "gateway.tg").unlink(missing_ok=True)
            shutil.copytree(alone / "tidegate-data", folder / "tidegate-data")
            count += run(program, document, is_offline, folder, "")
    documents = {str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")} | {"README.md"}
    unread = {name: lines(name) for name in documents - {*BY_DEMO, *BY_SERVE, *BY_NONE, COMMANDS}}
    unread = [f"{name}: {line}" for name in sorted(unread) for line in unread[name] if not is_elsewhere(line)]
    if unread:
        sys.exit("nobody runs these commands:\n" + "\n".join(unread))
    print(f"{count} lines of the documents ran")


if __name__ == "__main__":
    main()
