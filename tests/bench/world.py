"""What a benchmark measures with: the release binaries, the test site, a Postgres cluster, /proc."""
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("WEIR_BENCH_BIN", ROOT / "target/release"))
BIN = BIN if BIN.is_absolute() else ROOT / BIN
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, seconds=60, pause=0.01):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise RuntimeError(f"waited {seconds} s in vain: {what}")


class Client:
    """One kept-alive connection that speaks JSON."""

    def __init__(self, port, key=None):
        self.port = port
        self.headers = {"Content-Type": "application/json"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        for attempt in (1, 2):
            try:
                self.connection.request(method, path, data, self.headers)
                answer = self.connection.getresponse()
                return answer.status, answer.read()
            except (http.client.HTTPException, ConnectionError):
                self.connection.close()
                if attempt == 2:
                    raise

    def ok(self, method, path, body=None):
        status, data = self.call(method, path, body)
        if status != 200:
            raise RuntimeError(f"{method} {path}: {status} {data[:500]!r}")
        return json.loads(data)


class Stopwatch:
    """Times POSTs on one kept-alive connection: the request is ready before, the answer is read to its last byte and
    looked at afterwards, so that the time is the service's and not a client library's."""

    def __init__(self, port, key):
        self.head = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {key}\r\n"
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=180)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path, body):
        """Milliseconds from the first byte sent to the last one received."""
        data = json.dumps(body).encode()
        request = f"POST {path} HTTP/1.1\r\n{self.head}Content-Length: {len(data)}\r\n\r\n".encode() + data
        began = time.perf_counter()
        self.socket.sendall(request)
        answer, end = b"", None
        while end is None or len(answer) < end:
            part = self.socket.recv(1 << 20)
            if not part:
                raise RuntimeError(f"{path}: the connection ended early")
            answer += part
            head = answer.find(b"\r\n\r\n")
            if end is None and head >= 0:
                end = head + 4 + int(answer[:head].lower().split(b"content-length:")[1].split()[0])
        took = 1000 * (time.perf_counter() - began)
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"POST {path}: {answer[:500]!r}")
        return took


# --- processes ------------------------------------------------------------------------------------

def stat(pid):
    """Parent, CPU seconds of the process and of its ended children, resident bytes; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except (OSError, IndexError):
        return None
    return int(fields[1]), sum(map(int, fields[11:15])) / TICK, int(fields[21]) * PAGE


def descendants(roots):
    """The live processes below `roots`, themselves included."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (s := stat(int(entry))):
            parents.setdefault(s[0], []).append(int(entry))
    found, todo = [], list(roots)
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += parents.get(pid, [])
    return found


def cpu_of(roots):
    return sum(s[1] for pid in descendants(roots) if (s := stat(pid)))


class Process:
    def __init__(self, command, env=None, log=None, cwd=None):
        self.log = open(log, "ab") if log else subprocess.DEVNULL
        self.popen = subprocess.Popen([str(c) for c in command], env=env, stdin=subprocess.DEVNULL, stdout=self.log,
                                      stderr=self.log, start_new_session=True, cwd=cwd)
        self.pid = self.popen.pid

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(40)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()


class Site:
    """The test site as a process of its own: its CPU is not the service's."""

    def __init__(self, *options):
        self.port = free_port()
        self.process = Process([sys.executable, ROOT / "tests/site/testsite.py", "--port", self.port, *options])
        self.client = Client(self.port)
        wait_for("the test site", self.answers)

    def answers(self):
        try:
            return self.client.call("GET", "/_ctl/stats")[0] == 200
        except OSError:
            return False

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def control(self, path, method="GET"):
        return self.client.ok(method, "/_ctl/" + path)

    def warm(self, paths):
        """Pages are made once and kept: the first request for each costs the site, not the service."""
        for path in paths:
            self.client.call("GET", path)

    def stop(self):
        self.process.stop()


