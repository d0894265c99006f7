"""Three gateways on three PostgreSQL nodes under Patroni, whose leader is killed, handed over and paused.

    patroni.py --bin PATH/TO/tidegate [--mode strict|synchronous|asynchronous] [--feeds N] [--every N] [--rounds N]
               [--steps kill|switchover|standby|pause…] [--work FOLDER]

What `tests/scripts/postgres.sh` does to several gateways, and to the database: its leader loses its power while
nothing goes to the standbys any more, hands over in order, loses its synchronous standby, and is paused. Consumers must
see every change once, and every item that a gateway acknowledged must be there once. With `asynchronous` the first
of these must take back changes, and the gateways must say so. Prints how long each took.

Needs Debian's patroni, etcd-server and postgresql. Logs are kept in the folder of `--work`.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import stage
import sys
import tempfile
import threading
import time
import urllib.error

import gateways_stage
import patroni_nodes
from failing_disk_run import check
from gateways_run import gateways

# The longest that Patroni may take until another node leads: `ttl` of the example, its loop and a promotion.
FAILOVER = 40
# How long gateways may take until they write again, once there is a leader.
WRITTEN_WITHIN = 60
# How long the leader sends nothing to its standbys before it loses its power.
HELD = 3
# How long gateways may take to notice that the database went back, how long they are watched then, and what they say.
NOTICED, STOPPED = 60, 20
GONE = "acknowledged state is missing"
# How long a gateway waits for what it wrote on a connection that stays open (`WRITE_TIME` of src/store/postgres/writer.rs).
# The machine of a paused leader goes on acknowledging what it gets: so `UNACKNOWLEDGED_TIME` (8 s) of connect.rs does not
# end that wait, and feeds may be unpolled for as long, where it is the failover alone otherwise.
GIVEN_UP = 60
# What is done to the database, in this order.
STEPS = ("kill", "switchover", "standby", "pause")
# Before this version of Patroni, a leader that wakes takes the lock from the one that took its place, and with it what
# that one acknowledged (https://github.com/patroni/patroni/pull/2689).
MAY_PAUSE = (3, 0, 3)


class WentBack(Exception):
    """The database went back, as was expected: there is nothing more to watch."""


class Watch:
    """How long nothing was polled, acknowledged, told and answered, at the longest. Consumers may be behind: what they
    are told while there is no database was committed before."""

    def __init__(self, stage):
        self.counts = {
            "acknowledged": lambda: len(stage.maker.acknowledged),
            "polled": lambda: sum(list(stage.publisher.polls.values())),
            "told": lambda: len(stage.clients.told),
            "answered": lambda: stage.fleet.answers[200],
        }
        self.longest, self.ends = dict.fromkeys(self.counts, 0), threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def look(self):
        begun = time.monotonic()
        last = {what: (count(), begun) for what, count in self.counts.items()}
        while not self.ends.wait(0.02):
            now = time.monotonic()
            for what, count in self.counts.items():
                seen, at = count(), last[what][1]
                self.longest[what] = max(self.longest[what], now - at)
                if seen != last[what][0]:
                    last[what] = seen, now

    def shown(self):
        return ", ".join(f"nothing {what} for {seconds:.1f} s" for what, seconds in self.longest.items())


class Disturber:
    """Disturbs the database under a fleet of gateways."""

    def __init__(self, cluster, steps):
        self.cluster, self.steps, self.figures = cluster, steps, []

    def __call__(self, stage):
        """Called where the database is to be killed."""
        self.stage, fleet = stage, stage.fleet
        stage.check_pauses("before the database was disturbed")
        steps = {
            "kill": ("the leader killed", self.kill_leader),
            "switchover": ("a switchover", self.switch_over),
            "standby": ("the synchronous standby killed", self.kill_standby),
            "pause": ("the leader paused", self.pause_leader),
        }
        for step in self.steps:
            self.disturbed(fleet, *steps[step])

    def disturbed(self, fleet, what, disturb):
        """Disturbs, and waits until everything is as it was."""
        cluster, before = self.cluster, fleet.answers.copy()
        leader, fleet.is_shaken = cluster.leader(), True
        with Watch(self.stage) as watch:
            said, seconds = disturb(fleet, leader)
            self.until_written(fleet, what)
            fleet.until_shared(what)
        cluster.until_whole()
        fleet.is_shaken = False
        self.stage.goes_on(5)
        self.stage.check_pauses(what, seconds)
        self.stage.maker.check_kept(what)
        others = {status: fleet.answers[status] - before[status] for status in fleet.answers if status != 200}
        self.figures.append(f"{what}: {said}; {watch.shown()}; answers other than 200: {others}; "
                            f"{len(self.stage.clients.told)} epochs told, "
                            f"{len(self.stage.maker.acknowledged)} items made")
        print(f"  {self.figures[-1]}", file=sys.stderr, flush=True)

    def until_written(self, fleet, what):
        """Waits until a gateway acknowledges something that it wrote from now on."""
        acknowledged = self.stage.maker.acknowledged
        before = len(acknowledged)
        fleet.until(f"{what}: something is acknowledged", WRITTEN_WITHIN, lambda: len(acknowledged) > before + 1)

    def another(self, leader):
        """Waits until another node leads; for how long, in words and in seconds."""
        took = self.cluster.until("another node leads", FAILOVER, lambda: self.cluster.leader(leader))
        return f"another node led after {took:.1f} s", took

    def cut_power(self, leader):
        """Nothing goes to standbys any more, and soon the leader is gone: what it commits alone is lost."""
        patroni_nodes.send(leader.walsenders(), signal.SIGSTOP)
        time.sleep(HELD)
        leader.kill()

    def kill_leader(self, fleet, leader):
        self.cut_power(leader)
        said, took = self.another(leader)
        leader.start()
        return said, HELD + took

    def switch_over(self, fleet, leader):
        begun = time.monotonic()
        self.cluster.switchover()
        self.another(leader)
        took = time.monotonic() - begun
        return f"another node led after {took:.1f} s", took

    def kill_standby(self, fleet, leader):
        standby = self.cluster.synchronous_standby()
        standby.kill()
        took = self.cluster.until("another standby is synchronous", FAILOVER,
                                  lambda: self.cluster.synchronous_standby() not in (None, standby))
        check(self.cluster.leader() is leader, "another node leads, though only a standby was killed")
        standby.start()
        return f"another standby was synchronous after {took:.1f} s", took

    def pause_leader(self, fleet, leader):
        """It still takes connections, and answers nothing; once it is awake it takes writes until its Patroni looks."""
        leader.signal(signal.SIGSTOP)
        try:
            said, took = self.another(leader)
            self.until_written(fleet, "the old leader is paused")
            fleet.until_shared("the old leader is paused")
        finally:
            leader.signal(signal.SIGCONT)
        return said, max(took, GIVEN_UP)


class TakenBack(Disturber):
    """An asynchronous failover loses what was acknowledged: the gateways must say so, and none may go on."""

    def __call__(self, stage):
        self.stage, fleet = stage, stage.fleet
        fleet.is_shaken = True
        self.stage.goes_on(5)
        leader = self.cluster.leader()
        self.cut_power(leader)
        acknowledged = list(stage.maker.acknowledged)
        self.figures.append(self.another(leader)[0])

        begun, said = time.monotonic(), {}

        def answers():
            """What each gateway answers now; what it said first when is noted."""
            now = [fleet.get(which, "/readyz", 5)[:2] for which in (0, 1, 2)]
            for which, (status, text) in enumerate(now):
                detail = json.loads(text)["detail"] if status == 503 else text.strip()
                said.setdefault((which, status, re.sub(r"\d+ seconds", "N seconds", detail)), time.monotonic() - begun)
            return now

        fleet.until("a gateway says that the database went back", NOTICED,
                    lambda: any(GONE in text for _, text in answers()))
        fleet.until("the gateways stop", NOTICED, lambda: all(status == 503 for status, _ in answers()))
        until, goes_on = time.monotonic() + STOPPED, []
        while time.monotonic() < until:
            goes_on += [(which, *answer) for which, answer in enumerate(answers()) if answer[0] == 200]
            time.sleep(0.5)
        check(not goes_on, f"a gateway goes on, though the database went back: {goes_on[:3]}")
        for (which, status, text), at in said.items():
            self.figures.append(f"  gateway {which} after {at:.1f} s: {status} {text}")
        # Who started them again has taken note of it.
        for which in (0, 1, 2):
            fleet.gateways[which].process.kill()
            fleet.gateways[which].process.wait()
        for which in (0, 1, 2):
            fleet.start(which)
        fleet.until("gateways that were started again go on", WRITTEN_WITHIN, lambda: fleet.writer() is not None)
        lost = set(acknowledged) - set(stage.maker.titles(fleet.writer()))
        check(lost, "nothing was lost: the synchronous runs prove nothing")
        self.figures.append(f"{len(lost)} of {len(acknowledged)} acknowledged items are lost")
        raise WentBack


def run(given, work):
    cluster = patroni_nodes.Cluster(work / "nodes", given.mode)
    disturber = (TakenBack if given.mode == "asynchronous" else Disturber)(cluster, given.steps)
    try:
        cluster.start()
        file = work / "database.url"
        file.write_text(cluster.url() + "\n")
        file.chmod(0o600)
        if given.mode != "asynchronous":
            # Commits wait for a standby, so that the gateways start without a word about it.
            gateways_stage.ON_POSTGRES = gateways_stage.ON_POSTGRES.replace("require_standby = false\n", "")
        gateways(given.bin, work, file, disturber, given.feeds, given.every, given.rounds)
    except WentBack:
        print("\n".join(disturber.figures))
        return
    finally:
        cluster.end()
    for log in work.glob("gateway-*/gateway.log"):
        check(cluster.passwords["tidegate"] not in log.read_text(), f"{log} has the password of the database")
    print("\n".join(disturber.figures))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True, type=os.path.abspath)
    arguments.add_argument("--mode", choices=patroni_nodes.MODES, default="strict")
    for name, usual in (("feeds", 150), ("every", 3), ("rounds", 1)):
        arguments.add_argument(f"--{name}", type=int, default=usual)
    arguments.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    arguments.add_argument("--work", type=pathlib.Path)
    given = arguments.parse_args()
    if lacks := patroni_nodes.missing():
        sys.exit(f"patroni: not installed: {', '.join(lacks)}")
    found = patroni_nodes.version()
    if found < MAY_PAUSE and "pause" in given.steps:
        print(f"Patroni {'.'.join(map(str, found))} loses data when a paused leader wakes: no pause", file=sys.stderr)
        given.steps = [step for step in given.steps if step != "pause"]
    with tempfile.TemporaryDirectory() as temporary:
        work = (given.work or pathlib.Path(temporary)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        # The nodes run as another user.
        work.chmod(0o711)
        run(given, work)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, urllib.error.HTTPError) as error:
        sys.exit(f"patroni: {error}")
