"""The container image, as far as it can be had without a registry: a root file system of the files that
deploy/image-files.sh gathers and of what the program needs from the base image. The program runs there by `chroot`, as
the user and with the settings of deploy/Dockerfile, and the image is not too large.

    packages_image.py --folder EMPTY_FOLDER

Needs the rights of root, and openssl. Exit status 1 with what is wrong.
"""

import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys

import stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The most that the image may have, in bytes.
LIMIT = 64_000_000
# What gcr.io/distroless/static-debian12 has: base-files, netbase, tzdata, media-types and the certificates of Debian 12
# have 2.0 MB without folders, and its project says "around 2 MiB".
BASE = 2_100_000
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")


def instructions():
    """The user, the working directory and the variables that deploy/Dockerfile sets in its last stage."""
    text = (ROOT / "deploy/Dockerfile").read_text().replace("\\\n", " ")
    text = text[text.rindex("\nFROM ") + 1:]
    variables = {}
    for line in re.findall(r"^ENV (.*)$", text, re.M):
        variables.update(re.findall(r"(\w+)=(\S+)", line))
    user, directory = (re.search(rf"^{name} (\S+)$", text, re.M).group(1) for name in ("USER", "WORKDIR"))
    return user, directory, variables


class Image:
    def __init__(self, folder, program):
        self.root = folder / "root"
        self.root.mkdir()
        subprocess.run([ROOT / "deploy/image-files.sh", program, self.root], check=True)
        files = [path for path in self.root.rglob("*") if path.is_file()]
        self.size = BASE + sum(path.stat().st_size for path in files)
        self.user, self.directory, self.variables = instructions()
        data = self.root / self.directory.lstrip("/")
        data.mkdir(parents=True)
        os.chown(data, *map(int, self.user.split(":")))

    def add_base(self, authority):
        """What the base image has, and what a container runtime puts there: names, certificates, a folder for
        temporary files. No shell, no /proc and no /dev."""
        for path, text in {
            "etc/passwd": "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
            "etc/nsswitch.conf": "hosts: files dns\n",
            "etc/hosts": "127.0.0.1 localhost known.test unknown.test\n",
            "etc/ssl/certs/ca-certificates.crt": CERTIFICATES.read_text() + authority.read_text(),
        }.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        (self.root / "tmp").mkdir()
        (self.root / "tmp").chmod(0o1777)

    def start(self, *arguments, **variables):
        command = [CHROOT, f"--userspec={self.user}", "--groups=", self.root, "/usr/local/bin/tidegate", *arguments]
        return subprocess.Popen(
            command, env={**self.variables, **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def run(self, *arguments, **variables):
        process = self.start(*arguments, **variables)
        output, log = process.communicate(timeout=stage.WAIT)
        if process.returncode != 0:
            sys.exit(f"tidegate {' '.join(arguments)}: status {process.returncode}, {log}")
        return output


def publish(folder, host):
    """A publisher over TLS whose certificate is of an authority of its own: that authority, and the feed's address."""
    folder.mkdir()
    stage.certify(folder, host)
    site = stage.Site()
    site.documents["/atom.xml"] = stage.atom(host, [stage.entry(1, "a post", "words")])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "host.pem", folder / "host.key")
    site.server.socket = context.wrap_socket(site.server.socket, server_side=True, do_handshake_on_connect=False)
    # A client that refuses the certificate goes away.
    site.server.handle_error = lambda *_: None
    return folder / "ca.pem", f"https://{host}:{site.server.server_address[1]}/atom.xml"


def served(image, known, unknown, faults):
    """A gateway polls both publishers, tells that it lives, stops when it is told to, and its state goes to another
    folder and back."""
    data = f"{image.directory}/data"
    (image.root / "tmp/tidegate.toml").write_text(
        f'[server]\nadmin_token = "{stage.TOKEN}"\n[polling]\nallow_private = true\n'
        f'[[feed]]\nname = "known"\nurl = "{known}"\n[[feed]]\nname = "unknown"\nurl = "{unknown}"\n'
    )
    settings = {
        "TIDEGATE_CONFIG": "/tmp/tidegate.toml", "TIDEGATE_SERVER_LISTEN": "0.0.0.0:0",
        "TIDEGATE_SERVER_PUBLIC_URL": "http://127.0.0.1:8080", "TIDEGATE_STORE_PATH": data,
    }
    image.run("check", **settings)
    gateway = image.start("serve", **settings)
    try:
        line = gateway.stdout.readline()
        port = re.fullmatch(r"listening on http://0\.0\.0\.0:(\d+)\n", line)
        if not port:
            gateway.terminate()
            sys.exit(f"{line!r}: {gateway.communicate(timeout=stage.WAIT)[1]}")
        image.run("health", "--listen", f"127.0.0.1:{port.group(1)}", **settings)
        client = stage.Client(f"http://127.0.0.1:{port.group(1)}", stage.TOKEN)
        for name, expected in [("known", None), ("unknown", "certificate")]:
            error = client.feed(name, "/poll", "POST")["error"]
            if (error is None) != (expected is None) or (expected and expected not in error):
                faults.append(f"polling the publisher with the {name} authority: {error}")
        if b"a post" not in client.ask("/feeds/known"):
            faults.append("the feed lacks its post")
    finally:
        gateway.terminate()
        _, log = gateway.communicate(timeout=stage.WAIT)
    if gateway.returncode != 0:
        faults.append(f"it ended with status {gateway.returncode}: {log}")
    state = f"/{image.directory.strip('/')}/state.tg"
    image.run("export", state, **settings)
    image.run("import", state, **{**settings, "TIDEGATE_STORE_PATH": f"{data}-again"})


def main():
    given, faults = stage.given("folder"), []
    image = Image(given.folder, given.bin)
    if image.size > LIMIT:
        faults.append(f"the image has {image.size:,} bytes, of {LIMIT:,} at most")
    authority, known = publish(given.folder / "known", "known.test")
    _, unknown = publish(given.folder / "unknown", "unknown.test")
    image.add_base(authority)
    image.run("--version")
    served(image, known, unknown, faults)
    print(f"the image has {image.size / 1e6:.1f} MB, and runs as {image.user}: {len(faults)} faults")
    sys.exit(stage.status(faults))


if __name__ == "__main__":
    main()
