// The official JavaScript SDK and the official MCP server search, where the service's backend fails in the way that the
// query names.
//
// Reads WEIR_URL and WEIR_KEY from the environment, further services whose backend is to rest (RESTING, JSON by the way it
// fails) and one with a second backend that works (FOLLOWED); NODE_PATH leads to the SDK and the server. Closes with the
// line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const path = require("node:path");
const run = require("./steps.cjs");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { Firecrawl, SdkError } = require("firecrawl");

const { WEIR_URL, WEIR_KEY, NODE_PATH } = process.env;
const resting = JSON.parse(process.env.RESTING);
const followed = JSON.parse(process.env.FOLLOWED);
const sdk = ({ url, key }) => new Firecrawl({ apiKey: key, apiUrl: url });
const steady = sdk({ url: WEIR_URL, key: WEIR_KEY });

const isRefused = (promise) =>
  assert.rejects(promise, (error) => {
    assert.ok(error instanceof SdkError, String(error));
    assert.deepEqual([error.status, error.code], [503, "SEARCH_BACKEND_FAILED"], error.message);
    assert.match(error.message, /The search backend did not answer as it should\./);
    return true;
  });

// What the first call of a server that has just started answers.
async function first({ url, key }, given) {
  const args = [path.join(NODE_PATH, "firecrawl-mcp", "dist", "index.js")];
  const env = { ...process.env, FIRECRAWL_API_URL: url, FIRECRAWL_API_KEY: key };
  const mcp = new Client({ name: "tests", version: "1" });
  await mcp.connect(new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" }));
  try {
    return await mcp.callTool({ name: "firecrawl_search", arguments: given }, undefined, { timeout: 60_000 });
  } finally {
    await mcp.close();
  }
}

run({
  "backends that refuse rest": async () => {
    for (const [way, service] of Object.entries(resting)) {
      await isRefused(sdk(service).search(way));
      await isRefused(sdk(service).search(way));
    }
  },
  "the next backend is asked": async () => {
    const { web } = await sdk(followed).search("too many");
    assert.equal(web.length, 2);
  },
  "broken answers are told": async () => {
    await isRefused(steady.search("broken"));
    await isRefused(steady.search("no list"));
  },
  "a slow backend is not waited for": () =>
    assert.rejects(steady.search("slow", { timeout: 700 }), (error) => error instanceof SdkError && error.status === 408),
  "nothing found is no error": async () => {
    const { web, news } = await steady.search("empty", { sources: ["web", "news"] });
    assert.deepEqual([web, news], [[], []]);
  },
  "results of wrong types are left out": async () => {
    const { web } = await steady.search("odd");
    assert.deepEqual(web, [{ url: "https://ok.example/", title: "", description: "", position: 1 }]);
  },
  "repeated pages end the search": async () => {
    const { web } = await steady.search("repeated", { limit: 60 });
    assert.deepEqual(web.map((hit) => hit.url), Array.from({ length: 20 }, (_, n) => `https://hit-${n}.example/`));
  },
  "what was found before a refusal stays": async () => {
    assert.equal((await steady.search("too many later", { limit: 60 })).web.length, 20);
    assert.equal((await steady.search("odd")).web.length, 1);
  },
  "the MCP server's first call is a search with a query alone": async () => {
    const answer = await first(followed, { query: "too many" });
    assert.ok(!answer.isError, JSON.stringify(answer.content));
    const said = JSON.parse(answer.content[0].text);
    assert.equal((said.web ?? said.data.web).length, 2, answer.content[0].text);
  },
  "the MCP server tells of a backend that failed": async () => {
    const answer = await first({ url: WEIR_URL, key: WEIR_KEY }, { query: "broken" });
    assert.equal(answer.isError, true);
    assert.match(answer.content[0].text, /The search backend did not answer as it should\./);
  },
});
