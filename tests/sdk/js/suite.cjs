// The official JavaScript SDK, unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY, WEBHOOK_SECRET and SITE_URL (the test site) from the environment; NODE_PATH
// leads to the SDK. Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { readFileSync } = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { run } = require("node:test");
const { test } = require("node:test");

const { WEIR_URL, WEIR_KEY, SITE_URL, WEBHOOK_SECRET } = process.env;
const file = (name) => path.join(__dirname, "../../../worker/office/tests/files", name);

// Started without the word `tests`, this file runs itself under node's test runner and counts.
if (process.argv[2] !== "tests" && !process.env.WEIR_SDK_CHILD) {
  process.env.WEIR_SDK_CHILD = "1";
  let passed = 0;
  let failed = 0;
  const stream = run({ files: [__filename], concurrency: 1, timeout: 240_000 });
  const name = (event) => event.name.replaceAll(/\s+/g, " ");
  // The file itself is reported as a test too; only what it holds counts.
  const counts = (event) => event.details?.type !== "suite" && !event.name.endsWith("suite.cjs");
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
  const urls = (prefix, count) => Array.from({ length: count }, (_, n) => site(prefix + n));
  const control = async (path, init) => (await fetch(site(`/_ctl/${path}`), init)).json();
  const truth = (path) => control(`truth?${new URLSearchParams({ path })}`);

  async function assertExtracted(path, text) {
    const { main, boilerplate } = await truth(path);
    assert.deepEqual(main.filter((marker) => !text.includes(marker)), [], `lost in ${path}`);
    assert.deepEqual(boilerplate.filter((marker) => text.includes(marker)), [], `leaked in ${path}`);
  }

  // The only waiting place of the suite.
  async function waitFor(what, condition, seconds = 60) {
    const deadline = Date.now() + seconds * 1000;
    while (Date.now() < deadline) {
      const value = await condition();
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.fail(`waited ${seconds} s in vain: ${what}`);
  }

  const ended = (id) =>
    waitFor(`the end of ${id}`, async () => {
      const job = await client.getBatchScrapeStatus(id);
      return job.status === "scraping" ? null : job;
    });

  const rejectsWith = (status, promise) =>
    assert.rejects(promise, (error) => {
      assert.ok(error instanceof SdkError, String(error));
      assert.equal(error.status, status, error.message);
      return true;
    });

  test("a bare scrape gives markdown", async () => {
    const document = await client.scrape(site("/article/1"));
    await assertExtracted("/article/1", document.markdown);
    assert.equal(document.metadata.statusCode, 200);
    assert.equal(document.metadata.sourceURL, site("/article/1"));
    assert.match(document.metadata.scrapeId, /^[0-9a-f-]{36}$/);
  });

  test("every text format has its field, and only what was asked for is there", async () => {
    const document = await client.scrape(site("/docs/2"), { formats: ["markdown", "html", "rawHtml", "links", "images"] });
    await assertExtracted("/docs/2", document.markdown);
    await assertExtracted("/docs/2", document.html);
    assert.ok(document.rawHtml.includes("window.__state"));
    assert.ok(document.links.length > 0 && document.links.every((link) => link.startsWith("http")));
    assert.ok(Array.isArray(document.images));
    const links = await client.scrape(site("/docs/2"), { formats: ["links"] });
    assert.deepEqual(Object.keys(links).filter((key) => key !== "warning").sort(), ["links", "metadata"]);
  });

  test("screenshots come with their options", async () => {
    const plain = await client.scrape(site("/article/1"), { formats: ["screenshot"] });
    const answer = await fetch(plain.screenshot);
    assert.match(answer.headers.get("content-type"), /^image\//);
    const format = { type: "screenshot", fullPage: true, quality: 70, viewport: { width: 800, height: 600 } };
    assert.ok((await client.scrape(site("/article/1"), { formats: [format] })).screenshot);
  });

  test("a PDF is parsed as its parser says", async () => {
    const parsers = [{ type: "pdf", mode: "auto", maxPages: 2 }];
    const document = await client.scrape(site("/files/report.pdf"), { formats: ["markdown", "html"], parsers });
    assert.ok(document.markdown.includes("Page 2 MAIN") && document.html.includes("<p>"));
    assert.deepEqual([document.metadata.numPages, document.metadata.totalPages, document.metadata.creditsUsed], [2, 3, 2]);
  });

  test("blocks of a PDF have their place in the markdown", async () => {
    const parsers = [{ type: "pdf", blocks: true }];
    const document = await client.scrape(site("/files/blocks.pdf"), { formats: ["markdown"], parsers });
    assert.ok(document.markdown.includes("\u{1f600} and an old letter \u{10348}"));
    // Characters are counted, which strings here do not: they count units of UTF-16.
    const characters = Array.from(document.markdown);
    const items = document.blocks.flatMap((page) => page.items);
    for (const { markdownSpan, content } of items.filter((item) => item.markdownSpan !== null)) {
      assert.equal(characters.slice(...markdownSpan).join(""), content);
    }
    assert.deepEqual(document.blocks.map((page) => [page.pageNumber, page.status]), [[1, "ok"], [2, "ok"], [3, "ok"]]);
    const { id, type, readingOrder, bbox, confidence } = items[1];
    assert.deepEqual([id, type, readingOrder, bbox.length], ["p1.b1", "title", 1, 4]);
    assert.deepEqual(confidence, { layout: null, ocr: null });
    assert.ok(items.some((item) => item.type === "table" && item.content.startsWith("| River |")));
  });

  test("products and menus have their fields", async () => {
    const { product } = await client.scrape(site("/shop/microdata"), { formats: ["product"] });
    assert.deepEqual([product.title, product.brand, product.variants.length], ["Copper Kettle", "Ada", 2]);
    assert.deepEqual([product.variants[0].price.amount, product.variants[1].availability.inStock], [19.9, false]);
    const { menu } = await client.scrape(site("/bistro/rdfa"), { formats: ["menu"] });
    assert.deepEqual([menu.isMenu, menu.currency, menu.sections.map((section) => section.items.length)], [true, "CHF", [2, 2]]);
  });

  test("blocked sites are not scraped", async () => {
    const threatProtection = { blacklist: ["127.0.0.*", "localhost"] };
    await assert.rejects(client.scrape(site("/small/3"), { threatProtection }), /threatProtection/);
    await assert.rejects(client.scrape(site("/small/3"), { threatProtection: { mode: "normal" } }), /threatProtection/);
  });

  test("attributes, branding and media have their fields", async () => {
    const selectors = [{ selector: "audio source", attribute: "type" }];
    const document = await client.scrape(site("/media"), { formats: ["audio", "video", { type: "attributes", selectors }] });
    assert.equal(document.audio, site("/files/audio.wav"));
    assert.equal(document.video, site("/files/film.webm"));
    assert.deepEqual(document.attributes, [{ ...selectors[0], values: ["audio/wav"] }]);
    const { branding } = await client.scrape(site("/brand"), { formats: ["branding"] });
    assert.equal(branding.colors.primary, "#E4572E");
    assert.equal(branding.typography.fontFamilies.heading, "Playfair Display");
  });

  test("actions give their results", async () => {
    const { actions, markdown } = await client.scrape(site("/actions"), {
      formats: ["markdown"],
      actions: [
        { type: "click", selector: "#name" }, { type: "write", text: "Ada" }, { type: "click", selector: "#go" },
        { type: "wait", selector: "#late" }, { type: "press", key: "Tab" }, { type: "scroll", direction: "down" },
        { type: "scrape" }, { type: "screenshot", fullPage: true, quality: 50 },
        { type: "executeJavascript", script: "return 6 * 7" }, { type: "pdf", format: "A4", landscape: true, scale: 0.5 },
      ],
    });
    assert.match(markdown, /Hello Ada/);
    assert.deepEqual(actions.javascriptReturns, [{ type: "number", value: 42 }]);
    assert.deepEqual([actions.screenshots.length, actions.scrapes[0].url, actions.pdfs.length], [1, site("/actions"), 1]);
  });

  test("a cached page is told as such", async () => {
    const state = async (options) => (await client.scrape(site("/cache/js"), options)).metadata.cacheState;
    assert.deepEqual([await state(), await state(), await state({ minAge: 1 })], ["miss", "hit", "hit"]);
    assert.equal(await state({ maxAge: 0 }), undefined);
    await rejectsWith(404, client.scrape(site("/cache/never-js"), { lockdown: true }));
  });

  test("the options of a scrape pass", async () => {
    const document = await client.scrape(site("/article/3"), {
      formats: ["markdown"], onlyMainContent: true, includeTags: ["main"], excludeTags: ["figure"], headers: { "X-Test": "1" },
      waitFor: 50, mobile: true, timeout: 30_000, blockAds: true, removeBase64Images: true, skipTlsVerification: true,
      location: { country: "DE", languages: ["de"] }, proxy: "basic", maxAge: 0, storeInCache: false, parsers: ["pdf"],
    });
    assert.ok(document.markdown.includes((await truth("/article/3")).main[0]));
  });

  test("a page made by scripts is complete", async () => {
    await assertExtracted("/js/fetch/5", (await client.scrape(site("/js/fetch/5"))).markdown);
  });

  test("errors become the SDK's errors with status, code and details", async () => {
    await assert.rejects(client.scrape("ftp://files.example/x"), (error) => {
      assert.equal(error.status, 400);
      assert.equal(error.code, "BAD_REQUEST");
      assert.ok(Array.isArray(error.details) && error.details[0].path.includes("url"));
      return true;
    });
    await assert.rejects(client.scrape(site("/hang"), { timeout: 2000 }), (error) => {
      assert.equal(error.status, 408);
      assert.equal(error.code, "SCRAPE_TIMEOUT");
      return true;
    });
    await rejectsWith(401, new Firecrawl({ apiKey: "nobodys-key", apiUrl: WEIR_URL }).scrape(site("/small/1")));
    await assert.rejects(client.scrape("http://no-such-host.invalid/"), (error) => {
      assert.equal(error.code, "SCRAPE_DNS_RESOLUTION_ERROR");
      return true;
    });
    await rejectsWith(500, client.scrape(site("/cut/reset")));
  });

  test("the waiter returns every document of a batch", async () => {
    const job = await client.batchScrape(urls("/mix/", 30), { options: { formats: ["markdown", "links"] }, pollInterval: 1, timeout: 60 });
    assert.equal(job.status, "completed");
    assert.deepEqual([job.completed, job.total, job.creditsUsed, job.data.length], [30, 30, 30, 30]);
    assert.equal(new Set(job.data.map((document) => document.metadata.sourceURL)).size, 30);
    for (const document of job.data) await assertExtracted(document.metadata.sourceURL.slice(SITE_URL.length), document.markdown);
  });

  test("pages of results are followed through next", async () => {
    const { id } = await client.startBatchScrape(urls("/small/", 230));
    assert.equal((await ended(id)).data.length, 230);
    const first = await client.getBatchScrapeStatus(id, { autoPaginate: false });
    assert.equal(first.data.length, 100);
    assert.ok(first.next.startsWith(WEIR_URL));
    assert.equal((await client.getBatchScrapeStatus(id, { maxResults: 120 })).data.length, 120);
  });

  test("the waiter does not spin while a batch runs", async () => {
    const started = await client.startBatchScrape(urls("/slow?ms=3000&n=", 2));
    let requests = 0;
    const original = client.http.get.bind(client.http);
    client.http.get = (...parts) => (requests++, original(...parts));
    try {
      await ended(started.id);
    } finally {
      client.http.get = original;
    }
    assert.ok(requests < 20, `${requests} requests in three seconds`);
  });

  test("a running batch can be cancelled and a finished one cannot", async () => {
    const { id } = await client.startBatchScrape(urls("/slow?ms=1000&n=", 60), { maxConcurrency: 2 });
    assert.equal(await client.cancelBatchScrape(id), true);
    assert.equal((await client.getBatchScrapeStatus(id)).status, "cancelled");
    const finished = await client.startBatchScrape(urls("/small/", 1));
    await ended(finished.id);
    await rejectsWith(409, client.cancelBatchScrape(finished.id));
  });

  test("failed pages are in the errors", async () => {
    const { id } = await client.startBatchScrape([site("/article/1"), site("/cut/reset")]);
    const job = await ended(id);
    assert.deepEqual([job.status, job.completed, job.total], ["completed", 1, 1]);
    const { errors, robotsBlocked } = await client.getBatchScrapeErrors(id);
    assert.deepEqual(errors.map((error) => error.url), [site("/cut/reset")]);
    assert.deepEqual(robotsBlocked, []);
  });

  test("pages can be appended while a batch runs", async () => {
    const { id } = await client.startBatchScrape(urls("/slow?ms=2000&n=", 1));
    assert.equal((await client.startBatchScrape(urls("/small/", 2), { appendToId: id })).id, id);
    assert.equal((await ended(id)).total, 3);
    await rejectsWith(409, client.startBatchScrape(urls("/small/", 1), { appendToId: id }));
  });

  test("an idempotency key works once", async () => {
    const idempotencyKey = randomUUID();
    await client.startBatchScrape(urls("/small/", 1), { idempotencyKey });
    await rejectsWith(409, client.startBatchScrape(urls("/small/", 1), { idempotencyKey }));
  });

  test("invalid addresses are told or refused", async () => {
    const started = await client.startBatchScrape([site("/small/1"), "http://nodot/"], { ignoreInvalidURLs: true });
    assert.deepEqual(started.invalidURLs, ["http://nodot/"]);
    await rejectsWith(400, client.startBatchScrape([site("/small/1"), "http://nodot/"], { ignoreInvalidURLs: false }));
  });

  test("an unknown batch is not found", async () => {
    await rejectsWith(404, client.getBatchScrapeStatus(randomUUID()));
  });

  test("webhooks arrive signed and in order", async () => {
    const name = `javascript-${randomUUID()}`;
    await control(`webhook/${name}`, { method: "PUT", body: JSON.stringify({ secret: WEBHOOK_SECRET }) });
    const webhook = { url: site(`/webhook/${name}`), headers: { "X-Mine": "1" }, metadata: { k: "v" }, events: ["started", "page", "completed"] };
    const { id } = await client.startBatchScrape(urls("/article/", 4), { webhook });
    const deliveries = await waitFor("all six events", async () => {
      const received = (await control(`webhook/${name}`)).deliveries;
      return received.length >= 6 ? received : null;
    });
    const events = deliveries.map((delivery) => JSON.parse(delivery.body));
    const types = ["started", "page", "page", "page", "page", "completed"].map((type) => `batch_scrape.${type}`);
    assert.deepEqual(events.map((event) => event.type), types);
    assert.ok(deliveries.every((delivery) => delivery.signature_ok && delivery.headers["x-mine"] === "1"));
    assert.ok(events.every((event) => event.id === id && event.metadata.k === "v"));
  });

  const crawlEnded = (id) =>
    waitFor(`the end of ${id}`, async () => {
      const job = await client.getCrawlStatus(id);
      return job.status === "scraping" ? null : job;
    });

  test("a map works in every mode", async () => {
    const urls = (map) => map.links.map((link) => link.url);
    const only = await client.map(site("/"), { sitemap: "only", limit: 100_000 });
    assert.ok(urls(only).length > 10_000 && urls(only).includes(site("/docs/9998")));
    const skip = await client.map(site("/crawl/5/"), { sitemap: "skip", ignoreQueryParameters: true, includeSubdomains: false });
    assert.ok(urls(skip).includes(site("/crawl/5/9/")) && !urls(skip).includes(site("/docs/9998")));
    const found = await client.map(site("/maps/sitemap.xml"), { search: "whales", sitemap: "include", limit: 3, location: { country: "DE" } });
    assert.deepEqual([found.links.length, found.links[0].title], [3, "Watching whales & dolphins"]);
    const bare = await client.map(site("/links"));
    assert.equal(urls(bare)[0], site("/links"));
    await rejectsWith(400, client.map(site("/"), { limit: 0.5 }));
    await rejectsWith(408, client.map(site("/hang"), { timeout: 500 }));
  });

  test("parameters of a crawl are previewed", async () => {
    const options = await client.crawlParamsPreview(site("/docs/"), "only the blog, at most 20 pages, no subdomains");
    assert.deepEqual([options.limit, options.allowSubdomains, options.includePaths.length], [20, false, 1]);
    const job = await client.crawl(site("/crawl/"), { prompt: "at most 3 pages and ignore the sitemap", pollInterval: 1 });
    assert.equal(job.data.length, 3);
    await rejectsWith(400, client.crawlParamsPreview(site("/docs/"), "x".repeat(10_001)));
  });

  test("the waiter returns every page of a crawl once", async () => {
    const job = await client.crawl(site("/crawl/"), {
      sitemap: "skip", maxDiscoveryDepth: 2, ignoreQueryParameters: true, limit: null, delay: null,
      scrapeOptions: { formats: ["markdown", "links"] }, pollInterval: 1, timeout: 90,
    });
    assert.deepEqual([job.status, job.completed, job.total, job.creditsUsed, job.data.length], ["completed", 111, 111, 111, 111]);
    assert.equal(new Set(job.data.map((document) => document.metadata.sourceURL)).size, 111);
    assert.ok(job.data.every((document) => document.markdown.includes("MAIN") && document.links.length > 0));
  });

  test("limits and patterns of a crawl hold", async () => {
    const few = await client.crawl(site("/crawl/"), { sitemap: "skip", limit: 7, pollInterval: 1 });
    assert.equal(few.data.length, 7);
    const job = await client.crawl(site("/crawl/"), {
      sitemap: "skip", includePaths: ["^/crawl/$", "^/crawl/2/$"], excludePaths: ["x"], deduplicateSimilarURLs: true,
      ignoreQueryParameters: true, regexOnFullURL: false, pollInterval: 1,
    });
    assert.deepEqual(job.data.map((document) => document.metadata.sourceURL).sort(), [site("/crawl/"), site("/crawl/2/")]);
  });

  test("a running crawl is active until it is cancelled", async () => {
    const { id, url } = await client.startCrawl(site("/trap/"), { sitemap: "skip", delay: 1 });
    assert.equal(url, `${WEIR_URL}/v2/crawl/${id}`);
    const mine = (await client.getActiveCrawls()).crawls.find((crawl) => crawl.id === id);
    assert.deepEqual([mine.url, mine.options.delay], [site("/trap/"), 1]);
    assert.equal(await client.cancelCrawl(id), true);
    assert.equal((await client.getCrawlStatus(id)).status, "cancelled");
    assert.ok(!(await client.getActiveCrawls()).crawls.some((crawl) => crawl.id === id));
    const finished = await client.startCrawl(site("/crawl/1/1/1/"), { sitemap: "skip", limit: 1 });
    await crawlEnded(finished.id);
    await rejectsWith(409, client.cancelCrawl(finished.id));
  });

  test("errors and forbidden pages of a crawl are listed", async () => {
    const includePaths = ["^/links$", "^/files/report", "^/private/"];
    // No action can be performed on a PDF.
    const scrapeOptions = { actions: [{ type: "wait", milliseconds: 1 }] };
    const { id } = await client.startCrawl(site("/links"), { sitemap: "skip", crawlEntireDomain: true, maxDiscoveryDepth: 1, ignoreQueryParameters: true, includePaths, scrapeOptions });
    const job = await crawlEnded(id);
    assert.deepEqual([job.status, job.completed, job.total], ["completed", 1, 1]);
    const { errors, robotsBlocked } = await client.getCrawlErrors(id);
    assert.deepEqual(errors.map((error) => error.url), [site("/files/report.pdf")]);
    assert.deepEqual(robotsBlocked, [site("/private/secret")]);
    await rejectsWith(400, client.startCrawl(site("/crawl/"), { includePaths: ["("] }));
    await rejectsWith(404, client.getCrawlStatus(randomUUID()));
  });

  test("the watcher of a crawl sees every page over the WebSocket", async () => {
    const { id } = await client.startCrawl(site("/crawl/7/"), { sitemap: "skip", ignoreQueryParameters: true, maxConcurrency: 4 });
    const documents = [];
    const watcher = client.watcher(id, { kind: "crawl", pollInterval: 1, timeout: 60 });
    watcher.on("document", (document) => documents.push(document.metadata.scrapeId));
    const done = new Promise((resolve, reject) => {
      watcher.on("done", resolve);
      watcher.on("error", (event) => reject(new Error(event.error)));
    });
    await watcher.start();
    assert.equal((await done).status, "completed");
    assert.deepEqual([documents.length, new Set(documents).size], [111, 111]);
  });

  test("a search finds and scrapes", async () => {
    const found = await client.search("whales");
    assert.deepEqual(found.web.map((hit) => hit.url), [7, 8, 9].map((n) => site(`/article/${n}`)));
    const all = await client.search("whales", { limit: 2, sources: ["web", { type: "news" }, "images"], tbs: "qdr:d" });
    assert.deepEqual([all.web.length, all.news.length, all.images.length], [2, 2, 2]);
    assert.deepEqual([all.images[0].imageWidth, all.news[0].snippet], [640, "What is found at 0."]);
    const scraped = await client.search("whales", { limit: 2, scrapeOptions: { formats: ["markdown"] } });
    assert.ok(scraped.web.every((hit) => hit.markdown.includes("MAIN") && hit.metadata.sourceURL));
    await rejectsWith(403, client.search("whales", { sources: ["alexandria"] }));
  });

  test("a search and a scrape are rated", async () => {
    // The SDK leaves out the id of a search.
    const headers = { Authorization: `Bearer ${WEIR_KEY}`, "Content-Type": "application/json" };
    const { id } = await (await fetch(`${WEIR_URL}/v2/search`, { method: "POST", headers, body: '{"query": "whales"}' })).json();
    const valuableSources = [{ url: site("/article/7"), reason: "It has whales." }];
    const noted = await client.searchFeedback(id, { rating: "good", valuableSources });
    assert.deepEqual([noted.success, typeof noted.feedbackId, noted.creditsRefunded], [true, "string", 0]);
    const { metadata } = await client.scrape(site("/small/1"));
    const rating = { endpoint: "scrape", jobId: metadata.scrapeId, rating: "bad", issues: ["missing_table"], note: "x" };
    assert.equal((await client.feedback(rating)).alreadySubmitted ?? false, false);
    assert.equal((await client.feedback(rating)).alreadySubmitted, true);
    await rejectsWith(404, client.feedback({ ...rating, jobId: randomUUID() }));
  });

  test("a file is parsed", async () => {
    const document = await client.parse({ data: readFileSync(file("tables.docx")), filename: "tables.docx" }, { formats: ["markdown", "html"] });
    assert.match(document.markdown, /\| --- \|/);
    assert.ok(document.html.includes("<table"));
    assert.equal(document.metadata.sourceURL, "tables.docx");
    await rejectsWith(400, client.parse({ data: Buffer.from("MZ"), filename: "x.exe" }));
  });

  test("a monitor is made, run, read, changed and deleted", async () => {
    const request = {
      name: "Articles", schedule: { text: "every 30 minutes", timezone: "Europe/Berlin" }, goal: "what is seen", judgeEnabled: false,
      targets: [{ type: "scrape", urls: [site("/article/1"), site("/article/2"), site("/article/3")] }], retentionDays: 7,
      webhook: { url: site("/webhook/js-monitor"), events: ["monitor.check.completed"] },
      notification: { email: { enabled: true, recipients: ["a@example.com"], includeDiffs: true } },
    };
    const made = await client.createMonitor(request);
    assert.deepEqual([made.name, made.status, made.retentionDays, made.judgeEnabled], ["Articles", "active", 7, false]);
    assert.match(made.schedule.cron, /\/30 \* \* \* \*$/);
    assert.deepEqual((await client.getMonitor(made.id)).targets, made.targets);
    assert.ok((await client.listMonitors({ limit: 5, offset: 0 })).some(({ id }) => id === made.id));
    const check = await client.runMonitor(made.id);
    assert.deepEqual([check.monitorId, check.trigger], [made.id, "manual"]);
    await rejectsWith(409, client.runMonitor(made.id));
    const ended = await waitFor("the check has ended", async () => {
      const detail = await client.getMonitorCheck(made.id, check.id, { limit: 1 });
      return detail.finishedAt && detail;
    });
    // Every page of the results was read by its own address.
    assert.deepEqual([ended.status, ended.summary.new, ended.pages.length], ["completed", 3, 3]);
    assert.ok(ended.pages.every((page) => page.status === "new" && page.currentScrapeId && page.targetId === made.targets[0].id));
    assert.equal((await client.getMonitorCheck(made.id, check.id, { status: "changed" })).pages.length, 0);
    const checks = await client.listMonitorChecks(made.id, { limit: 5, status: "completed" });
    assert.deepEqual(checks.map(({ id }) => id), [check.id]);
    const paused = await client.updateMonitor(made.id, { status: "paused", name: "Other" });
    assert.deepEqual([paused.status, paused.name, paused.nextRunAt], ["paused", "Other", null]);
    assert.equal(await client.deleteMonitor(made.id), true);
    await rejectsWith(404, client.getMonitor(made.id));
  });

  // Methods of the specification: they are tested here, in browser.cjs, interact.cjs and tasks.cjs.
  const covered = `scrape search searchFeedback feedback parse interact stopInteraction scrapeExecute stopInteractiveBrowser deleteScrapeBrowser map startCrawl
    getCrawlStatus cancelCrawl crawl getCrawlErrors getActiveCrawls crawlParamsPreview startBatchScrape getBatchScrapeStatus
    getBatchScrapeErrors cancelBatchScrape batchScrape browser browserExecute deleteBrowser listBrowsers getConcurrency
    getCreditUsage getTokenUsage getCreditUsageHistorical getTokenUsageHistorical getQueueStatus watcher scrapeUrl crawlUrl
    asyncCrawlUrl checkCrawlStatus checkCrawlErrors mapUrl batchScrapeUrls asyncBatchScrapeUrls checkBatchScrapeStatus
    checkBatchScrapeErrors constructor isCloudService createMonitor listMonitors getMonitor updateMonitor deleteMonitor
    runMonitor listMonitorChecks getMonitorCheck extract startExtract getExtractStatus agent startAgent getAgentStatus
    getAgentThread getAgentTrace listAgents cancelAgent`.split(/\s+/);

  test("what there is not says so in JSON", async () => {
    // Between the SDK and the service, so that answers are seen as they are sent.
    const answers = [];
    const between = http.createServer((request, response) => {
      const { method, headers, url } = request;
      const onward = http.request(WEIR_URL + url, { method, headers }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("end", () => {
          answers.push({ status: answer.statusCode, text: Buffer.concat(parts).toString() });
          response.writeHead(answer.statusCode, answer.headers).end(Buffer.concat(parts));
        });
      });
      request.pipe(onward);
    });
    await new Promise((resolve) => between.listen(0, "127.0.0.1", resolve));
    try {
      const rest = new Firecrawl({ apiKey: WEIR_KEY, apiUrl: `http://127.0.0.1:${between.address().port}` });
      const methods = Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(Firecrawl.prototype)));
      const names = methods.filter(([, { value }]) => typeof value === "function").map(([name]) => name);
      const others = names.filter((name) => !covered.includes(name));
      assert.ok(others.includes("findTools"), others.join());
      const some = {
        findTools: [{}], scrapeAlexandria: [{ provider: "x", capability: "y", options: {} }],
      };
      for (const name of others) {
        const before = answers.length;
        const outcome = await rest[name](...(some[name] ?? [randomUUID(), randomUUID(), randomUUID()])).catch((error) => error);
        assert.ok(answers.length > before, `${name} asked nothing: ${outcome}`);
        // These ask /v2/scrape for what another product's catalogue has. Clients look for the words of the refusal.
        if (name !== "findTools" && name !== "scrapeAlexandria") continue;
        for (const { status, text } of answers.splice(before)) {
          assert.deepEqual([name, status, JSON.parse(text).error], [name, 403, "Exchange is not enabled for this team."]);
        }
      }
      const papers = Object.getOwnPropertyNames(Object.getPrototypeOf(rest.research)).filter((name) => name !== "constructor");
      for (const name of papers) {
        const before = answers.length;
        await rest.research[name]("x", { intent: "y" }).catch((error) => error);
        assert.ok(answers.length > before, name);
      }
      for (const { status, text } of answers) {
        assert.ok([404, 501].includes(status), `${status} ${text}`);
        const body = JSON.parse(text);
        assert.deepEqual([body.success, typeof body.error], [false, "string"]);
      }
    } finally {
      between.close();
    }
  });

  test("the watcher sees every document over the WebSocket", async () => {
    const { id } = await client.startBatchScrape(urls("/slow?ms=700&n=", 8), { maxConcurrency: 4 });
    let polls = 0;
    const original = client.http.get.bind(client.http);
    client.http.get = (...parts) => (polls++, original(...parts));
    try {
      const documents = [];
      const watcher = client.watcher(id, { kind: "batch", pollInterval: 1, timeout: 60 });
      watcher.on("document", (document) => documents.push(document.metadata.scrapeId));
      const done = new Promise((resolve, reject) => {
        watcher.on("done", resolve);
        watcher.on("error", (event) => reject(new Error(event.error)));
      });
      await watcher.start();
      assert.equal((await done).status, "completed");
      assert.deepEqual([documents.length, new Set(documents).size], [8, 8]);
      assert.ok(polls <= 2, `${polls} polls: the documents came over the socket`);
    } finally {
      client.http.get = original;
    }
  });
}
