"""Three gateways on three PostgreSQL nodes under Patroni, whose leader is killed, handed over and paused.

    patroni.py --bin PATH/TO/tidegate [--mode strict|asynchronous] [--work FOLDER]

The leader loses its power while nothing goes to the standbys any more, hands over in order, loses its synchronous
standby, and is paused. All that is promised of several gateways must hold (gateways_run.py). With `asynchronous` the first
of these must take back changes, and the gateways must say so.

Needs Debian's patroni, etcd-server and postgresql.
"""

import pathlib
import signal
import sys
import tempfile
import time

import gateways_stage
import patroni_nodes
import stage
from gateways_run import Run, gateways
from gateways_stage import check, until

FEEDS, EVERY = 150, 3
# The longest that Patroni may take until another node leads: `ttl` of the example, its loop and a promotion, in seconds.
FAILOVER = 40
# How long the leader sends nothing to its standbys before it loses its power, and how long gateways may take to notice that
# the database went back; how long they are watched then, and what they say.
HELD, NOTICED, STOPPED = 3, 60, 20
GONE = "went back behind what this gateway has shown"
# Before this version of Patroni, a leader that wakes takes the lock from the one that took its place, and with it what
# that one acknowledged (https://github.com/patroni/patroni/pull/2689).
MAY_PAUSE = (3, 0, 3)


class Disturber:
    """Disturbs the database under several gateways; each step is called with their run."""

    def __init__(self, cluster):
        self.cluster = cluster

    def another(self, leader):
        until("another node leads", FAILOVER, lambda: self.cluster.leader(leader))

    def cut_power(self, leader):
        """Nothing goes to standbys any more, and soon the leader is gone: what it commits alone is lost."""
        patroni_nodes.send(leader.walsenders(), signal.SIGSTOP)
        time.sleep(HELD)
        leader.kill()

    def kill(self, run):
        leader = self.cluster.leader()
        with run.fault("the leader killed", is_outage=True):
            self.cut_power(leader)
            self.another(leader)
        leader.start()
        self.cluster.until_whole()

    def switchover(self, run):
        leader = self.cluster.leader()
        with run.fault("a switchover", is_outage=True):
            self.cluster.switchover()
            self.another(leader)
        self.cluster.until_whole()

    def standby(self, run):
        """Commits wait until another standby is synchronous."""
        leader, standby = self.cluster.leader(), self.cluster.synchronous_standby()
        with run.fault("the synchronous standby killed", is_outage=True):
            standby.kill()
            until("another standby is synchronous", FAILOVER,
                  lambda: self.cluster.synchronous_standby() not in (None, standby))
        check(self.cluster.leader() is leader, "another node leads, though only a standby was killed")
        standby.start()
        self.cluster.until_whole()

    def pause(self, run):
        """It still takes connections, and answers nothing; once it is awake it takes writes until its Patroni looks."""
        leader = self.cluster.leader()
        with run.fault("the leader paused", is_outage=True):
            leader.signal(signal.SIGSTOP)
            try:
                self.another(leader)
                run.fleet.until_ready("the old leader is paused", run.fleet.all)
            finally:
                leader.signal(signal.SIGCONT)
        self.cluster.until_whole()


def lose(run, disturber):
    """An asynchronous failover loses what was acknowledged: the gateways must say so, and none may go on."""
    run.begin()
    leader, fleet = disturber.cluster.leader(), run.fleet
    disturber.cut_power(leader)
    posts = [item.number for item in run.record.posts if item.status == 201]
    disturber.another(leader)
    ready = lambda: [fleet.get(which, "/readyz")[:2] for which in fleet.all]
    took = until("a gateway says that the database went back", NOTICED, lambda: any(GONE in said for _, said in ready()))
    until("the gateways stop", NOTICED, lambda: all(status == 503 for status, _ in ready()))
    end = time.monotonic() + STOPPED
    while time.monotonic() < end:
        check(all(status != 200 for status, _ in ready()), f"a gateway goes on, though the database went back: {ready()}")
    # Who starts them again has taken note of it.
    for which in fleet.all:
        fleet.gateways[which].kill()
    for which in fleet.all:
        fleet.start(which)
    fleet.until_ready("gateways that were started again go on", fleet.all)
    run.clients.items(0, gateways_stage.MADE)
    lost = set(posts) - set(run.record.listings[-1].numbers) - {item.number for item in run.record.redactions}
    check(lost, "nothing was lost: the synchronous runs prove nothing")
    print(f"the gateways said after {took:.1f} s that the database went back; {len(lost)} of {len(posts)} items are lost")


def run_all(given, work):
    cluster = patroni_nodes.Cluster(work / "nodes", given.mode)
    disturber = Disturber(cluster)
    try:
        cluster.start()
        if given.mode == "asynchronous":
            run = Run(given.bin, work / "gateways", cluster.url(), None, FEEDS, EVERY)
            try:
                lose(run, disturber)
            finally:
                run.close()
        else:
            # Commits wait for a standby, so that gateways start without a word about it.
            gateways_stage.ON_POSTGRES = gateways_stage.ON_POSTGRES.replace("require_standby = false\n", "")
            steps = [disturber.kill, disturber.switchover, disturber.standby]
            installed = patroni_nodes.version()
            if installed >= MAY_PAUSE:
                steps.append(disturber.pause)
            else:
                print(f"Patroni {'.'.join(map(str, installed))} loses data when a paused leader wakes: no pause", file=sys.stderr)
            gateways(given.bin, work / "gateways", cluster.url(), None, FEEDS, EVERY, steps)
    finally:
        cluster.end()
    for log in work.rglob("gateway.log"):
        check(cluster.passwords["tidegate"] not in log.read_text(), f"{log} has the password of the database")


def main():
    given = stage.given(mode="strict", work=None)
    stage.check(given.mode in patroni_nodes.MODES, f"the modes are {', '.join(patroni_nodes.MODES)}")
    if lacks := patroni_nodes.missing():
        sys.exit(f"patroni: not installed: {', '.join(lacks)}")
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        # The nodes run as another user.
        work.chmod(0o711)
        run_all(given, work)


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"patroni: {error}")
