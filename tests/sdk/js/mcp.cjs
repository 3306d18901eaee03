// The Model Context Protocol through a stock client library, over HTTP (POST /mcp) and over standard input and output
// (`weir mcp`), and beside the official MCP server.
//
// Reads WEIR_URL, WEIR_KEY, WEIR_BIN (the program weir) and SITE_URL (the test site) from the environment; NODE_PATH leads
// to the libraries. The service's language model finishes every task with "seen".
// Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const path = require("node:path");
const run = require("./steps.cjs");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const newest = { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };

const { WEIR_URL, WEIR_KEY, WEIR_BIN, SITE_URL, NODE_PATH } = process.env;
const TABLES = path.join(__dirname, "../../../worker/office/tests/files/tables.docx");
const site = (place) => SITE_URL + place;
const endpoint = new URL("/mcp", WEIR_URL);

const TOOLS = [
  "firecrawl_scrape", "firecrawl_map", "firecrawl_search", "firecrawl_extract", "firecrawl_extract_status", "firecrawl_agent",
  "firecrawl_agent_status", "firecrawl_parse", "firecrawl_crawl", "firecrawl_check_crawl_status",
  "firecrawl_batch_scrape", "firecrawl_check_batch_status", "firecrawl_interact", "firecrawl_interact_stop",
  "firecrawl_browser_create", "firecrawl_browser_execute", "firecrawl_browser_list", "firecrawl_browser_delete",
  "firecrawl_monitor_create", "firecrawl_monitor_list", "firecrawl_monitor_get", "firecrawl_monitor_update",
  "firecrawl_monitor_delete", "firecrawl_monitor_run", "firecrawl_monitor_checks", "firecrawl_monitor_check",
  "firecrawl_search_feedback", "firecrawl_feedback", "firecrawl_credit_usage",
];

async function connected(transport) {
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(transport);
  return client;
}

