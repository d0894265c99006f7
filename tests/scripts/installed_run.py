"""Installs the gateway as the head of its unit says, and restores it as docs/operators/backup.md says, word for word, as
its own user. Needs root, and mount and network namespaces of its own (`unshare --mount --net`). What it writes to lies in
memory, in the place of the machine's own folders.
"""

import contextlib
import fcntl
import os
import pathlib
import pwd
import re
import socket
import struct
import subprocess
import sys
import tempfile

import stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path("/var/lib/tidegate")
CONFIG, UNIT = pathlib.Path("/etc/tidegate/tidegate.toml"), pathlib.Path("/etc/systemd/system/tidegate.service")
BASE = "http://127.0.0.1:8080"
# What does for systemctl here: it starts and stops what the unit says, as the user that it names, in the folder of
# its state.
SYSTEMCTL = r'''
import os, pathlib, pwd, re, shlex, signal, subprocess, sys, time
import urllib.request
unit = pathlib.Path("/etc/systemd/system/tidegate.service").read_text()
said = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
running = pathlib.Path("/srv/tidegate")
def stop():
    if running.exists():
        os.kill(int(running.read_text()), signal.SIGTERM)
        while pathlib.Path(f"/proc/{running.read_text()}").exists():
            time.sleep(0.05)
        running.unlink()
def start():
    user = pwd.getpwnam(said["User"])
    folder = pathlib.Path("/var/lib", said["StateDirectory"])
    if "DynamicUser" in said:
        sys.exit("the data folder would lie where the user does not come for an export or an import")
    folder.mkdir(exist_ok=True)
    os.chmod(folder, int(said["StateDirectoryMode"], 8))
    os.chown(folder, user.pw_uid, user.pw_gid)
    if "ExecStartPre" in said:
        sys.exit("systemd would try again for ever what that refuses: RestartPreventExitStatus is not for it")
    served = subprocess.Popen(
        shlex.split(said["ExecStart"]), user=user.pw_uid, group=user.pw_gid, extra_groups=[], umask=int(said["UMask"], 8),
        cwd=said["WorkingDirectory"], start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=open("/srv/tidegate.log", "ab"),
    )
    running.write_text(str(served.pid))
    for _ in range(600):
        if served.poll() is not None:
            running.unlink()
            sys.exit(f"it ended with status {served.returncode}")
        try:
            return urllib.request.urlopen("http://127.0.0.1:8080/readyz", timeout=5).read()
        except OSError:
            time.sleep(0.1)
    sys.exit("it does not answer")
match sys.argv[1:]:
    case ["stop", "tidegate"]:
        stop()
    case ["start", "tidegate"] | ["enable", "--now", "tidegate"]:
        start()
    case other:
        sys.exit(f"systemctl {other} is not known here")
'''


def mount(*arguments):
    subprocess.run(["mount", "-n", *arguments], check=True)


def in_memory(path, keeps=False):
    """Puts a folder in memory in the place of one, with what that has where it `keeps` it."""
    with tempfile.TemporaryDirectory() as new:
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", new)
        if keeps:
            subprocess.run(["cp", "-a", f"{path}/.", new], check=True)
        mount("--move", new, str(path))


def bring_up_loopback():
    with socket.socket() as any_socket:
        up = struct.pack("16sh", b"lo", 1)
        fcntl.ioctl(any_socket, 0x8914, up)  # SIOCSIFFLAGS, IFF_UP


