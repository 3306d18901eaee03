"""Figures that depend on how much is in the database already: status reads, and the cost of a page beside a long history.

The history is written with SQL as copies of one real page: a million scrapes would take an hour.
"""
import multiprocessing
import selectors
import socket
import time
import uuid

from world import Service

# A random UUID as text; SQLite has no function for it.
SQLITE_UUID = ("lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-7' || substr(hex(randomblob(2)), 2) || '-a' || "
               "substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))")


def add_finished_batch(service, model, pages):
    """A finished batch of `pages` pages: each with its row, document and credit, copied from a page of batch `model`."""
    batch = str(uuid.uuid4())
    now = int(time.time() * 1000)

    def text(make_id, numbers):
        return f"""
        BEGIN;
        INSERT INTO job (id, team_id, api_key_id, kind, status, rank, options, target, total, queued, completed, failed,
                         credits_used, created_at, expires_at, finished_at)
            SELECT '{batch}', team_id, api_key_id, kind, 'completed', rank, options, target, {pages}, 0, {pages}, 0, {pages},
                   {now}, expires_at, {now} FROM job WHERE id = '{model}';
        INSERT INTO page (id, job_id, team_id, idx, url, state, run_at, queued_at, started_at, finished_at, claims, epoch)
            SELECT {make_id}, '{batch}', team_id, n.i - 1, url, 'done', {now}, {now}, {now}, {now}, 1, 1
            FROM page, {numbers} WHERE page.job_id = '{model}' AND page.idx = 0;
        INSERT INTO document (job_id, seq, page_id, size, body, blob)
            SELECT '{batch}', page.idx + 1, page.id, document.size, document.body, document.blob
            FROM page, document WHERE page.job_id = '{batch}' AND document.page_id =
                (SELECT id FROM page WHERE job_id = '{model}' AND idx = 0);
        INSERT INTO credit_entry (key, team_id, kind, amount, created_at)
            SELECT 'bench:' || id, team_id, 'batch_scrape', 1, {now} FROM page WHERE job_id = '{batch}';
        COMMIT;
        """
    sqlite = text(SQLITE_UUID, f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {pages}) SELECT i FROM n) AS n")
    postgres = text("gen_random_uuid()::text", f"generate_series(1, {pages}) AS n(i)")
    service.sql(sqlite, postgres)
    return batch


def readers(port, requests, connections, seconds, results):
    """One process that keeps `connections` connections busy with the same request for `seconds`, and counts answers."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ, bytearray())
        sock.sendall(requests)
    count, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        for key, _ in selector.select(0.5):
            data = key.fileobj.recv(262144)
            if not data:
                raise RuntimeError("the connection was closed")
            buffer = key.data
            buffer += data
            head = buffer.find(b"\r\n\r\n")
            if head < 0:
                continue
            start = buffer.lower().find(b"content-length:", 0, head)
            length = int(buffer[start + 15:buffer.find(b"\r\n", start)])
            if len(buffer) >= head + 4 + length:
                if not buffer.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(bytes(buffer[:300]))
                count += 1
                buffer.clear()
                key.fileobj.sendall(requests)
    results.put(count)


def reads_per_second(service, path, seconds):
    """Answers a second over 8 kept-alive connections, held by two processes."""
    request = (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {service.key}\r\n\r\n").encode()
    results = multiprocessing.Queue()
    clients = [multiprocessing.Process(target=readers, args=(service.port, request, 4, seconds, results)) for _ in range(2)]
    for client in clients:
        client.start()
    total = sum(results.get(timeout=seconds + 30) for _ in clients)
    for client in clients:
        client.join()
    return total / seconds


def status(report, site, databases, scale):
    """GET of a finished batch's status with limit=1, over 8 kept-alive connections, for 500 pages and for 50,000."""
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            small = service.batch([site.url(f"/mix/{n}") for n in range(500)])
            service.finished(small)
            many = int(50_000 * scale)
            large = add_finished_batch(service, small, many)
            seconds = max(2.0, 8 * scale)
            rates = {}
            for label, batch in (("500 pages", small), ("many pages", large)):
                reads_per_second(service, f"/v2/batch/scrape/{batch}?limit=1", 1)
                rates[label] = reads_per_second(service, f"/v2/batch/scrape/{batch}?limit=1", seconds)
            report.line(f"status, {name}: reads of a batch of 500 pages", rates["500 pages"], "per s", (">=", 3000))
            report.line(f"status, {name}: reads of a batch of {many} pages", rates["many pages"], "per s", (">=", 3000),
                        ratio=(rates["many pages"] / rates["500 pages"], "500 pages"))
            full = reads_per_second(service, f"/v2/batch/scrape/{small}", seconds)
            report.line(f"status, {name}: full pages of results", full, "per s", note="100 documents each")
        finally:
            service.close()


def cost(service, site, count, offset):
    """CPU ms a page over all processes, pages/s and the mean claim in ms, for a batch of small pages."""
    before, cpu = service.metrics(), sum(service.cpu())
    began = time.monotonic()
    service.finished(service.batch([site.url(f"/mix/{n}") for n in range(offset, offset + count)]))
    wall = time.monotonic() - began
    after, now = service.metrics(), sum(service.cpu())
    claims = after.get("weir_claim_seconds_count", 0) - before.get("weir_claim_seconds_count", 0)
    seconds = after.get("weir_claim_seconds_sum", 0) - before.get("weir_claim_seconds_sum", 0)
    return 1000 * (now - cpu) / count, count / wall, 1000 * seconds / max(1, claims)


def history(report, site, databases, scale):
    """CPU a page and the claim's time with 1,000 and with 1,000,000 finished pages in the database."""
    count, long = int(2000 * scale), int(1_000_000 * scale)
    site.warm([f"/mix/{n}" for n in range(2 * count)])
    for name, postgres in databases.items():
        service = Service(postgres)
        try:
            model = service.batch([site.url(f"/small/{n}") for n in range(1000)])
            service.finished(model)
            cost(service, site, count, 0)                               # warm
            short = cost(service, site, count, 0)
            began = time.monotonic()
            for start in range(0, long, 100_000):
                add_finished_batch(service, model, min(100_000, long - start))
            if postgres:
                for table in ("job", "page", "document", "credit_entry"):
                    service.sql("", f"VACUUM ANALYZE {table};")
            written = time.monotonic() - began
            cost(service, site, count // 4, count)                      # the caches settle
            late = cost(service, site, count, count)
            report.line(f"history, {name}: CPU with {long} finished", late[0], "ms/page", ratio=(late[0] / short[0], "with 1,000, <= 1.2 wanted"),
                        note=f"rows written in {written:.0f} s")
            report.line(f"history, {name}: one claim", late[2], "ms", ratio=(late[2] / max(short[2], 1e-9), "with 1,000, <= 1.2 wanted"))
            report.line(f"history, {name}: throughput", late[1], "pages/s", ratio=(late[1] / short[1], "with 1,000"))
        finally:
            service.close()
