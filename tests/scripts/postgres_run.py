"""The store in PostgreSQL: a gateway that is killed, and that reaches the database by TLS; and several equal gateways, of
which one after the other is killed, stopped or ended, whose connections are cut at commits, and whose database is killed.
`--minutes` and `--steps` are of several gateways: `.ci/long gateways` takes all steps, again and again. See postgres.sh.
"""

import os
import pathlib
import re
import subprocess
import stage
import sys
import time
import urllib.error
from failing_disk_run import Watched, document
from gateways_run import FEW_STEPS, STEPS, gateways
from gateways_stage import ON_POSTGRES, Database
from stage import check

# How long a start may take where another gateway over the database was killed a moment ago, in seconds.
STARTS = 10


def address(work, url, schema):
    """A file with the address of the database, with a schema of its own."""
    file = work / f"{schema}.url"
    file.write_text(f"{url}?options=-csearch_path%3D{schema}\n")
    file.chmod(0o600)
    return file


def answer_queries(watched, psql, url):
    """The queries that operators find in the documents say which feeds fail, what changed today, who lives, and who polls."""
    page = pathlib.Path("docs/operators/postgres.md").read_text().partition("## Look into it")[2]
    failing, changed, living, polled = re.findall("^SELECT.*", page.split("```")[1], re.M)

    def ask(query):
        return stage.psql(psql, url, query)

    check(not ask(failing), f"feeds fail: {ask(failing)}")
    del watched.site.documents["/news.xml"]
    watched.gateway.feed("news", "/poll", "POST")
    watched.until("the database says which feed fails", 30, lambda: [row[:2] for row in ask(failing)] == [["news", "1"]])
    check({row[0] for row in ask(changed)} == {"news", "own"}, f"changed today: {ask(changed)}")
    live = [row[0] for row in ask(living) if row[1] == "t" and row[2] < "00:00:05"]
    check(len(live) == 1, f"these live: {ask(living)}")
    check(["news", *live] in ask(polled), f"these poll: {ask(polled)}")


def killed(program, work, file, psql):
    """A gateway is killed while somebody makes items and somebody reads, and started again at once."""
    folder = work / "first"
    folder.mkdir()
    watched = Watched(program, folder)
    watched.configuration = ON_POSTGRES.format(file)
    watched.begin()
    watched.work()
    watched.made_more(30)
    first = watched.get("/feeds/news")
    watched.stop_work()
    watched.gateway.kill()
    began = time.monotonic()
    watched.start()
    took = time.monotonic() - began
    check(took < STARTS, f"it started only {took:.0f} s after it was killed")
    watched.check_kept("after the gateway was killed")
    again = watched.get("/feeds/news")
    check(first[1] == again[1] and first[2]["etag"] == again[2]["etag"], "another document after it was killed")
    watched.site.documents["/news.xml"] = document(4)
    watched.gateway.poll("news")
    check("Post 4" in watched.get("/feeds/news")[1], "what was published meanwhile is missing")
    answer_queries(watched, psql, file.read_text().strip())
    watched.end()
    print(f"killed, started again after {took:.1f} s: {len(watched.acknowledged)} items acknowledged, all there")


def secured(program, work, url, database, psql):
    """TLS to the database: used where it is offered, demanded by sslmode=require, and always verified."""
    data, folder = work / "database/data", work / "secured"
    stage.certify(work, "localhost")
    key = data / "server.key"
    key.write_bytes((work / "host.key").read_bytes())
    key.chmod(0o600)
    os.chown(key, data.stat().st_uid, data.stat().st_gid)
    (data / "server.crt").write_bytes((work / "host.pem").read_bytes())

    def started(host, mode, believed):
        """What a gateway says that is started so and ends, or whether its connections are under TLS."""
        named = url.replace("@127.0.0.1:", f"@{host}:")
        mode = f"&sslmode={mode}" if mode else ""
        (work / "secured.url").write_text(f"{named}?options=-csearch_path%3Dsecured{mode}\n")
        environment = {**os.environ, **({"SSL_CERT_FILE": str(work / "ca.pem")} if believed else {})}
        process = subprocess.Popen(
            [program, "serve", "--config", folder / "tidegate.toml", "--data", folder / "data"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        line = process.stdout.readline()
        if line:
            question = "SELECT bool_and(ssl)::text FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) " \
                       "WHERE application_name = 'tidegate'"
            (found,), = stage.psql(psql, f"{url}?application_name=other", question)
            process.terminate()
        _, said = process.communicate(timeout=stage.WAIT)
        return found if line else said

    folder.mkdir()
    (folder / "tidegate.toml").write_text('[server]\nlisten = "127.0.0.1:0"\n' + ON_POSTGRES.format(work / "secured.url"))
    said = started("localhost", "require", True)
    check("TLS" in said, f"a database without TLS was used where that is demanded: {said}")
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("ssl = on\n")
    database.restart("fast")
    for host, mode, believed, wanted in [
        ("localhost", "require", True, "^true$"), ("localhost", None, True, "^true$"),
        ("localhost", "disable", False, "^false$"),
        ("localhost", "require", False, "certificate"), ("127.0.0.1", "require", True, "certificate"),
    ]:
        said = started(host, mode, believed)
        check(re.search(wanted, said), f"with {host}, {mode}, its certificate believed: {believed}: {said}")
    print("the database is reached by TLS, which is verified")


def main():
    given = stage.given(
        "url", "work", "restart", "psql", feeds=90, every=3, minutes=0, steps=None, parts=("killed", "several", "secured"),
    )
    work, program = given.work, given.bin
    named = given.steps.split(",") if given.steps else STEPS if given.minutes else FEW_STEPS
    steps = [STEPS[name] for name in named]
    database = Database(given.restart, work / "database/data")
    parts = {
        "killed": lambda file: killed(program, work, file, given.psql),
        "several": lambda file: gateways(program, work / "several", file.read_text().strip(), database, given.feeds,
                                         given.every, steps, given.minutes),
        "secured": lambda _: secured(program, work, given.url, database, given.psql),
    }
    # In this order, each with a schema of its own: from the last part on, the server offers TLS, with a certificate that
    # only that part believes.
    for schema in (part for part in parts if part in given.parts):
        stage.psql(given.psql, given.url, f"CREATE SCHEMA {schema}")
        parts[schema](address(work, given.url, schema))
    password = re.search(r":([^:@]+)@", given.url).group(1)
    for log in work.rglob("gateway.log"):
        check(password not in log.read_text(), f"{log} has the password of the database")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, urllib.error.HTTPError, subprocess.SubprocessError) as error:
        sys.exit(f"postgres: {error}")
