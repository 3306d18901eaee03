// Markdown as nodes. The text comes from pages of strangers: everything becomes text nodes of known elements, links go
// to http and https only and tell nobody where they were followed from, and images are named instead of loaded.
//
// Every reader below goes over its text once; depth is bounded, and what is deeper stays text.
import { cloneElement, h, html } from "./ui.js";
import { safeUrl } from "./format.js";

const DEEPEST = 12;
/// Characters in which ends of links are looked for in vain, for one text: then brackets are only brackets.
const IN_VAIN = 1_000_000;
let vain = 0;

export function Markdown({ text }) {
  vain = 0;
  const nodes = blocks(String(text ?? "").replace(/\r\n?/g, "\n").split("\n"), 0, { level: 1 });
  return html`<div class="markdown">${nodes.map(inItsDirection)}</div>`;
}

/// Each block runs as its first letters do, with all that stands in it; code runs from the left.
const inItsDirection = (node) => (node.type === "pre" ? node : cloneElement(node, { dir: "auto" }));

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]{0,40})/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const BULLET = /^( {0,8})([-*+]|\d{1,9}[.)])(?:\s+|$)/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/// `outline` is how deep the last heading was: strangers skip levels, which leads readers of headings astray.
function blocks(lines, depth, outline) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const step = depth < DEEPEST ? fence(lines, at) || heading(line, at, outline) || rule(line, at) || quote(lines, at,
      depth, outline) || list(lines, at, depth, outline) || table(lines, at) : null;
    if (step) {
      out.push(step.node);
      at = step.next;
      continue;
    }
    const from = at;
    at += 1;
    while (at < lines.length && lines[at].trim() && !starts(lines[at])) at += 1;
    out.push(html`<p>${inline(lines.slice(from, at).join("\n"))}</p>`);
  }
  return out;
}

const starts = (line) => FENCE.test(line) || HEADING.test(line) || /^ {0,3}>/.test(line) || BULLET.test(line)
  || RULE.test(line);

function fence(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(open[1])) end += 1;
  return { node: html`<pre tabindex="0"><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`, next: end + 1 };
}

/// Headings of the page stand below those of the console, and look as the page meant them.
function heading(line, at, outline) {
  const found = HEADING.exec(line);
  if (!found) return null;
  const meant = found[1].length;
  outline.level = Math.min(meant + 1, outline.level + 1, 6);
  return { node: h(`h${outline.level}`, { class: `md-${Math.min(meant, 3)}` }, inline(found[2] || "")), next: at + 1 };
}

const rule = (line, at) => (RULE.test(line) ? { node: html`<hr />`, next: at + 1 } : null);

function quote(lines, at, depth, outline) {
  if (!/^ {0,3}>/.test(lines[at])) return null;
  let end = at;
  const inside = [];
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) {
    inside.push(lines[end].replace(/^ {0,3}> ?/, ""));
    end += 1;
  }
  return { node: html`<blockquote>${blocks(inside, depth + 1, outline)}</blockquote>`, next: end };
}

function list(lines, at, depth, outline) {
  const first = BULLET.exec(lines[at]);
  if (!first) return null;
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = BULLET.exec(lines[end]);
    if (!found || found[1].length > indent + 1 || found[1].length < indent || /\d/.test(found[2]) !== ordered) break;
    const inside = [lines[end].slice(found[0].length)];
    const width = found[0].length;
    end += 1;
    while (end < lines.length) {
      const line = lines[end];
      const own = line.length - line.trimStart().length;
      if (line.trim() && own <= indent && (BULLET.test(line) || starts(line) || !lines[end - 1].trim())) break;
      if (!line.trim() && end + 1 < lines.length && lines[end + 1].trim()
          && lines[end + 1].length - lines[end + 1].trimStart().length <= indent) break;
      inside.push(own >= width ? line.slice(width) : line.trimStart());
      end += 1;
    }
    items.push(inside);
    while (end < lines.length && !lines[end].trim()) {
      const next = lines[end + 1];
      const bullet = next === undefined ? null : BULLET.exec(next);
      if (!bullet || bullet[1].length !== indent || /\d/.test(bullet[2]) !== ordered) break;
      end += 1;
    }
  }
  const rows = items.map((inside) => {
    const body = blocks(inside, depth + 1, outline);
    // A single paragraph stands without a paragraph's space.
    return html`<li>${body.length === 1 && body[0].type === "p" ? body[0].props.children : body}</li>`;
  });
  const start = ordered ? Number(first[2].slice(0, -1)) : undefined;
  return { node: ordered ? html`<ol start=${start}>${rows}</ol>` : html`<ul>${rows}</ul>`, next: end };
}

function cells(line) {
  const out = [""];
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  for (let i = 0; i < text.length; i += 1) {
    if (text[i] === "\\" && text[i + 1] === "|") {
      out[out.length - 1] += "|";
      i += 1;
    } else if (text[i] === "|") out.push("");
    else out[out.length - 1] += text[i];
  }
  return out.map((cell) => cell.trim());
}