def run(line):
    print(f"# {line}", flush=True)
    done = subprocess.run(["bash", "-c", f"set -eu\n{line}"], cwd=ROOT, stdout=sys.stdout, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        with contextlib.suppress(OSError):
            print(pathlib.Path("/srv/tidegate.log").read_text()[-3000:])
        sys.exit(f"{line}\nended with status {done.returncode}")


def ask(path, *more):
    return stage.Client(BASE, (DATA / "admin-token").read_text().strip()).ask(path, *more)


def install(program):
    """The lines in the head of the unit."""
    head = (ROOT / "deploy/tidegate.service").read_text().split("\n[Unit]")[0]
    lines = re.findall(r"^#   ((?:useradd|install|systemctl|runuser) .*)$", head, re.MULTILINE)
    assert len(lines) == 6, lines
    for line in lines:
        run(line.replace("target/release/tidegate", program))


def backup():
    """What the timer runs each night; the file."""
    text = (ROOT / "docs/operators/backup.md").read_text()
    folder = re.search(r"`(install -d [^`]*/var/backups/tidegate)`", text).group(1)
    run(folder)
    command = re.search(r"^ExecStart=(/bin/sh -c .*)$", text, re.MULTILINE).group(1)
    run("runuser -u tidegate -- " + command.replace("%%", "%").replace("$$", "$"))
    made = sorted(pathlib.Path("/var/backups/tidegate").glob("*.tg"))
    assert len(made) == 1, made
    return made[0].rename("/var/backups/tidegate/gateway.tg")


def restore():
    """The block of an installed gateway, as it is pasted."""
    text = (ROOT / "docs/operators/backup.md").read_text()
    blocks = re.findall(r"^```\w+\n(systemctl stop tidegate\n.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1, blocks
    run(blocks[0])


def check(token):
    """What was restored is served, is its user's, and has nothing beside it but the old state."""
    assert b"One of many" in ask("/feeds/diary"), "the item is not there"
    assert (DATA / "admin-token").read_text() == token, "the token is another one"
    owner = pwd.getpwnam("tidegate").pw_uid
    for path in [DATA, *DATA.rglob("*")]:
        if "lost+found" not in path.parts:
            assert path.stat().st_uid == owner, path
    assert not [path for path in DATA.iterdir() if path.name.startswith("compact.")]
    beside = {path for path in DATA.parent.glob("tidegate*")} - {DATA}
    assert beside and all((old / "db").exists() for old in beside), f"the old state is gone: {beside}"


def refuse_root():
    """What root wrote anew, the gateway could not read at its next start."""
    done = subprocess.run(["tidegate", "compact", "-c", CONFIG], capture_output=True, text=True)
    assert done.returncode == 2 and "belongs to the user" in done.stderr, done


def main():
    program = str(stage.given().bin)
    bring_up_loopback()
    in_memory("/etc", keeps=True)
    UNIT.parent.mkdir(parents=True, exist_ok=True)
    for folder in ["/var/lib", "/var/backups", "/usr/local/bin", "/srv"]:
        in_memory(folder)
    stub = pathlib.Path("/usr/local/bin/systemctl")
    stub.write_text(f"#!{sys.executable}\n{SYSTEMCTL}")
    stub.chmod(0o755)
    os.environ["PATH"] = f"/usr/local/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    for name in [name for name in os.environ if name.startswith("TIDEGATE_")]:
        del os.environ[name]
    try:
        install(program)
        token = (DATA / "admin-token").read_text()
        ask("/api/v1/feeds/diary", "PUT", {"local": True})
        ask("/api/v1/feeds/diary/items", "POST", {"title": "One of many"})
        backup()
        ask("/api/v1/feeds/diary?purge=true", "DELETE")
        restore()
        check(token)
        # Where the data folder is a mount point, with what a file system has at its root.
        run("systemctl stop tidegate")
        refuse_root()
        run(f"cp -a {DATA} /srv/kept")
        in_memory(DATA)
        (DATA / "lost+found").mkdir(mode=0o700)
        run(f"cp -a /srv/kept/. {DATA}/")
        run("systemctl start tidegate")
        ask("/api/v1/feeds/diary?purge=true", "DELETE")
        restore()
        check(token)
        assert DATA.is_mount(), "it is another folder"
    finally:
        subprocess.run([sys.executable, str(stub), "stop", "tidegate"], check=False)
    print("installed, and restored twice")


if __name__ == "__main__":
    main()