class Postgres:
    """A cluster for the run. Its processes' CPU is told apart from the service's own."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="weir-bench-pg-"))
        self.folder.chmod(0o755)
        self.cluster = self.folder / "cluster"
        self.url = self.script("start").strip()
        self.pid = int((self.cluster / "data/postmaster.pid").read_text().split()[0])
        programs = [shutil.which("psql"), *Path("/usr/lib/postgresql").glob("*/bin/psql")]
        self.psql = next(str(p) for p in programs if p)

    def script(self, action):
        return subprocess.run([ROOT / "tests/support/postgres.sh", action, self.cluster], check=True, capture_output=True,
                              text=True).stdout

    def run(self, sql, database="postgres", role="weir"):
        url = self.url.rsplit("/", 1)[0].replace("weir@", f"{role}@") + "/" + database
        done = subprocess.run([self.psql, "-q", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", url], input=sql, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def stop(self):
        self.script("stop")
        shutil.rmtree(self.folder, ignore_errors=True)


# --- the service ----------------------------------------------------------------------------------

class Service:
    """One API process and workers on a fresh database."""

    count = 0

    def __init__(self, postgres=None, workers=1, env=None, start=True):
        Service.count += 1
        self.folder = Path(tempfile.mkdtemp(prefix="weir-bench-"))
        self.folder.chmod(0o755)
        temporary = self.folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        self.postgres, self.workers, self.database = postgres, workers, None
        if postgres:
            self.database = f"bench_{os.getpid()}_{Service.count}"
            postgres.run(f"CREATE DATABASE {self.database}")
            address = postgres.url.rsplit("/", 1)[0] + "/" + self.database
        else:
            self.file = self.folder / "weir.db"
            address = f"sqlite://{self.file}"
        self.port, self.worker_ports = free_port(), [free_port() for _ in range(workers)]
        clean = {k: v for k, v in os.environ.items() if k == "WEIR_CHROMIUM" or not k.startswith("WEIR_") and k != "DATABASE_URL"}
        self.env = {**clean, "DATABASE_URL": address, "WEIR_BIND": f"127.0.0.1:{self.port}", "TMPDIR": str(temporary),
                    "WEIR_RUN_DIR": str(temporary / "weir-run"),
                    "WEIR_BLOBS": f"file://{self.folder}/blobs", "WEIR_ALLOW_NETS": "127.0.0.0/8", "WEIR_RATE_LIMITS": "off",
                    "WEIR_LOG": "warn", **(env or {})}
        self.processes = []
        self.command("migrate")
        if start:
            self.start()

    def command(self, *arguments):
        done = subprocess.run([BIN / "weir", *arguments], env=self.env, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"weir {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def start(self):
        self.processes = [Process([BIN / "weir", "serve"], self.env, self.folder / "api.log", self.folder)]
        for n, port in enumerate(self.worker_ports):
            env = {**self.env, "WEIR_WORKER_BIND": f"127.0.0.1:{port}"}
            self.processes.append(Process([BIN / "weir-worker"], env, self.folder / f"worker-{n}.log", self.folder))
        wait_for("the service is ready", self.ready)
        if not hasattr(self, "key"):
            self.command("team", "add", "bench", "--json")
            self.command("team", "set", "bench", "--concurrency", "1000")
            self.key = json.loads(self.command("key", "create", "--team", "bench", "--json"))["key"]
        self.client = Client(self.port, self.key)

    def ready(self):
        try:
            return Client(self.port).call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    @property
    def pids(self):
        return [p.pid for p in self.processes]

    def cpu(self):
        """CPU seconds so far: of the service with its browsers, and of the Postgres cluster."""
        return cpu_of(self.pids), cpu_of([self.postgres.pid]) if self.postgres else 0.0

    def rest(self):
        """Waits until what a start does beside its work is over: a browser comes up, the boxes are tried. For batches of
        seconds that are measured, it is not theirs."""
        def look():
            before = sum(self.cpu())
            time.sleep(0.5)
            return sum(self.cpu()) - before < 0.05
        wait_for("the service's rest", look, 30, 0)

    def resident(self):
        """Resident bytes of API and workers, Chromium aside."""
        return sum(s[2] for pid in self.pids if (s := stat(pid)))

    def metrics(self):
        """Sums of the workers' figures, by name with labels."""
        total = {}
        for port in self.worker_ports:
            for line in Client(port).call("GET", "/metrics")[1].decode().splitlines():
                if line and not line.startswith("#"):
                    name, value = line.rsplit(" ", 1)
                    total[name] = total.get(name, 0) + float(value)
        return total

    def disk(self):
        """Bytes of database and blobs. The log before a checkpoint counts too: it is on the disk."""
        if self.postgres:
            size = int(self.postgres.run(f"SELECT pg_database_size('{self.database}')"))
        else:
            size = sum(p.stat().st_size for p in self.folder.glob("weir.db*"))
        return size + sum(p.stat().st_size for p in (self.folder / "blobs").rglob("*") if p.is_file())

    def sql(self, sqlite_text, postgres_text=None):
        """Runs statements on the database itself, to make a long history without scraping it."""
        if self.postgres:
            return self.postgres.run(postgres_text or sqlite_text, self.database)
        connection = sqlite3.connect(self.file, timeout=60)
        connection.executescript(sqlite_text)
        connection.close()

    def batch(self, urls, **options):
        """Pages are asked for, whatever the cache has of them."""
        return self.client.ok("POST", "/v2/batch/scrape", {"urls": urls, "maxAge": 0, **options})["id"]

    def finished(self, batch, seconds=600):
        def look():
            status = self.client.ok("GET", f"/v2/batch/scrape/{batch}?limit=1")
            return status if status["status"] != "scraping" else None
        # Seldom enough not to load the service, often enough not to lengthen the seconds that are measured.
        return wait_for(f"the end of batch {batch}", look, seconds, 0.05)

    def documents(self, batch):
        """Every document of a batch, page by page of results."""
        path = f"/v2/batch/scrape/{batch}?limit=200"
        while path:
            body = self.client.ok("GET", path)
            yield from body["data"]
            path = body.get("next") and "/" + body["next"].split("/", 3)[3]

    def stop(self):
        for process in self.processes:
            if process.popen.poll() is None:
                process.popen.terminate()
        for process in self.processes:
            process.stop()
        self.processes = []

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.database:
            # As who may end a vacuum in it, too.
            self.postgres.run(f"DROP DATABASE {self.database} WITH (FORCE)", role="admin")
