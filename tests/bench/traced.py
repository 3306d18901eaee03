"""What traces cost: the same pages with and without a collector."""
import statistics
import sys
import time
from pathlib import Path

from figures import run_batch
from world import Client, Process, Service, free_port, wait_for

COLLECTOR = Path(__file__).with_name("collector.py")
PAIRS = 10


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
    """A batch of 5,000 /mix pages with WEIR_OTLP_URL and without it, ten pairs, of which every second begins with the traces:
    pages/s, CPU ms a page, how many spans arrive. A machine whose speed swings does so between pairs more than within one, so
    the ratios are medians of the pairs' own."""
    count = int(5_000 * scale)
    paths = [f"/mix/{n}" for n in range(count)]
    urls = [site.url(path) for path in paths]
    site.warm(paths)
    for name, postgres in databases.items():
        collector = Collector()
        off, on = Service(postgres), None
        try:
            on = Service(postgres, env={"WEIR_OTLP_URL": f"http://127.0.0.1:{collector.port}"})
            for service in (off, on):
                service.finished(service.batch(urls[:500]))
                service.rest()
            time.sleep(2)                                                   # the spans of the warm-up have been sent
            before = collector.spans()
            pairs = []
            for turn in range(PAIRS):
                pair = {}
                for what, service in (("off", off), ("on", on))[::-1 if turn % 2 else 1]:
                    cpu = sum(service.cpu())
                    wall, *_ = run_batch(service, urls)
                    service.rest()
                    time.sleep(1.5)                                         # what waits for the collector is sent
                    pair[what] = (count / wall, 1000 * (sum(service.cpu()) - cpu) / count)
                pairs.append(pair)
            got = (collector.spans() - before) / (PAIRS * count)
            rate, cpu = ([statistics.median(pair[what][n] for pair in pairs) for what in ("off", "on")] for n in (0, 1))
            rate_ratio, cpu_ratio = (statistics.median(pair["on"][n] / pair["off"][n] for pair in pairs) for n in (0, 1))
            report.line(f"traces, {name}: throughput without", rate[0], "pages/s")
            report.line(f"traces, {name}: throughput with", rate[1], "pages/s", (">=", round(rate[1] * 0.97 / rate_ratio)),
                        ratio=(rate_ratio, "without"))
            report.line(f"traces, {name}: CPU, all processes", cpu[1], "ms/page", ratio=(cpu_ratio, "without"))
            report.line(f"traces, {name}: spans that arrive", got, "a page")
        finally:
            collector.stop()
            off.close()
            if on:
                on.close()
