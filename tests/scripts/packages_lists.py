"""The compose files of deploy and deploy/kubernetes by their specifications, and what they say of the program: every setting
of the environment and every key is one that it knows, and the files that they name are there.

Needs compose_spec, kubernetes_validate and yaml. Exit status 1 with what is wrong.
"""

import json
import pathlib
import re
import subprocess
import sys

import compose_spec
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
# The variables that are no keys of the configuration.
OTHERS = {"TIDEGATE_ADMIN_TOKEN", "TIDEGATE_CONFIG", "TIDEGATE_LOG", "TIDEGATE_PUBLIC_URL"}


def settings():
    """The variables of the environment, out of the annotated file."""
    table, found = None, set(OTHERS)
    for line in (ROOT / "config/tidegate.toml").read_text().splitlines():
        head = re.fullmatch(r"\[(\w+)\]", line)
        key = re.match(r"(?:# )?(\w+) = ", line)
        if head:
            table = head.group(1)
        elif line.startswith("# [["):
            table = None
        elif key and table:
            found.add(f"TIDEGATE_{table}_{key.group(1)}".upper())
    return found


def composed(faults, known, path):
    """A compose file by its specification; what it has."""
    text = path.read_text()
    checked = compose_spec.PyCompose.from_yaml(text)
    for check in ("validate", "validate_configs", "validate_networks", "validate_volumes"):
        getattr(checked, check)()
    read = yaml.safe_load(text)
    for name, service in read["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith(".") and not (path.parent / source).exists():
                faults.append(f"{path}: {name} mounts {source}, which is not there")
            if not source.startswith(".") and source not in read["volumes"]:
                faults.append(f"{path}: {name} mounts {source}, which is no volume")
        own = [key for key in service.get("environment", {}) if key.startswith("TIDEGATE_")]
        faults += [f"{path}: {key} is no setting" for key in own if key not in known]
    return read


def compose(faults, known):
    composed(faults, known, DEPLOY / "cluster/compose.yaml")
    read = composed(faults, known, DEPLOY / "compose.yaml")
    for name, config in read["configs"].items():
        yaml.safe_load(config["content"])
    own = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    theirs = yaml.safe_load(read["configs"]["prometheus"]["content"])
    for scrape in (*own["scrape_configs"], *theirs["scrape_configs"]):
        del scrape["static_configs"]
    if own != theirs:
        faults.append("compose: its prometheus.yml differs from deploy/prometheus in more than the target")


def image(faults, known):
    text = (DEPLOY / "Dockerfile").read_text()
    faults += [
        f"Dockerfile: {name} is no setting" for name in set(re.findall(r"TIDEGATE_\w+", text)) - known
    ]


def kubernetes(faults, known, folder):
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        validate = [pathlib.Path(sys.executable).with_name("kubernetes-validate"), "--strict", path]
        done = subprocess.run(validate, capture_output=True, text=True)
        if done.returncode != 0:
            faults.append(f"{path.name}: {done.stdout}{done.stderr}")
        for part in yaml.safe_load_all(path.read_text()):
            for name, text in (part.get("data") or {}).items() if part["kind"] == "ConfigMap" else []:
                (folder / name).write_text(text)
            text = json.dumps(part)
            faults += [
                f"{path.name}: {name} is no setting"
                for name in set(re.findall(r"TIDEGATE_\w+", text)) - known
            ]


def main():
    faults, known = [], settings()
    if "TIDEGATE_STORE_MAX_SIZE" not in known or len(known) < 30:
        sys.exit(f"the settings could not be read: {sorted(known)}")
    folder = pathlib.Path(sys.argv[1])
    compose(faults, known)
    image(faults, known)
    kubernetes(faults, known, folder)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"compose, Dockerfile and Kubernetes: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
