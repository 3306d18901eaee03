"""The official Python SDK, unmodified, against a running service.

Reads WEIR_URL, WEIR_KEY, WEBHOOK_SECRET and SITE_URL (the test site) from the environment.
Closes with the line "N passed, N failed".
"""
import asyncio
import contextlib
import http.server
import inspect
import json
import os
import sys
import threading
import time
import unittest
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

import requests
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.types import (
    ClickAction, DocumentMetadata, ExecuteJavascriptAction, Location, PaginationConfig, ParseOptions, PDFAction, PDFParser, PressAction,
    ScrapeAction, ScrapeOptions, ScreenshotAction, ScreenshotFormat, ScrollAction, WaitAction, WebhookConfig, WriteAction)
from firecrawl.v2.utils import error_handler as errors

FILES = Path(__file__).parents[3] / "worker/office/tests/files"
URL, KEY, SITE = os.environ["WEIR_URL"], os.environ["WEIR_KEY"], os.environ["SITE_URL"]


def site(path):
    return SITE + path


def control(path, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(site("/_ctl/" + path), method=method, data=data)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def truth(path):
    return control("truth?" + urllib.parse.urlencode({"path": path}))


def wait_for(what, condition, seconds=60):
    """The only waiting place of the suite."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain: {what}")


@contextlib.contextmanager
def own_page(html):
    """Serves one page of a test's own, at every path."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = html.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Sdk(unittest.TestCase):
    def setUp(self):
        self.client = Firecrawl(api_key=KEY, api_url=URL)

    def assert_extracted(self, path, text):
        expected = truth(path)
        self.assertEqual([m for m in expected["main"] if m not in text], [], f"lost in {path}")
        self.assertEqual([m for m in expected["boilerplate"] if m in text], [], f"leaked in {path}")


class Scrape(Sdk):
    def test_a_bare_scrape_gives_markdown(self):
        document = self.client.scrape(site("/article/1"))
        self.assert_extracted("/article/1", document.markdown)
        self.assertEqual(document.metadata.status_code, 200)
        self.assertEqual(document.metadata.source_url, site("/article/1"))
        self.assertEqual(document.metadata.proxy_used, "basic")
        self.assertEqual(document.metadata.credits_used, 1)
        uuid.UUID(document.metadata.scrape_id)

    def test_every_text_format_has_its_field(self):
        document = self.client.scrape(site("/docs/2"), formats=["markdown", "html", "rawHtml", "links", "images"])
        self.assert_extracted("/docs/2", document.markdown)
        self.assert_extracted("/docs/2", document.html)
        self.assertIn("window.__state", document.raw_html)
        self.assertTrue(all(link.startswith("http") for link in document.links) and document.links)
        self.assertIsInstance(document.images, list)

    def test_a_format_that_was_not_asked_for_is_absent(self):
        document = self.client.scrape(site("/article/1"), formats=["links"])
        self.assertIsNone(document.markdown)
        self.assertIsNone(document.screenshot)

    def test_a_screenshot_is_an_address_of_an_image(self):
        document = self.client.scrape(site("/article/1"), formats=["screenshot"])
        with urllib.request.urlopen(document.screenshot, timeout=60) as answer:
            self.assertTrue(answer.headers["content-type"].startswith("image/"))

    def test_screenshot_options_are_understood(self):
        options = ScreenshotFormat(full_page=True, quality=70, viewport={"width": 800, "height": 600})
        self.assertTrue(self.client.scrape(site("/article/1"), formats=[options]).screenshot)

    def test_a_pdf_is_parsed_as_its_parser_says(self):
        parser = PDFParser(mode="fast", max_pages=2, pages=True, page_markers=True)
        document = self.client.scrape(site("/files/report.pdf"), formats=["markdown", "links"], parsers=[parser])
        self.assertIn("<!-- page 2 -->", document.markdown)
        self.assertEqual([page.page_number for page in document.pages], [1, 2])
        metadata = document.metadata
        self.assertEqual((metadata.num_pages, metadata.total_pages, metadata.credits_used), (2, 3, 2))
        self.assertTrue(self.client.scrape(site("/files/report.pdf"), parsers=[]).markdown.startswith("JVBER"))

    def test_blocks_of_a_pdf_have_their_types_and_their_place_in_the_markdown(self):
        parser = PDFParser(blocks=True)
        document = self.client.scrape(site("/files/blocks.pdf"), formats=["markdown"], parsers=[parser])
        self.assertIn("\U0001f600 and an old letter \U00010348", document.markdown)
        self.assertEqual([(page.page_number, page.status) for page in document.blocks], [(1, "ok"), (2, "ok"), (3, "ok")])
        items = [item for page in document.blocks for item in page.items]
        for item in items:
            if item.markdown_span is not None:
                start, end = item.markdown_span
                self.assertEqual(document.markdown[start:end], item.content)
        self.assertEqual({item.type for item in items if item.markdown_span is None}, {"page_header", "page_number"})
        title = items[1]
        self.assertEqual((title.id, title.type, title.reading_order, title.source), ("p1.b1", "title", 1, "native_text"))
        self.assertEqual((len(title.bbox), title.confidence.layout, title.confidence.ocr), (4, None, None))
        self.assertIsNone(self.client.scrape(site("/files/blocks.pdf")).blocks)

    def test_products_and_menus_have_their_types(self):
        product = self.client.scrape(site("/shop/linked"), formats=["product"]).product
        small, large = product.variants
        self.assertEqual((product.title, product.brand, small.sku), ("Copper Kettle", "Ada", "K-S"))
        self.assertEqual((small.price.amount, small.price.currency, small.sale.original_price.amount), (19.9, "EUR", 25))
        self.assertEqual((small.availability.in_stock, large.availability.in_stock), (True, False))
        menu = self.client.scrape(site("/bistro/linked"), formats=["menu"]).menu
        self.assertEqual((menu.is_menu, menu.merchant.name, menu.currency), (True, "Bistro Ada", "CHF"))
        self.assertEqual([section.name for section in menu.sections], ["Starters", "Mains"])
        self.assertEqual((menu.sections[0].items[0].name, menu.sections[0].items[0].price.amount), ("Soup", 7.5))
        without = self.client.scrape(site("/article/1"), formats=["product", "menu"])
        self.assertEqual((without.product, without.menu), (None, None))
        self.assertIn("No product was found", without.warning)

    def test_blocked_sites_are_not_scraped(self):
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.scrape(site("/small/3"), threat_protection={"mode": "manual-only", "blacklist": ["127.0.0.*"]})
        self.assertIn("blocked by the lists of threatProtection", str(caught.exception))
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.scrape(site("/small/3"), threat_protection={"mode": "normal"})
        self.assertIn("threatProtection", str(caught.exception))

    def test_attributes_branding_and_media_have_their_fields(self):
        # As a dictionary: of its own class for this format the SDK sends the name alone.
        attributes = {"type": "attributes", "selectors": [{"selector": "audio source", "attribute": "type"}]}
        document = self.client.scrape(site("/media"), formats=["audio", "video", attributes])
        self.assertEqual((document.audio, document.video), (site("/files/audio.wav"), site("/files/film.webm")))
        branding = self.client.scrape(site("/brand"), formats=["branding"]).branding
        self.assertEqual((branding.colors["primary"], branding.logo), ("#E4572E", site("/files/logo.svg")))
        self.assertIn({"family": "Inter"}, branding.fonts)

    def test_a_page_cannot_pose_as_the_service(self):
        # Every field of the SDK's model as a meta name in every form, each twice; a batch with one document that the
        # model refuses raises for all of them.
        own = {"title", "description", "language", "keywords", "robots", "favicon", "modified_time", "published_time"}
        is_own = lambda field: field in own or field.startswith(("og_", "dc_", "article_"))
        fields = DocumentMetadata.model_fields
        self.assertIn("concurrency_queue_duration_ms", fields)
        metas = []
        # The service's first: of the others a page may have so many that not all are taken.
        for field in sorted(fields, key=is_own):
            words = field.split("_")
            large = [word.capitalize() for word in words]
            forms = {words[0] + "".join(large[1:]), "".join(large), "".join(words), "".join(words).upper()}
            for mark in "_- .":
                forms |= {mark.join(words), mark.join(large), mark.join(words).upper()}
            metas += [f'<meta {kind}="{form}" content="posed {kind}">' for form in forms for kind in ("name", "property")]
        page = f"<!doctype html><html><head><title>T</title>{''.join(metas)}</head><body><p>Words.</p></body></html>"
        with own_page(page) as address:
            documents = [self.client.scrape(address), *self.client.batch_scrape([address, site("/article/5")]).data]
        self.assertEqual(len(documents), 3)
        folded = {field.replace("_", "") for field in fields}
        for document in documents:
            self.assertIsInstance(document.metadata, DocumentMetadata)
            posed = {field: value for field, value in document.metadata if field in fields and not is_own(field)}
            self.assertEqual({k: v for k, v in posed.items() if "posed" in str(v)}, {})
            names = [name for name in document.metadata.extras if ":" not in name and "." not in name]
            fold = lambda name: "".join(filter(str.isalnum, name)).lower()
            self.assertEqual([name for name in names if fold(name) in folded], [])

    def test_the_options_of_a_scrape_pass(self):
        document = self.client.scrape(
            site("/article/3"), formats=["markdown"], only_main_content=True, include_tags=["main"], exclude_tags=["figure"],
            headers={"X-Test": "1"}, wait_for=50, mobile=True, timeout=30000, block_ads=True, remove_base64_images=True,
            location=Location(country="DE", languages=["de"]), skip_tls_verification=True, proxy="basic", max_age=0,
            store_in_cache=False, parsers=["pdf"], integration="_tests")
        self.assertIn(truth("/article/3")["main"][0], document.markdown)

    def test_actions_give_their_results(self):
        actions = [
            ClickAction(selector="#name"), WriteAction(text="Ada"), ClickAction(selector="#go"), WaitAction(selector="#late"),
            WaitAction(milliseconds=10), PressAction(key="Tab"), ScrollAction(direction="down"), ScrapeAction(),
            ScreenshotAction(full_page=True, quality=50), ExecuteJavascriptAction(script="document.title"),
            PDFAction(format="A4", landscape=True, scale=0.5)]
        document = self.client.scrape(site("/actions"), formats=["markdown"], actions=actions)
        self.assertIn("Hello Ada", document.markdown)
        done = document.actions
        self.assertEqual([len(done[name]) for name in ("screenshots", "scrapes", "javascriptReturns", "pdfs")], [1, 1, 1, 1])
        self.assertEqual(done["javascriptReturns"], [{"type": "string", "value": "Actions"}])
        self.assertIn("Hello Ada", done["scrapes"][0]["html"])
        with self.assertRaises(errors.InternalServerError) as caught:
            self.client.scrape(site("/actions"), actions=[ClickAction(selector="#nowhere")])
        self.assertIn("actions[0]", str(caught.exception))

    def test_a_cached_page_is_told_as_such(self):
        states = [self.client.scrape(site("/cache/python"), formats=["markdown"]).metadata.cache_state for _ in range(2)]
        self.assertEqual(states, ["miss", "hit"])
        document = self.client.scrape(site("/cache/python"), formats=["markdown"], max_age=60_000)
        self.assertTrue(document.metadata.cached_at)
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.scrape(site("/cache/never"), lockdown=True)
        self.assertEqual(caught.exception.status_code, 404)

    def test_a_page_made_by_scripts_is_complete(self):
        self.assert_extracted("/js/fetch/5", self.client.scrape(site("/js/fetch/5")).markdown)

    def test_errors_become_the_sdks_exceptions(self):
        with self.assertRaises(errors.BadRequestError) as caught:
            self.client.scrape("ftp://files.example/x")
        self.assertIn("protocol", str(caught.exception))
        with self.assertRaises(errors.RequestTimeoutError):
            self.client.scrape(site("/hang"), timeout=2000)
        with self.assertRaises(errors.UnauthorizedError):
            Firecrawl(api_key="nobodys-key", api_url=URL).scrape(site("/article/1"))
        for address in ("http://no-such-host.invalid/", "https://no..such-host.invalid/"):
            with self.assertRaises(errors.DNSResolutionError):
                self.client.scrape(address)
        with self.assertRaises(errors.InternalServerError):
            self.client.scrape(site("/cut/reset"))

    def test_an_error_page_is_a_document(self):
        document = self.client.scrape(site("/status/404"))
        self.assertEqual(document.metadata.status_code, 404)
        self.assertTrue(document.metadata.error)


class Batch(Sdk):
    def urls(self, prefix, count):
        return [site(f"{prefix}{n}") for n in range(count)]

    def start(self, urls, **options):
        return self.client.start_batch_scrape(urls, **options)

    def ended(self, job):
        return wait_for(f"the end of {job}", lambda: next(
            (s for s in [self.client.get_batch_scrape_status(job)] if s.status != "scraping"), None))

    def test_the_waiter_returns_every_document(self):
        job = self.client.batch_scrape(self.urls("/mix/", 30), formats=["markdown", "links"], poll_interval=1, wait_timeout=60)
        self.assertEqual((job.status, job.completed, job.total, job.credits_used), ("completed", 30, 30, 30))
        self.assertEqual(len({d.metadata.source_url for d in job.data}), 30)
        for document in job.data:
            self.assert_extracted(document.metadata.source_url[len(SITE):], document.markdown)
        self.assertIsNotNone(job.expires_at)

    def test_start_answers_before_the_pages_are_there(self):
        began = time.monotonic()
        started = self.start(self.urls("/slow?ms=6000&n=", 2))
        self.assertLess(time.monotonic() - began, 5.5)
        self.assertEqual(started.url, f"{URL}/v2/batch/scrape/{started.id}")
        self.assertEqual(self.client.get_batch_scrape_status(started.id, PaginationConfig(auto_paginate=False)).status, "scraping")
        self.assertEqual(self.ended(started.id).completed, 2)

    def test_pages_of_results_are_followed(self):
        started = self.start(self.urls("/small/", 230))
        job = self.ended(started.id)
        self.assertEqual(len(job.data), 230)
        first = self.client.get_batch_scrape_status(started.id, PaginationConfig(auto_paginate=False))
        self.assertEqual(len(first.data), 100)
        second = self.client.get_batch_scrape_status_page(first.next)
        third = self.client.get_batch_scrape_status_page(second.next)
        self.assertEqual((len(second.data), len(third.data), third.next), (100, 30, None))
        limited = self.client.get_batch_scrape_status(started.id, PaginationConfig(max_results=120))
        self.assertEqual(len(limited.data), 120)

    def test_reading_a_running_batch_does_not_spin(self):
        started = self.start(self.urls("/slow?ms=4000&n=", 3))
        before = time.monotonic()
        self.client.get_batch_scrape_status(started.id)
        self.assertLess(time.monotonic() - before, 30)
        self.ended(started.id)

    def test_a_cancelled_batch_is_cancelled(self):
        started = self.start(self.urls("/slow?ms=1000&n=", 60), max_concurrency=2)
        self.assertTrue(self.client.cancel_batch_scrape(started.id))
        self.assertEqual(self.client.get_batch_scrape_status(started.id).status, "cancelled")

    def test_cancelling_a_finished_batch_raises(self):
        started = self.start(self.urls("/small/", 1))
        self.ended(started.id)
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.cancel_batch_scrape(started.id)
        self.assertEqual(caught.exception.status_code, 409)

    def test_failed_pages_are_in_the_errors(self):
        started = self.start([site("/article/1"), site("/cut/reset")])
        job = self.ended(started.id)
        self.assertEqual((job.status, job.completed, job.total), ("completed", 1, 1))
        listed = self.client.get_batch_scrape_errors(started.id)
        self.assertEqual([e.url for e in listed.errors], [site("/cut/reset")])
        self.assertTrue(listed.errors[0].code and listed.errors[0].error)
        self.assertEqual(listed.robots_blocked, [])

    def test_pages_can_be_appended(self):
        started = self.start(self.urls("/slow?ms=2000&n=", 1))
        again = self.start(self.urls("/small/", 2), append_to_id=started.id)
        self.assertEqual(again.id, started.id)
        self.assertEqual(self.ended(started.id).total, 3)
        with self.assertRaises(errors.FirecrawlError):
            self.start(self.urls("/small/", 1), append_to_id=started.id)

    def test_an_idempotency_key_works_once(self):
        key = str(uuid.uuid4())
        self.start(self.urls("/small/", 1), idempotency_key=key)
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.start(self.urls("/small/", 1), idempotency_key=key)
        self.assertEqual(caught.exception.status_code, 409)

    def test_invalid_addresses_are_told(self):
        started = self.start([site("/small/1"), "http://nodot/"], ignore_invalid_urls=True)
        self.assertEqual(started.invalid_urls, ["http://nodot/"])
        with self.assertRaises(errors.BadRequestError):
            self.start([site("/small/1"), "http://nodot/"], ignore_invalid_urls=False)

    def test_an_unknown_batch_is_not_found(self):
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.get_batch_scrape_status(str(uuid.uuid4()))
        self.assertEqual(caught.exception.status_code, 404)

    def test_webhooks_arrive_signed_and_in_order(self):
        name = f"python-{uuid.uuid4().hex}"
        control(f"webhook/{name}", "PUT", {"secret": os.environ["WEBHOOK_SECRET"]})
        hook = WebhookConfig(url=site(f"/webhook/{name}"), headers={"X-Mine": "1"}, metadata={"k": "v"},
                             events=["started", "page", "completed"])
        started = self.start(self.urls("/article/", 4), webhook=hook)
        deliveries = wait_for("all six events", lambda: (lambda d: d if len(d) >= 6 else None)(control(f"webhook/{name}")["deliveries"]))
        events = [json.loads(d["body"]) for d in deliveries]
        self.assertEqual([e["type"] for e in events],
                         ["batch_scrape.started"] + ["batch_scrape.page"] * 4 + ["batch_scrape.completed"])
        self.assertTrue(all(d["signature_ok"] and d["headers"]["x-mine"] == "1" for d in deliveries))
        self.assertTrue(all(e["id"] == started.id and e["metadata"] == {"k": "v"} for e in events))

    def test_the_watcher_sees_every_document_over_the_websocket(self):
        started = self.start(self.urls("/slow?ms=700&n=", 8), max_concurrency=4)
        seen, done, statuses = [], [], []
        polls = []
        original = self.client.get_batch_scrape_status
        self.client.get_batch_scrape_status = lambda *a, **k: (polls.append(1), original(*a, **k))[1]
        watcher = self.client.watcher(started.id, kind="batch", poll_interval=20, timeout=60)
        watcher.add_event_listener("document", lambda d: seen.append(d["data"]["metadata"]["scrapeId"]))
        watcher.add_event_listener("done", done.append)
        watcher.add_listener(lambda job: statuses.append(job.status))
        watcher.start()
        wait_for("the watcher is done", lambda: done)
        watcher.stop()
        self.assertEqual((len(seen), len(set(seen))), (8, 8))
        self.assertEqual(done[0]["status"], "completed")
        self.assertLessEqual(len(polls), 1, "the documents came over the socket, not by polling")


class Crawl(Sdk):
    def ended(self, job):
        return wait_for(f"the end of {job}", lambda: next(
            (s for s in [self.client.get_crawl_status(job)] if s.status != "scraping"), None))

    def test_a_map_works_in_every_mode(self):
        urls = lambda data: [link.url for link in data.links]
        only = self.client.map(site("/"), sitemap="only", limit=100_000)
        self.assertGreater(len(only.links), 10_000)
        self.assertIn(site("/docs/9998"), urls(only))
        skip = self.client.map(site("/crawl/5/"), sitemap="skip", ignore_query_parameters=True, include_subdomains=False)
        self.assertIn(site("/crawl/5/9/"), urls(skip))
        self.assertNotIn(site("/docs/9998"), urls(skip))
        found = self.client.map(site("/maps/sitemap.xml"), search="whales", sitemap="include", limit=3)
        self.assertEqual((len(found.links), found.links[0].title), (3, "Watching whales & dolphins"))
        self.assertEqual(found.links[0].description, "From the shore.")
        self.assertEqual(urls(self.client.map(site("/links")))[0], site("/links"))
        with self.assertRaises(errors.RequestTimeoutError):
            self.client.map(site("/hang"), timeout=500)
        with self.assertRaises(errors.BadRequestError):
            self.client.map(site("/"), limit=100_001)

    def test_a_search_finds_and_scrapes(self):
        found = self.client.search("whales")
        self.assertEqual([hit.url for hit in found.web], [site(f"/article/{n}") for n in (7, 8, 9)])
        self.assertEqual((found.web[0].title, found.web[0].position), ("Hit 0", 1))
        everything = self.client.search("whales", limit=2, sources=["web", "news", "images"], tbs="qdr:w", location="Berlin",
                                        categories=None, ignore_invalid_urls=False, timeout=30_000)
        self.assertEqual((len(everything.web), len(everything.news), len(everything.images)), (2, 2, 2))
        self.assertEqual((everything.images[0].image_width, everything.news[0].snippet), (640, "What is found at 0."))
        options = ScrapeOptions(formats=["markdown"])
        scraped = self.client.search("whales", limit=2, scrape_options=options)
        self.assertTrue(all("MAIN" in hit.markdown and hit.metadata.title for hit in scraped.web))
        self.assertEqual(scraped.web[0].metadata.source_url, site("/article/7"))
        with self.assertRaises(errors.BadRequestError):
            self.client.search("x" * 501)

    def test_a_file_is_parsed(self):
        options = ParseOptions(formats=["markdown", "links"], only_main_content=False)
        document = self.client.parse(FILES / "tables.docx", options=options)
        self.assertIn("| --- |", document.markdown)
        self.assertEqual(document.metadata.source_url, "tables.docx")
        book = self.client.parse((FILES / "book.epub").read_bytes(), filename="book.epub")
        self.assertEqual((book.metadata.title, "One morning" in book.markdown), ("A Small Book", True))
        with self.assertRaises(errors.BadRequestError):
            self.client.parse(b"MZ", filename="x.exe")
        formats = {row.format: row for row in self.client.get_parse_formats()}
        self.assertTrue(formats["docx"].available and ".docx" in formats["docx"].extensions)

    def test_parameters_are_previewed(self):
        preview = self.client.crawl_params_preview(site("/docs/"), "only /docs/api, 2 levels deep, at most 20 pages, no subdomains")
        self.assertEqual((preview.limit, preview.max_discovery_depth, preview.allow_subdomains), (20, 2, False))
        self.assertEqual(preview.include_paths, ["^/docs/api(/.*)?$"])
        job = self.client.crawl(site("/crawl/"), prompt="at most 3 pages and ignore the sitemap", poll_interval=1)
        self.assertEqual(len(job.data), 3)
        with self.assertRaises(errors.BadRequestError):
            self.client.crawl_params_preview(site("/docs/"), "x" * 10_001)

    def test_the_waiter_returns_every_page_once(self):
        job = self.client.crawl(site("/crawl/"), sitemap="skip", max_discovery_depth=2, ignore_query_parameters=True,
                                formats=["markdown", "links"], poll_interval=1, timeout=90)
        self.assertEqual((job.status, job.completed, job.total, job.credits_used), ("completed", 111, 111, 111))
        self.assertEqual(len({d.metadata.source_url for d in job.data}), 111)
        self.assertTrue(all("MAIN" in d.markdown and d.links for d in job.data))

    def test_limits_and_patterns_hold(self):
        job = self.client.crawl(site("/crawl/"), sitemap="skip", limit=7, poll_interval=1)
        self.assertEqual((job.status, len(job.data)), ("completed", 7))
        job = self.client.crawl(site("/crawl/"), sitemap="skip", include_paths=["^/crawl/$", "^/crawl/[23]/"],
                                exclude_paths=["/3/1"], max_discovery_depth=2, ignore_query_parameters=True, poll_interval=1)
        paths = {d.metadata.source_url[len(site("/crawl/")):] for d in job.data}
        self.assertEqual(paths, {"", "2/", "3/"} | {f"2/{n}/" for n in range(10)} | {f"3/{n}/" for n in range(10) if n != 1})

    def test_a_running_crawl_is_active_until_it_is_cancelled(self):
        started = self.client.start_crawl(site("/trap/"), sitemap="skip", delay=1)
        self.assertEqual(started.url, f"{URL}/v2/crawl/{started.id}")
        active = self.client.get_active_crawls()
        mine = next(c for c in active.crawls if c.id == started.id)
        self.assertEqual((mine.url, mine.options["delay"]), (site("/trap/"), 1))
        self.assertTrue(mine.team_id)
        wait_for("a page", lambda: self.client.get_crawl_status(started.id, PaginationConfig(auto_paginate=False)).completed)
        self.assertTrue(self.client.cancel_crawl(started.id))
        self.assertEqual(self.client.get_crawl_status(started.id).status, "cancelled")
        self.assertNotIn(started.id, [c.id for c in self.client.get_active_crawls().crawls])

    def test_cancelling_a_finished_crawl_says_no(self):
        started = self.client.start_crawl(site("/crawl/1/1/1/"), sitemap="skip", limit=1)
        self.ended(started.id)
        self.assertFalse(self.client.cancel_crawl(started.id))

    def test_errors_and_forbidden_pages_are_listed(self):
        # No action can be performed on a PDF.
        started = self.client.start_crawl(site("/links"), sitemap="skip", crawl_entire_domain=True, max_discovery_depth=1,
                                          ignore_query_parameters=True,
                                          include_paths=["^/links$", "^/files/report", "^/private/"],
                                          scrape_options=ScrapeOptions(actions=[WaitAction(milliseconds=1)]))
        job = self.ended(started.id)
        self.assertEqual((job.status, job.completed, job.total), ("completed", 1, 1))
        listed = self.client.get_crawl_errors(started.id)
        self.assertEqual([e.url for e in listed.errors], [site("/files/report.pdf")])
        self.assertEqual(listed.robots_blocked, [site("/private/secret")])

    def test_a_start_page_that_cannot_be_read_fails_the_crawl(self):
        started = self.client.start_crawl("http://127.0.0.1:2/", sitemap="skip")
        def failure():
            try:
                self.client.get_crawl_status(started.id)
            except errors.FirecrawlError as error:
                return str(error)
        self.assertTrue(wait_for("the failure", failure))

    def test_a_wrong_crawl_is_refused(self):
        for options in ({"include_paths": ["("]}, {"url": "ftp://files.example/"}, {"limit": 0}, {"prompt": "x" * 10_001}):
            with self.assertRaises((errors.BadRequestError, ValueError)):
                self.client.start_crawl(**{"url": site("/crawl/"), **options})

    def test_webhooks_of_a_crawl_arrive(self):
        name = f"python-crawl-{uuid.uuid4().hex}"
        control(f"webhook/{name}", "PUT", {"secret": os.environ["WEBHOOK_SECRET"]})
        hook = WebhookConfig(url=site(f"/webhook/{name}"), metadata={"k": "v"})
        started = self.client.start_crawl(site("/crawl/5/5/"), sitemap="skip", ignore_query_parameters=True, webhook=hook)
        deliveries = wait_for("all events", lambda: (lambda d: d if len(d) >= 13 else None)(control(f"webhook/{name}")["deliveries"]))
        events = [json.loads(d["body"]) for d in deliveries]
        self.assertEqual([e["type"] for e in events], ["crawl.started"] + ["crawl.page"] * 11 + ["crawl.completed"])
        self.assertTrue(all(d["signature_ok"] for d in deliveries))
        self.assertTrue(all(e["id"] == started.id and e["metadata"] == {"k": "v"} for e in events))

    def test_the_watcher_sees_every_page_over_the_websocket(self):
        started = self.client.start_crawl(site("/crawl/7/"), sitemap="skip", ignore_query_parameters=True, max_concurrency=4)
        seen, done = [], []
        watcher = self.client.watcher(started.id, kind="crawl", poll_interval=20, timeout=60)
        watcher.add_event_listener("document", lambda d: seen.append(d["data"]["metadata"]["scrapeId"]))
        watcher.add_event_listener("done", done.append)
        watcher.start()
        wait_for("the watcher is done", lambda: done)
        watcher.stop()
        self.assertEqual(done[0]["status"], "completed")
        self.assertEqual((len(seen), len(set(seen))), (111, 111))


class Monitors(Sdk):
    def test_a_monitor_is_made_run_read_changed_and_deleted(self):
        name = f"python-monitor-{uuid.uuid4().hex}"
        control(f"webhook/{name}", "PUT", {"secret": os.environ["WEBHOOK_SECRET"]})
        made = self.client.create_monitor(
            name="Articles", schedule={"text": "every 30 minutes", "timezone": "Europe/Berlin"}, goal="what is seen",
            judge_enabled=False, retention_days=7, webhook={"url": site(f"/webhook/{name}")},
            targets=[{"type": "scrape", "urls": [site(f"/article/{n}") for n in range(3)]}],
            notification={"email": {"enabled": True, "recipients": ["a@example.com"], "includeDiffs": True}})
        self.assertEqual((made.name, made.status, made.retention_days), ("Articles", "active", 7))
        self.assertTrue(made.schedule.cron.endswith("/30 * * * *"), made.schedule)
        self.assertEqual(self.client.get_monitor(made.id).targets, made.targets)
        self.assertIn(made.id, [monitor.id for monitor in self.client.list_monitors(limit=5, offset=0)])
        check = self.client.run_monitor(made.id)
        self.assertEqual((check.monitor_id, check.trigger), (made.id, "manual"))

        def ended():
            detail = self.client.get_monitor_check(made.id, check.id, limit=1)
            return detail if detail.finished_at else None
        detail = wait_for("the check has ended", ended)
        self.assertEqual((detail.status, detail.summary.new, len(detail.pages)), ("completed", 3, 3))
        self.assertEqual({(page.status, page.target_id) for page in detail.pages}, {("new", made.targets[0]["id"])})
        self.assertEqual(self.client.get_monitor_check(made.id, check.id, status="changed").pages, [])
        self.assertEqual([one.id for one in self.client.list_monitor_checks(made.id, limit=5)], [check.id])
        deliveries = wait_for("all events", lambda: (lambda d: d if len(d) >= 4 else None)(control(f"webhook/{name}")["deliveries"]))
        events = [json.loads(d["body"]) for d in deliveries]
        self.assertEqual([e["type"] for e in events], ["monitor.page"] * 3 + ["monitor.check.completed"])
        self.assertTrue(all(d["signature_ok"] for d in deliveries))
        paused = self.client.update_monitor(made.id, status="paused", name="Other")
        self.assertEqual((paused.status, paused.name, paused.next_run_at), ("paused", "Other", None))
        self.assertTrue(self.client.delete_monitor(made.id))
        with self.assertRaises(Exception) as caught:
            self.client.get_monitor(made.id)
        self.assertEqual(caught.exception.status_code, 404)


class Rest(Sdk):
    """Every method that no other test here calls: its route is not there, or not yet, and says so in JSON."""

    # Methods of this package's specification. What they do is tested above, in browser.py, interact.py and tasks.py.
    COVERED = """scrape search parse get_parse_formats crawl start_crawl wait_crawl get_crawl_status get_crawl_status_page get_crawl_errors get_active_crawls
        active_crawls cancel_crawl crawl_params_preview map batch_scrape start_batch_scrape get_batch_scrape_status
        get_batch_scrape_status_page get_batch_scrape_errors cancel_batch_scrape interact stop_interaction
        stop_interactive_browser scrape_execute delete_scrape_browser browser browser_execute delete_browser list_browsers
        get_concurrency get_credit_usage get_token_usage get_credit_usage_historical get_token_usage_historical
        get_queue_status watcher scrape_url crawl_url map_url async_crawl_url check_crawl_status check_crawl_errors
        batch_scrape_urls async_batch_scrape_urls check_batch_scrape_status check_batch_scrape_errors create_monitor
        list_monitors get_monitor update_monitor delete_monitor run_monitor list_monitor_checks get_monitor_check
        extract start_extract get_extract_status agent start_agent get_agent_status get_agent_thread get_agent_trace
        list_agents cancel_agent""".split()
    # These post to /v2/scrape what another product's catalogue is asked for. Clients look for the words of the refusal.
    REFUSED = ["find_tools", "scrape_alexandria"]
    REFUSAL = "Exchange is not enabled for this team."

    def call(self, method):
        """Calls a method with something for each argument that it must have; returns the answers on the wire."""
        answers = []
        send = requests.adapters.HTTPAdapter.send

        def noted(adapter, request, **options):
            answers.append(send(adapter, request, **options))
            return answers[-1]
        some = {"url": site("/small/1"), "calls": {"provider": "x", "capability": "y", "options": {}},
                "schedule": {"cron": "0 * * * *"}, "targets": [{"type": "scrape", "urls": [site("/small/1")]}]}
        required = [p for p in inspect.signature(method).parameters.values()
                    if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        arguments = {p.name: some.get(p.name, str(uuid.uuid4())) for p in required}
        if "urls" in inspect.signature(method).parameters:
            arguments["urls"] = [site("/small/1")]
        requests.adapters.HTTPAdapter.send = noted
        try:
            method(**arguments)
        except Exception as error:  # Whatever the SDK makes of the answer.
            self.assertTrue(answers, f"{method.__name__} asked nothing: {error!r}")
        finally:
            requests.adapters.HTTPAdapter.send = send
        return answers

    def test_what_there_is_not_says_so_in_json(self):
        names = [name for name in dir(self.client) if not name.startswith("_") and callable(getattr(self.client, name))]
        rest = [name for name in names if name not in self.COVERED and inspect.ismethod(getattr(self.client, name))]
        self.assertIn("find_tools", rest)
        for name in rest:
            for answer in self.call(getattr(self.client, name)):
                said = f"{name}: {answer.status_code} {answer.text[:200]}"
                self.assertIn(answer.status_code, [403] if name in self.REFUSED else [404, 501], said)
                body = answer.json()
                self.assertTrue(body["success"] is False and isinstance(body["error"], str), said)
                self.assertEqual(body["error"] == self.REFUSAL, name in self.REFUSED, said)


class Asynchronous(unittest.TestCase):
    def test_the_asynchronous_client_scrapes_and_batches(self):
        async def run():
            client = AsyncFirecrawl(api_key=KEY, api_url=URL)
            documents = await asyncio.gather(*(client.scrape(site(f"/article/{n}")) for n in range(5)))
            job = await client.batch_scrape([site(f"/small/{n}") for n in range(5)], poll_interval=1)
            return documents, job
        documents, job = asyncio.run(run())
        self.assertEqual(len([d for d in documents if d.markdown]), 5)
        self.assertEqual((job.status, len(job.data)), ("completed", 5))


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
