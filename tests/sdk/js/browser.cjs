// Browser sessions through the official JavaScript SDK, unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment; NODE_PATH leads to the SDK.
// Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { run, test } = require("node:test");

const { WEIR_URL, WEIR_KEY, SITE_URL } = process.env;

// Started by hand, this file runs itself under node's test runner and counts.
if (!process.env.WEIR_SDK_CHILD) {
  process.env.WEIR_SDK_CHILD = "1";
  let passed = 0;
  let failed = 0;
  const stream = run({ files: [__filename], concurrency: 1, timeout: 240_000 });
  const name = (event) => event.name.replaceAll(/\s+/g, " ");
  // The file itself is reported as a test too; only what it holds counts.
  const counts = (event) => event.details?.type !== "suite" && !event.name.endsWith("browser.cjs");
  stream.on("test:pass", (event) => counts(event) && (passed++, console.log(`ok   ${name(event)}`)));
  stream.on("test:fail", (event) => {
    if (!counts(event)) return;
    failed++;
    console.log(`FAIL ${name(event)}\n${event.details.error?.cause?.stack ?? event.details.error}`);
  });
  stream.on("test:stderr", (event) => process.stderr.write(event.message));
  stream.once("end", () => {
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed ? 1 : 0;
  });
  stream.resume();
} else {
  tests();
}

function tests() {
  const { Firecrawl, SdkError } = require("@mendable/firecrawl-js");
  const client = new Firecrawl({ apiKey: WEIR_KEY, apiUrl: WEIR_URL });
  const site = (path) => SITE_URL + path;

  // A session that ends with its test.
  async function withSession(options, body) {
    const session = await client.browser(options);
    assert.equal(session.success, true);
    try {
      return await body(session);
    } finally {
      await client.deleteBrowser(session.id);
    }
  }

  async function runCode(session, code, language) {
    const ran = await client.browserExecute(session.id, { code, language });
    assert.equal(ran.success, true);
    assert.equal(ran.error ?? null, null, ran.stderr);
    assert.deepEqual([ran.exitCode, ran.killed], [0, false]);
    return ran;
  }

  const rejectsWith = (status, promise) =>
    assert.rejects(promise, (error) => {
      assert.ok(error instanceof SdkError, String(error));
      assert.equal(error.status, status, error.message);
      return true;
    });

  test("a session is created, listed and deleted", async () => {
    const session = await client.browser({ ttl: 120, activityTtl: 60, streamWebView: false });
    assert.match(session.id, /^[0-9a-f-]{36}$/);
    assert.ok(session.cdpUrl.startsWith(WEIR_URL.replace("http", "ws")));
    assert.ok(session.liveViewUrl.startsWith(WEIR_URL) && session.interactiveLiveViewUrl.startsWith(WEIR_URL));
    assert.ok(Date.parse(session.expiresAt) > Date.now());
    const active = (await client.listBrowsers({ status: "active" })).sessions.find((s) => s.id === session.id);
    assert.deepEqual([active.status, active.streamWebView, active.cdpUrl], ["active", false, session.cdpUrl]);
    const first = await client.deleteBrowser(session.id);
    assert.deepEqual([first.success, first.creditsBilled], [true, 2]);
    const again = await client.deleteBrowser(session.id);
    assert.deepEqual([again.sessionDurationMs, again.creditsBilled], [first.sessionDurationMs, 2]);
    const gone = (await client.listBrowsers({ status: "destroyed" })).sessions.find((s) => s.id === session.id);
    assert.deepEqual([gone.status, gone.cdpUrl], ["destroyed", session.cdpUrl]);
  });

  test("three languages drive the same browser and keep their state", async () => {
    await withSession({}, async (session) => {
      await runCode(session, `const seen = 41; await page.goto(${JSON.stringify(site("/article/1"))});`, "node");
      assert.equal((await runCode(session, "seen + 1", "node")).result, "42");
      const title = (await runCode(session, "await page.title()", "node")).result;
      assert.ok(title);
      assert.equal((await runCode(session, "told = await page.title()\nprint(told)", "python")).stdout.trim(), title);
      assert.equal((await runCode(session, "print(told == await page.title())", "python")).stdout.trim(), "True");
      assert.ok((await runCode(session, "agent-browser get title")).stdout.includes(title), "bash is the SDK's default");
    });
  });

  test("code that fails is a normal answer", async () => {
    await withSession({}, async (session) => {
      const failed = await client.browserExecute(session.id, { code: "throw new Error('on purpose')", language: "node" });
      assert.deepEqual([failed.success, failed.exitCode, failed.killed], [true, 1, false]);
      assert.match(failed.error, /on purpose/);
      const slow = await client.browserExecute(session.id, { code: "while (true);", language: "node", timeout: 1 });
      assert.ok(slow.success && slow.killed && slow.error);
      assert.equal((await runCode(session, "1 + 1", "node")).result, "2");
    });
  });

  test("a profile has one saver", async () => {
    const name = `javascript-${randomUUID()}`;
    await withSession({ profile: { name } }, async () => {
      await rejectsWith(409, client.browser({ profile: { name } }));
      await withSession({ profile: { name, saveChanges: false } }, async () => {});
    });
  });

  test("errors become the SDK's errors", async () => {
    await rejectsWith(400, client.browser({ ttl: 5 }));
    await rejectsWith(404, client.browserExecute(randomUUID(), { code: "1", language: "node" }));
    const session = await client.browser();
    await client.deleteBrowser(session.id);
    await rejectsWith(410, client.browserExecute(session.id, { code: "1", language: "node" }));
    await rejectsWith(401, new Firecrawl({ apiKey: "nobodys-key", apiUrl: WEIR_URL }).browser());
  });
}
