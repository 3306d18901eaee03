"""The software bill of materials of the two programs, as CycloneDX 1.5 JSON on standard output.

    sbom.py VERSION TARGET

Read from `cargo metadata` for one target, so that it lists what is linked or run during the build and nothing else:
no dependencies of tests, none of other systems. The digests are those of Cargo.lock. The packages of the code runners
come from their own lists in worker/boxed.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("weir-api", "weir-worker")


def cargo_components(target):
    """Every crate of the programs with its digest, and who needs whom."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    digests = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}

    def needs(node):
        wanted = (d["pkg"] for d in node["deps"] if any(kind["kind"] != "dev" for kind in d["dep_kinds"]))
        return sorted(set(wanted))

    reached, waiting = set(), [i for i, p in packages.items() if p["name"] in PROGRAMS and p["source"] is None]
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting.extend(needs(nodes[here]))

    def ref(package_id):
        return f"pkg:cargo/{packages[package_id]['name']}@{packages[package_id]['version']}"

    components, edges = [], []
    for package_id in sorted(reached, key=ref):
        package = packages[package_id]
        component = {
            "type": "library",
            "bom-ref": ref(package_id),
            "name": package["name"],
            "version": package["version"],
            "purl": ref(package_id),
        }
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if package["repository"]:
            component["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        digest = digests.get((package["name"], package["version"]))
        if digest:
            component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        components.append(component)
        edges.append({"ref": ref(package_id), "dependsOn": [ref(other) for other in needs(nodes[package_id])]})
    return components, edges


def runner_components():
    """What sessions run code with: from npm's lock and pip's list."""
    components = []
    lock = json.loads((ROOT / "worker/boxed/package-lock.json").read_text())
    for path, package in sorted(lock["packages"].items()):
        if path:
            name = path.removeprefix("node_modules/")
            purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
            component = {"type": "library", "bom-ref": purl, "name": name, "version": package["version"], "purl": purl}
            if isinstance(package.get("license"), str):
                component["licenses"] = [{"expression": package["license"]}]
            components.append(component)
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "worker/boxed/requirements.txt").read_text(), re.M):
        purl = f"pkg:pypi/{name.lower()}@{version}"
        components.append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl})
    return components


def main(version, target):
    """Prints the bill; the same tree at the same time of its source gives the same bytes."""
    components, edges = cargo_components(target)
    components += runner_components()
    made = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": f"weir@{version}",
                "name": "weir",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": edges,
    }
    body["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True)).urn
    json.dump(body, sys.stdout, indent=1, sort_keys=True)
    print()


main(*sys.argv[1:])