const withKey = (key) => ({ requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const program = (key) => ({
  command: WEIR_BIN, args: ["mcp"], env: { ...process.env, WEIR_URL, WEIR_KEY: key }, stderr: "inherit",
});
const overHttp = (key) => connected(new StreamableHTTPClientTransport(endpoint, withKey(key)));
const overStdio = (key) => connected(new StdioClientTransport(program(key)));
const official = () => {
  const env = { ...process.env, FIRECRAWL_API_URL: WEIR_URL, FIRECRAWL_API_KEY: WEIR_KEY };
  const theirs = path.join(NODE_PATH, "firecrawl-mcp", "dist", "index.js");
  return connected(new StdioClientTransport({ command: process.execPath, args: [theirs], env, stderr: "ignore" }));
};

const used = new Set();
const call = (client, name, given) => {
  used.add(name);
  return client.callTool({ name, arguments: given }, undefined, { timeout: 120_000 });
};

// What a tool answered, as values; the text says the same.
async function values(client, name, given) {
  const result = await call(client, name, given);
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

async function failure(client, name, given) {
  const result = await call(client, name, given);
  assert.equal(result.isError, true, JSON.stringify(result));
  return result.content[0].text;
}

async function resource(client, uri) {
  const { contents } = await client.readResource({ uri });
  assert.deepEqual([contents.length, contents[0].uri, contents[0].mimeType], [1, uri, "application/json"]);
  return JSON.parse(contents[0].text);
}

async function finished(read) {
  for (const end = Date.now() + 60_000; ; ) {
    const status = await read();
    if (status.status === "completed") return status;
    assert.ok(Date.now() < end && status.status === "scraping", JSON.stringify(status).slice(0, 500));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

// A job's resource, by the link that its tool answers.
async function started(client, name, given) {
  const { content, structuredContent, isError } = await call(client, name, given);
  assert.ok(!isError, JSON.stringify(content));
  const link = content.find((part) => part.type === "resource_link");
  assert.ok(link.uri.endsWith(structuredContent.id), JSON.stringify(content));
  return { id: structuredContent.id, uri: link.uri };
}

const client = {};
const steps = {};
for (const [way, open] of Object.entries({ http: overHttp, stdio: overStdio })) {
  const step = (name, run) => (steps[`${way}: ${name}`] = run);
  step("a client connects and finds the tools", async () => {
    client[way] = await open(WEIR_KEY);
    assert.equal(client[way].getServerVersion().name, "weir");
    assert.ok(client[way].getInstructions().length > 0);
    await client[way].ping();
    const { tools } = await client[way].listTools();
    assert.deepEqual(tools.map((tool) => tool.name), TOOLS);
    for (const tool of tools) {
      assert.equal(tool.inputSchema.type, "object");
      assert.ok(tool.description && tool.annotations.title, tool.name);
    }
    const { resourceTemplates } = await client[way].listResourceTemplates();
    assert.deepEqual(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ["weir://crawl/{id}{?skip,limit}", "weir://batch/{id}{?skip,limit}"]);
    assert.deepEqual((await client[way].listResources()).resources, []);
  });
  step("scrape, map and search", async () => {
    const page = await values(client[way], "firecrawl_scrape", { url: site("/article/5"), formats: ["markdown", "links"] });
    assert.ok(page.markdown.includes("MAIN") && page.links.length > 0 && page.metadata.scrapeId);
    const { links } = await values(client[way], "firecrawl_map", { url: site("/maps/sitemap.xml"), search: "bicycles", limit: 5 });
    assert.deepEqual([links.length, links[0].url], [5, site("/m/entry-1")]);
    const found = await values(client[way], "firecrawl_search", { query: "whales", limit: 2 });
    assert.equal(found.data.web.length, 2);
  });
  step("options as the official server's clients write them", async () => {
    const given = { url: site("/article/5"), formats: ["json", "markdown"], jsonOptions: { prompt: "what is seen" }, includeTags: [], maxAge: 0 };
    const page = await values(client[way], "firecrawl_scrape", given);
    assert.ok(page.json && page.markdown, JSON.stringify(page));
  });
  step("a file is read where the server is the user's own, and uploaded where it is not", async () => {
    const given = { filePath: TABLES, formats: ["markdown", "links"], onlyMainContent: false, includeTags: [] };
    let parsed = await values(client[way], "firecrawl_parse", given);
    if (way === "http") {
      const { upload, nextToolCall } = parsed;
      assert.deepEqual([parsed.success, upload.method, upload.maxSizeBytes], [true, "PUT", 52428800]);
      assert.ok(upload.uploadUrl.startsWith(WEIR_URL) && !JSON.stringify(parsed).includes(WEIR_KEY), JSON.stringify(parsed));
      assert.deepEqual(nextToolCall.arguments, { uploadRef: upload.uploadRef, formats: ["markdown", "links"], onlyMainContent: false });
      const early = await failure(client[way], nextToolCall.name, nextToolCall.arguments);
      assert.ok(early.includes("No file has been sent"), early);
      const sent = execFileSync("sh", ["-c", upload.command], { stdio: ["ignore", "pipe", "ignore"] });
      assert.deepEqual(JSON.parse(sent), { success: true });
      parsed = await values(client[way], nextToolCall.name, nextToolCall.arguments);
      const again = await failure(client[way], nextToolCall.name, nextToolCall.arguments);
      assert.ok(again.includes("has been used"), again);
    }
    assert.match(parsed.data.markdown, /\| --- \|/);
    assert.ok(parsed.data.links && parsed.data.metadata.sourceURL === "tables.docx", JSON.stringify(parsed.data.metadata));
    for (const wrong of [{}, { filePath: TABLES, uploadRef: "x" }]) {
      assert.ok((await failure(client[way], "firecrawl_parse", wrong)).includes("uploadRef"));
    }
    const nothing = await call(client[way], "firecrawl_parse", { filePath: "/nowhere/report.pdf" });
    assert.equal(nothing.isError === true, way === "stdio", "over HTTP no path of this machine is looked at");
    assert.ok((await failure(client[way], "firecrawl_parse", { filePath: "/bin/sh" })).match(/Unsupported upload type/));
    assert.ok((await failure(client[way], "firecrawl_parse", { uploadRef: "x" })).includes("signature"));
  });
  step("a search and a page are rated", async () => {
    const { id } = await values(client[way], "firecrawl_search", { query: "whales", limit: 1 });
    const sources = { rating: "good", valuableSources: [{ url: site("/article/7") }] };
    const noted = await values(client[way], "firecrawl_search_feedback", { searchId: id, ...sources });
    assert.deepEqual([noted.success, noted.creditsRefunded], [true, 0]);
    const page = await values(client[way], "firecrawl_scrape", { url: site("/small/1") });
    const rating = { endpoint: "scrape", jobId: page.metadata.scrapeId, rating: "bad", issues: ["missing_table"] };
    assert.ok((await values(client[way], "firecrawl_feedback", rating)).feedbackId);
    assert.ok((await failure(client[way], "firecrawl_feedback", { ...rating, rating: "fine" })).includes("rating"));
  });
  step("a monitor from its beginning to its end", async () => {
    const body = { name: "Articles", schedule: { text: "hourly" }, targets: [{ type: "scrape", urls: [site("/article/1")] }] };
    const { data: made } = await values(client[way], "firecrawl_monitor_create", body);
    const { data: short } = await values(client[way], "firecrawl_monitor_create", { page: site("/article/2"), goal: "news" });
    assert.deepEqual([made.status, short.targets[0].urls], ["active", [site("/article/2")]]);
    const id = made.id;
    assert.equal((await values(client[way], "firecrawl_monitor_list", { limit: 2 })).data.length, 2);
    const changed = await values(client[way], "firecrawl_monitor_update", { id, body: { name: "Other" } });
    assert.equal(changed.data.name, "Other");
    assert.deepEqual((await values(client[way], "firecrawl_monitor_get", { id })).data, changed.data);
    const { id: checkId } = await values(client[way], "firecrawl_monitor_run", { id });
    const check = () => values(client[way], "firecrawl_monitor_check", { id, checkId, pageStatus: "new", limit: 5 });
    let ended;
    for (const end = Date.now() + 60_000; !(ended = (await check()).data).finishedAt; ) {
      assert.ok(Date.now() < end, JSON.stringify(ended));
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.deepEqual([ended.status, ended.pages.length, ended.pages[0].status], ["completed", 1, "new"]);
    assert.deepEqual((await values(client[way], "firecrawl_monitor_checks", { id })).data.map((one) => one.id), [checkId]);
    for (const one of [id, short.id]) assert.equal((await values(client[way], "firecrawl_monitor_delete", { id: one })).success, true);
    assert.ok((await failure(client[way], "firecrawl_monitor_get", { id })).includes("Monitor not found"));
  });
  step("a crawl and its resource", async () => {
    const options = { limit: 4, sitemap: "skip", maxDiscoveryDepth: 1 };
    const { id, uri } = await started(client[way], "firecrawl_crawl", { url: site("/crawl/4/"), ...options });
    assert.equal(uri, `weir://crawl/${id}`);
    const whole = await finished(() => resource(client[way], uri));
    assert.equal(whole.data.length, 4);
    const status = await values(client[way], "firecrawl_check_crawl_status", { id });
    assert.deepEqual([status.status, status.data.length], ["completed", 4]);
    const part = await call(client[way], "firecrawl_check_crawl_status", { id, skip: 1, limit: 2 });
    const rest = part.content.find((content) => content.type === "resource_link");
    assert.deepEqual(part.structuredContent.data, whole.data.slice(1, 3));
    assert.deepEqual((await resource(client[way], rest.uri)).data, whole.data.slice(3));
  });
  step("a batch and its resource", async () => {
    const urls = [site("/small/1"), site("/small/2")];
    const { id, uri } = await started(client[way], "firecrawl_batch_scrape", { urls, options: { formats: ["links"] } });
    const whole = await finished(() => resource(client[way], uri));
    assert.ok(whole.data.every((page) => page.links && !page.markdown), JSON.stringify(whole));
    const status = await values(client[way], "firecrawl_check_batch_status", { id });
    assert.deepEqual(status.data, whole.data);
  });
  step("an extraction and an agent", async () => {
    const schema = { type: "object", properties: { seen: { type: "string" } } };
    const given = { urls: [site("/article/5")], prompt: "What is seen?", schema };
    for (const name of ["firecrawl_extract", "firecrawl_agent"]) {
      const { id } = await values(client[way], name, given);
      let status = { status: "processing" };
      for (let tries = 0; status.status === "processing" && tries < 400; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 250));
        status = await values(client[way], `${name}_status`, { id });
      }
      assert.deepEqual([status.status, status.data], ["completed", { seen: "seen" }], name);
    }
  });
  step("interact goes on from a scrape or opens a page", async () => {
    const page = await values(client[way], "firecrawl_scrape", { url: site("/article/5") });
    const { scrapeId } = page.metadata;
    const ran = await values(client[way], "firecrawl_interact", { scrapeId, code: "await page.url()", language: "node" });
    assert.equal(ran.result, site("/article/5"));
    await values(client[way], "firecrawl_interact_stop", { scrapeId });
    const opened = await values(client[way], "firecrawl_interact", { url: site("/small/3"), prompt: "Look." });
    assert.equal(opened.output, "seen");
    await values(client[way], "firecrawl_interact_stop", { scrapeId: opened.scrapeId });
    for (const given of [{ code: "1" }, { code: "1", url: site("/"), scrapeId }, { code: "1", scrapeId, scrapeOptions: { mobile: true } }]) {
      assert.ok((await failure(client[way], "firecrawl_interact", given)).includes("scrapeId"));
    }
  });
  step("a browser of one's own", async () => {
    const { id, cdpUrl } = await values(client[way], "firecrawl_browser_create", { ttl: 120 });
    assert.ok(cdpUrl);
    const code = `await page.goto(${JSON.stringify(site("/small/1"))}); await page.url()`;
    const ran = await values(client[way], "firecrawl_browser_execute", { sessionId: id, code, language: "node" });
    assert.equal(ran.result, site("/small/1"));
    const { sessions } = await values(client[way], "firecrawl_browser_list", { status: "active" });
    assert.ok(sessions.some((session) => session.id === id));
    await values(client[way], "firecrawl_browser_delete", { sessionId: id });
    const gone = await failure(client[way], "firecrawl_browser_execute", { sessionId: id, code });
    assert.ok(gone.includes("GONE"), gone);
  });
  step("credits", async () => {
    const now = await values(client[way], "firecrawl_credit_usage", {});
    assert.equal(typeof now.remainingCredits, "number");
    for (const given of [{ view: "historical" }, { byApiKey: true }]) {
      const { periods } = await values(client[way], "firecrawl_credit_usage", given);
      assert.equal("apiKey" in periods[0], given.byApiKey === true);
    }
  });
  step("what a route refuses is a result that says why, in the route's words", async () => {
    const body = { url: site("/small/1"), timeout: 1, formats: ["poem"] };
    const headers = { Authorization: `Bearer ${WEIR_KEY}`, "Content-Type": "application/json" };
    const answer = await (await fetch(new URL("/v2/scrape", WEIR_URL), { method: "POST", headers, body: JSON.stringify(body) })).json();
    const refused = await call(client[way], "firecrawl_scrape", body);
    assert.deepEqual([refused.isError, refused.structuredContent], [true, answer]);
    const { text } = refused.content[0];
    assert.ok(text.startsWith(answer.error) && text.includes("timeout must be at least"), text);
    const nobodys = "0190c0de-0000-7000-8000-000000000000";
    assert.ok((await failure(client[way], "firecrawl_check_crawl_status", { id: nobodys })).includes("not found"));
    assert.ok((await failure(client[way], "firecrawl_check_crawl_status", { id: "../team/activity" })).includes("UUID"));
    await assert.rejects(client[way].readResource({ uri: `weir://crawl/${nobodys}` }), /not found/);
    await assert.rejects(client[way].readResource({ uri: "file:///etc/passwd" }), /not found/);
    await assert.rejects(call(client[way], "firecrawl_dance", { prompt: "x" }), /Unknown tool/);
    used.delete("firecrawl_dance");
  });
  step("a call that its client gives up leaves the others alone", async () => {
    const gone = new AbortController();
    // Not out of the cache, which the same step of the other way may have filled by now.
    const given = { url: site("/slow?ms=20000"), maxAge: 0 };
    const slow = client[way].callTool({ name: "firecrawl_scrape", arguments: given }, undefined, { signal: gone.signal });
    setTimeout(() => gone.abort(), 300);
    await assert.rejects(slow);
    await client[way].ping();
  });
  step("the version of the protocol without a handshake", async () => {
    const stateless = new newest.Client({ name: "tests", version: "1" }, { versionNegotiation: { mode: "auto" } });
    const { StreamableHTTPClientTransport: Http, StdioClientTransport: Stdio } = newest;
    await stateless.connect(way === "http" ? new Http(endpoint, withKey(WEIR_KEY)) : new Stdio(program(WEIR_KEY)));
    assert.equal(stateless.getNegotiatedProtocolVersion(), "2026-07-28");
    assert.equal((await stateless.listTools()).tools.length, TOOLS.length);
    const page = await stateless.callTool({ name: "firecrawl_scrape", arguments: { url: site("/article/5") } });
    assert.ok(page.structuredContent.markdown.includes("MAIN"));
    await stateless.close();
  });
  step("an unknown key gets nothing", async () => {
    if (way === "http") return assert.rejects(overHttp("nobodys-key"), /401|Unauthorized/);
    const stranger = await overStdio("nobodys-key");
    const text = await failure(stranger, "firecrawl_map", { url: site("/") });
    assert.ok(text.includes("Invalid token"), text);
    await stranger.close();
  });
  step("every tool was used", () => {
    assert.deepEqual([...used].sort(), [...TOOLS].sort());
    used.clear();
  });
}

// Fields that differ from one scrape of a page to the next.
function lasting({ metadata, ...page }) {
  const { scrapeId, concurrencyLimited, concurrencyQueueDurationMs, ...rest } = metadata;
  return { ...page, metadata: rest };
}

steps["the official server answers the same"] = async () => {
  const theirs = await official();
  const both = async (name, given) => {
    const results = [];
    for (const one of [theirs, client.http]) {
      const { content, isError } = await call(one, name, given);
      assert.ok(!isError, content[0].text);
      results.push(JSON.parse(content[0].text));
    }
    return results;
  };
  const formats = ["markdown", "html", "links", "json"];
  const page = { url: site("/article/6"), formats, jsonOptions: { prompt: "what is seen" }, maxAge: 0, onlyMainContent: true };
  const scrapes = await both("firecrawl_scrape", page);
  assert.ok(scrapes[0].markdown.includes("MAIN"));
  assert.deepEqual(...scrapes.map(lasting));
  const maps = await both("firecrawl_map", { url: site("/maps/sitemap.xml"), search: "bicycles", sitemap: "include", limit: 5 });
  assert.equal(maps[0].links.length, 5);
  assert.deepEqual(maps[0].links, maps[1].links);
  const found = await both("firecrawl_search", { query: "whales", limit: 2 });
  assert.deepEqual(...found.map(({ id, ...rest }) => rest));
  // Theirs drives all that there is of monitors.
  const of = async (one, name, given) => JSON.parse((await call(one, name, given)).content[0].text);
  const made = (await of(theirs, "firecrawl_monitor_create", { page: site("/article/3"), goal: "news", scheduleText: "daily" })).data;
  await of(theirs, "firecrawl_monitor_update", { id: made.id, body: { status: "paused" } });
  const run = await of(theirs, "firecrawl_monitor_run", { id: made.id });
  const looked = { id: made.id, checkId: run.data.id };
  for (const end = Date.now() + 60_000; !(await of(theirs, "firecrawl_monitor_check", looked)).data.finishedAt; ) {
    assert.ok(Date.now() < end);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  for (const [name, given] of [
    ["firecrawl_monitor_get", { id: made.id }], ["firecrawl_monitor_list", {}], ["firecrawl_monitor_checks", { id: made.id }],
    ["firecrawl_monitor_check", { ...looked, pageStatus: "new" }],
  ]) assert.deepEqual(...(await both(name, given)), name);
  assert.equal((await of(theirs, "firecrawl_monitor_delete", { id: made.id })).success, true);
  const file = { filePath: TABLES, formats: ["markdown", "html"] };
  const parsed = [];
  for (const one of [theirs, client.stdio]) parsed.push(JSON.parse((await call(one, "firecrawl_parse", file)).content[0].text));
  assert.match(parsed[0].data.markdown, /\| --- \|/);
  assert.deepEqual(...parsed.map(({ data, ...rest }) => ({ ...rest, data: lasting(data) })));
  // Theirs waits for a crawl's end; ours answers at once, with a link to what it will find.
  const crawl = { url: site("/crawl/4/"), limit: 4, sitemap: "skip", maxDiscoveryDepth: 1, scrapeOptions: { formats: ["markdown", "links"] } };
  const waited = JSON.parse((await call(theirs, "firecrawl_crawl", crawl)).content[0].text);
  const { id, uri } = await started(client.http, "firecrawl_crawl", crawl);
  const pages = ({ data }) => data.map(lasting).sort((one, other) => (one.metadata.sourceURL < other.metadata.sourceURL ? -1 : 1));
  assert.equal(waited.data.length, 4);
  assert.deepEqual(pages(waited), pages(await finished(() => resource(client.http, uri))));
  const statuses = await both("firecrawl_check_crawl_status", { id });
  assert.deepEqual(pages(statuses[0]), pages(statuses[1]));
  const { scrapeId } = scrapes[0].metadata;
  const [ran, again] = await both("firecrawl_interact", { scrapeId, code: "await page.title()", language: "node" });
  assert.deepEqual([typeof ran.result, ran.result], ["string", again.result]);
  assert.equal(JSON.parse((await call(theirs, "firecrawl_interact_stop", { scrapeId })).content[0].text).success, true);
  for (const given of [{}, { view: "historical" }, { byApiKey: true }]) assert.deepEqual(...(await both("firecrawl_credit_usage", given)));
  // What theirs says of a search is noted as what ours does.
  const said = { searchId: found[0].id, rating: "partial", missingContent: [{ topic: "prices" }] };
  assert.equal(JSON.parse((await call(theirs, "firecrawl_search_feedback", said)).content[0].text).success, true);
  const rated = { endpoint: "scrape", jobId: scrapes[1].metadata.scrapeId, rating: "bad", issues: ["missing_table"] };
  assert.equal(JSON.parse((await call(theirs, "firecrawl_feedback", rated)).content[0].text).success, true);
  // Whatever Weir serves of theirs is listed here, under the same name.
  const names = (await theirs.listTools()).tools.map((tool) => tool.name);
  const elsewhere = /research|find_tools|developer/;
  assert.deepEqual(names.filter((name) => !elsewhere.test(name) && !TOOLS.includes(name)), []);
  await theirs.close();
};

run(steps, async () => {
  for (const one of Object.values(client)) await one.close();
});
