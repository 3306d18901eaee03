// The official MCP server as it is hosted, beside the service: a model's client has a file, the server has none of the
// user's files, so it hands out an address, the client uploads, and the server parses by the uploadRef.
//
// Reads WEIR_URL, HOSTED_KEY (a key that begins with fc-), FILE (a page with the word quetzalcoatlus) and PORT (a free one)
// from the environment; NODE_PATH leads to the libraries. Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { spawn, execFileSync } = require("node:child_process");
const path = require("node:path");
const run = require("./steps.cjs");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const { WEIR_URL, HOSTED_KEY, FILE, PORT, NODE_PATH } = process.env;
let server, client;

const steps = {
  "a file is uploaded to the address that the hosted server hands out, and parsed": async () => {
    const theirs = path.join(NODE_PATH, "firecrawl-mcp", "dist", "index.js");
    const env = { ...process.env, CLOUD_SERVICE: "true", FIRECRAWL_MCP_SEARCH_ENABLED: "false", FIRECRAWL_API_URL: WEIR_URL };
    server = spawn(process.execPath, [theirs], { env, stdio: "ignore" });
    for (const end = Date.now() + 60_000; ; ) {
      const alive = await fetch(`http://127.0.0.1:${PORT}/health`).then((answer) => answer.ok, () => false);
      if (alive) break;
      assert.ok(Date.now() < end && server.exitCode === null, "the hosted server does not start");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const requestInit = { headers: { Authorization: `Bearer ${HOSTED_KEY}` } };
    client = new Client({ name: "tests", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${PORT}/mcp`), { requestInit }));
    const call = async (given) => {
      const { content, isError } = await client.callTool({ name: "firecrawl_parse", arguments: given });
      assert.ok(!isError, JSON.stringify(content));
      return JSON.parse(content[0].text);
    };
    const first = await call({ filePath: FILE, formats: ["markdown", "links"] });
    assert.equal(first.upload.maxSizeBytes, 52428800, JSON.stringify(first));
    assert.ok(first.upload.uploadUrl.startsWith(WEIR_URL));
    assert.ok(!first.upload.command.includes(HOSTED_KEY));
    assert.deepEqual(JSON.parse(execFileSync("sh", ["-c", first.upload.command], { stdio: ["ignore", "pipe", "ignore"] })), { success: true });
    const { data } = await call(first.nextToolCall.arguments);
    assert.ok(data.markdown.includes("quetzalcoatlus") && data.links, JSON.stringify(data));
    assert.equal(data.metadata.sourceURL, path.basename(FILE));
  },
};

run(steps, async () => {
  await client?.close();
  server?.kill();
});
