// Version 1 of the API through the official JavaScript SDK's client for it (`.v1`), unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment; NODE_PATH leads to the SDK. The service's
// language model reads "seen" out of every page. Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const run = require("./steps.cjs");
const { Firecrawl } = require("@mendable/firecrawl-js");

// The client takes the global one, which Node has from version 22 on; before, this is the same.
globalThis.WebSocket ??= require("undici").WebSocket;

const { WEIR_URL, WEIR_KEY, SITE_URL } = process.env;
const client = new Firecrawl({ apiKey: WEIR_KEY, apiUrl: WEIR_URL }).v1;
const site = (path) => SITE_URL + path;
const urls = (prefix, count) => Array.from({ length: count }, (_, n) => site(prefix + n));
const schema = { type: "object", properties: { seen: { type: "string" } }, required: ["seen"] };

async function assertExtracted(path, text) {
  const answer = await fetch(site(`/_ctl/truth?${new URLSearchParams({ path })}`));
  const { main, boilerplate } = await answer.json();
  assert.deepEqual(main.filter((marker) => !text.includes(marker)), [], `lost in ${path}`);
  assert.deepEqual(boilerplate.filter((marker) => text.includes(marker)), [], `leaked in ${path}`);
}

// Reads until the job has ended. The only waiting place of the suite.
async function ended(read, seconds = 60) {
  for (const end = Date.now() + seconds * 1000; (await read()).status === "scraping"; ) {
    assert.ok(Date.now() < end, `waited ${seconds} s in vain`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// Every document that a watcher sees, until it is done.
function watched(watcher) {
  return new Promise((resolve, reject) => {
    const seen = [];
    const timer = setTimeout(() => reject(new Error("the watcher is not done within 60 s")), 60_000);
    watcher.addEventListener("document", (event) => seen.push(event.detail.metadata.sourceURL));
    watcher.addEventListener("error", (event) => reject(new Error(event.detail.error)));
    watcher.addEventListener("done", (event) => {
      clearTimeout(timer);
      assert.equal(event.detail.status, "completed");
      resolve(seen);
    });
  });
}

const steps = {
  "a bare scrape gives markdown": async () => {
    const document = await client.scrapeUrl(site("/article/1"), {});
    assert.equal(document.success, true);
    await assertExtracted("/article/1", document.markdown);
    assert.equal(document.metadata.sourceURL, site("/article/1"));
  },
  "formats have their fields": async () => {
    const formats = ["markdown", "html", "rawHtml", "links", "screenshot"];
    const document = await client.scrapeUrl(site("/docs/2"), { formats, timeout: 60_000, proxy: "basic", parsePDF: true });
    for (const name of formats) assert.ok(document[name]?.length, name);
  },
  "actions have their results": async () => {
    const actions = [{ type: "wait", milliseconds: 10 }, { type: "screenshot" }, { type: "scrape" }];
    const { actions: results } = await client.scrapeUrl(site("/article/1"), { actions, timeout: 60_000 });
    assert.deepEqual([results.screenshots.length, results.scrapes.length], [1, 1]);
  },
  "data is read out of a page by either name": async () => {
    const wanted = { prompt: "What is seen", schema, systemPrompt: "Be brief." };
    for (const options of [{ formats: ["json"], jsonOptions: wanted }, { formats: ["extract"], extract: wanted }]) {
      const document = await client.scrapeUrl(site("/article/2"), { ...options, timeout: 60_000 });
      assert.deepEqual([document.json, document.extract], [{ seen: "seen" }, { seen: "seen" }]);
    }
  },
  "changes are tracked": async () => {
    const options = { formats: ["markdown", "changeTracking"], changeTrackingOptions: { modes: ["git-diff"], tag: null } };
    const { changeTracking } = await client.scrapeUrl(site("/article/3"), options);
    assert.ok(["new", "same"].includes(changeTracking.changeStatus));
  },
  "a wrong scrape is refused": async () => {
    await assert.rejects(client.scrapeUrl("ftp://files.example/", {}), /Status code: 400.*unsupported protocol/);
    await assert.rejects(client.scrapeUrl(site("/small/1"), { formats: ["json"] }), /must be provided/);
  },
  "a crawl is waited for with all its pages": async () => {
    const options = { maxDepth: 2, limit: 111, ignoreSitemap: true, ignoreQueryParameters: true };
    const job = await client.crawlUrl(site("/crawl/8/"), { ...options, scrapeOptions: { formats: ["markdown"] } }, 1);
    assert.deepEqual([job.status, job.total, job.data.length], ["completed", 111, 111]);
    assert.equal(new Set(job.data.map((page) => page.metadata.sourceURL)).size, 111);
  },
  "a crawl is started, read and cancelled": async () => {
    const started = await client.asyncCrawlUrl(site("/slow?ms=60000"), { limit: 1, allowBackwardLinks: true }, randomUUID());
    assert.ok(started.url.includes(`/v1/crawl/${started.id}`), started.url);
    // Asked for by DELETE: the job goes on.
    assert.deepEqual((await client.checkCrawlErrors(started.id)).errors, []);
    const status = await client.checkCrawlStatus(started.id);
    assert.deepEqual([status.success, status.status, status.data], [true, "scraping", []]);
    assert.equal((await client.cancelCrawl(started.id)).status, "cancelled");
    assert.equal((await client.checkCrawlStatus(started.id)).status, "cancelled");
  },
  "pages of a crawl are read one by one": async () => {
    const { id } = await client.asyncCrawlUrl(site("/crawl/2/2/"), { limit: 5, ignoreSitemap: true });
    await ended(() => client.checkCrawlStatus(id));
    const first = await client.checkCrawlStatus(id, false, undefined, 1, 2);
    assert.deepEqual([first.data.length, first.next.includes("/v1/crawl/")], [2, true]);
    const rest = await client.checkCrawlStatus(id, false, first.next);
    assert.deepEqual([rest.data.length, rest.next], [2, undefined]);
    assert.equal((await client.checkCrawlStatus(id, true)).data.length, 5);
  },
  "a batch is waited for at the path of crawls, and its errors are read": async () => {
    const job = await client.batchScrapeUrls([...urls("/article/", 4), "http://no-such-name.invalid/"], { formats: ["markdown"] }, 1);
    assert.deepEqual([job.status, job.total, job.data.length], ["completed", 4, 4]);
    const started = await client.asyncBatchScrapeUrls(["http://no-such-name.invalid/"], { formats: ["links"] });
    await ended(() => client.checkBatchScrapeStatus(started.id, true));
    const { errors } = await client.checkBatchScrapeErrors(started.id);
    assert.deepEqual(errors.map((error) => error.url), ["http://no-such-name.invalid/"]);
    const skipped = await client.asyncBatchScrapeUrls([site("/small/1"), "x:y"], {}, undefined, undefined, true);
    assert.deepEqual(skipped.invalidURLs, ["x:y"]);
    await assert.rejects(client.asyncBatchScrapeUrls(["ftp://files.example/"], {}), /400.*unsupported protocol/);
  },
  "both kinds of jobs are watched": async () => {
    const options = { limit: 11, ignoreSitemap: true, ignoreQueryParameters: true };
    const pages = await watched(await client.crawlUrlAndWatch(site("/crawl/9/9/"), options));
    assert.deepEqual([pages.length, new Set(pages).size], [11, 11]);
    const slow = urls("/slow?ms=300&n=", 5);
    assert.deepEqual((await watched(await client.batchScrapeUrlsAndWatch(slow, {}))).sort(), slow);
  },
  "links of a map are texts": async () => {
    const { links } = await client.mapUrl(site("/maps/sitemap.xml"), { search: "whale watching", limit: 5 });
    assert.deepEqual([links.length, links[0]], [5, site("/m/item-1")]);
    assert.equal((await client.mapUrl(site("/"), { sitemapOnly: true, limit: 20 })).links.length, 20);
  },
  "hits of a search are documents": async () => {
    const plain = await client.search("whales", { limit: 2 });
    assert.deepEqual(plain.data.map((hit) => hit.url), [site("/article/7"), site("/article/8")]);
    assert.ok(plain.data[0].title && plain.data[0].description);
    const { data } = await client.search("whales", { limit: 1, scrapeOptions: { formats: ["markdown"] } });
    await assertExtracted("/article/7", data[0].markdown);
  },
  "the team reads what it has left and used": async () => {
    assert.ok((await client.getCreditUsage()).data.remaining_credits > 0);
    assert.ok((await client.getTokenUsage()).data.remaining_tokens > 0);
    assert.ok((await client.getCreditUsageHistorical()).periods.at(-1).creditsUsed > 0);
    assert.ok((await client.getTokenUsageHistorical(true)).periods.at(-1).apiKey);
    assert.equal((await client.getQueueStatus()).success, true);
  },
  "a llms.txt lists a site's pages": async () => {
    const made = await client.generateLLMsText(site("/maps/sitemap.xml"), { maxUrls: 5 });
    assert.deepEqual([made.success, made.status], [true, "completed"]);
    const lines = made.data.llmstxt.trim().split("\n");
    assert.deepEqual([lines[0], lines.length], ["# 127.0.0.1 llms.txt", 2 + 5]);
    assert.ok(lines.slice(2).every((line) => line.startsWith("- [") && line.includes(SITE_URL)), lines.join());
  },
  "an extract is waited for and read": async () => {
    const schema = { type: "object", properties: { seen: { type: "string" } }, required: ["seen"] };
    const done = await client.extract([site("/small/1")], { prompt: "What is seen", schema });
    assert.deepEqual([done.success, done.data], [true, { seen: "seen" }]);
    const started = await client.asyncExtract([site("/small/1")], { prompt: "What is seen", schema });
    assert.ok(["processing", "completed"].includes((await client.getExtractStatus(started.id)).status));
  },
  "what there is not says so": async () => {
    const id = randomUUID();
    await assert.rejects(client.getExtractStatus(id), /404|not found/);
    await assert.rejects(client.checkGenerateLLMsTextStatus(id), /404|not found/);
    await assert.rejects(client.deepResearch("whales", {}), /404|not found/);
    await assert.rejects(client.checkDeepResearchStatus(id), /404|not found/);
  },
};

run(steps);
