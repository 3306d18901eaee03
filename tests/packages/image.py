#!/usr/bin/env python3
"""The image of a release in a container as compose.yaml starts it: not as root, with a root that nobody can write to, with
boxes that hold what strangers try; and what it says where the engine forbids boxes.

    tests/packages/image.py FOLDER_OF_A_RELEASE [TESTS]

TESTS is the program of the service tests (target/debug/deps/it-…): with it the escape suite runs inside, against the
image's programs. Needs podman, and PyYAML (tests/packages/requirements.txt). The containers have a loopback and no other
network.
"""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = 8900
BASE = "http://127.0.0.1:3002"
# What boxes need of an engine (docs/packages.md), and what the worker says where it is not given. AppArmor is the third,
# where a machine has it.
NEEDS = {"seccomp": "namespaces", "systempaths": "/proc"}


def say(words):
    """One line of what is being done or was found."""
    print(f"image: {words}", flush=True)


def check(condition, words):
    """A claim; the first that does not hold ends the test."""
    if not condition:
        sys.exit(f"image: FAILED: {words}")
    say(f"ok: {words}")


def podman(*words, check_it=True):
    """What podman prints."""
    done = subprocess.run(["podman", *map(str, words)], capture_output=True, text=True)
    if check_it and done.returncode != 0:
        sys.exit(f"image: FAILED: podman {' '.join(map(str, words))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout.strip()


def own_cgroups():
    """crun takes no machine whose cgroups are of both versions: for this test the second one is not there."""
    mounts = Path("/proc/self/mounts").read_text()
    if "/sys/fs/cgroup/unified cgroup2" in mounts:
        script = 'mount --make-rprivate /; umount /sys/fs/cgroup/unified; exec "$@"'
        os.execvp("unshare", ["unshare", "--mount", "sh", "-ec", script, "sh", sys.executable, *sys.argv])


def limits():
    """As many processes as compose.yaml allows, and as many files: an engine asks for more than some machines may give."""
    return ["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]


def rights(release, without=()):
    """compose.yaml's words for the container, as podman's."""
    service = yaml.safe_load((ROOT / "scripts/packaging/compose.yaml").read_text())["services"]["weir"]
    words = ["--init"] if service["init"] else []
    words += ["--read-only", "--read-only-tmpfs=false"] if service["read_only"] else []
    words += [f"--cap-drop={name}" for name in service["cap_drop"]]
    for option in service["security_opt"]:
        name = re.split("[:=]", option)[0]
        if name in without:
            continue
        if name == "seccomp":
            words.append(f"--security-opt=seccomp={release}/weir-seccomp.json")
        elif name == "systempaths":
            words.append("--security-opt=unmask=ALL")
        elif name != "apparmor" or Path("/sys/kernel/security/apparmor").exists():
            words.append(f"--security-opt={option.replace('no-new-privileges:true', 'no-new-privileges')}")
    for mount in service["tmpfs"]:
        place, options = mount.split(":")
        # podman takes no user there, and gives it the container's when it is told to.
        own = f"--mount=type=tmpfs,destination={place},tmpfs-mode=0700,chown=true"
        words.append(own if "uid=2000" in options else f"--tmpfs={mount}")
    return [*words, *limits()]


class Container:
    """A running Weir, with the test site beside it."""

    def __init__(self, image, words):
        self.name = f"weir-image-{uuid.uuid4().hex[:8]}"
        settings = ["--env=WEIR_ALLOW_NETS=127.0.0.0/8", "--env=WEIR_RATE_LIMITS=off"]
        podman("run", "--detach", f"--name={self.name}", "--network=none", f"--volume={self.name}:/var/lib/weir",
               f"--volume={ROOT}/tests/site:/site:ro", *words, *settings, image)
        podman("exec", "--detach", self.name, "python3", "-B", "/site/testsite.py", "--port", SITE)

    def do(self, *command, check_it=True):
        """A command inside, as the container's user."""
        return podman("exec", self.name, *command, check_it=check_it)

    def call(self, path, body=None, key=None):
        """Status and answer of the service."""
        words = ["curl", "-s", "-m", "120", "-w", "\n%{http_code}", BASE + path, "-H", "Content-Type: application/json"]
        words += ["-H", f"Authorization: Bearer {key}"] if key else []
        words += ["-d", json.dumps(body)] if body is not None else []
        text, _, status = self.do(*words, check_it=False).rpartition("\n")
        return int(status or 0), text

    def until_ready(self, with_sessions=False):
        """Until the API, a worker and the test site are there, and the worker's boxes were tried."""
        for _ in range(300):
            status, text = self.call("/readyz")
            is_there = status == 200 and (json.loads(text)["sessionSlots"] or not with_sessions)
            if is_there and self.do("curl", "-s", f"http://127.0.0.1:{SITE}/_ctl/truth?path=/article/1", check_it=False):
                return
            time.sleep(0.2)
        sys.exit(f"image: FAILED: not ready within a minute\n{self.logs()[-6000:]}")

    def key(self):
        return self.do("cat", "data/api-key")

    def logs(self):
        done = subprocess.run(["podman", "logs", self.name], capture_output=True, text=True)
        return done.stdout + done.stderr

    def end(self):
        """Its exit code after a stop as an engine does it."""
        podman("stop", "--time=50", self.name, check_it=False)
        code = podman("inspect", "--format={{.State.ExitCode}}", self.name, check_it=False)
        podman("rm", "--force", "--volumes", self.name, check_it=False)
        podman("volume", "rm", "--force", self.name, check_it=False)
        return code


def load(release):
    """The image in podman, or nothing where there is no podman that runs containers."""
    if subprocess.run(["sh", "-c", "command -v podman"], capture_output=True).returncode != 0:
        return None
    archive = next(release.glob("*.oci.tar"))
    loaded = podman("load", "--quiet", "--input", archive)
    image = loaded.split(": ")[-1].split()[-1]
    tried = subprocess.run(["podman", "run", "--rm", "--network=none", *limits(), image, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        say(f"skipped: podman runs no container here: {tried.stderr.strip()[-300:]}")
        return None
    return image


def whole(image, words):
    """As it is meant to be started: everything works."""
    weir = Container(image, words)
    try:
        weir.until_ready(with_sessions=True)
        status = weir.do("cat", "/proc/1/status")
        held = {name: re.search(rf"^{name}:\s+(.+)$", status, re.M)[1].split()[0] for name in ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}
        check(held == {"Uid": "2000", "CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}, f"its rights: {held}")
        written = weir.do("sh", "-c", "for d in / /usr /etc /usr/lib/weir /home; do touch $d/x 2>/dev/null && echo $d; done; true")
        check(written == "", f"nothing of its root can be written to {written}")
        doctor = subprocess.run(["podman", "exec", weir.name, "weir", "doctor"], capture_output=True, text=True)
        for line in doctor.stdout.splitlines():
            say(f"    {line}")
        check(doctor.returncode == 0, "weir doctor finds nothing that fails")
        key = weir.key()
        page = f"http://127.0.0.1:{SITE}/js/timer/1?delay=300"
        truth = json.loads(weir.do("curl", "-s", f"http://127.0.0.1:{SITE}/_ctl/truth?path=/js/timer/1"))
        status, text = weir.call("/v2/scrape", {"url": page, "maxAge": 0}, key)
        check(status == 200 and all(marker in text for marker in truth["main"]), "a page that scripts make has its text")
        status, text = weir.call("/v2/browser", {"ttl": 120}, key)
        session = json.loads(text).get("id")
        check(status == 200, f"a session opens {'' if status == 200 else text[:300]}")
        for language, code in (("node", "await page.goto('about:blank'); 40 + 2"), ("python", "40 + 2"), ("bash", "agent-browser --version >&2; echo 42")):
            status, text = weir.call(f"/v2/browser/{session}/execute", {"code": code, "language": language, "timeout": 60}, key)
            is_right = status == 200 and json.loads(text).get("result", "").strip() == "42"
            check(is_right, f"code runs in {language} {'' if is_right else text[:500]}")
    finally:
        code = weir.end()
    check(code == "0", f"it ends in good order: {code}")


def weaker(image, release, need):
    """Where the engine forbids boxes: it says so, renders nothing, opens no session, and goes on with the rest."""
    weir = Container(image, rights(release, {need}))
    try:
        weir.until_ready()
        key = weir.key()
        status, text = weir.call("/v2/scrape", {"url": f"http://127.0.0.1:{SITE}/article/1", "maxAge": 0}, key)
        check(status == 200, f"without {need}: a page that needs no browser is scraped {'' if status == 200 else text[:500]}")
        status, text = weir.call("/v2/scrape", {"url": f"http://127.0.0.1:{SITE}/js/render/1", "maxAge": 0, "waitFor": 200}, key)
        say(f"    rendering: {status} {text[:200]}")
        check(status != 200, f"without {need}: nothing is rendered outside of a box")
        status, text = weir.call("/v2/browser", {"ttl": 120}, key)
        say(f"    session: {status} {text[:200]}")
        check(status >= 400, f"without {need}: no session opens")
        told = [line for line in weir.logs().splitlines() if '"WARN"' in line or '"ERROR"' in line]
        for line in told[:4]:
            say(f"    log: {line[:400]}")
        check(any(NEEDS[need] in line for line in told), f"without {need}: the log names {NEEDS[need]}")
        doctor = weir.do("weir", "doctor", check_it=False)
        failing = [line for line in doctor.splitlines() if line.startswith("FAIL")]
        check(failing, f"without {need}: weir doctor says {failing}")
    finally:
        weir.end()


def escapes(image, words, program):
    """The escape suite inside."""
    program = Path(program).resolve()
    # The test service takes no setting but its own: the runners lie where it looks for them.
    script = 'mkdir -p ~/.cache/weir && ln -s /usr/lib/weir/runners ~/.cache/weir/runners && cd "$0" && exec "$@"'
    done = subprocess.run(
        ["podman", "run", "--rm", "--network=none", *words, "--env=HOME=/run/weir/home", "--tmpfs=/t:mode=1777,exec", "--env=TMPDIR=/t",
         "--env=WEIR_TEST_BIN_DIR=/usr/bin", "--env=WEIR_TEST_REQUIRE_ALL=1", f"--volume={ROOT}:{ROOT}:ro", f"--volume={program}:/it:ro", image,
         "sh", "-euc", script, str(ROOT / "tests"), "/it", "escape::", "--nocapture", "--test-threads=1"],
        capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-6000:], done.stderr[-6000:])
    result = re.search(r"^test result: .*", done.stdout, re.M)
    check(done.returncode == 0, f"the escape suite inside: {result and result[0]}")


def main(folder, program=None):
    """All of it, in order."""
    own_cgroups()
    release = Path(folder).resolve()
    image = load(release)
    if image is None:
        say("skipped: nothing here runs containers (apt-get install podman)")
        return
    words = rights(release)
    try:
        whole(image, words)
        for need in NEEDS:
            weaker(image, release, need)
        if program:
            escapes(image, words, program)
    finally:
        podman("image", "rm", "--force", image, check_it=False)
    say("passed")


main(*sys.argv[1:])
