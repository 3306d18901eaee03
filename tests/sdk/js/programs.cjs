// The official command line and MCP server as programs, unmodified, with a home of their own.
"use strict";
const assert = require("node:assert/strict");
const { execFileSync, spawn } = require("node:child_process");
const { mkdtempSync } = require("node:fs");
const { tmpdir } = require("node:os");
const path = require("node:path");
const readline = require("node:readline");

const { WEIR_URL, WEIR_KEY, NODE_PATH } = process.env;
const home = mkdtempSync(path.join(tmpdir(), "weir-cli-"));
const env = { ...process.env, HOME: home, CI: "1", FIRECRAWL_API_URL: WEIR_URL, FIRECRAWL_API_KEY: WEIR_KEY };

function cli(...words) {
  const program = path.join(NODE_PATH, ".bin", "firecrawl");
  return execFileSync(program, words, { env, encoding: "utf8", timeout: 120_000, stdio: ["ignore", "pipe", "inherit"] });
}

// A client of the Model Context Protocol over the server's standard input and output.
class Mcp {
  constructor() {
    const program = path.join(NODE_PATH, "firecrawl-mcp", "dist", "index.js");
    this.child = spawn(process.execPath, [program], { env, stdio: ["pipe", "pipe", "ignore"] });
    this.waiting = new Map();
    this.next = 1;
    readline.createInterface({ input: this.child.stdout }).on("line", (line) => {
      if (!line.startsWith("{")) return;
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
  }

  send(message) {
    this.child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  ask(method, params) {
    const id = this.next++;
    this.send({ id, method, params });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${method} within 60 s`)), 60_000);
      this.waiting.set(id, (message) => {
        clearTimeout(timer);
        if (message.error) reject(new Error(JSON.stringify(message.error)));
        else resolve(message.result);
      });
    });
  }

  async tool(name, given) {
    const result = await this.ask("tools/call", { name, arguments: given });
    const text = result.content.map((part) => part.text ?? "").join("");
    assert.ok(!result.isError, text);
    return text;
  }
}

module.exports = { cli, Mcp, home };
