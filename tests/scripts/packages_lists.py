"""The compose files and the Kubernetes manifests of deploy by their specifications, and what they say of the program: every
setting of the environment and every key is one that it knows, and the files that they name are there. The configurations
of the manifests are written to FOLDER/kubernetes and FOLDER/cluster, for the program to check.

Needs compose_spec, kubernetes_validate and yaml. Exit status 1 with what is wrong.
"""

import pathlib
import re
import subprocess
import sys

import compose_spec
import stage
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
# The variables that are no keys of the configuration.
OTHERS = {"TIDEGATE_ADMIN_TOKEN", "TIDEGATE_CONFIG", "TIDEGATE_LOG"}


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


def unknown_settings(known):
    """The variables of the program that the files of deploy name and that it does not know."""
    for path in (DEPLOY / "Dockerfile", *DEPLOY.rglob("*.yaml")):
        for name in sorted(set(re.findall(r"TIDEGATE_\w+", path.read_text())) - known):
            yield f"{path.relative_to(DEPLOY)}: {name} is no setting"


def composed(faults, path):
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
    return read


def compose(faults):
    composed(faults, DEPLOY / "cluster/compose.yaml")
    read = composed(faults, DEPLOY / "compose.yaml")
    for name, config in read["configs"].items():
        yaml.safe_load(config["content"])
    own = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    theirs = yaml.safe_load(read["configs"]["prometheus"]["content"])
    for scrape in (*own["scrape_configs"], *theirs["scrape_configs"]):
        del scrape["static_configs"]
    if own != theirs:
        faults.append("compose: its prometheus.yml differs from deploy/prometheus in more than the target")


def kubernetes(faults, folder):
    for path in (*sorted((DEPLOY / "kubernetes").glob("*.yaml")), DEPLOY / "cluster/kubernetes.yaml"):
        parts, own = manifest(path, faults), folder / path.parent.name
        own.mkdir()
        for part in parts:
            for name, text in (part.get("data") or {}).items() if part["kind"] == "ConfigMap" else []:
                (own / name).write_text(text)
        faults += [f"{path.relative_to(DEPLOY)}: {fault}" for fault in mismatches(parts)]
    manifest(DEPLOY / "cluster/move.yaml", faults)


def manifest(path, faults):
    """The parts of a manifest that Kubernetes takes."""
    validate = [pathlib.Path(sys.executable).with_name("kubernetes-validate"), "--strict", path]
    done = subprocess.run(validate, capture_output=True, text=True)
    if done.returncode != 0:
        faults.append(f"{path.relative_to(DEPLOY)}: {done.stdout}{done.stderr}")
    return list(yaml.safe_load_all(path.read_text()))


def mismatches(parts):
    """What the parts of a manifest say of each other and is not so."""
    kinds = {}
    for part in parts:
        kinds.setdefault(part["kind"], []).append(part)
    (config,), (stateful,) = kinds["ConfigMap"], kinds["StatefulSet"]
    pod, wanted = stateful["spec"]["template"], stateful["spec"]
    selectors = [wanted["selector"]["matchLabels"]]
    selectors += [part["spec"]["selector"] for part in kinds["Service"]]
    selectors += [part["spec"]["selector"]["matchLabels"] for part in kinds.get("PodDisruptionBudget", [])]
    affinity = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", []):
        selectors.append(term["podAffinityTerm"]["labelSelector"]["matchLabels"])
    for selector in selectors:
        if not selector.items() <= pod["metadata"]["labels"].items():
            yield f"{selector} does not select the pods"
    services = [part["metadata"]["name"] for part in kinds["Service"]]
    if wanted["serviceName"] not in services:
        yield f"there is no service {wanted['serviceName']}"
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"]: claim for claim in wanted.get("volumeClaimTemplates", [])}
    for volume in volumes.values():
        if volume.get("configMap", {"name": config["metadata"]["name"]})["name"] != config["metadata"]["name"]:
            yield f"there is no ConfigMap {volume['configMap']['name']}"
    (container,) = pod["spec"]["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    if set(mounts.values()) != set(volumes):
        yield f"{sorted(mounts.values())} are mounted of {sorted(volumes)}"
    ports = {port["name"] for port in container["ports"]}
    asked = [container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")]
    asked += [port["targetPort"] for part in kinds["Service"] for port in part["spec"]["ports"]]
    if set(asked) - ports:
        yield f"there is no port {set(asked) - ports}"
    # What the configuration names is below a mount, and the configuration itself is.
    text = "".join(config["data"].values())
    named = re.findall(r'"(/(?:run|var|etc)/[^"]+)"', text)
    named += [variable["value"] for variable in container["env"] if variable["name"] == "TIDEGATE_CONFIG"]
    for file in named:
        if not any(file.startswith(f"{mount}/") for mount in mounts):
            yield f"{file} is not mounted"
        place, _, name = file.rpartition("/")
        if "configMap" in volumes.get(mounts.get(place), {}) and name not in config["data"]:
            yield f"{file} is not in the ConfigMap"


def main():
    faults, known = [], settings()
    if "TIDEGATE_STORE_MAX_SIZE" not in known or len(known) < 30:
        sys.exit(f"the settings could not be read: {sorted(known)}")
    folder = pathlib.Path(sys.argv[1])
    faults += unknown_settings(known)
    compose(faults)
    kubernetes(faults, folder)
    print(f"compose, Dockerfile and Kubernetes: {len(faults)} faults")
    sys.exit(stage.status(faults))


if __name__ == "__main__":
    main()
