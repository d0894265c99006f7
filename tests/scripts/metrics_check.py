"""/metrics, the alerts and the dashboard in deploy/, by promtool and against each other and their documentation: every
metric that an alert or a panel names is one that a running gateway tells, and every alert fires where it must and not
elsewhere. Needs promtool (in CI it is installed, elsewhere the script passes without)."""

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error

import stage

RULES = pathlib.Path("deploy/prometheus/tidegate.rules.yml")
TESTS = pathlib.Path("deploy/prometheus/tidegate.test.yml")
DASHBOARD = pathlib.Path("deploy/grafana/tidegate.json")
DOCUMENT = pathlib.Path("docs/operators/metrics.md")
# What Prometheus itself adds.
BY_PROMETHEUS = {"up"}
# The word is a metric's name; no function or label begins so.
NAME = re.compile(r"\b(?:tidegate|process)_[a-z0-9_]+|\bup\b")

CONFIGURATION = """
[polling]
allow_private = true
[[feed]]
name = "alpha"
url = "{base}/alpha.xml"
[[feed]]
name = "omega"
url = "{base}/omega.xml"
[[origin]]
name = "site"
url = "{base}/site/"
at = "/site/"
"""


def told(metrics):
    """The names of all samples, and those of their families."""
    return (set(re.findall(what, metrics, re.M)) for what in (r"^([a-zA-Z0-9_]+)", r"^# TYPE (\S+)"))


def of_running_gateway(program, promtool):
    """What a gateway tells whose one feed is read and the other fails, and what is wrong with it."""
    faults, site = [], stage.Site()
    site.documents["/alpha.xml"] = stage.rss(site.base, [(1, "One", "")])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        stage.certify(folder, "localhost")
        files = f'tls_cert_file = "{folder / "host.pem"}"\ntls_key_file = "{folder / "host.key"}"'
        with stage.Gateway(program, folder, CONFIGURATION.format(base=site.base), server=files) as gateway:
            gateway.poll("alpha")
            gateway.feed("omega", "/poll", "POST")
            with contextlib.suppress(urllib.error.HTTPError):
                gateway.ask("/site/%2e%2e/")
            # The files of the store are counted some seconds after the start.
            stage.until(lambda: gateway.figures().get("tidegate_store_size_bytes"))
            metrics = gateway.ask("/metrics").decode()
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=metrics, capture_output=True, text=True, timeout=stage.WAIT
    )
    said = (checked.stdout + checked.stderr).strip()
    if checked.returncode or said:
        faults.append(f"promtool check metrics: {said}")
    return metrics, faults


def anchors(document):
    """The anchors of a document's headings, as code hosts make them."""
    heads = re.findall(r"^#+ (.+)$", document, re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in heads}


def of_alerts(names, document):
    rules, tests = RULES.read_text(), TESTS.read_text()
    for part in re.split(r"^ *- alert: ", rules, flags=re.MULTILINE)[1:]:
        alert = part.split("\n", 1)[0]
        expression = part.split("expr:", 1)[1].split("labels:", 1)[0]
        for name in sorted(set(NAME.findall(expression)) - names - BY_PROMETHEUS):
            yield f"{RULES}: {alert}: there is no metric {name}"
        for wanted in ["severity: ", "summary: ", f"runbook: {DOCUMENT}#"]:
            if wanted not in part:
                yield f"{RULES}: {alert} has no {wanted}"
        anchor = re.search(r"runbook: \S+#(\S+)", part)
        if anchor and anchor[1] not in anchors(document):
            yield f"{DOCUMENT} has no heading for {alert}"
        tried = re.findall(rf"alertname: {alert}\n.*\n *exp_alerts:(.*)\n", tests)
        if not any("[]" in it for it in tried) or not any(it.strip() == "" for it in tried):
            yield f"{TESTS}: {alert} is not shown to fire and not to fire"


def of_dashboard(names):
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        title, targets = panel.get("title"), panel.get("targets", [])
        if panel["type"] == "row":
            continue
        if not title or not targets or not panel.get("description"):
            yield f"{DASHBOARD}: {title} asks for nothing, or does not say what it shows"
        if any(part.get("datasource") != source for part in [panel, *targets]):
            yield f"{DASHBOARD}: {title} does not use the variable of the data source"
        for target in targets:
            asked = set(NAME.findall(target["expr"]))
            for name in sorted(asked - names) or ([] if asked else ["at all"]):
                yield f"{DASHBOARD}: {title}: there is no metric {name}"


def well_formed(promtool):
    """Whether promtool reads every question of the dashboard: as rules, with Grafana's variables filled in."""
    board = json.loads(DASHBOARD.read_text())
    asked = [it["expr"] for panel in board["panels"] for it in panel.get("targets", [])]
    filled = [it.replace("$__rate_interval", "1m").replace("$instance", ".*") for it in asked]
    rules = [{"record": f"panel:{number}", "expr": expr} for number, expr in enumerate(filled)]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        # JSON is YAML.
        json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        command = [promtool, "check", "rules", "--lint=none", file.name]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=stage.WAIT)
    if checked.returncode:
        yield f"{DASHBOARD}: promtool check rules: {checked.stdout}{checked.stderr}"


def of_document(families, document):
    """Every metric has its line in the documentation, and nothing stands there that is not told."""
    written = set(re.findall(r"^\| `([a-z_]+)[`{]", document, re.MULTILINE))
    # A hub of one's own is counted where there is one; counters without a sample yet have their family.
    for name in sorted(families - written):
        yield f"{DOCUMENT} does not explain {name}"
    for name in sorted(written - families):
        if not name.startswith("tidegate_websub_"):
            yield f"{DOCUMENT} explains {name}, which is not told"


def main():
    given, promtool, document = stage.given(), stage.program("promtool"), DOCUMENT.read_text()
    for what in (["check", "config", "deploy/prometheus/prometheus.yml"], ["test", "rules", TESTS]):
        subprocess.run([promtool, *what], check=True)
    metrics, faults = of_running_gateway(given.bin, promtool)
    samples, families = told(metrics)
    names = samples | families
    faults += of_alerts(names, document)
    faults += of_dashboard(names)
    faults += well_formed(promtool)
    faults += of_document(families, document)
    alerts = RULES.read_text().count("- alert:")
    if not faults:
        print(f"{len(names)} names on /metrics; {alerts} alerts and the dashboard use what is there")
    return stage.status(faults)


if __name__ == "__main__":
    sys.exit(main())
