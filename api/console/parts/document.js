// What was made of a page, each format in a tab. All of it was written by a stranger: text nodes, or a frame without
// scripts whose origin is nobody's.
import { html, cls, useEffect, useMemo, useState } from "../lib/ui.js";
import * as format from "../lib/format.js";
import { Markdown } from "../lib/markdown.js";
import { Button, Empty, Facts, Outside, Segments, Tabs } from "./basics.js";
import { Code, Json } from "./code.js";

/// Characters of markdown that are rendered before somebody asks for more.
const RENDERED = 100_000;
/// Formats with tabs of their own; whatever else a document holds is shown as JSON.
const KNOWN = ["markdown", "html", "rawHtml", "links", "images", "screenshot", "metadata", "json", "summary", "warning",
  "changeTracking", "actions"];

/// `frame(name)` is where the service shows the HTML of a stored page with a policy of its own, `shot` its picture.
export function DocumentView({ document: page, extra = [], at, onTab, frame, shot }) {
  const [own, setOwn] = useState(null);
  const tabs = useMemo(() => tabsOf(page, extra, frame, shot), [page, extra, frame, shot]);
  const now = at ?? own;
  if (!tabs.length) return html`
    <${Empty} title="This page holds nothing">No format was asked for that makes content.<//>`;
  const tab = tabs.find((tab) => tab.id === now) || tabs[0];
  return html`<div>
    ${page.warning ? html`<p class="banner warn">${String(page.warning)}</p>` : null}
    <${Tabs} label="Formats" tabs=${tabs} at=${tab.id} onChange=${(id) => (onTab ? onTab(id) : setOwn(id))}>
      ${tab.show()}<//>
  </div>`;
}

function tabsOf(page, extra, frame, shot) {
  if (!page || typeof page !== "object") return extra;
  const tabs = [];
  const add = (id, label, show, count) => tabs.push({ id, label, show, count });
  if (typeof page.markdown === "string") add("markdown", "Markdown",
    () => html`<${MarkdownView} text=${page.markdown} />`);
  if (typeof page.summary === "string") add("summary", "Summary", () => html`<p class="prose" dir="auto">${page.summary}</p>`);
  if (page.json !== undefined && page.json !== null) add("json", "JSON",
    () => html`<${Json} value=${page.json} tall />`);
  if (typeof page.html === "string") add("html", "HTML",
    () => html`<${HtmlView} key="html" text=${page.html} source=${frame && frame("html")} />`);
  if (typeof page.rawHtml === "string") add("rawHtml", "Raw HTML",
    () => html`<${HtmlView} key="rawHtml" text=${page.rawHtml} source=${frame && frame("rawHtml")} raw />`);
  if (page.screenshot || shot) add("screenshot", "Screenshot",
    () => html`<${Screenshot} source=${shot || page.screenshot} kept=${page.screenshot} />`);
  if (Array.isArray(page.links)) add("links", "Links", () => html`<${Links} key="links" links=${page.links} />`, page.links.length);
  if (Array.isArray(page.images)) add("images", "Images", () => html`<${Links} key="images" links=${page.images} />`,
    page.images.length);
  if (page.changeTracking) add("changes", "Changes", () => html`<${Changes} changes=${page.changeTracking} />`);
  if (page.actions) add("actions", "Actions", () => html`<${Json} value=${page.actions} tall />`);
  for (const [name, value] of Object.entries(page)) {
    if (!KNOWN.includes(name) && value !== null && typeof value === "object") add(name, name,
      () => html`<${Json} value=${value} tall />`);
    else if (!KNOWN.includes(name) && typeof value === "string" && value.length > 200) add(name, name,
      () => html`<${Code} text=${value} tall />`);
  }
  tabs.push(...extra);
  if (page.metadata) add("metadata", "Metadata", () => html`<${Metadata} metadata=${page.metadata} />`);
  return tabs;
}

function MarkdownView({ text }) {
  const [raw, setRaw] = useState("rendered");
  const [all, showAll] = useState(false);
  const shown = all ? text : text.slice(0, RENDERED);
  return html`<div><div class="pane-tools">
        <${Segments} label="How the markdown is shown"
          options=${[["rendered", "Rendered"], ["raw", "Source"], ["both", "Side by side"]]} at=${raw}
            onChange=${setRaw} /><span class="soft num">${format.bytes(text.length)}</span></div>
    <div class=${cls(raw === "both" && "side-by-side")}>
      ${raw !== "raw" ? html`<div class="pane">
            ${text ? html`<${Markdown} text=${shown} />` : html`<${Empty} title="The page has no text" />`}
        ${shown.length < text.length
          ? html`<${Button} onClick=${() => showAll(true)}>Show all ${format.bytes(text.length)}<//>` : null}
            </div>` : null}
      ${raw !== "rendered" ? html`<${Code} text=${text} tall />` : null}
    </div></div>`;
}

