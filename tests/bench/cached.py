"""What the cache of pages saves, and what it costs."""
import statistics
import time

from figures import percentile, run_batch
from world import Service


def cache(report, site, databases, scale):
    """Scrapes of /article pages that the cache has, one after another, against reads of a stored scrape; then batches of
    2,000 /mix pages that are asked for, with the cache (each is stored) and without: CPU ms a page, the best of three; and
    the stored ones again in other formats, which asks the site for nothing: ms a page."""
    count, pages = int(400 * scale), int(2000 * scale)
    paths, mix = [f"/article/{n}" for n in range(100)], [f"/mix/{n}" for n in range(pages)]
    site.warm(paths + mix)
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            for path in paths:
                last = service.client.ok("POST", "/v2/scrape", {"url": site.url(path)})
            read = "/v2/scrape/" + last["data"]["metadata"]["scrapeId"]
            times = {"reads": [], "scrapes": []}
            for n in range(count):
                for what, call in (("reads", ("GET", read)), ("scrapes", ("POST", "/v2/scrape", {"url": site.url(paths[n % 100])}))):
                    began = time.perf_counter()
                    answer = service.client.ok(*call)
                    times[what].append(1000 * (time.perf_counter() - began))
                if answer["data"]["metadata"].get("cacheState") != "hit":
                    raise RuntimeError(f"no hit: {answer['data']['metadata']}")
            bare, p50 = statistics.median(times["reads"]), statistics.median(times["scrapes"])
            report.line(f"cache, {name}: cached scrape, p50", p50, "ms", ("<=", 5), ratio=(p50 / bare, "a bare read"),
                        note=f"p95 {percentile(times['scrapes'], 0.95):.2f}, read {bare:.2f}")
        finally:
            service.close()
        cost = {}
        for size in ("1GB", "0"):
            service = Service(postgres, env={"WEIR_CACHE_SIZE": size})
            try:
                urls = [site.url(path) for path in mix]
                service.finished(service.batch(urls[:100]))
                runs = [run_batch(service, urls) for _ in range(3)]
                cost[size] = min(1000 * (cpu + cpu_postgres) / pages for _, cpu, cpu_postgres, _, _ in runs)
                if size != "0":
                    formats = ["html", "links", "rawHtml"]
                    again = min(run_batch(service, urls, formats=formats, maxAge=600_000)[0] for _ in range(3))
                    report.line(f"cache, {name}: stored page in other formats", 1000 * again / pages, "ms/page", ("<=", 2))
            finally:
                service.close()
        report.line(f"cache, {name}: CPU of storing a page", cost["1GB"] - cost["0"], "ms/page", ("<=", 0.15),
                    ratio=(cost["1GB"] / cost["0"], "a page that is stored, to one that is not"))
