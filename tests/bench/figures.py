"""Throughput, latency, enqueue and memory. Every CPU figure is read from /proc over all processes of the service."""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from world import BIN, ROOT, Client, Process, Service, Stopwatch, cpu_of, stat, wait_for

sys.path.insert(0, str(ROOT / "tests/site"))
import testsite  # noqa: E402  the site's own code says what a page must contain

MB = 1 << 20


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def truth(path):
    return json.loads(testsite.truth(path)[2])


def markers(documents, prefix):
    """Share of the main markers found and of the boilerplate markers leaked, in percent, and the pages seen."""
    found = wanted = leaked = boilerplate = pages = 0
    for document in documents:
        right = truth(document["metadata"]["sourceURL"][len(prefix):])
        text = document["markdown"]
        pages += 1
        wanted += len(right["main"])
        found += sum(marker in text for marker in right["main"])
        boilerplate += len(right["boilerplate"])
        leaked += sum(marker in text for marker in right["boilerplate"])
    return 100 * found / max(1, wanted), 100 * leaked / max(1, boilerplate), pages


def bare(kind, urls, at_once):
    """The same pages through the same fetch (or the same Chromium) and extraction in one process, with no service and
    no database around: the worker crate's example `bare_loop`. Gives pages/s and CPU ms a page (of Chromium too, its start
    included), or None without it."""
    program = BIN / "examples/bare_loop"
    if not program.exists():
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+") as given:
        given.write("\n".join(urls))
        given.seek(0)
        process = subprocess.Popen([program, kind, str(at_once)], stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "WEIR_ALLOW_NETS": "127.0.0.0/8"})
        browser = 0.0
        while kind == "browser" and process.poll() is None:             # rarely: looking takes CPU from the loop
            browser = max(browser, cpu_of([process.pid]))
            time.sleep(0.2)
        said, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(f"bare_loop: {complaint[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cpu = max(own, browser)                                                 # a killed browser's time is in no account
    answer = json.loads(said.strip().splitlines()[-1])
    return answer["pages"] / answer["seconds"], 1000 * cpu / answer["pages"]


def beside_bare(report, name, rate, before, again, bar):
    """The ratio of a batch's rate to the bare loop's before and after it, whose mean follows the machine's own swings.
    Gives the bare loop after it, which is the next one's before."""
    if not before:
        return None
    after = bare(*again)
    report.line(f"{name}: ratio to the bare loop", 2 * rate / (before[0] + after[0]), "", (">=", bar),
                note=f"{before[0]:.0f} pages/s before, {after[0]:.0f} after")
    return after


def run_batch(service, urls, **options):
    """Wall seconds, CPU seconds of service and Postgres, the batch's id and last status."""
    cpu, cpu_postgres = service.cpu()
    began = time.monotonic()
    batch = service.batch(urls, **options)
    status = service.finished(batch)
    wall = time.monotonic() - began
    now, now_postgres = service.cpu()
    return wall, now - cpu, now_postgres - cpu_postgres, batch, status


def static(report, site, databases, scale):
    """A batch of 5,000 /mix pages to markdown with one worker: pages/s, CPU ms a page, markers, browser visits, disk."""
    count = int(5000 * scale)
    paths = [f"/mix/{n}" for n in range(count)]
    urls = [site.url(path) for path in paths]
    site.warm(paths)
    loop = bare("http", urls, 16)
    if loop:
        report.line("static: bare loop", loop[0], "pages/s", note=f"{loop[1]:.2f} CPU ms a page, 16 at once")
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            service.finished(service.batch(urls[:100]))                 # connections and caches are warm
            service.rest()
            before_disk, before_pages = service.disk(), service.metrics()
            wall, cpu, cpu_postgres, batch, status = run_batch(service, urls)
            after_pages = service.metrics()
            rate = count / wall
            report.line(f"static, {name}: throughput", rate, "pages/s")
            loop = beside_bare(report, f"static, {name}", rate, loop, ("http", urls, 16), 0.6 if name == "sqlite" else 0.5)
            note = "API and worker" + (f"; Postgres {1000 * cpu_postgres / count:.2f}" if postgres else "")
            report.line(f"static, {name}: CPU, all processes", 1000 * (cpu + cpu_postgres) / count, "ms/page", ("<=", 4), note=note)
            recall, leakage, pages = markers(service.documents(batch), site.url(""))
            report.line(f"static, {name}: main markers found", recall, "%", (">=", 99.9), note=f"{pages} documents, {status['completed']} completed")
            report.line(f"static, {name}: boilerplate markers leaked", leakage, "%", ("<=", 1))
            browser = sum(value - before_pages.get(key, 0) for key, value in after_pages.items()
                          if key.startswith("weir_pages_total") and 'engine="browser"' in key)
            report.line(f"static, {name}: pages sent to the browser", 100 * browser / count, "%", ("<=", 0.2))
            report.line(f"static, {name}: disk", (service.disk() - before_disk) / MB / count * 1000, "MB/1000 p")
        finally:
            service.close()


def crawl(report, site, databases, scale):
    """A crawl of the 1,111 pages of /crawl/ against a batch of the same pages with one worker: pages/s, their ratio, CPU ms
    a page. The best of three of each, in turn, after a small one of both."""
    tree = ["/crawl/"]
    for page in tree:
        if page.count("/") < 5:
            tree.extend(f"{page}{n}/" for n in range(10))
    urls = [site.url(path) for path in tree]
    site.warm(tree)
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            service.finished(service.batch(urls[:111]))
            run_crawl(service, site.url("/crawl/"), maxDiscoveryDepth=1)
            batches, crawls = [], []
            for _ in range(3):
                wall, cpu, cpu_postgres, _, status = run_batch(service, urls)
                batches.append((wall, cpu + cpu_postgres, status["completed"]))
                crawls.append(run_crawl(service, site.url("/crawl/")))
            for what, runs in (("batch", batches), ("crawl", crawls)):
                if any(pages != len(urls) for *_, pages in runs):
                    raise RuntimeError(f"a {what} gave {[pages for *_, pages in runs]} pages")
            wall, cpu, pages = min(crawls)
            rate, batch_rate = pages / wall, len(urls) / min(batches)[0]
            report.line(f"crawl, {name}: batch of the same pages", batch_rate, "pages/s")
            report.line(f"crawl, {name}: throughput", rate, "pages/s", (">=", round(0.6 * batch_rate)),
                        ratio=(rate / batch_rate, "the batch, >= 0.6 wanted"))
            report.line(f"crawl, {name}: CPU, all processes", 1000 * cpu / pages, "ms/page",
                        note=f"{1000 * min(batches)[1] / len(urls):.2f} in the batch")
        finally:
            service.close()


def run_crawl(service, url, **options):
    """Wall seconds, CPU seconds with Postgres, and the pages of a crawl of the tree."""
    body = {"url": url, "sitemap": "skip", "ignoreQueryParameters": True, "scrapeOptions": {"maxAge": 0}, **options}
    cpu = sum(service.cpu())
    began = time.monotonic()
    path = f"/v2/crawl/{service.client.ok('POST', '/v2/crawl', body)['id']}?limit=1"
    status = wait_for("the end of the crawl", lambda: ended(service, path), 300, 0.02)
    return time.monotonic() - began, sum(service.cpu()) - cpu, status["completed"]


def ended(service, path):
    status = service.client.ok("GET", path)
    return status if status["status"] != "scraping" else None


def scripts(report, site, databases, scale):
    """300 /js pages through Chromium against a bare CDP loop with the same Chromium, 100 pages whose content comes 300 ms
    after load, and whether every /js/render, timer, fetch and chain page is complete without waitFor."""
    count = int(300 * scale)
    urls = [site.url(f"/js/render/{n}") for n in range(count)]
    loop = bare("browser", urls, 8)
    if loop:
        report.line("scripts: bare CDP loop", loop[0], "pages/s", note=f"{loop[1]:.0f} CPU ms a page, 8 at once")
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            service.finished(service.batch([site.url(f"/js/render/{n}") for n in range(9000, 9010)]))
            wall, cpu, cpu_postgres, batch, _ = run_batch(service, urls)
            rate = count / wall
            report.line(f"scripts, {name}: throughput", rate, "pages/s")
            before, loop = loop, beside_bare(report, f"scripts, {name}", rate, loop, ("browser", urls, 8), 0.8)
            each = 1000 * (cpu + cpu_postgres) / count
            report.line(f"scripts, {name}: CPU, all processes", each, "ms/page", ("<=", 105),
                        ratio=(2 * each / (before[1] + loop[1]), "bare") if loop else None)
            recall, _, pages = markers(service.documents(batch), site.url(""))
            report.line(f"scripts, {name}: main markers found", recall, "%", (">=", 99.9), note=f"{pages} documents")
            late = int(100 * scale)
            wall, *_ = run_batch(service, [site.url(f"/js/timer/{n}?delay=300") for n in range(late)])
            report.line(f"scripts, {name}: {late} pages, content after 300 ms", wall, "s", ("<=", 10))
            if name == next(iter(databases)):
                for kind in ("render", "timer", "fetch", "chain"):
                    kinds = int(50 * scale) or 5
                    *_, batch, _ = run_batch(service, [site.url(f"/js/{kind}/{n}") for n in range(kinds)])
                    recall, _, pages = markers(service.documents(batch), site.url(""))
                    report.line(f"scripts: /js/{kind} complete without waitFor", recall, "%", (">=", 100), note=f"{pages} of {kinds} documents")
        finally:
            service.close()


def latency(report, site, databases, scale):
    """One /v2/scrape of a static page after another: time added to the bare fetch and extraction of the same pages; then
    from idle: time until the target sees the request; and the CPU of an idle service."""
    count = int(400 * scale)
    paths = [f"/article/{n}" for n in range(count)]
    site.warm(paths)
    fetcher = Client(site.port)
    plain = []
    for path in paths:
        began = time.perf_counter()
        fetcher.call("GET", path)
        plain.append(1000 * (time.perf_counter() - began))
    loop = bare("http", [site.url(path) for path in paths], 1)
    base = 1000 / loop[0] if loop else statistics.median(plain)
    report.line("latency: bare", base, "ms", note="fetch and extraction in one process" if loop else "fetch alone; bare_loop is not built")
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            for n in range(30):
                service.client.ok("POST", "/v2/scrape", {"url": site.url(f"/article/{5000 + n}"), "maxAge": 0})
            stopwatch = Stopwatch(service.client.port, service.key)
            times = [stopwatch.post("/v2/scrape", {"url": site.url(path), "maxAge": 0}) for path in paths]
            p50, p95 = statistics.median(times), percentile(times, 0.95)
            report.line(f"latency, {name}: added, p50", p50 - base, "ms", ("<=", 4), ratio=(p50 / base, "bare"))
            report.line(f"latency, {name}: added, p95", p95 - base, "ms", ("<=", 20), ratio=(p95 / base, "bare"))

            picked = []
            for n in range(int(40 * scale) or 4):
                time.sleep(0.4)                                         # idle is what is measured
                sent = time.time()
                service.client.ok("POST", "/v2/scrape", {"url": site.url(f"/small/{n}"), "maxAge": 0})
                seen = [request["at"] for request in site.control("recent?prefix=/small/") if request["path"] == f"/small/{n}"]
                picked.append(1000 * (seen[-1] - sent))
            report.line(f"latency, {name}: idle pick-up, p50", statistics.median(picked), "ms", ("<=", 5), note="request sent to target reached")

            time.sleep(2)
            seconds = max(3.0, 20 * scale)
            cpu, cpu_postgres = service.cpu()
            time.sleep(seconds)
            now, now_postgres = service.cpu()
            note = f"over {seconds:.0f} s" + (f"; Postgres {100 * (now_postgres - cpu_postgres) / seconds:.2f} %" if postgres else "")
            report.line(f"latency, {name}: idle CPU", 100 * (now - cpu) / seconds, "% of a core", ("<=", 1), note=note)
        finally:
            service.close()


def enqueue(report, site, databases, scale):
    """POST /v2/batch/scrape with 10,000 addresses in one call, until its answer; the worker starts on them meanwhile."""
    count = int(10_000 * scale)
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            times = []
            for run in range(3):
                urls = [site.url(f"/small/{run * count + n}") for n in range(count)]
                began = time.monotonic()
                batch = service.batch(urls)
                times.append(time.monotonic() - began)
                service.client.ok("DELETE", f"/v2/batch/scrape/{batch}")
            report.line(f"enqueue, {name}: {count} addresses", statistics.median(times), "s", ("<=", 1.0),
                        note=f"{count / statistics.median(times):.0f}/s; median of 3")
        finally:
            service.close()


def memory(report, site, databases, scale):
    """Resident memory of API and worker, Chromium aside, idle and after 20,000 pages; time from start to the first scrape."""
    count = int(20_000 * scale)
    for name, postgres in databases.items():
        service = Service(postgres, start=False)
        try:
            service.start()
            service.stop()
            starts = []
            for _ in range(5):
                began = time.monotonic()
                service.processes = [Process([BIN / "weir", "serve"], service.env, service.folder / "api.log", service.folder),
                                     Process([BIN / "weir-worker"], service.env, service.folder / "worker-0.log", service.folder)]
                wait_for("the first scrape", lambda: scraped(service, site), 30, 0.002)
                starts.append(time.monotonic() - began)
                service.stop()
            report.line(f"memory, {name}: start to first scrape", statistics.median(starts), "s", ("<=", 0.3), note="median of 5")

            service.start()
            time.sleep(3)
            each = ", ".join(f"{stat(pid)[2] / MB:.0f}" for pid in service.pids)
            report.line(f"memory, {name}: idle", service.resident() / MB, "MB", ("<=", 40), note=f"API, worker: {each}")
            quarter = []
            for part in range(4):
                urls = [site.url(f"/mix/{n}") for n in range(part * count // 4, (part + 1) * count // 4)]
                service.finished(service.batch(urls))
                quarter.append(service.resident() / MB)
            time.sleep(3)
            report.line(f"memory, {name}: after {count} pages", service.resident() / MB, "MB", ("<=", 100),
                        note="after each quarter: " + ", ".join(f"{value:.0f}" for value in quarter))
        finally:
            service.close()


def scraped(service, site):
    try:
        client = Client(service.port, service.key)
        return client.call("POST", "/v2/scrape", {"url": site.url("/small/1"), "maxAge": 0})[0] == 200
    except OSError:
        return False
