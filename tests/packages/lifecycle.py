#!/usr/bin/env python3
"""The life of the Debian packages in a clean Debian 12 with a systemd of its own: installed, started, asked for a page
with scripts, replaced by the next release under load, purged.

    tests/packages/lifecycle.py FOLDER_OF_A_RELEASE FOLDER_OF_THE_NEXT [BASE.tar]

Needs root, mmdebstrap and Debian's registry. The system lives in a folder with its own namespaces for processes, mounts,
cgroups and network, so systemd is its first process and every sandboxing option of the units is in force. BASE.tar saves
the making of the system: `mmdebstrap --variant=apt --include=systemd,systemd-sysv,ca-certificates bookworm BASE.tar`.
"""

import concurrent.futures
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE = 8900
BASE = "http://127.0.0.1:3002"
RATE = 20
PATHS = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LANG=C.UTF-8"]
# What changes without anybody's doing: logs, caches, lists of what is installed.
MOVING = ("proc", "sys", "dev", "run", "tmp", "var/log", "var/cache", "var/tmp", "var/lib/apt", "var/lib/dpkg", "var/lib/systemd", "packages")


def say(words):
    """One line of what is being done or was found."""
    print(f"packages: {words}", flush=True)


def check(condition, words):
    """A claim; the first that does not hold ends the test."""
    if not condition:
        sys.exit(f"packages: FAILED: {words}")
    say(f"ok: {words}")


def run(*command, **options):
    """A command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"packages: FAILED: {' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout.strip()


class Root:
    """A Debian in a folder, before it runs."""

    def __init__(self, base):
        self.folder = Path(tempfile.mkdtemp(prefix="weir-packages-", dir="/var/tmp"))
        self.path = self.folder / "root"
        if base:
            self.path.mkdir()
            run("tar", "-C", self.path, "-xf", base)
        else:
            # Without a mirror, mmdebstrap takes its own, with updates.
            mirror = os.environ.get("WEIR_DEBIAN_MIRROR")
            sources = [f"deb {mirror}/debian bookworm main", f"deb {mirror}/debian-security bookworm-security main"] if mirror else []
            included = "--include=systemd,systemd-sysv,ca-certificates"
            run("mmdebstrap", "--quiet", "--variant=apt", included, "bookworm", self.path, *sources)
        (self.path / "etc/machine-id").write_text("")
        shutil.copy("/etc/resolv.conf", self.path / "etc/resolv.conf")

    def chroot(self, *command):
        """A command in the folder, with this machine's network."""
        return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", 'mount -t proc proc "$0/proc"; exec chroot "$@"',
                   self.path, self.path, "env", "-i", *PATHS, *command)

    def files(self):
        """Every path of the system but those that move."""
        found = set()
        for folder, names, files in os.walk(self.path):
            inside = os.path.relpath(folder, self.path)
            names[:] = [name for name in names if os.path.normpath(f"{inside}/{name}") not in MOVING]
            found.update(os.path.normpath(f"{inside}/{name}") for name in names + files)
        return found


