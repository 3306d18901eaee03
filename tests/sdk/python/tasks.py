"""Extractions and agents through the official Python SDK, unmodified, against a running service.

Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment. The service's language model reads "seen" out
of every page, and an agent's first step is to finish with it. Closes with the line "N passed, N failed".
"""
import os
import sys
import unittest
import uuid
import warnings

from firecrawl import Firecrawl
from firecrawl.v2.utils import error_handler as errors

URL, KEY, SITE = os.environ["WEIR_URL"], os.environ["WEIR_KEY"], os.environ["SITE_URL"]
SCHEMA = {"type": "object", "properties": {"seen": {"type": "string"}}, "required": ["seen"]}


class Tasks(unittest.TestCase):
    def setUp(self):
        self.client = Firecrawl(api_key=KEY, api_url=URL)
        warnings.simplefilter("ignore", DeprecationWarning)

    def test_extract_waits_for_the_data(self):
        pages = [SITE + "/article/1", SITE + "/article/2"]
        done = self.client.extract(pages, schema=SCHEMA, show_sources=True, poll_interval=1, timeout=60)
        self.assertEqual((done.success, done.status, done.data), (True, "completed", {"seen": "seen"}))
        self.assertEqual(done.sources, {"seen": pages})
        self.assertEqual(done.credits_used, 10)
        self.assertGreater(done.tokens_used, 0)

    def test_extract_starts_and_is_read(self):
        started = self.client.start_extract([SITE + "/article/3"], prompt="What is seen?")
        status = self.client.get_extract_status(started.id)
        self.assertIn(status.status, ("processing", "completed"))
        with self.assertRaises(errors.FirecrawlError) as unknown:
            self.client.get_extract_status(str(uuid.uuid4()))
        self.assertEqual(unknown.exception.status_code, 404)

    def test_agent_waits_for_the_answer(self):
        done = self.client.agent(urls=[SITE + "/article/4"], prompt="What is seen?", schema=SCHEMA, poll_interval=1,
                                 timeout=60, effort="low", model="spark-1-mini", max_credits=50)
        self.assertEqual((done.status, done.data), ("completed", {"seen": "seen"}))
        self.assertEqual((done.model, done.effort, done.credits_used), ("spark-1-mini", "low", 1))
        trace = self.client.get_agent_trace(done.id, live_view=True)
        self.assertEqual(trace.events[0].type, "run.started")
        self.assertEqual(trace.events[-1].outcome, "succeeded")
        thread = self.client.get_agent_thread(done.thread_id, include_data=True).thread
        self.assertEqual((thread.status, thread.runs[0].data), ("idle", {"seen": "seen"}))
        listed = self.client.list_agents()
        self.assertIn(done.id, [agent.id for agent in listed.agents])

    def test_agent_starts_goes_on_and_is_cancelled_too_late(self):
        started = self.client.start_agent(urls=None, prompt="What is seen?", mode="chat")
        while self.client.get_agent_status(started.id).status == "processing":
            pass
        done = self.client.get_agent_status(started.id)
        self.assertEqual((done.status, done.message, done.mode), ("completed", "seen", "chat"))
        again = self.client.agent(urls=None, prompt="And now?", thread_id=started.thread_id, poll_interval=1, timeout=60)
        self.assertEqual((again.thread_id, again.thread_turn, again.message), (started.thread_id, 2, "seen"))
        with self.assertRaises(errors.FirecrawlError) as late:
            self.client.cancel_agent(started.id)
        self.assertEqual(late.exception.status_code, 409)


if __name__ == "__main__":
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