function table(lines, at) {
  if (!lines[at].includes("|") || at + 1 >= lines.length || !lines[at + 1].includes("-")
      || !TABLE_RULE.test(lines[at + 1])) return null;
  const head = cells(lines[at]);
  let end = at + 2;
  const rows = [];
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) {
    rows.push(cells(lines[end]));
    end += 1;
  }
  const node = html`<div class="md-table" tabindex="0" role="region" aria-label="Table of the page"><table>
    <thead><tr>${head.map((cell) => html`<th scope="col">${inline(cell)}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${head.map((_, i) => html`<td>${inline(row[i] || "")}</td>`)}</tr>`)}</tbody>
  </table></div>`;
  return { node, next: end };
}

/// Words in a line. `depth` bounds what stands in what.
export function inline(text, depth = 0) {
  const out = [];
  let plain = "";
  const flush = () => {
    if (plain) out.push(plain);
    plain = "";
  };
  let at = 0;
  // How often a mark without its partner was looked for: a text full of them must not be read again for each.
  const alone = new Set();
  const until = (mark, from) => {
    if (alone.has(mark)) return -1;
    const found = text.indexOf(mark, from);
    if (found < 0) alone.add(mark);
    return found;
  };
  while (at < text.length) {
    const char = text[at];
    if (char === "\\" && at + 1 < text.length) {
      if (text[at + 1] === "\n") {
        flush();
        out.push(html`<br />`);
      } else if (/[\\`*_{}[\]()#+\-.!|<>~"'&:;,/?@^$%=]/.test(text[at + 1])) plain += text[at + 1];
      else plain += char + text[at + 1];
      at += 2;
      continue;
    }
    if (char === "`") {
      const marks = /^`+/.exec(text.slice(at, at + 40))[0];
      const end = until(marks, at + marks.length);
      if (end > 0) {
        flush();
        out.push(html`<code>${text.slice(at + marks.length, end).trim()}</code>`);
        at = end + marks.length;
        continue;
      }
      plain += marks;
      at += marks.length;
      continue;
    }
    if (depth < DEEPEST) {
      const step = char === "!" && text[at + 1] === "[" ? link(text, at + 1, depth, true)
        : char === "[" ? link(text, at, depth, false)
          : char === "<" ? auto(text, at)
            : char === "*" || char === "_" || char === "~" ? emphasis(text, at, depth, until) : null;
      if (step) {
        flush();
        out.push(step.node);
        at = step.next;
        continue;
      }
    }
    if (char === "\n") {
      flush();
      out.push(/ {2}$/.test(text.slice(Math.max(0, at - 2), at)) ? html`<br />` : " ");
      at += 1;
      continue;
    }
    plain += char;
    at += 1;
  }
  flush();
  return out;
}

/// `[words](address "title")` and its picture. Brackets and parentheses may stand in each other; both ends are looked
/// for within bounds.
function link(text, at, depth, picture) {
  const close = matching(text, at, "[", "]", 2000);
  if (close < 0 || text[close + 1] !== "(") return null;
  const end = matching(text, close + 1, "(", ")", 4000);
  if (end < 0) return null;
  const words = text.slice(at + 1, close);
  const target = text.slice(close + 2, end).trim().replace(/\s+(".*"|'.*')$/s, "").replace(/^<(.*)>$/, "$1");
  const safe = safeUrl(target);
  if (picture) return { node: html`<span class="md-image" title=${target.slice(0, 300)}>${words || "image"}</span>`,
    next: end + 1 };
  const inside = inline(words, depth + 1);
  const node = safe ? html`
    <a href=${safe} target="_blank" rel="noopener noreferrer nofollow">${inside.length ? inside : target}</a>`
    : html`<span class="md-dead" title=${target.slice(0, 300)}>${inside.length ? inside : target}</span>`;
  return { node, next: end + 1 };
}

function matching(text, at, open, close, most) {
  let deep = 0;
  const last = vain > IN_VAIN ? at : Math.min(text.length, at + most);
  for (let i = at; i < last; i += 1) {
    if (text[i] === "\\") i += 1;
    else if (text[i] === open) deep += 1;
    else if (text[i] === close) {
      deep -= 1;
      if (deep === 0) return i;
    }
  }
  vain += last - at;
  return -1;
}

function auto(text, at) {
  const found = /^<(https?:\/\/[^\s<>]{1,2000})>/.exec(text.slice(at, at + 2100));
  const safe = found && safeUrl(found[1]);
  return safe ? { node: html`<a href=${safe} target="_blank" rel="noopener noreferrer nofollow">${found[1]}</a>`,
    next: at + found[0].length } : null;
}

function emphasis(text, at, depth, until) {
  const char = text[at];
  const double = text[at + 1] === char;
  if (char === "~" && !double) return null;
  const mark = double ? char + char : char;
  const from = at + mark.length;
  if (!text[from] || /\s/.test(text[from])) return null;
  // An underscore within a word is part of it.
  if (char === "_" && at > 0 && /\w/.test(text[at - 1])) return null;
  const end = until(mark, from + 1);
  if (end < 0 || /\s/.test(text[end - 1])) return null;
  if (char === "_" && /\w/.test(text[end + mark.length] || "")) return null;
  const inside = inline(text.slice(from, end), depth + 1);
  const node = char === "~" ? html`<del>${inside}</del>` : double ? html`<strong>${inside}</strong>`
    : html`<em>${inside}</em>`;
  return { node, next: end + mark.length };
}
