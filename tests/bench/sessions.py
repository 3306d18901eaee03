"""Browser sessions: how fast they come, go, pass CDP messages and run code; what they weigh."""
import base64
import concurrent.futures
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from world import Client, Process, Service, descendants, free_port, wait_for

MB = 1024 * 1024


class Socket:
    """A WebSocket client with just what is needed here, so that both ways are measured with the same means."""

    def __init__(self, url):
        where = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((where.hostname, where.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        path = where.path + (f"?{where.query}" if where.query else "")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer = b""
        head = self.until(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"no upgrade: {head[:200]!r}")

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(mark, 1)
        return head

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise RuntimeError("the connection ended")
        self.buffer += data

    def exactly(self, count):
        while len(self.buffer) < count:
            self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def send(self, text):
        data = text.encode()
        size = len(data)
        head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xFE]) + struct.pack(">H", size)
        self.socket.sendall(head + b"\0\0\0\0" + data)

    def receive(self):
        """A message: `str` or `bytes`."""
        message, is_text = b"", True
        while True:
            first, second = self.exactly(2)
            length = second & 127
            if length == 126:
                length, = struct.unpack(">H", self.exactly(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.exactly(8))
            data = self.exactly(length)
            if first & 15 == 8:
                raise RuntimeError(f"closed: {data!r}")
            if first & 15 in (0, 1, 2):
                is_text = is_text and first & 15 != 2
                message += data
                if first & 128:
                    return message.decode() if is_text else message

    def close(self):
        self.socket.close()


class Cdp(Socket):
    def __init__(self, url):
        super().__init__(url)
        self.id = 0

    def call(self, method, session=None, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params, **({"sessionId": session} if session else {})}
        self.send(json.dumps(message))
        while True:
            answer = json.loads(self.receive())
            if answer.get("id") == self.id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def page(self):
        """A session of the first tab."""
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        return self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]


def create(service):
    return service.client.ok("POST", "/v2/browser", {"ttl": 300})


def delete(service, session):
    return service.client.ok("DELETE", f"/v2/browser/{session['id']}")


def milliseconds(work):
    began = time.perf_counter()
    result = work()
    return 1000 * (time.perf_counter() - began), result


def usable(service):
    """From the request to an answer of the browser."""
    session = create(service)
    cdp = Cdp(session["cdpUrl"])
    cdp.call("Browser.getVersion")
    cdp.close()
    return session


def warmed(service):
    port = service.worker_ports[0]
    wait_for("a browser that waits", lambda: b"weir_sessions_warm 1" in Client(port).call("GET", "/metrics")[1])
    # It still settles, as in a service that is not asked for one session after the other.
    time.sleep(1.0)


def round_trips(cdp, count):
    page = cdp.page()
    for _ in range(50):
        cdp.call("Runtime.evaluate", page, expression="1+1")
    return [milliseconds(lambda: cdp.call("Runtime.evaluate", page, expression="1+1"))[0] for _ in range(count)]


def direct(count):
    """The same messages to a Chromium of the same kind with nothing between."""
    program = next((p for p in ("/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium") if os.path.exists(p)), None)
    program = program or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    folder, port = tempfile.mkdtemp(prefix="weir-bench-"), free_port()
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    chromium = Process([program, "--headless", *root, "--disable-gpu", f"--remote-debugging-port={port}",
                        f"--user-data-dir={folder}/profile", "about:blank"])
    try:
        def address():
            try:
                return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json/version"))["webSocketDebuggerUrl"]
            except OSError:
                return None
        return round_trips(Cdp(wait_for("Chromium", address)), count)
    finally:
        chromium.stop()
        shutil.rmtree(folder, ignore_errors=True)


MOVING = """<body style="margin:0;font:20px serif"><h1>Moving</h1><p>%s</p>
<div style="position:absolute;width:200px;height:200px;background:teal;animation:m 2s linear infinite alternate"></div>
<style>@keyframes m { from { transform: translate(0, 0) rotate(0) } to { transform: translate(900px, 300px) rotate(360deg) } }</style>
""" % ("It has text as well. " * 60)


class Viewer(threading.Thread):
    """Watches a session as the live page does, for `seconds` after its first picture."""

    def __init__(self, url, seconds):
        super().__init__()
        address, _, token = url.partition("#")
        self.socket, self.seconds, self.pictures = Socket(address + "/socket"), seconds, 0
        self.socket.send(token)
        self.start()

    def run(self):
        end = None
        while end is None or time.monotonic() < end:
            if isinstance(self.socket.receive(), bytes):
                self.socket.send('{"type":"ack"}')
                self.pictures += end is not None
                end = end or time.monotonic() + self.seconds
        self.socket.close()


