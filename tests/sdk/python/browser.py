"""Browser sessions through the official Python SDK, unmodified, against a running service.

Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment.
Closes with the line "N passed, N failed".
"""
import asyncio
import os
import sys
import unittest
import uuid

from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.utils import error_handler as errors

URL, KEY, SITE = os.environ["WEIR_URL"], os.environ["WEIR_KEY"], os.environ["SITE_URL"]


def site(path):
    return SITE + path


class Sessions(unittest.TestCase):
    def setUp(self):
        self.client = Firecrawl(api_key=KEY, api_url=URL)
        self.made = []

    def tearDown(self):
        for session in self.made:
            self.client.delete_browser(session)

    def create(self, **options):
        session = self.client.browser(**options)
        self.assertTrue(session.success)
        self.made.append(session.id)
        return session

    def run_code(self, session, code, language, **options):
        ran = self.client.browser_execute(session.id, code, language=language, **options)
        self.assertTrue(ran.success)
        self.assertIsNone(ran.error, ran.stderr)
        self.assertEqual((ran.exit_code, ran.killed), (0, False))
        return ran

    def test_a_session_is_created_listed_and_deleted(self):
        session = self.create(ttl=120, activity_ttl=60, stream_web_view=True)
        uuid.UUID(session.id)
        self.assertTrue(session.cdp_url.startswith(URL.replace("http", "ws", 1)))
        self.assertTrue(session.live_view_url.startswith(URL) and session.interactive_live_view_url.startswith(URL))
        self.assertNotEqual(session.live_view_url, session.interactive_live_view_url)
        self.assertTrue(session.expires_at.endswith("Z"))
        listed = {s.id: s for s in self.client.list_browsers(status="active").sessions}
        self.assertEqual((listed[session.id].status, listed[session.id].stream_web_view), ("active", True))
        self.assertEqual(listed[session.id].cdp_url, session.cdp_url)
        first = self.client.delete_browser(session.id)
        self.assertEqual((first.success, first.credits_billed), (True, 2))
        self.assertGreaterEqual(first.session_duration_ms, 0)
        again = self.client.delete_browser(session.id)
        self.assertEqual((again.session_duration_ms, again.credits_billed), (first.session_duration_ms, 2))
        self.assertNotIn(session.id, [s.id for s in self.client.list_browsers(status="active").sessions])
        gone = {s.id: s for s in self.client.list_browsers(status="destroyed").sessions}
        self.assertEqual((gone[session.id].status, gone[session.id].cdp_url), ("destroyed", session.cdp_url))

    def test_three_languages_drive_the_same_browser_and_keep_their_state(self):
        session = self.create()
        self.run_code(session, f"const seen = 41; await page.goto({site('/article/1')!r});", "node")
        ran = self.run_code(session, "seen + 1", "node")
        self.assertEqual(ran.result, "42")
        title = self.run_code(session, "await page.title()", "node").result
        self.assertTrue(title)
        ran = self.run_code(session, "told = await page.title()\nprint(told)", "python")
        self.assertEqual(ran.stdout.strip(), title)
        self.assertEqual(self.run_code(session, "print(len(told))", "python").stdout.strip(), str(len(title)))
        ran = self.client.browser_execute(session.id, "agent-browser get title")
        self.assertEqual((ran.exit_code, title in ran.stdout), (0, True), ran.stderr)

    def test_code_that_fails_is_a_normal_answer(self):
        session = self.create()
        ran = self.client.browser_execute(session.id, "throw new Error('on purpose')", language="node")
        self.assertEqual((ran.success, ran.exit_code, ran.killed), (True, 1, False))
        self.assertIn("on purpose", ran.error)
        ran = self.client.browser_execute(session.id, "while (true);", language="node", timeout=1)
        self.assertTrue(ran.success and ran.killed and ran.error)
        self.assertEqual(self.run_code(session, "1 + 1", "node").result, "2")

    def test_a_profile_has_one_saver(self):
        profile = {"name": f"python-{uuid.uuid4()}"}
        self.create(profile=profile)
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.browser(profile=profile)
        self.assertEqual(caught.exception.status_code, 409)
        self.create(profile={**profile, "save_changes": False})

    def test_errors_become_the_sdks_exceptions(self):
        with self.assertRaises(errors.BadRequestError):
            self.client.browser(ttl=5)
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.browser_execute(str(uuid.uuid4()), "1", language="node")
        self.assertEqual(caught.exception.status_code, 404)
        session = self.create()
        self.client.delete_browser(session.id)
        with self.assertRaises(errors.FirecrawlError) as caught:
            self.client.browser_execute(session.id, "1", language="node")
        self.assertEqual(caught.exception.status_code, 410)
        with self.assertRaises(errors.UnauthorizedError):
            Firecrawl(api_key="nobodys-key", api_url=URL).browser()


class Asynchronous(unittest.TestCase):
    def test_the_asynchronous_client_uses_a_session(self):
        async def run():
            client = AsyncFirecrawl(api_key=KEY, api_url=URL)
            session = await client.browser(ttl=60)
            ran = await client.browser_execute(session.id, "6 * 7", language="node")
            listed = await client.list_browsers(status="active")
            ended = await client.delete_browser(session.id)
            return session, ran, listed, ended
        session, ran, listed, ended = asyncio.run(run())
        self.assertEqual(ran.result, "42")
        self.assertIn(session.id, [s.id for s in listed.sessions])
        self.assertEqual((ended.success, ended.credits_billed), (True, 2))


if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
