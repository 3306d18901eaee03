// Code and JSON as text, with colours from our own small readers: what is shown is cut from the text, never made from it.
import { html, useState, cls } from "../lib/ui.js";
import * as format from "../lib/format.js";
import { Button, Copy } from "./basics.js";

/// Characters that are shown before somebody asks for more.
const FIRST = 60_000;
/// Longer texts are shown without colours: a node for each word would hold the page up.
const COLOURED = 120_000;

const JSON_WORDS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

function colourJson(text) {
  const out = [];
  let at = 0;
  for (const match of text.matchAll(JSON_WORDS)) {
    if (match.index > at) out.push(text.slice(at, match.index));
    const kind = match[1] ? (match[2] ? "k" : "s") : match[3] ? "w" : "n";
    out.push(html`<span class=${`t-${kind}`}>${match[1] || match[3] || match[4]}</span>`);
    if (match[2]) out.push(match[2]);
    at = match.index + match[0].length;
  }
  out.push(text.slice(at));
  return out;
}

const CODE_WORDS = /(#[^\n]*|\/\/[^\n]*)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|\b(import|from|const|await|async|for|of|in|print|new|curl|True|False|None|true|false|null)\b/g;

function colourCode(text) {
  const out = [];
  let at = 0;
  for (const match of text.matchAll(CODE_WORDS)) {
    // A "#" or "//" inside an address is no comment.
    if (match[1] && match.index > 0 && !/[\s]/.test(text[match.index - 1])) continue;
    if (match.index > at) out.push(text.slice(at, match.index));
    out.push(html`<span class=${match[1] ? "t-c" : match[2] ? "t-s" : "t-w"}>${match[0]}</span>`);
    at = match.index + match[0].length;
  }
  out.push(text.slice(at));
  return out;
}

/// A text in a box with a way to copy it.
export function Code({ text, kind = "text", label = "Copy", wrap = true, tall }) {
  const [all, showAll] = useState(false);
  const value = String(text ?? "");
  const cut = !all && value.length > FIRST;
  const shown = cut ? value.slice(0, FIRST) : value;
  const body = shown.length > COLOURED ? shown : kind === "json" ? colourJson(shown) : kind === "code" ? colourCode(shown) : shown;
  return html`<div class=${cls("code", tall && "tall")}>
    <div class="code-tools"><${Copy} text=${value} label=${label} /></div>
    <pre class=${wrap ? "wrap" : ""} tabindex="0">${body}</pre>
    ${cut ? html`<div class="code-more">
          <span class="soft">The first ${format.count(FIRST)} of ${format.count(value.length)} characters.</span>
          <${Button} small onClick=${() => showAll(true)}>Show all<//></div>` : null}
  </div>`;
}

export const Json = ({ value, ...rest }) => html`
  <${Code} kind="json" text=${JSON.stringify(value, null, 2)} label="Copy JSON" ...${rest} />`;
