// The same call as curl, Python and JavaScript, with the names that the official SDKs have.

/// What the SDKs call an operation: `lead` are the arguments that stand first.
const CALLS = {
  scrape: { path: "/v2/scrape", python: "scrape", js: "scrape", lead: ["url"] },
  batch: { path: "/v2/batch/scrape", python: "batch_scrape", js: "batchScrape", lead: ["urls"], nest: "options" },
  map: { path: "/v2/map", python: "map", js: "map", lead: ["url"] },
  crawl: { path: "/v2/crawl", python: "crawl", js: "crawl", lead: ["url"] },
  preview: { path: "/v2/crawl/params-preview", python: "crawl_params_preview", js: "crawlParamsPreview",
    lead: ["url", "prompt"], plain: true },
  search: { path: "/v2/search", python: "search", js: "search", lead: ["query"] },
  parse: { path: "/v2/parse", python: "parse", js: "parse", file: true },
  extract: { path: "/v2/extract", python: "extract", js: "extract", lead: [] },
  agent: { path: "/v2/agent", python: "agent", js: "agent", lead: [] },
  monitor: { path: "/v2/monitor", python: "create_monitor", js: "createMonitor", lead: [] },
  browser: { path: "/v2/browser", python: "browser", js: "browser", lead: [] },
};
/// Options of the call itself in a batch; everything else is how each page is scraped.
const OF_BATCH = ["webhook", "appendToId", "ignoreInvalidURLs", "maxConcurrency", "idempotencyKey", "zeroDataRetention",
  "integration", "origin"];

const shell = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;
const snake = (name) => name.replace(/URLs/g, "Urls").replace(/TLS/g, "Tls").replace(/PII/g, "Pii").replace(/[A-Z]/g,
  (letter) => `_${letter.toLowerCase()}`);

function python(value, indent = "") {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const parts = Array.isArray(value) ? value.map((item) => python(item,
      inner)) : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${python(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const flat = open + parts.join(", ") + close;
  return flat.length < 80 && !flat.includes("\n") ? flat : `${open}\n${inner}${parts.join(`,\n${inner}`)},\n${indent}${close}`;
}

function js(value, indent = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const key = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
  const parts = Array.isArray(value) ? value.map((item) => js(item,
      inner)) : Object.entries(value).map(([name, item]) => `${key(name)}: ${js(item, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : ["{ ", " }"];
  const flat = parts.length ? open + parts.join(", ") + close : Array.isArray(value) ? "[]" : "{}";
  return flat.length < 80 && !flat.includes("\n") ? flat : `${open.trim()}\n${inner}${parts.join(`,\n${inner}`)},\n${indent}${close.trim()}`;
}

export function snippets(operation, body, { base = location.origin, file } = {}) {
  const call = CALLS[operation];
  if (!call) return {};
  return { curl: curl(call, body, base, file), python: inPython(call, body, base, file),
    javascript: inJs(call, body, base, file) };
}

function curl(call, body, base, file) {
  const head = `curl -X POST ${base}${call.path} \\\n  -H "Authorization: Bearer $WEIR_KEY"`;
  if (call.file) return `${head} \\\n  -F ${shell(`file=@${file || "document.pdf"}`)} \\\n  -F ${shell(`options=${JSON.stringify(body)}`)}`;
  return `${head} \\\n  -H 'Content-Type: application/json' \\\n  -d ${shell(JSON.stringify(body, null, 2))}`;
}

function inPython(call, body, base, file) {
  const rest = { ...body };
  const lead = (call.lead || []).filter((name) => name in rest).map((name) => {
    const text = python(rest[name], "    ");
    delete rest[name];
    return call.plain ? `${snake(name)}=${text}` : text;
  });
  const types = [];
  if (call.file) {
    types.push("ParseOptions");
    lead.push(JSON.stringify(file || "document.pdf"));
    const options = Object.entries(rest).map(([name, value]) => `${snake(name)}=${python(value, "    ")}`);
    if (options.length) lead.push(`options=ParseOptions(${options.join(", ")})`);
  } else {
    for (const [name, value] of Object.entries(rest)) {
      if (name === "scrapeOptions" && value && typeof value === "object") {
        types.push("ScrapeOptions");
        lead.push(`scrape_options=ScrapeOptions(${Object.entries(value).map(([key,
                  item]) => `${snake(key)}=${python(item, "    ")}`).join(", ")})`);
      } else lead.push(`${snake(name)}=${python(value, "    ")}`);
    }
  }
  const imports = [`from firecrawl import Firecrawl`, ...types.map((type) => `from firecrawl.v2.types import ${type}`)];
  return `import os\n${imports.join("\n")}\n\nweir = Firecrawl(api_key=os.environ["WEIR_KEY"], api_url=${JSON.stringify(base)})\nresult = weir.${call.python}(${fit(lead,
          "    ", 4)})\nprint(result)\n`;
}

function inJs(call, body, base, file) {
  const rest = { ...body };
  const lead = (call.lead || []).filter((name) => name in rest).map((name) => {
    const text = js(rest[name]);
    delete rest[name];
    return text;
  });
  let before = "";
  if (call.file) {
    before = `import { readFileSync } from "node:fs";\n`;
    lead.push(`{ data: readFileSync(${JSON.stringify(file || "document.pdf")}), filename: ${JSON.stringify(file || "document.pdf")} }`);
  }
  const options = call.nest ? nested(rest, call.nest) : rest;
  if (Object.keys(options).length) lead.push(js(options));
  return `${before}import { Firecrawl } from "firecrawl";\n\nconst weir = new Firecrawl({ apiKey: process.env.WEIR_KEY, apiUrl: ${JSON.stringify(base)} });\nconst result = await weir.${call.js}(${lead.join(", ")});\nconsole.log(result);\n`;
}

function nested(rest, name) {
  const own = Object.entries(rest).filter(([key]) => OF_BATCH.includes(key));
  const other = Object.entries(rest).filter(([key]) => !OF_BATCH.includes(key));
  return { ...Object.fromEntries(own), ...(other.length ? { [name]: Object.fromEntries(other) } : {}) };
}

function fit(parts, indent) {
  const flat = parts.join(", ");
  return flat.length < 60 && !flat.includes("\n") ? flat : `\n${indent}${parts.join(`,\n${indent}`)},\n`;
}

/// The operation of a job's kind, for "the same as".
export const operationOf = (kind) => ({ scrape: "scrape", batch: "batch", batch_scrape: "batch", batchScrape: "batch",
    crawl: "crawl", map: "map", search: "search", parse: "parse", browser: "browser",
    extract: "extract", agent: "agent" })[kind];
