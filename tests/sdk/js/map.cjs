// Maps, searches and crawls through the official command line and the official MCP server, unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment; NODE_PATH leads to the programs.
// Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { rmSync } = require("node:fs");
const path = require("node:path");
const { Mcp, cli, home } = require("./programs.cjs");
const run = require("./steps.cjs");

const { SITE_URL } = process.env;
const site = (place) => SITE_URL + place;
const file = (name) => path.join(__dirname, "../../../worker/office/tests/files", name);

const json = (text) => JSON.parse(text.slice(text.indexOf("{")));

let mcp;
const steps = {
  "the command line maps a site": () => {
    const links = cli("map", site("/"), "--sitemap", "only", "--limit", "20").trim().split("\n");
    assert.equal(links.filter((link) => link.startsWith(SITE_URL)).length, 20);
  },
  "the command line maps with titles, words and modes": () => {
    const answer = json(cli("map", site("/maps/sitemap.xml"), "--search", "whale watching", "--json"));
    const links = answer.data?.links ?? answer.links;
    assert.deepEqual([links[0].url, links[0].title], [site("/m/item-1"), "Watching whales & dolphins"]);
    const skipped = cli("map", site("/trap/0"), "--sitemap", "skip", "--include-subdomains", "--ignore-query-parameters");
    assert.ok(skipped.includes("/trap/21") && !skipped.includes("?"), skipped);
  },
  "the command line crawls": () => {
    const words = ["crawl", site("/crawl/3/"), "--wait", "--poll-interval", "1", "--limit", "5", "--sitemap", "skip"];
    const answer = json(cli(...words, "--ignore-query-parameters", "--max-depth", "1"));
    assert.equal((answer.data?.data ?? answer.data).length, 5);
  },
  "the command line searches": () => {
    const found = json(cli("search", "whales", "--limit", "2", "--json"));
    assert.deepEqual([found.data.web.length, found.creditsUsed, typeof found.id], [2, 2, "string"]);
    const text = cli("search", "whales", "--limit", "1", "--scrape");
    assert.ok(text.includes("/article/7") && text.includes("MAIN"), text.slice(0, 500));
  },
  "the MCP server starts and has its tools": async () => {
    mcp = new Mcp();
    const client = { name: "tests", version: "1" };
    await mcp.ask("initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: client });
    mcp.send({ method: "notifications/initialized" });
    const { tools } = await mcp.ask("tools/list", {});
    for (const name of ["firecrawl_map", "firecrawl_crawl", "firecrawl_check_crawl_status"]) {
      assert.ok(tools.some((tool) => tool.name === name), name);
    }
  },
  "the MCP server maps": async () => {
    const text = await mcp.tool("firecrawl_map", { url: site("/maps/sitemap.xml"), search: "bicycles", sitemap: "include", limit: 5 });
    const { links } = JSON.parse(text);
    assert.deepEqual([links.length, links[0].url], [5, site("/m/entry-1")]);
  },
  "the command line watches a page": async () => {
    const monitor = (...words) => json(cli("monitor", ...words)).data;
    const made = monitor("create", "--name", "Page", "--schedule", "hourly", "--page", site("/article/4"), "--retention-days", "3");
    assert.deepEqual([made.name, made.retentionDays], ["Page", 3]);
    assert.ok(monitor("list", "--limit", "5").some(({ id }) => id === made.id));
    const check = monitor("run", made.id);
    let ended;
    for (const end = Date.now() + 60_000; !(ended = monitor("check", made.id, check.id, "--page-status", "new")).finishedAt; ) {
      assert.ok(Date.now() < end, JSON.stringify(ended));
    }
    assert.deepEqual([ended.status, ended.pages.length], ["completed", 1]);
    assert.equal(monitor("checks", made.id)[0].id, check.id);
    assert.equal(monitor("update", made.id, "--state", "paused").status, "paused");
    assert.equal(monitor("get", made.id).nextRunAt, null);
    assert.equal(json(cli("monitor", "delete", made.id)).success, true);
  },
  "the command line parses a file": () => {
    assert.match(cli("parse", file("tables.docx")), /\| --- \|/);
  },
  "the MCP server parses a file": async () => {
    const text = await mcp.tool("firecrawl_parse", { filePath: file("tables.docx"), formats: ["markdown"] });
    assert.ok(text.includes("| --- |"), text.slice(0, 500));
  },
  "the MCP server searches": async () => {
    const found = JSON.parse(await mcp.tool("firecrawl_search", { query: "whales" }));
    const web = found.web ?? found.data?.web;
    assert.deepEqual([web.length, web[0].url], [3, site("/article/7")]);
    const options = { limit: 1, sources: [{ type: "web" }], scrapeOptions: { formats: ["markdown"], onlyMainContent: true } };
    const scraped = await mcp.tool("firecrawl_search", { query: "whales", ...options });
    assert.ok(scraped.includes("MAIN"), scraped.slice(0, 500));
  },
  "the MCP server crawls": async () => {
    const options = { limit: 4, sitemap: "skip", maxDiscoveryDepth: 1, allowExternalLinks: false, deduplicateSimilarURLs: true };
    const started = await mcp.tool("firecrawl_crawl", { url: site("/crawl/4/"), ...options });
    const id = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(started)?.[0];
    for (const end = Date.now() + 60_000; ; ) {
      const status = id ? await mcp.tool("firecrawl_check_crawl_status", { id }) : started;
      if (status.includes("completed")) return assert.ok(status.includes("MAIN"), status.slice(0, 500));
      assert.ok(Date.now() < end && id, status.slice(0, 500));
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  },
};

run(steps, () => {
  mcp?.child.kill();
  rmSync(home, { recursive: true, force: true });
});
