// Interaction with scrapes, and formats that a model reads, through the official JavaScript SDK, unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment; NODE_PATH leads to the SDK.
// The service's language model finishes every task with the answer "seen", and reads "seen" out of every page.
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
  const counts = (event) => event.details?.type !== "suite" && !event.name.endsWith("interact.cjs");
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
  const { Firecrawl } = require("@mendable/firecrawl-js");
  const client = new Firecrawl({ apiKey: WEIR_KEY, apiUrl: WEIR_URL });
  const scraped = async (path) => (await client.scrape(SITE_URL + path)).metadata.scrapeId;

  test("formats that a model reads", async () => {
    const schema = { type: "object", properties: { seen: { type: "string" } } };
    const tracking = { type: "changeTracking", modes: ["git-diff", "json"], schema, tag: "javascript" };
    const formats = [
      "markdown", "summary", { type: "json", prompt: "what is seen", schema }, { type: "question", question: "What?" },
      { type: "highlights", query: "the main thing" }, tracking,
    ];
    const document = await client.scrape(`${SITE_URL}/article/8`, { formats, onlyCleanContent: true });
    assert.ok(document.markdown.includes("MAIN"));
    assert.deepEqual([document.summary, document.json, document.answer], ["seen", { seen: "seen" }, "seen"]);
    assert.ok(document.highlights.startsWith("MAIN"));
    assert.deepEqual([document.changeTracking.changeStatus, document.metadata.creditsUsed], ["new", 13]);
    const again = await client.scrape(`${SITE_URL}/article/8`, { formats: ["markdown", tracking], onlyCleanContent: true, maxAge: 0 });
    assert.equal(again.changeTracking.changeStatus, "same");
    const redactPII = { mode: "fast", entities: ["EMAIL"], replaceStyle: "tag" };
    const redacted = await client.scrape(`${SITE_URL}/article/8`, { formats: ["markdown"], redactPII });
    assert.equal(redacted.metadata.creditsUsed, 5);
    const wrong = client.scrape(`${SITE_URL}/article/8`, { formats: [{ type: "json", schema: { type: "nothing" } }] });
    await assert.rejects(wrong, { status: 400 });
  });

  test("code in three languages, a prompt and a stop", async () => {
    const scrape = await scraped("/article/5");
    const node = await client.interact(scrape, { code: "await page.title()" });
    assert.deepEqual([node.success, node.exitCode, node.killed], [true, 0, false]);
    const title = node.result;
    assert.ok(title && node.liveViewUrl.includes("/live/") && node.interactiveLiveViewUrl.includes("/live/"));
    const python = await client.interact(scrape, { code: "print(await page.title())", language: "python", timeout: 60 });
    assert.equal(python.stdout.trim(), title);
    const bash = await client.interact(scrape, { code: "agent-browser get title", language: "bash", timeout: 60 });
    assert.equal(bash.stdout.trim(), title);
    const agent = await client.interact(scrape, { prompt: "What do you see?", timeout: 60 });
    assert.deepEqual([agent.success, agent.output], [true, "seen"]);
    assert.ok(agent.result.includes(title));
    const ended = await client.stopInteraction(scrape);
    assert.deepEqual([ended.success, ended.creditsBilled], [true, 2]);
    assert.ok(ended.sessionDurationMs > 0);
    await assert.rejects(client.interact(scrape, { code: "1" }), { status: 410 });
  });

  test("failures and unknown scrapes", async () => {
    const scrape = await scraped("/small/1");
    const failed = await client.interact(scrape, { code: "throw new Error('mine')" }).catch((error) => error);
    assert.match(String(failed.error ?? failed.message), /mine/);
    await client.stopInteraction(scrape);
    await assert.rejects(client.interact(randomUUID(), { code: "1" }), { status: 404 });
    await assert.rejects(client.stopInteraction(randomUUID()), { status: 404 });
  });
}
