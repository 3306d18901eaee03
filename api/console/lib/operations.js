// What the playground offers: each operation with its route, the fields that stand on top, and how its answer is shown.
export const OPERATIONS = [
  { id: "scrape", name: "Scrape", path: "/v2/scrape", first: ["url", "formats", "onlyMainContent"],
    says: "One page, while you wait." },
  { id: "batch", name: "Batch", path: "/v2/batch/scrape", first: ["urls", "formats", "onlyMainContent"],
    says: "Many pages in the background.", job: "/v2/batch/scrape" },
  { id: "crawl", name: "Crawl", path: "/v2/crawl",
    first: ["url", "prompt", "limit", "maxDiscoveryDepth", "includePaths", "excludePaths"],
      says: "A site, from link to link.", job: "/v2/crawl" },
  { id: "map", name: "Map", path: "/v2/map", first: ["url", "search", "limit"], says: "The addresses of a site." },
  { id: "search", name: "Search", path: "/v2/search", first: ["query", "limit", "sources"], says: "The web by words." },
  { id: "parse", name: "Parse", path: "/v2/parse", schema: "ParseOptions", first: ["formats"],
    says: "A file instead of a page.", file: true },
  { id: "extract", name: "Extract", path: "/v2/extract", first: ["urls", "prompt", "schema"],
    says: "Data out of many pages, by a language model.", job: "/v2/extract" },
  { id: "agent", name: "Agent", path: "/v2/agent", first: ["prompt", "urls", "schema", "maxCredits"],
    says: "An answer that is looked for step by step.", job: "/v2/agent" },
  { id: "monitor", name: "Monitor", path: "/v2/monitor", first: ["name", "schedule", "targets", "goal"],
    says: "Looks again and again, and tells what has changed." },
  { id: "browser", name: "Browser", path: "/v2/browser", first: ["ttl", "activityTtl", "blockAds"],
    says: "A browser of your own for a while." },
];

export const operation = (id) => OPERATIONS.find((one) => one.id === id);
