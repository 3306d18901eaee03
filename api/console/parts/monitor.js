// What a monitor watches, and what a check of it found, in few words.
import { html } from "../lib/ui.js";
import * as format from "../lib/format.js";
import { Tag } from "./basics.js";

/// The targets in one line.
export function targetsOf(monitor) {
  return monitor.targets.map((target) => {
    if (target.type === "search") return `searches: ${(target.queries || [target.query]).filter(Boolean).join(", ")}`;
    const urls = target.urls || [target.url].filter(Boolean);
    const more = urls.length > 1 ? ` and ${urls.length - 1} more` : "";
    return `${target.type === "crawl" ? "crawl of " : ""}${urls[0] || "–"}${more}`;
  }).join(" · ");
}

/// Results that are worth a word, with the tone of it: what is the same is not.
const TONES = { changed: "warn", new: "good", removed: "bad", error: "bad" };

/// Counts of what was found, without those that are nought.
export function Found({ summary }) {
  if (!summary) return html`<span class="soft">nothing yet</span>`;
  const words = Object.keys(TONES).filter((word) => summary[word] > 0);
  if (words.length === 0) return html`<span class="soft">${format.plural(summary.totalPages, "page")}, all the same</span>`;
  return html`<span class="actions">${words.map((word) => html`
        <${Tag} key=${word} tone=${TONES[word]}>${format.count(summary[word])} ${word}<//>`)}</span>`;
}
