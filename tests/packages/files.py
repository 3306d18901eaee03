#!/usr/bin/env python3
"""Holds compose's files and the Kubernetes manifests to their schemas, and to README's table of settings; reads the YAML
that stands on the pages of docs/.

    tests/packages/files.py        needs the packages of tests/packages/requirements.txt
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import compose_spec
import kubernetes_validate
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "scripts/packaging"
KUBERNETES = "1.33"
# What is read by the S3 client and by manifests themselves.
FOREIGN = {"POD_IP", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD", "MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", "S3_KEY", "S3_SECRET"}


def settings():
    """Every name that README's table explains."""
    table = (ROOT / "README.md").read_text().split("\n## Settings\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([A-Z][A-Z_0-9]+)`", table))


def filled(text):
    """Compose's variables with their defaults, or with a word where one has to be given."""
    return re.sub(r"(?<!\$)\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda match: match[1] or "given", text)


def compose(name):
    """One of compose's files: what it says, if it is one."""
    content = yaml.safe_load(filled((FILES / name).read_text()))
    parsed = compose_spec.PyCompose.from_json(json.dumps(content))
    parsed.validate()
    parsed.to_spec()
    for service in content["services"].values():
        for mount in service.get("volumes", []):
            assert mount.split(":")[0] in content["volumes"], f"{name}: no volume {mount}"
        for other in service.get("depends_on", {}):
            assert other in content["services"], f"{name}: no service {other}"
        if service["image"].startswith("localhost/weir:"):
            assert service["read_only"] and service["cap_drop"] == ["ALL"], f"{name}: more rights than needed"
            assert "no-new-privileges:true" in service["security_opt"], f"{name}: new privileges"
    return [set(service.get("environment", {})) for service in content["services"].values()]


def manifests():
    """The Kubernetes manifests, and the names of their settings."""
    for path in sorted(FILES.glob("kubernetes/*.yaml")):
        for content in yaml.safe_load_all(path.read_text()):
            if content["kind"] == "Kustomization":
                for resource in content["resources"]:
                    assert (path.parent / resource).is_file(), f"no {resource}"
                continue
            kubernetes_validate.validate(content, KUBERNETES, strict=True)
            if content["kind"] == "Deployment":
                template = content["spec"]["template"]
                for key, value in content["spec"]["selector"]["matchLabels"].items():
                    assert template["metadata"]["labels"][key] == value, f"{path.name}: selects nothing"
                for container in template["spec"]["containers"]:
                    yield {variable["name"] for variable in container.get("env", [])}
    for name in ("weir.env", "secret.env.example"):
        yield {line.split("=")[0] for line in (FILES / "kubernetes" / name).read_text().splitlines() if line}


def together():
    """What kubectl makes of the kustomization, with the settings of the example."""
    if not shutil.which("kubectl"):
        print("files: skipped: the kustomization, because kubectl is missing")
        return
    with tempfile.TemporaryDirectory() as folder:
        place = shutil.copytree(FILES / "kubernetes", Path(folder, "kubernetes"))
        shutil.copy(place / "secret.env.example", place / "secret.env")
        done = subprocess.run(["kubectl", "kustomize", str(place)], capture_output=True, text=True)
    assert done.returncode == 0, f"kubectl kustomize: {done.stderr}"
    made = list(yaml.safe_load_all(done.stdout))
    for content in made:
        kubernetes_validate.validate(content, KUBERNETES, strict=True)
    names = {(content["kind"], content["metadata"]["name"]) for content in made}
    for content in made:
        if content["kind"] == "Deployment":
            for container in content["spec"]["template"]["spec"]["containers"]:
                for source in container["envFrom"]:
                    wanted = ("ConfigMap", source["configMapRef"]["name"]) if "configMapRef" in source else ("Secret", source["secretRef"]["name"])
                    assert wanted in names, f"{content['metadata']['name']} wants {wanted}, which is not made"
    print(f"files: kubectl puts {len(made)} objects together")


def pages():
    """The blocks of YAML on the pages."""
    for page in sorted(ROOT.glob("docs/*.md")):
        for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.M | re.S):
            assert isinstance(yaml.safe_load(block), dict), f"{page.name}: {block}"


def main():
    """Exit code 1 when one is wrong."""
    pages()
    together()
    known = settings() | FOREIGN
    for names in [*compose("compose.yaml"), *compose("compose.many.yaml"), *manifests()]:
        if names - known:
            sys.exit(f"files: README's table does not know {sorted(names - known)}")
    json.loads((FILES / "container/seccomp.json").read_text())
    print("files: compose's files and the manifests are what their schemas want")


main()
