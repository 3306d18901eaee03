// The official JavaScript SDK searches, where the service's backend is the Brave Search API.
//
// Reads WEIR_URL, WEIR_KEY and SITE_URL (the test site, whose articles 7 to 9 are found) from the environment; NODE_PATH
// leads to the SDK. Closes with the line "N passed, N failed".
"use strict";
const assert = require("node:assert/strict");
const run = require("./steps.cjs");
const { Firecrawl } = require("firecrawl");

const { WEIR_URL, WEIR_KEY, SITE_URL } = process.env;
const client = new Firecrawl({ apiKey: WEIR_KEY, apiUrl: WEIR_URL });
const articles = [7, 8, 9].map((n) => `${SITE_URL}/article/${n}`);

run({
  "hits of every source": async () => {
    const found = await client.search("whales", { limit: 3, sources: ["web", "news", { type: "images" }], tbs: "qdr:w" });
    assert.deepEqual(found.web.map((hit) => hit.url), articles);
    assert.deepEqual([found.web[0].title, found.web[0].description, found.web[0].position], ["Hit 0", "What is found at 0.", 1]);
    assert.deepEqual([found.news.length, found.news[0].snippet], [3, "What is found at 0."]);
    const [{ imageUrl, imageWidth, imageHeight }] = found.images;
    assert.deepEqual([imageUrl, imageWidth, imageHeight], ["https://pictures.example/0.png", 640, 480]);
  },
  "hits with their pages": async () => {
    const { web } = await client.search("whales", { limit: 2, scrapeOptions: { formats: ["markdown"] } });
    assert.deepEqual(web.map((hit) => hit.metadata.sourceURL), articles.slice(0, 2));
    assert.ok(web.every((hit) => hit.markdown.includes("MAIN")));
  },
});
