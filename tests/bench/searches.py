"""The benchmark of searches: a backend in SearXNG's form that answers after a fixed time, both databases."""
import json
import statistics
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from world import Client, Service, Stopwatch

# What a metasearch engine needs at least, seconds.
BACKEND_TIME = 0.1


def searches(report, site, databases, scale):
    """One /v2/search after another for ten hits: time added to the backend's own, without and with their pages."""
    backend = Backend(site)
    try:
        count = max(10, int(100 * scale))
        direct = Client(backend.port)
        own = statistics.median(timed(lambda n=n: direct.ok("GET", f"/search?q=own{n}&format=json")) for n in range(count))
        report.line("search: the backend alone, p50", own, "ms")
        for name, postgres in databases.items():
            service = Service(postgres, env={"WEIR_SEARCH_URL": f"http://127.0.0.1:{backend.port}"})
            try:
                stopwatch = Stopwatch(service.client.port, service.key)
                for n in range(10):
                    stopwatch.post("/v2/search", {"query": f"warm {n}", "limit": 10})
                times = [stopwatch.post("/v2/search", {"query": f"words {n}", "limit": 10}) for n in range(count)]
                report.line(f"search, {name}: added, p50", statistics.median(times) - own, "ms", ("<=", 15),
                            note=f"worst {max(times) - own:.1f}")
                options = {"limit": 10, "scrapeOptions": {"formats": ["markdown"], "maxAge": 0}}
                times = [stopwatch.post("/v2/search", {"query": f"pages {n}", **options}) for n in range(count // 5)]
                report.line(f"search, {name}: added with ten pages, p50", statistics.median(times) - own, "ms",
                            note=f"worst {max(times) - own:.1f}")
            finally:
                service.close()
    finally:
        backend.stop()


def timed(call):
    """Milliseconds of a call."""
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


class Backend:
    """Finds ten articles of the test site for every query, on the first page of hits."""

    def __init__(self, site):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked = parse_qs(urlsplit(self.path).query)
                is_first = asked.get("pageno", ["1"]) == ["1"]
                time.sleep(BACKEND_TIME)
                hits = [{"url": site.url(f"/article/{n}"), "title": f"Hit {n}", "content": f"What is found at {n}. " * 5}
                        for n in range(10)]
                data = json.dumps({"results": hits if is_first else []}).encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
                self.wfile.write(head.encode() + data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