/// The frame has no permission at all: no scripts, no forms, an origin of its own, nothing loaded, so that looking at a
/// page tells its site nothing. A stored page comes from the service under a policy that says so; an answer that is not
/// stored goes into the frame as text, and inherits this page's policy.
function Frame({ text, source, title }) {
  if (source) return html`<iframe class="frame" title=${title} sandbox="" referrerpolicy="no-referrer" src=${source}>
    </iframe>`;
  return html`<iframe class="frame" title=${title} sandbox="" referrerpolicy="no-referrer"
      srcdoc=${`<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'"><meta name="referrer" content="no-referrer">${text}`}>
        </iframe>`;
}

function HtmlView({ text, raw, source }) {
  const [mode, setMode] = useState(raw ? "source" : "page");
  return html`<div><div class="pane-tools">
        <${Segments} label="How the HTML is shown" options=${[["page", "As a page"], ["source", "Source"]]} at=${mode}
          onChange=${setMode} /><span class="soft num">${format.bytes(text.length)}</span>
      ${mode === "page" ? html`<span class="soft">Without scripts, pictures and styles from elsewhere</span>` : null}
      </div>
    ${mode === "page" ? html`<${Frame} text=${text} source=${source} title="The page's HTML" />`
      : html`<${Code} text=${text} tall />`}</div>`;
}

/// Data of the answer itself, or an address of this service; nothing else is loaded.
function Screenshot({ source, kept }) {
  const text = String(source);
  const [failed, setFailed] = useState(false);
  const [address, setAddress] = useState(null);
  useEffect(() => {
    setFailed(false);
    const url = (() => {
      try {
        return new URL(text, location.origin);
      } catch {
        return null;
      }
    })();
    if (!url) setAddress(null);
    else if (url.protocol === "data:") setAddress(/^data:image\/(png|jpeg|webp);base64,/.test(text) ? text : null);
    else setAddress(url.origin === location.origin ? url.href : null);
  }, [text]);
  if (address === null || failed) return html`
    <${Empty} title="The screenshot is not shown here">It is kept at <${Outside} url=${String(kept).slice(0, 500)} />
    <//>`;
  return html`<p class="shot"><img src=${address} alt="Screenshot of the page" onError=${() => setFailed(true)} /></p>`;
}

export function Links({ links }) {
  const [all, showAll] = useState(false);
  const [find, setFind] = useState("");
  const words = links.map((link) => (typeof link === "string" ? { url: link } : { url: link.url, title: link.title,
        description: link.description }));
  const found = words.filter((link) => !find
      || `${link.url} ${link.title || ""}`.toLowerCase().includes(find.toLowerCase()));
  const shown = all ? found : found.slice(0, 300);
  return html`<div><div class="pane-tools">
        <input type="search" class="input" placeholder="Find" aria-label="Find among the links" value=${find}
          onInput=${(event) => setFind(event.target.value)} />
            <span class="soft">${format.plural(found.length, "link")}</span></div>
    <ol class="links">${shown.map((link) => html`
            <li><${Outside} url=${link.url} />
              ${link.title ? html`<span class="soft">${String(link.title)}</span>` : null}</li>`)}</ol>
    ${shown.length < found.length
      ? html`<${Button} onClick=${() => showAll(true)}>Show all ${format.count(found.length)}<//>` : null}</div>`;
}

function Changes({ changes }) {
  return html`<div><${Facts} items=${[
    ["Status", String(changes.changeStatus || format.DASH)],
      ["Seen before", changes.previousScrapeAt ? format.exact(changes.previousScrapeAt) : "Never"],
        ["Visibility", String(changes.visibility || format.DASH)],
  ]} />${changes.diff ? html`
    <${Diff} text=${textOfDiff(changes.diff)} />` : null}${changes.json ? html`<${Json} value=${changes.json} />` : null}</div>`;
}

/// What a diff says, in whichever form it came.
export const textOfDiff = (diff) => (typeof diff === "string" ? diff : String(diff.text ?? JSON.stringify(diff, null, 2)));

/// A unified diff as text with its lines coloured.
export function Diff({ text }) {
  const all = text.split("\n");
  return html`<pre class="diff" tabindex="0">
      ${all.slice(0, 5000).map((line) => html`
            <span class=${cls("diff-line",
                  /^\+(?!\+\+)/.test(line) ? "new" : /^-(?!--)/.test(line) ? "gone" : /^@@/.test(line) ? "fold" : "")}>
                    ${line || " "}${"\n"}</span>`)}</pre>`;
}

function Metadata({ metadata }) {
  const rows = Object.entries(metadata);
  const show = (value) => (typeof value === "string" ? (format.safeUrl(value)
      ? html`<${Outside} url=${value} />` : value) : typeof value === "object" && value !== null
        ? html`<code>${JSON.stringify(value)}</code>` : String(value));
  return html`<table class="table plain"><caption class="hidden">Metadata</caption>
      <thead class="hidden"><tr><th scope="col">Name</th><th scope="col">Value</th></tr></thead>
    <tbody>${rows.map(([name, value]) => html`<tr><th scope="row">${name}</th><td class="wrap-any">${show(value)}</td>
            </tr>`)}</tbody></table>`;
}
