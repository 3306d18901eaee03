"""Interaction with scrapes: what the first call and later ones cost beyond the page and the code."""
import statistics

from sessions import milliseconds, warmed
from world import Service


def interact(report, site, databases, scale):
    """Interaction with a scrape: first call with a warm browser beyond the page's own load, later calls beyond a bare read of
    the session, a stop."""
    rounds = max(3, int(20 * scale))
    site.warm(["/article/5"])
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            client = service.client
            firsts, loads, laters, reads, stops = [], [], [], [], []
            for _ in range(rounds):
                scrape = client.ok("POST", "/v2/scrape", {"url": site.url("/article/5"), "maxAge": 0})["data"]["metadata"]["scrapeId"]
                path = f"/v2/scrape/{scrape}/interact"
                run = lambda code: client.ok("POST", path, {"code": code, "language": "node", "timeout": 60})
                warmed(service)
                took, answer = milliseconds(lambda: run("await page.title()"))
                firsts.append(took)
                # The same page once more in the same browser: what its load takes.
                load = run("const began = Date.now(); await page.goto(page.url()); Date.now() - began")
                loads.append(float(load["result"]))
                session = f"/v2/browser/{answer['sessionId']}"
                for _ in range(10):
                    laters.append(milliseconds(lambda: run("21 * 2"))[0])
                    reads.append(milliseconds(lambda: client.ok("GET", session))[0])
                stops.append(milliseconds(lambda: client.ok("DELETE", path))[0])
            load = statistics.median(loads)
            report.line(f"interact, {name}: first call beyond the load, p50", (statistics.median(firsts) - load) / 1000, "s", ("<=", 1.2),
                        note=f"the page's own load {load:.0f} ms")
            report.line(f"interact, {name}: later calls add, p50", statistics.median(laters) - statistics.median(reads), "ms", ("<=", 10),
                        note="above a bare read of the session")
            report.line(f"interact, {name}: stop, p50", statistics.median(stops), "ms")
        finally:
            service.close()
