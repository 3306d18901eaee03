"""What a team asks about itself, with a million calls behind it: activity, usage, queue."""
import json
import statistics
import time

from figures import percentile
from history import SQLITE_UUID
from world import Service

# The shares of the last day's calls; a filter for the rarest has to step over all the others.
ENDPOINTS = ["scrape"] * 90 + ["batch_scrape"] * 5 + ["crawl"] * 3 + ["map"] * 2
DAY = 86_400_000


def add_calls(service, team, rows):
    """`rows` calls of a team spread over the last day, and as many entries of its ledger over the last year."""
    now = int(time.time() * 1000)
    endpoint = "CASE " + " ".join(f"WHEN n.i % 100 < {ENDPOINTS.index(word) + ENDPOINTS.count(word)} THEN '{word}'"
                                  for word in dict.fromkeys(ENDPOINTS)) + " END"

    def text(make_id, numbers):
        return f"""
        BEGIN;
        INSERT INTO activity (team_id, created_at, id, endpoint, target)
            SELECT '{team}', {now} - ({DAY} - 600000) / {rows} * CAST(n.i AS BIGINT), {make_id}, {endpoint}, 'https://site.example/page/' || n.i
            FROM {numbers};
        INSERT INTO credit_entry (key, team_id, api_key_id, kind, amount, created_at)
            SELECT 'bench:' || n.i, '{team}', (SELECT MIN(id) FROM api_key WHERE team_id = '{team}'), 'scrape', 1,
                {now} - CAST(n.i AS BIGINT) % 365 * {DAY} FROM {numbers};
        COMMIT;
        """
    service.sql(text(SQLITE_UUID, f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n) AS n"),
                text("gen_random_uuid()::text", f"generate_series(1, {rows}) AS n(i)"))


def team(report, site, databases, scale):
    """Reads of activity (first page, each filter, page 300), usage, its history and the queue status, one after
    another, with 1,000,000 calls of the last day and as many ledger entries."""
    rows, reads = int(1_000_000 * scale), 200
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            owner = next(t["id"] for t in json.loads(service.command("team", "list", "--json")) if t["name"] == "bench")
            add_calls(service, owner, rows)
            if postgres:
                service.sql("", "VACUUM ANALYZE activity;")
                service.sql("", "VACUUM ANALYZE credit_entry;")
            far = service.client.ok("GET", "/v2/team/activity?limit=100")["cursor"]
            for _ in range(300):
                far = service.client.ok("GET", f"/v2/team/activity?limit=100&cursor={far}")["cursor"]
            paths = {"activity, first page": "/v2/team/activity?limit=100", "activity, page 300": f"/v2/team/activity?limit=100&cursor={far}",
                     "activity, rare filter": "/v2/team/activity?limit=100&endpoint=map",
                     "activity, filter without a match": "/v2/team/activity?endpoint=agent",
                     "usage": "/v2/team/credit-usage", "usage by month": "/v2/team/credit-usage/historical",
                     "usage by key": "/v2/team/credit-usage/historical?byApiKey=true", "queue status": "/v2/team/queue-status",
                     "concurrency check": "/v2/concurrency-check"}
            for label, path in paths.items():
                service.client.ok("GET", path)
                times = []
                for _ in range(reads):
                    began = time.perf_counter()
                    service.client.ok("GET", path)
                    times.append(1000 * (time.perf_counter() - began))
                report.line(f"team, {name}: {label}, p95", percentile(times, 0.95), "ms", ("<=", 20),
                            note=f"p50 {statistics.median(times):.2f}, {rows} calls")
        finally:
            service.close()


def limits(report, site, databases, scale):
    """Reads of the active crawls and scrapes one after another, with the rate limits of a default installation and without
    any: what counting over all processes costs."""
    reads, scrapes = int(10_000 * scale), int(80 * scale)
    paths = [f"/small/{n}" for n in range(scrapes)]
    site.warm(paths)
    for name, postgres in databases.items():
        figures = {}
        for label, rates in (("off", "off"), ("on", "scrape=100,status=25000")):
            service = Service(postgres, env={"WEIR_RATE_LIMITS": rates})
            try:
                client = service.client
                for path in paths[:10]:
                    client.ok("POST", "/v2/scrape", {"url": site.url(path), "maxAge": 0})
                for what, calls in (("reads", [("GET", "/v2/crawl/active", None)] * reads),
                                    ("scrapes", [("POST", "/v2/scrape", {"url": site.url(path), "maxAge": 0}) for path in paths])):
                    times = []
                    for call in calls:
                        began = time.perf_counter()
                        client.ok(*call)
                        times.append(1000 * (time.perf_counter() - began))
                    figures[what, label] = statistics.mean(times), statistics.median(times), percentile(times, 0.99)
            finally:
                service.close()
        for what in ("reads", "scrapes"):
            (off, *_), (on, p50, p99) = figures[what, "off"], figures[what, "on"]
            report.line(f"limits, {name}: {what}, mean with limits", on, "ms", ratio=(on / off, "without"), note=f"p50 {p50:.2f}, p99 {p99:.2f}")