def watched(service, seconds):
    """Pictures a second of the slowest of three viewers of a moving page, and the cores that they take."""
    session = create(service)
    cdp = Cdp(session["cdpUrl"])
    page = cdp.page()
    cdp.call("Runtime.evaluate", page, expression=f"document.documentElement.innerHTML = {json.dumps(MOVING)}")
    time.sleep(1)
    cpu = sum(service.cpu())
    time.sleep(seconds)
    alone = (sum(service.cpu()) - cpu) / seconds
    viewers = [Viewer(session["liveViewUrl"], seconds) for _ in range(3)]
    time.sleep(1)
    cpu, began = sum(service.cpu()), time.monotonic()
    for viewer in viewers:
        viewer.join()
    cores = (sum(service.cpu()) - cpu) / (time.monotonic() - began)
    delete(service, session)
    return min(viewer.pictures for viewer in viewers) / seconds, cores, alone


def proportional(pids):
    total = 0
    for pid in pids:
        try:
            lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def sessions(report, site, databases, scale):
    """Browser sessions: create to usable CDP warm and cold, delete, CDP round trip against a direct connection, execute on
    a warm runner, a timeout, memory of an idle session, rate and cost of the live view, twelve at once. Another browser:
    `WEIR_CHROMIUM`."""
    rounds = max(3, int(20 * scale))
    plain = statistics.median(direct(int(500 * scale) or 50))
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            starts, ends = [], []
            for _ in range(rounds):
                warmed(service)
                took, session = milliseconds(lambda: usable(service))
                starts.append(took)
                ends.append(milliseconds(lambda: delete(service, session))[0])
            report.line(f"sessions, {name}: create to usable, warm, p50", statistics.median(starts), "ms", ("<=", 60))
            report.line(f"sessions, {name}: delete without profile, p50", statistics.median(ends), "ms", ("<=", 100))

            warmed(service)
            before = set(descendants(service.pids))
            session = create(service)
            through = statistics.median(round_trips(Cdp(session["cdpUrl"]), int(500 * scale) or 50))
            report.line(f"sessions, {name}: CDP round trip added, p50", through - plain, "ms", ("<=", 0.3),
                        note=f"direct {plain:.2f} ms")

            run = lambda code, timeout=30: service.client.ok("POST", f"/v2/browser/{session['id']}/execute", {"code": code, "language": "node", "timeout": timeout})
            cold, _ = milliseconds(lambda: run("1"))
            for n in range(5):
                run(f"{n}")
            took = [milliseconds(lambda: run("21 * 2"))[0] for _ in range(int(100 * scale) or 10)]
            bare = [milliseconds(lambda: service.client.ok("GET", f"/v2/browser/{session['id']}"))[0] for _ in range(30)]
            report.line(f"sessions, {name}: execute on a warm runner, p50", statistics.median(took) - statistics.median(bare), "ms", ("<=", 5),
                        note=f"above a bare read of the session; first call {cold:.0f} ms")
            took, answer = milliseconds(lambda: run("while (true) {}", 3))
            report.line(f"sessions, {name}: a timeout of 3 s answers after", took / 1000, "s", ("<=", 3.3), note=f"killed: {answer['killed']}")
            delete(service, session)

            several = [create(service) for _ in range(3)]
            time.sleep(5)
            mine = [pid for pid in descendants(service.pids) if pid not in before]
            report.line(f"sessions, {name}: memory of an idle session", proportional(mine) / MB / 3, "MB", note="proportional, mean of 3, browser and box")
            for one in several:
                delete(service, one)

            rate, cores, alone = watched(service, max(3, 10 * scale))
            report.line(f"sessions, {name}: live view of a moving page, three viewers", rate, "pictures/s", (">=", 10))
            report.line(f"sessions, {name}: cores that this takes", cores, "cores", ("<=", 0.7), note=f"all processes of the service; without viewers {alone:.2f}")
        finally:
            service.close()

        service = Service(postgres, env={"WEIR_WARM_BROWSERS": "0", "WEIR_TEAM_SESSIONS": "20"})
        try:
            starts = []
            for _ in range(max(3, rounds // 2)):
                took, session = milliseconds(lambda: usable(service))
                starts.append(took)
                delete(service, session)
            report.line(f"sessions, {name}: create to usable, cold, p50", statistics.median(starts) / 1000, "s", ("<=", 1.0))

            def one(_):
                mine = Client(service.port, service.key)
                session = mine.ok("POST", "/v2/browser", {"ttl": 300})
                answer = mine.ok("POST", f"/v2/browser/{session['id']}/execute", {"code": "await page.title(); 7", "language": "node", "timeout": 60})
                return session["id"], answer["result"]
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                took, answers = milliseconds(lambda: list(pool.map(one, range(12))))
            right = sum(result == "7" for _, result in answers)
            report.line(f"sessions, {name}: right answers of 12 sessions at once", right, "of 12", (">=", 12), note=f"{took / 1000:.1f} s from the first request to the last answer")
        finally:
            service.close()
