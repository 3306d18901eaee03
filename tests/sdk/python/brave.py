"""The official Python SDK searches, where the service's backend is the Brave Search API.

Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site, whose articles 7 to 9 are found) from the environment. Closes with the
line "N passed, N failed".
"""
import os
import sys
import unittest

from firecrawl import Firecrawl
from firecrawl.v2.types import ScrapeOptions

URL, KEY, SITE = os.environ["WEIR_URL"], os.environ["WEIR_KEY"], os.environ["SITE_URL"]
ARTICLES = [f"{SITE}/article/{n}" for n in (7, 8, 9)]


class Brave(unittest.TestCase):
    def setUp(self):
        self.client = Firecrawl(api_key=KEY, api_url=URL)

    def test_hits_of_every_source(self):
        found = self.client.search("whales", limit=3, sources=["web", "news", "images"], tbs="qdr:w")
        self.assertEqual([hit.url for hit in found.web], ARTICLES)
        self.assertEqual((found.web[0].title, found.web[0].description), ("Hit 0", "What is found at 0."))
        self.assertEqual((len(found.news), found.news[0].snippet), (3, "What is found at 0."))
        self.assertEqual((found.images[0].image_url, found.images[0].image_width), ("https://pictures.example/0.png", 640))

    def test_hits_with_their_pages(self):
        found = self.client.search("whales", limit=2, scrape_options=ScrapeOptions(formats=["markdown"]))
        self.assertEqual([hit.metadata.source_url for hit in found.web], ARTICLES[:2])
        self.assertTrue(all("MAIN" in hit.markdown for hit in found.web))


outcome = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
failed = len(outcome.failures) + len(outcome.errors)
print(f"{outcome.testsRun - failed} passed, {failed} failed")
sys.exit(failed != 0)
