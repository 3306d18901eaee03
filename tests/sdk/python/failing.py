"""The official Python SDK searches, where the service's backend fails in the way that the query names.

Reads WEIR_URL and WEIR_KEY from the environment, further services whose backend is to rest (RESTING, JSON by the way it
fails) and one with a second backend that works (FOLLOWED). Closes with the line "N passed, N failed".
"""
import json
import os
import sys
import unittest

from firecrawl import Firecrawl
from firecrawl.v2.utils import error_handler as errors

RESTING, FOLLOWED = json.loads(os.environ["RESTING"]), json.loads(os.environ["FOLLOWED"])


def client(service):
    return Firecrawl(api_key=service["key"], api_url=service["url"])


class Failing(unittest.TestCase):
    def setUp(self):
        self.steady = client({"url": os.environ["WEIR_URL"], "key": os.environ["WEIR_KEY"]})

    def is_refused(self, search, *query):
        """Told as what it is, with the time after which another try makes sense."""
        with self.assertRaises(errors.FirecrawlError) as caught:
            search(*query)
        error = caught.exception
        self.assertEqual((error.status_code, error.code), (503, "SEARCH_BACKEND_FAILED"), error)
        self.assertIn("The search backend did not answer as it should.", str(error))
        return int(error.response.headers["Retry-After"])

    def test_backends_that_refuse_rest(self):
        for way, service in RESTING.items():
            with self.subTest(way):
                first, again = (self.is_refused(client(service).search, way) for _ in range(2))
                self.assertTrue(again <= first <= (300 if way == "too many" else 60), (first, again))

    def test_the_next_backend_is_asked(self):
        found = client(FOLLOWED).search("too many")
        self.assertEqual(len(found.web), 2)

    def test_broken_answers_are_told(self):
        for query in ("broken", "no list"):
            self.assertEqual(self.is_refused(self.steady.search, query), 5)

    def test_a_slow_backend_is_not_waited_for(self):
        with self.assertRaises(errors.RequestTimeoutError):
            self.steady.search("slow", timeout=700)

    def test_nothing_found_is_no_error(self):
        found = self.steady.search("empty", sources=["web", "news"])
        self.assertEqual((found.web, found.news), ([], []))

    def test_results_of_wrong_types_are_left_out(self):
        found = self.steady.search("odd")
        self.assertEqual([(hit.url, hit.title, hit.description) for hit in found.web], [("https://ok.example/", "", "")])

    def test_repeated_pages_end_the_search(self):
        found = self.steady.search("repeated", limit=60)
        self.assertEqual([hit.url for hit in found.web], [f"https://hit-{n}.example/" for n in range(20)])

    def test_what_was_found_before_a_refusal_stays(self):
        self.assertEqual(len(self.steady.search("too many later", limit=60).web), 20)
        self.assertEqual(len(self.steady.search("odd").web), 1, "and the backend is asked again")


outcome = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
failed = len(outcome.failures) + len(outcome.errors)
print(f"{outcome.testsRun - failed} passed, {failed} failed")
sys.exit(failed != 0)