class System:
    """The same with systemd as its first process. Its network has a loopback and nothing else."""

    BOOT = """
        mount --make-rprivate /; mount --bind "$0" "$0"
        mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/run"; mount -t tmpfs tmpfs "$0/tmp"
        mount -t sysfs -o ro sysfs "$0/sys"; mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"; mount --rbind /dev "$0/dev"
        mount -t tmpfs tmpfs "$0/dev/shm"
        cd "$0"; pivot_root . mnt; umount -l /mnt
        exec env -i container=weir PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null
    """

    def __init__(self, root):
        hierarchy = run("findmnt", "-rno", "TARGET", "-t", "cgroup2").splitlines()[0]
        self.cgroup = Path(hierarchy) / f"weir-packages-{os.getpid()}"
        self.cgroup.mkdir()
        enter = f'echo $$ > {self.cgroup}/cgroup.procs; exec "$@"'
        spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc"]
        self.process = subprocess.Popen(["sh", "-c", enter, "sh", *spaces, "sh", "-ec", self.BOOT, str(root.path)],
                                        stdin=subprocess.DEVNULL)
        self.first = None
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.first is None:
                found = subprocess.run(["pgrep", "-P", str(self.process.pid), "-x", "systemd"], capture_output=True, text=True)
                self.first = found.stdout.strip() or None
            elif self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"):
                return
            time.sleep(0.2)
        sys.exit("packages: FAILED: systemd did not start")

    def ask(self, *command):
        """A command in the system, whatever comes of it."""
        enter = ["nsenter", "-t", self.first, "--mount", "--pid", "--cgroup", "--uts", "--ipc", "env", "-i", *PATHS]
        return subprocess.run([*enter, *command], capture_output=True, text=True)

    def do(self, *command):
        """One that must succeed."""
        done = self.ask(*command)
        if done.returncode != 0:
            sys.exit(f"packages: FAILED: {' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout.strip()

    def end(self):
        """Ends every process of it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for _ in range(50):
            try:
                for folder, _, _ in os.walk(self.cgroup, topdown=False):
                    os.rmdir(folder)
                return
            except OSError:
                time.sleep(0.1)


def call(path, body=None, key=None, timeout=90):
    """Status and answer of the service; a connection of its own each time."""
    headers = {"Content-Type": "application/json", "Connection": "close"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    data = json.dumps(body).encode() if body is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(BASE + path, data, headers), timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def own_network():
    """A network with a loopback and nothing else, for all that is started from now on."""
    clone_newnet = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(clone_newnet) != 0:
        sys.exit(f"packages: FAILED: no network of its own: {os.strerror(ctypes.get_errno())}")
    run("ip", "link", "set", "lo", "up")


def wait_ready(system):
    """Until the API and a worker are there."""
    for _ in range(600):
        try:
            if call("/readyz", timeout=5)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    units = ("weir.socket", "weir.service", "weir-worker@1.service")
    for unit in units:
        print(system.ask("systemctl", "status", "--no-pager", "-l", unit).stdout[-3000:])
        print(system.ask("journalctl", "-u", unit, "--no-pager", "-n", "30").stdout[-4000:])
    sys.exit("packages: FAILED: not ready within a minute")


def code_runs(key):
    """A session's code in each language, in a box below the worker's unit."""
    # Pages do not wait for the boxes to be tried, sessions do.
    deadline = time.monotonic() + 60
    while not json.loads(call("/readyz")[1])["sessionSlots"] and time.monotonic() < deadline:
        time.sleep(0.2)
    status, text = call("/v2/browser", {"ttl": 120}, key)
    check(status == 200, f"a session opens {'' if status == 200 else text[:300]}")
    session = json.loads(text)["id"]
    for language, code in (("node", "await page.goto('about:blank'); 40 + 2"), ("python", "40 + 2"), ("bash", "agent-browser --version >&2; echo 42")):
        status, text = call(f"/v2/browser/{session}/execute", {"code": code, "language": language, "timeout": 60}, key)
        is_right = status == 200 and json.loads(text).get("result", "").strip() == "42"
        check(is_right, f"code runs in {language} {'' if is_right else text[:500]}")


class Load:
    """Twenty calls a second until it is stopped, each a page that is fetched anew."""

    def __init__(self, key):
        self.key, self.going, self.calls = key, True, []
        self.pool = concurrent.futures.ThreadPoolExecutor(200)
        self.pacer = self.pool.submit(self.pace)

    def pace(self):
        """Sends them, whether or not those before were answered."""
        due, count = time.monotonic(), 0
        while self.going:
            self.calls.append(self.pool.submit(self.one, count))
            count, due = count + 1, due + 1 / RATE
            time.sleep(max(0, due - time.monotonic()))

    def one(self, count):
        """A scrape; every fortieth has scripts."""
        kind = "js/render" if count % 40 == 0 else "article"
        began = time.monotonic()
        try:
            status, text = call("/v2/scrape", {"url": f"http://127.0.0.1:{SITE}/{kind}/{count % 2000}", "maxAge": 0}, self.key)
        except OSError as error:
            status, text = 0, str(error)
        return status, text[:200], time.monotonic() - began

    def stop(self):
        """What failed, how many there were, and the longest."""
        self.going = False
        self.pacer.result()
        done = [one.result() for one in self.calls]
        self.pool.shutdown()
        return [one for one in done if one[0] != 200], len(done), max(one[2] for one in done)


def main(first, second, base=None):
    """All of it, in order."""
    root = Root(base)
    system = site = None
    try:
        for number, folder in (("1", first), ("2", second)):
            (root.path / "packages" / number).mkdir(parents=True)
            for package in Path(folder).glob("*.deb"):
                shutil.copy(package, root.path / "packages" / number)
        packages = sorted(path.name for path in (root.path / "packages/1").iterdir())
        say(f"installing what {' and '.join(packages)} depend on")
        root.chroot("apt-get", "update", "-qq")
        for name in packages:
            depends = run("dpkg-deb", "-f", root.path / "packages/1" / name, "Depends")
            depends = ", ".join(one for one in depends.split(", ") if not one.startswith("weir"))
            root.chroot("apt-get", "satisfy", "-y", "-qq", "--no-install-recommends", depends)
        before = root.files()

        own_network()
        system = System(root)
        say("systemd runs; installing the first release")
        system.do("sh", "-c", "dpkg -i /packages/1/*.deb")
        stat = system.do("stat", "-c", "%U:%G %a", "/etc/weir/weir.env", "/var/lib/weir").split("\n")
        check(stat == ["root:weir 640", "weir:weir 700"], f"settings and state are shut to others: {stat}")
        units = ["weir.socket", "weir.service", "weir-worker@1.service"]
        system.do("systemd-analyze", "verify", *units)
        for unit in units[1:]:
            say(system.do("systemd-analyze", "security", "--no-pager", unit).splitlines()[-1].strip("→ "))
        wait_ready(system)
        states = system.do("systemctl", "is-active", *units).split()
        check(states == ["active"] * 3, f"the units run: {states}")
        doctor = system.ask("sh", "-c", "cd /var/lib/weir && runuser -u weir -- weir doctor")
        for line in doctor.stdout.splitlines():
            say(f"    {line}")
        if len(packages) > 1:
            check(doctor.returncode == 0, "weir doctor finds nothing that fails")

        system.do("sh", "-c", "printf 'WEIR_ALLOW_NETS=127.0.0.0/8\\nWEIR_RATE_LIMITS=off\\n' >> /etc/weir/weir.env")
        system.do("systemctl", "restart", "weir.service", "weir-worker@1.service")
        wait_ready(system)
        site = subprocess.Popen([sys.executable, HERE.parent / "site/testsite.py", "--port", str(SITE)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        key = system.do("cat", "/var/lib/weir/data/api-key")
        time.sleep(1)
        status, text = call("/v2/scrape", {"url": f"http://127.0.0.1:{SITE}/js/timer/1?delay=300", "maxAge": 0}, key)
        truth = json.load(urllib.request.urlopen(f"http://127.0.0.1:{SITE}/_ctl/truth?path=/js/timer/1"))
        check(status == 200 and all(marker in text for marker in truth["main"]), "a page that scripts make has its text")

        if len(packages) > 1:
            code_runs(key)

        was = [system.do("systemctl", "show", "-p", "MainPID", "--value", unit) for unit in units[1:]]
        load = Load(key)
        time.sleep(3)
        system.do("sh", "-c", "dpkg -i /packages/2/*.deb")
        time.sleep(3)
        failed, count, longest = load.stop()
        version = system.do("dpkg-query", "-W", "-f", "${Version}", "weir")
        now = [system.do("systemctl", "show", "-p", "MainPID", "--value", unit) for unit in units[1:]]
        check(not any(a == b for a, b in zip(was, now)), f"{version} has processes of its own")
        check(not failed, f"none of {count} calls failed while the release was replaced, the longest took {longest:.1f} s {failed[:3]}")
        check("WEIR_RATE_LIMITS=off" in system.do("cat", "/etc/weir/weir.env"), "the operator's settings stayed")

        system.do("sh", "-c", "dpkg --purge weir weir-runners 2>&1 || dpkg --purge weir")
        check(not system.ask("pgrep", "-u", "weir").stdout, "no process is left")
        left = sorted(path for path in root.files() - before if not path.startswith("var/lib/weir/data"))
        # The user's line stands in files that were there before, and their copies.
        left = [path for path in left if not (path.startswith("etc/") and path.endswith("-"))]
        check(left == ["var/lib/weir"], f"only the state is left: {left}")
        check((root.path / "var/lib/weir/data/weir.db").is_file(), "the database is there")
    finally:
        if site:
            site.kill()
        if system:
            system.end()
        shutil.rmtree(root.folder, ignore_errors=True)
    say("passed")


main(*sys.argv[1:])
