#!/usr/bin/env python3
"""Whether a release is what it says it is: checksums, signature, bill of materials, and the same bytes from the same tree.

    tests/packages/release.py                       packages of two small programs, made, signed and changed for the test
    tests/packages/release.py FOLDER [WEIR.pub]     a release that is there

Checksums and signature are checked by the very commands of docs/packages.md. Needs the packages of
tests/packages/requirements.txt; without minisign the signature is left out, with a word.
"""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib import resources
from pathlib import Path

import jsonschema
import referencing

ROOT = Path(__file__).resolve().parents[2]


def check(condition, words):
    """A claim; the first that does not hold ends the test."""
    if not condition:
        sys.exit(f"release: FAILED: {words}")
    print(f"release: ok: {words}")


def commands():
    """What docs/packages.md tells whoever wants to check a release: checksums, signature."""
    page = (ROOT / "docs/packages.md").read_text()
    block = page.split("\n## Checking a release\n")[1].split("\n```sh\n")[1].split("\n```")[0]
    checksums, signature = block.splitlines()
    return checksums, signature


def holds(command, folder):
    """Whether one of them is content."""
    return subprocess.run(["bash", "-euc", command], cwd=folder, capture_output=True).returncode == 0


def bill(folder):
    """The bill of materials: CycloneDX by its schema, with the crates and digests of Cargo.lock."""
    path = next(folder.glob("*.cdx.json"))
    content = json.loads(path.read_text())
    schemas = {}
    for schema in resources.files("cyclonedx.schema._res").iterdir():
        if schema.name.endswith(".schema.json"):
            schemas[schema.name] = json.loads(schema.read_text())
    # They name each other by the names of their files.
    known = [(name, referencing.Resource.from_contents(text)) for name, text in schemas.items()]
    known += [(f"http://cyclonedx.org/schema/{name}", resource) for name, resource in known]
    schema = schemas["bom-1.5.SNAPSHOT.schema.json"]
    validator = jsonschema.validators.validator_for(schema)(schema, registry=referencing.Registry().with_resources(known))
    complaints = [f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in validator.iter_errors(content)]
    check(not complaints, f"{path.name} is CycloneDX 1.5 {complaints[:3]}")

    lock = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    crates = [one for one in content["components"] if one["purl"].startswith("pkg:cargo/")]
    wrong = [one["purl"] for one in crates
             if lock.get((one["name"], one["version"]), "") != (one["hashes"][0]["content"] if "hashes" in one else None)]
    names = {one["name"] for one in content["components"]}
    check(not wrong and {"weir-api", "weir-worker", "sqlx-core", "rustls", "playwright", "agent-browser"} <= names,
          f"its {len(crates)} crates have the digests of Cargo.lock {wrong[:3]}")


def examine(folder, public_key):
    """A release that is there."""
    checksums, signature = commands()
    check(holds(checksums, folder), checksums)
    listed = set(re.findall(r"^[0-9a-f]{64}  (.+)$", (folder / "SHA256SUMS").read_text(), re.M))
    there = {path.name for path in folder.iterdir() if not path.name.startswith("SHA256SUMS") and path.name != "weir.pub"}
    check(listed == there, f"the list names each of the {len(there)} files")
    if public_key:
        check(holds(signature.replace("weir.pub", str(public_key)), folder), signature.split("#")[0].strip())
    bill(folder)


def make(place, name, key):
    """Packages of the programs that lie below `place`, into a folder of this name."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(place), "WEIR_SIGN_KEY": str(key or "")}
    command = ["scripts/package", "deb", "archive", "--no-build", "--no-runners", "--out", str(place / name)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"release: FAILED: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return place / name


def refuses(folder, public_key):
    """What was changed after it was signed is found."""
    checksums, signature = commands()
    package = next(folder.glob("*.deb"))
    content = bytearray(package.read_bytes())
    content[len(content) // 2] ^= 1
    package.write_bytes(content)
    check(not holds(checksums, folder), "one changed bit of a package is found")
    if public_key:
        (folder / "SHA256SUMS").write_text((folder / "SHA256SUMS").read_text().replace("0", "1", 1))
        check(not holds(signature.replace("weir.pub", str(public_key)), folder), "a changed list of checksums is found")


def made_for_the_test(place):
    """Makes, signs, compares, changes."""
    host = re.search(r"^host: (.+)$", subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout, re.M)[1]
    programs = place / "package" / host / "release"
    programs.mkdir(parents=True)
    for program in ("weir", "weir-worker"):
        shutil.copy("/bin/true", programs / program)
    key = public_key = None
    if shutil.which("minisign"):
        key, public_key = place / "weir.key", place / "weir.pub"
        subprocess.run(["minisign", "-G", "-W", "-s", key, "-p", public_key], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    else:
        print("release: skipped: the signature, because minisign is missing (apt-get install minisign)")
    first, second = make(place, "first", key), make(place, "second", key)
    names = sorted(path.name for path in first.iterdir() if not path.name.endswith(".minisig"))
    _, different, missing = filecmp.cmpfiles(first, second, names, shallow=False)
    check(not different and not missing, f"made twice, the same bytes: {' '.join(names)} {different + missing}")
    examine(first, public_key)
    refuses(second, public_key)


def main(folder=None, public_key=None):
    """Exit code 1 when a claim does not hold."""
    if folder:
        examine(Path(folder).resolve(), Path(public_key).resolve() if public_key else None)
    else:
        with tempfile.TemporaryDirectory() as place:
            made_for_the_test(Path(place))
    print("release: passed")


main(*sys.argv[1:])
