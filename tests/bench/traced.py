"""What traces cost: the same pages with and without a collector."""
import statistics
import sys
import time
from pathlib import Path

from figures import run_batch
from world import Client, Process, Service, free_port, wait_for

COLLECTOR = Path(__file__).with_name("collector.py")


class Collector:
    """A collector that counts spans, as a process of its own: its CPU is not the service's."""

    def __init__(self):
        self.port = free_port()
        self.process = Process([sys.executable, COLLECTOR, self.port])
        wait_for("the collector", self.answers)

    def answers(self):
        try:
            return Client(self.port).call("GET", "/")[0] == 200
        except OSError:
            return False

    def spans(self):
        """How many it has got."""
        return int(Client(self.port).call("GET", "/")[1])

    def stop(self):
        self.process.stop()


def traces(report, site, databases, scale):
    """A batch of 10,000 /mix pages with WEIR_OTLP_URL and without it, in turn, five times each: pages/s and CPU ms a page, and
    how many spans arrive."""
    count = int(10_000 * scale)
    paths = [f"/mix/{n}" for n in range(count)]
    urls = [site.url(path) for path in paths]
    site.warm(paths)
    for name, postgres in databases.items():
        collector = Collector()
        off, on = Service(postgres), None
        try:
            on = Service(postgres, env={"WEIR_OTLP_URL": f"http://127.0.0.1:{collector.port}"})
            figures = {"off": [], "on": []}
            for service in (off, on):
                service.finished(service.batch(urls[:100]))
                service.rest()
            time.sleep(2)                                                   # the spans of the warm-up have been sent
            before = collector.spans()
            for _ in range(5):
                for what, service in (("off", off), ("on", on)):
                    cpu = sum(service.cpu())
                    wall, *_ = run_batch(service, urls)
                    time.sleep(1.5)                                         # what waits for the collector is sent
                    figures[what].append((count / wall, 1000 * (sum(service.cpu()) - cpu) / count))
            got = (collector.spans() - before) / (5 * count)
            rate = {what: statistics.median(run[0] for run in runs) for what, runs in figures.items()}
            cpu = {what: statistics.median(run[1] for run in runs) for what, runs in figures.items()}
            report.line(f"traces, {name}: throughput without", rate["off"], "pages/s")
            report.line(f"traces, {name}: throughput with", rate["on"], "pages/s", (">=", round(0.97 * rate["off"])),
                        ratio=(rate["on"] / rate["off"], "without"))
            report.line(f"traces, {name}: CPU, all processes", cpu["on"], "ms/page", ratio=(cpu["on"] / cpu["off"], "without"))
            report.line(f"traces, {name}: spans that arrive", got, "a page")
        finally:
            collector.stop()
            off.close()
            if on:
                on.close()
