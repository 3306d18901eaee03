"""The benchmark of maps: one command, both databases."""
import statistics
import threading
import time

from world import Service, Site, stat

MB = 1024 * 1024


def maps(report, site, databases, scale):
    """A map of the 10,000-URL sitemap index, cold and from the kept sitemaps, 20 times each, every address checked; a map
    of 100,000 URLs and the worker's memory at its peak above idle; the order of 10,000 links by words."""
    large = Site("--sitemap-urls", str(int(100_000 * scale)))
    try:
        for name, postgres in databases.items():
            service = Service(postgres)
            try:
                measure(report, site, large, name, service, scale)
            finally:
                service.close()
    finally:
        large.stop()


def measure(report, site, large, name, service, scale):
    call(service, site, 10_000)
    time.sleep(2)
    for what, options, target in (("cold", {"ignoreCache": True}, 0.1), ("from the kept sitemaps", {}, 0.05)):
        times = [call(service, site, 10_000, **options) for _ in range(20)]
        report.line(f"map, {name}: 10,000 URLs {what}, p50", statistics.median(times), "s", ("<=", target),
                    note=f"worst of 20: {max(times):.3f}")
    took = statistics.median(call(service, site, 10_000, search="long table 77") for _ in range(5))
    report.line(f"map, {name}: 10,000 URLs ordered by words", took, "s")
    count = int(100_000 * scale)
    call(service, large, count, ignoreCache=True, limit=100)
    time.sleep(3)
    worker = service.processes[1].pid
    idle = stat(worker)[2] / MB
    peak = Peak(worker)
    times = [call(service, large, count, ignoreCache=True) for _ in range(5)]
    top = peak.stop() / MB
    report.line(f"map, {name}: {count:,} URLs cold, p50", statistics.median(times), "s", ("<=", 1))
    report.line(f"map, {name}: the worker's memory above idle", top - idle, "MB", ("<=", 150), note=f"idle {idle:.0f} MB")


def call(service, site, count, **options):
    """Seconds of one map, whose links must be all of the index, or as many as the limit allows."""
    body = {"url": site.url("/"), "sitemap": "only", "limit": 100_000, **options}
    began = time.monotonic()
    links = service.client.ok("POST", "/v2/map", body)["links"]
    took = time.monotonic() - began
    kinds = ("article", "docs", "product", "listing", "table", "long")
    found = sum(1 for link in links if link["url"].removeprefix(site.url("/")).split("/")[0] in kinds)
    # A limit may cut some of them off, for a second sitemap lists a few others.
    if found < count and len(links) < body["limit"]:
        raise RuntimeError(f"{found} of {count} addresses")
    return took


class Peak:
    """The most resident bytes of a process, looked at every 5 ms."""

    def __init__(self, pid):
        self.pid, self.top, self.running = pid, 0, True
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while self.running:
            found = stat(self.pid)
            self.top = max(self.top, found[2] if found else 0)
            time.sleep(0.005)

    def stop(self):
        self.running = False
        self.thread.join()
        return self.top
