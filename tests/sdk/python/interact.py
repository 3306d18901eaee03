"""Interaction with scrapes, and formats that a model reads, through the official Python SDK, unmodified, against a running
service.

Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment. The service's language model finishes every
task with the answer "seen", and reads "seen" out of every page. Closes with the line "N passed, N failed".
"""
import os
import sys
import unittest
import uuid

from firecrawl import Firecrawl
from firecrawl.v2.types import (ChangeTrackingFormat, HighlightsFormat, JsonFormat, Location, QueryFormat, QuestionFormat,
                                RedactPIIOptions, ScrapeOptions)
from firecrawl.v2.utils import error_handler as errors

URL, KEY, SITE = os.environ["WEIR_URL"], os.environ["WEIR_KEY"], os.environ["SITE_URL"]


class Interact(unittest.TestCase):
    def setUp(self):
        self.client = Firecrawl(api_key=KEY, api_url=URL)

    def test_code_in_three_languages_a_prompt_and_a_stop(self):
        scrape = self.client.scrape(SITE + "/article/5").metadata.scrape_id
        node = self.client.interact(scrape, "await page.title()")
        self.assertEqual((node.success, node.exit_code, node.killed), (True, 0, False))
        title = node.result
        self.assertTrue(title)
        self.assertIn("/live/", node.live_view_url)
        self.assertIn("/live/", node.interactive_live_view_url)
        self.assertTrue(node.cdp_url.startswith("ws://"))
        python = self.client.interact(scrape, "print(await page.title())", language="python", timeout=60)
        self.assertEqual(python.stdout.strip(), title)
        bash = self.client.interact(scrape, "agent-browser get title", language="bash", timeout=60)
        self.assertEqual(bash.stdout.strip(), title)
        agent = self.client.interact(scrape, prompt="What do you see?", timeout=60)
        self.assertEqual((agent.success, agent.output), (True, "seen"))
        self.assertIn(title, agent.result)
        ended = self.client.stop_interaction(scrape)
        self.assertEqual((ended.success, ended.credits_billed), (True, 2))
        self.assertGreater(ended.session_duration_ms, 0)
        with self.assertRaises(errors.FirecrawlError) as gone:
            self.client.interact(scrape, "1")
        self.assertEqual(gone.exception.status_code, 410)

    def test_formats_that_a_model_reads(self):
        schema = {"type": "object", "properties": {"seen": {"type": "string"}}}
        tracking = ChangeTrackingFormat(modes=["git-diff", "json"], schema=schema, tag="python")
        formats = ["markdown", "summary", JsonFormat(prompt="what is seen", schema=schema), QuestionFormat(question="What?"),
                   HighlightsFormat(query="the main thing"), tracking]
        document = self.client.scrape(SITE + "/article/7", formats=formats)
        self.assertIn("MAIN", document.markdown)
        self.assertEqual((document.summary, document.json, document.answer), ("seen", {"seen": "seen"}, "seen"))
        self.assertTrue(document.highlights.startswith("MAIN"))
        self.assertEqual(document.change_tracking["changeStatus"], "new")
        self.assertIsNone(document.change_tracking["previousScrapeAt"])
        self.assertEqual(document.metadata.credits_used, 13)
        again = self.client.scrape(SITE + "/article/7", formats=["markdown", tracking], max_age=0)
        self.assertEqual(again.change_tracking["changeStatus"], "same")
        quote = self.client.scrape(SITE + "/article/7", formats=[QueryFormat(prompt="x", mode="directQuote")])
        self.assertTrue(quote.answer.startswith("MAIN"))
        redaction = RedactPIIOptions(mode="accurate", entities=["EMAIL", "PERSON"], replace_style="mask")
        # The SDK passes it in options of a crawl only.
        options = ScrapeOptions(formats=["markdown"], redact_pii=redaction, proxy="basic",
                                location=Location(country="DE", languages=["de"]))
        crawl = self.client.crawl(SITE + "/article/7", limit=1, sitemap="skip", scrape_options=options, poll_interval=1)
        redacted = crawl.data[0]
        self.assertEqual((redacted.metadata.credits_used, redacted.metadata.proxy_used), (5, "basic"))
        with self.assertRaises(errors.BadRequestError) as caught:
            self.client.scrape(SITE + "/article/7", formats=[JsonFormat(schema={"type": "nothing"})])
        self.assertIn("not a valid JSON schema", str(caught.exception))

    def test_a_failure_raises_with_the_codes_own_words(self):
        scrape = self.client.scrape(SITE + "/small/1").metadata.scrape_id
        with self.assertRaisesRegex(errors.FirecrawlError, "mine"):
            self.client.interact(scrape, "throw new Error('mine')")
        self.client.stop_interaction(scrape)

    def test_pages_of_a_batch_and_unknown_scrapes(self):
        page = self.client.batch_scrape([SITE + "/article/6"], poll_interval=1).data[0]
        there = self.client.interact(page.metadata.scrape_id, "page.url()")
        self.assertEqual(there.result, SITE + "/article/6")
        self.client.stop_interaction(page.metadata.scrape_id)
        with self.assertRaises(errors.FirecrawlError) as unknown:
            self.client.interact(str(uuid.uuid4()), "1")
        self.assertEqual(unknown.exception.status_code, 404)


if __name__ == "__main__":
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
