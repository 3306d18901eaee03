// Extractions and agents through the official JavaScript SDK, command line and MCP server, unmodified, against a running service.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site) from the environment; NODE_PATH leads to the programs.
// The service's language model reads "seen" out of every page, and an agent's first step is to finish with it.
// Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const { randomUUID } = require("node:crypto");
const { rmSync } = require("node:fs");
const { Firecrawl } = require("@mendable/firecrawl-js");
const { Mcp, cli, home } = require("./programs.cjs");
const run = require("./steps.cjs");

const { WEIR_URL, WEIR_KEY, SITE_URL } = process.env;
const client = new Firecrawl({ apiKey: WEIR_KEY, apiUrl: WEIR_URL });
const site = (at) => SITE_URL + at;
const schema = { type: "object", properties: { seen: { type: "string" } }, required: ["seen"] };

let mcp;
const steps = {
  "extract waits for the data": async () => {
    const urls = [site("/article/1"), site("/article/2")];
    const done = await client.extract({ urls, schema, showSources: true, pollInterval: 1, timeout: 60 });
    assert.deepEqual([done.success, done.status, done.data], [true, "completed", { seen: "seen" }]);
    assert.deepEqual(done.sources, { seen: urls });
  },
  "extract starts and is read": async () => {
    const started = await client.startExtract({ urls: [site("/article/3")], prompt: "What is seen?" });
    const status = await client.getExtractStatus(started.id);
    assert.ok(["processing", "completed"].includes(status.status), status.status);
    await assert.rejects(client.getExtractStatus(randomUUID()), { status: 404 });
  },
  "agent waits for the answer": async () => {
    const asked = { urls: [site("/article/4")], prompt: "What is seen?", schema, effort: "low", pollInterval: 1, timeout: 60 };
    const done = await client.agent(asked);
    assert.deepEqual([done.status, done.data, done.creditsUsed], ["completed", { seen: "seen" }, 1]);
    const trace = await client.getAgentTrace(done.id, { liveView: true });
    assert.equal(trace.events.at(-1).outcome, "succeeded");
    const { thread } = await client.getAgentThread(done.threadId, { includeData: true });
    assert.deepEqual(thread.runs[0].data, { seen: "seen" });
    const { agents } = await client.listAgents();
    assert.ok(agents.some((agent) => agent.id === done.id));
    await assert.rejects(client.cancelAgent(done.id), { status: 409 });
  },
  "agent starts, and its status is read": async () => {
    const started = await client.startAgent({ prompt: "What is seen?", model: "spark-1-mini" });
    const status = await client.getAgentStatus(started.id);
    assert.equal(status.model, "spark-1-mini");
    await assert.rejects(client.getAgentStatus(randomUUID()), { status: 404 });
  },
  "the command line waits for an agent": () => {
    const text = cli("agent", "What is seen?", "--urls", site("/article/5"), "--schema", JSON.stringify(schema), "--wait",
      "--poll-interval", "1", "--json");
    assert.match(text, /"seen":\s*"seen"/);
  },
  "the MCP server starts an agent and reads its status": async () => {
    mcp = new Mcp();
    const info = { name: "tests", version: "1" };
    await mcp.ask("initialize", { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: info });
    mcp.send({ method: "notifications/initialized" });
    const started = JSON.parse(await mcp.tool("firecrawl_agent", { prompt: "What is seen?", urls: [site("/article/6")], schema }));
    let status = { status: "processing" };
    for (let tries = 0; status.status === "processing" && tries < 200; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      status = JSON.parse(await mcp.tool("firecrawl_agent_status", { id: started.id }));
    }
    assert.deepEqual([status.status, status.data], ["completed", { seen: "seen" }]);
  },
};

run(steps, () => {
  mcp?.child.kill();
  rmSync(home, { recursive: true, force: true });
});
