"""Version 1 of the API through the official Python SDK's client for it, unmodified, against a running service.

Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment. The service's language model reads "seen" out of
every page. Closes with the line "N passed, N failed".
"""
import asyncio
import json
import os
import sys
import unittest
import urllib.parse
import urllib.request
import uuid
import warnings

import requests
from firecrawl import Firecrawl
from firecrawl.v1.client import (AsyncV1FirecrawlApp, V1ChangeTrackingOptions, V1FirecrawlApp, V1FirecrawlDocument, V1JsonConfig,
                                 V1LocationConfig, V1PDFAction, V1ScrapeOptions, V1ScreenshotAction, V1WaitAction)

URL, KEY, SITE = os.environ["WEIR_URL"], os.environ["WEIR_KEY"], os.environ["SITE_URL"]
SCHEMA = {"type": "object", "properties": {"seen": {"type": "string"}}, "required": ["seen"]}


def site(path):
    return SITE + path


def truth(path):
    with urllib.request.urlopen(site("/_ctl/truth?" + urllib.parse.urlencode({"path": path})), timeout=60) as answer:
        return json.load(answer)


class Sdk(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore", DeprecationWarning)
        self.client = V1FirecrawlApp(api_key=KEY, api_url=URL)

    def assert_extracted(self, path, text):
        expected = truth(path)
        self.assertEqual([m for m in expected["main"] if m not in text], [], f"lost in {path}")
        self.assertEqual([m for m in expected["boilerplate"] if m in text], [], f"leaked in {path}")

    def assert_refused(self, status, call, words):
        """The call fails, with this answer on the wire: what the client makes of it differs from method to method."""
        answers = []
        send = requests.adapters.HTTPAdapter.send

        def noted(adapter, request, **options):
            answers.append(send(adapter, request, **options))
            return answers[-1]
        requests.adapters.HTTPAdapter.send = noted
        try:
            with self.assertRaises(Exception):
                call()
        finally:
            requests.adapters.HTTPAdapter.send = send
        self.assertEqual((answers[-1].status_code, answers[-1].json()["success"]), (status, False))
        self.assertIn(words, answers[-1].json()["error"])


class Scrape(Sdk):
    def test_a_bare_scrape_gives_markdown(self):
        document = self.client.scrape_url(site("/article/1"))
        self.assert_extracted("/article/1", document.markdown)
        self.assertEqual((document.metadata["statusCode"], document.metadata["sourceURL"]), (200, site("/article/1")))
        # The same under `.v1` of the newer client.
        self.assertEqual(Firecrawl(api_key=KEY, api_url=URL).v1.scrape_url(site("/article/1")).markdown, document.markdown)

    def test_formats_have_their_fields(self):
        document = self.client.scrape_url(
            site("/docs/2"), formats=["markdown", "html", "rawHtml", "links", "screenshot@fullPage"], only_main_content=True,
            headers={"X-Own": "1"}, include_tags=["body"], exclude_tags=["nav"], timeout=60_000, mobile=False,
            location=V1LocationConfig(country="US", languages=["en"]), skip_tls_verification=False, remove_base64_images=True,
            block_ads=True, proxy="basic", parse_pdf=True, max_age=0, store_in_cache=False)
        self.assertTrue(document.markdown and document.html and document.rawHtml and document.links)
        self.assertTrue(document.screenshot.startswith("data:image/"))

    def test_actions_have_the_lists_that_the_model_wants(self):
        actions = [V1WaitAction(type="wait", milliseconds=10), V1ScreenshotAction(type="screenshot", fullPage=True),
                   V1PDFAction(type="pdf", format="A4")]
        document = self.client.scrape_url(site("/article/1"), actions=actions, timeout=60_000)
        self.assertEqual((len(document.actions.screenshots), len(document.actions.pdfs)), (1, 1))

    def test_data_is_read_out_of_a_page_by_either_name(self):
        wanted = V1JsonConfig(prompt="What is seen", schema=SCHEMA, systemPrompt="Be brief.")
        for options in ({"formats": ["json"], "json_options": wanted}, {"formats": ["extract"], "extract": wanted}):
            document = self.client.scrape_url(site("/article/2"), timeout=60_000, **options)
            self.assertEqual((document.json_field, document.extract), ({"seen": "seen"}, {"seen": "seen"}))

    def test_changes_are_tracked(self):
        options = V1ChangeTrackingOptions(modes=["git-diff"], tag=uuid.uuid4().hex)
        for status in ("new", "same"):
            document = self.client.scrape_url(
                site("/article/3"), formats=["markdown", "changeTracking"], change_tracking_options=options)
            self.assertEqual(document.changeTracking.changeStatus, status)

    def test_a_wrong_scrape_is_refused(self):
        self.assert_refused(400, lambda: self.client.scrape_url("ftp://files.example/"), "unsupported protocol")
        self.assert_refused(400, lambda: self.client.scrape_url(site("/small/1"), formats=["json"]), "must be provided")


class Jobs(Sdk):
    def test_a_crawl_is_waited_for_with_all_its_pages(self):
        job = self.client.crawl_url(
            site("/crawl/6/"), max_depth=2, limit=111, ignore_sitemap=True, ignore_query_parameters=True, poll_interval=1,
            scrape_options=V1ScrapeOptions(formats=["markdown", "links"]), deduplicate_similar_urls=True)
        self.assertEqual((job.status, job.total, len(job.data), job.next), ("completed", 111, 111, None))
        self.assertTrue(all(page.markdown and page.links for page in job.data))
        again = self.client.check_crawl_status(self.crawl_of(site("/crawl/6/")))
        self.assertEqual((again.status, len(again.data)), ("completed", 111))

    def crawl_of(self, url):
        headers = {"Authorization": f"Bearer {KEY}"}
        entries = requests.get(f"{URL}/v1/team/activity?endpoint=crawl&limit=100", headers=headers, timeout=60).json()["data"]
        found = next(entry for entry in entries if entry["target"] == url)
        self.assertEqual(found["api_version"], "v1")
        return found["id"]

    def test_a_crawl_is_started_read_and_cancelled(self):
        started = self.client.async_crawl_url(site("/slow?ms=60000"), limit=1, allow_backward_links=True)
        self.assertIn(f"/v1/crawl/{started.id}", started.url)
        status = self.client.check_crawl_status(started.id)
        self.assertEqual((status.status, status.success, status.data), ("scraping", True, []))
        errors = self.client.check_crawl_errors(started.id)
        self.assertEqual((errors.errors, errors.robotsBlocked), ([], []))
        self.assertEqual(self.client.cancel_crawl(started.id)["status"], "cancelled")
        self.assertEqual(self.client.check_crawl_status(started.id).status, "cancelled")

    def test_a_crawl_that_cannot_read_its_start_page_fails(self):
        started = self.client.async_crawl_url("http://no-such-name.invalid/", limit=1)
        with self.assertRaisesRegex(Exception, "failed or was stopped"):
            self.client._monitor_job_status(started.id, self.client._prepare_headers(), 1)
        self.assertFalse(self.client.check_crawl_status(started.id).success)

    def test_a_batch_is_waited_for_and_its_errors_are_read(self):
        urls = [site(f"/article/{n}") for n in range(4)] + ["http://no-such-name.invalid/"]
        job = self.client.batch_scrape_urls(urls, formats=["markdown"], poll_interval=1)
        self.assertEqual((job.status, job.total, len(job.data), job.next), ("completed", 4, 4, None))
        started = self.client.async_batch_scrape_urls(urls, formats=["extract"], extract=V1JsonConfig(prompt="What is seen"))
        self.assertIn(f"/v1/batch/scrape/{started.id}", started.url)
        self.client._monitor_job_status(started.id, self.client._prepare_headers(), 1, "batch_scrape")
        status = self.client.check_batch_scrape_status(started.id)
        self.assertEqual([page.extract for page in status.data], [{"seen": "seen"}] * 4)
        errors = self.client.check_batch_scrape_errors(started.id)
        self.assertEqual([error.url for error in errors.errors], ["http://no-such-name.invalid/"])
        self.assert_refused(400, lambda: self.client.async_batch_scrape_urls(["ftp://files.example/"]), "unsupported protocol")

    def watch(self, watcher):
        seen, done = [], []
        watcher.add_event_listener("document", lambda event: seen.append(event["data"]["metadata"]["sourceURL"]))
        watcher.add_event_listener("done", done.append)
        asyncio.run(asyncio.wait_for(watcher.connect(), 60))
        self.assertEqual((done[0]["status"], len(done[0]["data"])), ("completed", len(seen)))
        return seen

    def test_both_kinds_of_jobs_are_watched(self):
        seen = self.watch(self.client.crawl_url_and_watch(
            site("/crawl/5/5/"), limit=11, ignore_sitemap=True, ignore_query_parameters=True))
        self.assertEqual((len(seen), len(set(seen))), (11, 11))
        urls = [site(f"/slow?ms=300&n={n}") for n in range(5)]
        seen = self.watch(self.client.batch_scrape_urls_and_watch(urls, formats=["markdown"]))
        self.assertEqual(set(seen), set(urls))


class Rest(Sdk):
    def test_links_of_a_map_are_texts(self):
        links = self.client.map_url(site("/maps/sitemap.xml"), search="whale watching", limit=5).links
        self.assertEqual((len(links), links[0]), (5, site("/m/item-1")))
        links = self.client.map_url(site("/trap/0"), ignore_sitemap=True, include_subdomains=True).links
        self.assertIn(site("/trap/21"), links)
        self.assertEqual(len(self.client.map_url(site("/"), sitemap_only=True, limit=20).links), 20)

    def test_hits_of_a_search_are_documents(self):
        found = self.client.search("whales", limit=2)
        self.assertEqual([hit["url"] for hit in found.data], [site("/article/7"), site("/article/8")])
        self.assertTrue(found.data[0]["title"] and found.data[0]["description"])
        found = self.client.search("whales", limit=1, scrape_options=V1ScrapeOptions(formats=["markdown"]))
        document = V1FirecrawlDocument(**found.data[0])
        self.assert_extracted("/article/7", document.markdown)
        self.assertEqual((document.url, bool(document.title)), (site("/article/7"), True))

    def test_the_team_reads_what_it_has_left_and_used(self):
        self.client.scrape_url(site("/small/1"))
        credits, tokens = self.client.get_credit_usage(), self.client.get_token_usage()
        self.assertGreater(min(credits.data.remaining_credits, tokens.data.remaining_tokens), 0)
        self.assertGreater(self.client.get_credit_usage_historical().periods[-1].creditsUsed, 0)
        self.assertTrue(self.client.get_token_usage_historical(by_api_key=True).periods[-1].apiKey)

    def test_an_extract_is_waited_for_and_read(self):
        done = self.client.extract([site("/small/1")], prompt="What is seen", schema=SCHEMA)
        self.assertEqual((done.success, done.data), (True, {"seen": "seen"}))
        started = self.client.async_extract([site("/small/1")], prompt="What is seen", schema=SCHEMA)
        self.assertIn(self.client.get_extract_status(started.id).status, ("processing", "completed"))

    def test_what_there_is_not_says_so(self):
        self.assertRaises(Exception, lambda: self.client.get_extract_status(str(uuid.uuid4())))
        for call in (lambda: self.client.check_generate_llms_text_status(str(uuid.uuid4())),
                     lambda: self.client.deep_research("whales"),
                     lambda: self.client.check_deep_research_status(str(uuid.uuid4()))):
            self.assertRaises(Exception, call)

    def test_a_llms_txt_lists_a_sites_pages(self):
        made = self.client.generate_llms_text(site("/maps/sitemap.xml"), max_urls=5, show_full_text=False)
        self.assertEqual((made.success, made.status, made.data.llmsfulltxt), (True, "completed", None))
        lines = made.data.llmstxt.splitlines()
        self.assertEqual((lines[0], len(lines)), ("# 127.0.0.1 llms.txt", 2 + 5))
        self.assertTrue(all(line.startswith("- [") and SITE in line for line in lines[2:]), lines)
        lost = self.client.generate_llms_text("http://no-such-name.invalid")
        self.assertEqual((lost.success, lost.status, bool(lost.error)), (False, "failed", True))


class Asynchronous(unittest.TestCase):
    def test_the_asynchronous_client_scrapes_crawls_and_batches(self):
        async def run():
            client = AsyncV1FirecrawlApp(api_key=KEY, api_url=URL)
            document = await client.scrape_url(site("/article/1"))
            crawl = await client.crawl_url(
                site("/crawl/4/4/"), limit=3, ignore_sitemap=True, scrape_options=V1ScrapeOptions(formats=["markdown"]))
            batch = await client.batch_scrape_urls([site(f"/small/{n}") for n in range(3)])
            links = await client.map_url(site("/"), sitemap_only=True, limit=3)
            return document, crawl, batch, links
        document, crawl, batch, links = asyncio.run(run())
        self.assertTrue(document.markdown)
        self.assertEqual((crawl.status, len(crawl.data)), ("completed", 3))
        self.assertEqual((batch.status, len(batch.data)), ("completed", 3))
        self.assertEqual(len(links.links), 3)


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
