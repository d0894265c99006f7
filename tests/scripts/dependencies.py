"""Checks `cargo metadata` on standard input against the deny.toml that is named: licences, sources,
versions that are not said, crates in two versions. What `cargo deny check` knows besides needs the network."""

import collections
import json
import re
import sys
import tomllib


def is_allowed(expression, allowed):
    """Whether a licence expression (SPDX; `/` is an old way to write OR) can be met. AND and OR bind as in Python."""
    words = []
    for word in re.findall(r"[()]|[^\s()/]+(?: WITH [^\s()/]+)?|/", expression):
        words.append({"(": "(", ")": ")", "AND": "and", "OR": "or", "/": "or"}.get(word, str(word in allowed)))
    return eval(" ".join(words))


def matches(package, skipped):
    """Whether `name@1` or `name@1.2` names a package."""
    name, _, version = skipped.partition("@")
    return package["name"] == name and f"{package['version']}.".startswith(f"{version}.")


rules = tomllib.load(open(sys.argv[1], "rb"))
allowed = set(rules["licenses"]["allow"])
registries = {f"registry+{url}" for url in rules["sources"]["allow-registry"]}
skips = [skip["crate"] for skip in rules["bans"]["skip"]]
assert is_allowed("(MIT OR GPL-3.0) AND ISC", {"MIT", "ISC"})
assert not is_allowed("(MIT OR ISC) AND GPL-3.0", {"MIT", "ISC"})
assert is_allowed("Unlicense/MIT", {"MIT"}) and not is_allowed("MIT WITH x", {"MIT"})

metadata = json.load(sys.stdin)
faults = []
versions = collections.defaultdict(list)
for package in metadata["packages"]:
    label = f"{package['name']} {package['version']}"
    if not is_allowed(package["license"] or "none", allowed):
        faults.append(f"{label} has the licence {package['license']}")
    if package["source"] is not None and package["source"] not in registries:
        faults.append(f"{label} comes from {package['source']}")
    if package["source"] is None:
        wild = [d["name"] for d in package["dependencies"] if d["req"] == "*" and d["source"]]
        faults += [f"{label} asks for any version of {name}" for name in wild]
    if not any(matches(package, skip) for skip in skips):
        versions[package["name"]].append(package["version"])
faults += [f"{name} stands in the versions {', '.join(found)}" for name, found in versions.items() if len(found) > 1]
unused = [s for s in skips if not any(matches(p, s) for p in metadata["packages"])]
faults += [f"{skip} is skipped and not there" for skip in unused]
for fault in faults:
    print(f"deny.toml: {fault}", file=sys.stderr)
print(f"{len(metadata['packages'])} packages checked")
sys.exit(1 if faults else 0)
