#!/usr/bin/env python3
"""Runs the benchmarks by name and prints one line per figure: value, target, ratio to what it is compared with.

The figures are those of the README's table; each function in figures.py and history.py says how it measures.
"""
import argparse
import os
import signal
import sys
import time

import cached
import figures
import history
import interact
import maps
import parses
import quality
import searches
import sessions
import team
import templates
import traced
from world import Postgres, Site

NAMES = {
    "static": figures.static,
    "crawl": figures.crawl,
    "map": maps.maps,
    "search": searches.searches,
    "parse": parses.parses,
    "scripts": figures.scripts,
    "latency": figures.latency,
    "cache": cached.cache,
    "enqueue": figures.enqueue,
    "status": history.status,
    "memory": figures.memory,
    "history": history.history,
    "sessions": sessions.sessions,
    "interact": interact.interact,
    "team": team.team,
    "limits": team.limits,
    "traces": traced.traces,
    "quality": quality.quality,
    "templates": templates.templates,
}


class Report:
    """Prints a line for each figure and remembers which targets were missed. `failed` is set by a benchmark whose
    misses are faults on any machine; the others' depend on it."""

    def __init__(self):
        self.missed = []
        self.failed = False

    def line(self, name, value, unit, target=None, ratio=None, note=""):
        """`target` is (sign, number) with the sign <= or >=; `ratio` is (number, what it is compared with)."""
        text = f"{name:<46} {value:>10.{2 if value < 100 else 0}f} {unit:<12}"
        if target:
            sign, bound = target
            met = value <= bound if sign == "<=" else value >= bound
            text += f" {sign} {bound:g} {'met' if met else 'MISSED'}"
            if not met:
                self.missed.append(name)
        if ratio:
            text += f"  ({ratio[0]:.2f}x {ratio[1]})"
        if note:
            text += f"  [{note}]"
        print(text, flush=True)


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown CPU")
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return f"{os.cpu_count()} cores of {model}, {memory / 1e6:.0f} GB, load {os.getloadavg()[0]:.1f}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="says what each one measures")
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--small", action="store_true", help="a tenth of the pages")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if options.list:
        for name, function in NAMES.items():
            print(f"{name:<10} {' '.join(function.__doc__.split())}")
        return 0

    # A terminated run still ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"machine: {machine()}")
    report, site, postgres = Report(), Site(), None
    try:
        databases = {}
        if options.database in ("sqlite", "both"):
            databases["sqlite"] = None
        if options.database in ("postgres", "both"):
            databases["postgres"] = postgres = Postgres()
        for name in options.names or NAMES:
            began = time.monotonic()
            print(f"-- {name}", flush=True)
            NAMES[name](report, site, databases, 0.1 if options.small else 1.0)
            print(f"-- {name}: {time.monotonic() - began:.0f} s", flush=True)
    finally:
        site.stop()
        if postgres:
            postgres.stop()
    print("targets missed: " + ", ".join(report.missed) if report.missed else "every target was met")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
