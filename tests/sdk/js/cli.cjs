// Browser sessions through the official command line, unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment; NODE_PATH leads to the program.
// Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const path = require("node:path");
const run = require("./steps.cjs");

const { WEIR_URL, WEIR_KEY, SITE_URL, NODE_PATH } = process.env;
const home = mkdtempSync(path.join(tmpdir(), "weir-cli-"));
const env = { ...process.env, HOME: home, CI: "1", FIRECRAWL_API_URL: WEIR_URL, FIRECRAWL_API_KEY: WEIR_KEY };

function browser(...words) {
  const program = path.join(NODE_PATH, ".bin", "firecrawl");
  return execFileSync(program, ["browser", ...words], { env, encoding: "utf8", timeout: 120_000, stdio: ["ignore", "pipe", "inherit"] });
}

const steps = {
  "launches a session": () => assert.match(browser("launch-session"), /CDP URL:\s+ws:\/\//),
  "opens a page with agent-browser": () => assert.ok(browser("execute", `open ${SITE_URL}/login`).includes("/login")),
  "takes a snapshot with references": () => assert.match(browser("snapshot -i"), /textbox.*\[.*ref=e\d+/),
  "runs JavaScript on the same page": () => assert.equal(browser("execute", "--node", "await page.title()").trim(), "Log in"),
  "runs Python on the same page": () => assert.equal(browser("execute", "--python", "print(await page.title())").trim(), "Log in"),
  "scrapes the page as markdown": () => assert.match(browser("scrape"), /# Log in/),
  "lists the session": () => assert.match(browser("list", "active"), /active/),
  "closes it": () => {
    browser("close");
    assert.match(browser("list"), /destroyed/);
  },
};

run(steps, () => rmSync(home, { recursive: true, force: true }));
