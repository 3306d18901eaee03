// One page of a job: what was made of it, how it went, how it has changed.
import { html, cls, useMemo, useState } from "../lib/ui.js";
import { callOk, get, post } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { throughAll } from "../lib/bulk.js";
import { keptText, leftOut } from "../lib/left-out.js";
import { explain } from "../lib/words.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button, Card, Confirm, Copy, Empty, Facts, Head, Id, Lasting, Loading, Outside, Segments, Status, Time, Trouble } from "../parts/basics.js";
import { Json } from "../parts/code.js";
import { Diff, DocumentView, textOfDiff } from "../parts/document.js";
import { NotKept, playgroundLink, withoutWebhook } from "./playground.js";

export default function PageOfJob({ one, two }) {
  const base = `/jobs/${encodeURIComponent(one)}`;
  const [query, change] = useQuery();
  const [ended, setEnded] = useState(false);
  const [asking, ask] = useState(false);
  const [replaying, setReplaying] = useState(false);
  const job = useData((signal) => get(base, {}, signal), [one]);
  const page = useData(async (signal) => {
    const found = await get(`${base}/pages/${encodeURIComponent(two)}`, {}, signal);
    setEnded(!["queued", "running"].includes(found.status));
    return found;
  }, [one, two], { every: ended ? 0 : 1500 });
  const back = { href: link(`/jobs/${one}`), label: "The job" };
  const it = page.data;
  const document_ = it && it.document;
  const hasBoth = Boolean(document_) && typeof document_.rawHtml === "string"
    && (typeof document_.html === "string" || typeof document_.markdown === "string");
  const request = job.data && job.data.request;
  // How it is scraped by itself; what came as a file has no address to be scraped from.
  const alone = it && it.url && job.data && !(request && request.file)
    && !["map", "search"].includes(job.data.kind) ? { ...(request ? scrapeOptions(job.data) : {}), url: it.url } : null;
  const hidden = request ? (request.hidden || []).filter((name) => !name.startsWith("webhook."))
    .map((name) => name.replace(/^scrapeOptions\./, "")) : [];
  const anew = alone && request && PAGES_OF.includes(job.data.kind)
    ? { ...alone, formats: ["rawHtml", "html"] } : null;
  const extra = useMemo(() => [
    hasBoth ? { id: "left", label: "Left out", show: () => html`<${LeftOut} page=${document_} />` }
      : document_ && anew && mayChange() ? { id: "left", label: "Left out",
        show: () => (hidden.length ? html`<${LeftOutUnknown} hidden=${hidden} />`
          : html`<${LeftOutAnew} body=${anew} team=${job.data.team.id} />`) } : null,
    document_ ? { id: "history", label: "History",
      show: () => html`<${History} base=${`${base}/pages/${encodeURIComponent(two)}`} />` } : null,
    document_ ? { id: "all", label: "As JSON", show: () => html`<${Json} value=${document_} tall />` } : null,
  ].filter(Boolean), [document_, JSON.stringify([anew, hidden])]);
  const frame = useMemo(() => (name) => `/console/api${base}/pages/${encodeURIComponent(two)}/html${name === "rawHtml" ? "?raw=1" : ""}`,
    [one, two]);
  if (page.error && !it) return html`<${Head} title="Page" back=${back} />
    <${Trouble} error=${page.error} retry=${page.reload} />`;
  if (!it) return html`<${Head} title="Page" back=${back} /><${Card}><${Loading} rows=${8} /><//>`;
  const words = explain(it.code);
  const replay = async (read) => {
    const { pages } = await read();
    store.notify(`${format.plural(pages, "page")} put back.`);
    setEnded(false);
    page.reload();
    job.reload();
  };
  const title = (document_ && document_.metadata && typeof document_.metadata.title === "string"
      && document_.metadata.title) || it.url || "Page";
  return html`<${Head} title=${title} back=${back} note=${html`<${Status} value=${it.status} />`}>
      ${it.status === "failed" && mayChange() && job.data && job.data.failed > 1 && job.data.status !== "cancelled"
        ? html`<${Button} icon="replay" busy=${replaying} onClick=${async () => {
    setReplaying(true);
    await replay(() => post(`${base}/pages/${encodeURIComponent(two)}/replay`)).catch((error) => store.notify(error.message, "bad"));
    setReplaying(false);
  }}>Replay this page<//>` : null}
      ${it.status === "failed" && job.data && mayChange()
        ? html`<${Button} icon="replay" title="Tries all failed pages of the job again" onClick=${async () => {
    await job.reload();
    ask(true);
  }}>Replay failed<//>` : null}
      ${alone ? html`<a class="button" href=${playgroundLink("scrape", alone, { hidden })}>Open in the playground</a>`
        : null}
    <//>
    ${asking ? html`<${Confirm} title=${`Replay ${format.plural(job.data.failed, "failed page")}?`} verb="Replay"
          run=${() => replay(() => throughAll("/jobs/replay", { ids: [one] }))} onClose=${() => ask(false)}>
      <p>${job.data.failed === 1 ? "It is tried again."
        : "All failed pages of the job are tried again, this one among them."}</p><//>` : null}
    ${it.code || it.error ? html`<div class="trouble" role="alert"><div>
      <p><strong>${words ? words.what : it.error}</strong> ${it.code ? html`<code>${it.code}</code>` : null}</p>
      ${words ? html`<p>${words.todo}</p>` : null}${words && it.error ? html`<p class="mono">${it.error}</p>` : null}
      </div></div>` : null}
    <div class="grid-side">
      <${Card}>${document_ ? html`${it.cut.length ? html`
              <p class="banner">This page is very large. Cut after 256 KB here: ${it.cut.join(", ")}. The API gives all of it.</p>` : null}
        <${DocumentView} document=${document_} extra=${extra} at=${query.tab}
          onTab=${(id) => change({ tab: id }, { replace: true })} frame=${frame}
            shot=${it.cut.includes("screenshot") ? `/console/api${base}/pages/${encodeURIComponent(two)}/screenshot` : null} />`
    : html`<${Empty} title=${{ queued: "The page waits for its turn", running: "The page is being worked on",
            failed: "Nothing came of this page",
              cancelled: "The page was cancelled" }[it.status] || "Nothing is kept of this page"}>${it.documentError}<//>`}<//>
      <div class="stack">
        <${Card} title="About"><${Facts} items=${[
    ["Address", html`<${Outside} url=${it.url} /><${Copy} text=${it.url} label="Copy the address" />`, true],
    ["Id", html`<${Id} id=${it.id} />`],
    ["Number in the job", format.count(it.index + 1)],
    ["Tries", format.count(it.claims)],
    it.replays ? ["Replays", format.count(it.replays)] : null,
    it.documentBytes ? ["Size of the result", format.bytes(it.documentBytes)] : null,
  ]} /><//>
        <${Card} title="Timeline"><${Timeline} page=${it} /><//>
      </div>
    </div>`;
}

/// How a page of this job would be scraped by itself.
function scrapeOptions(job) {
  const body = withoutWebhook(job.request.body);
  if (body.scrapeOptions) return body.scrapeOptions;
  if (job.kind !== "scrape" && job.kind !== "batch") return {};
  for (const name of ["urls", "appendToId", "ignoreInvalidURLs", "maxConcurrency"]) delete body[name];
  return body;
}

/// What each step that ended is called.
const STEPS = { fetch: "Fetched", render: "Rendered", extract: "Extracted" };

function Timeline({ page }) {
  const events = [
    { at: page.queuedAt, text: "Queued", tone: "" },
    ...page.attempts.flatMap((attempt) => [
      attempt.startedAt ? { at: attempt.startedAt,
        text: html`Try ${attempt.number} began${attempt.worker ? html` on <code>${attempt.worker}</code>` : ""}`,
          tone: "busy" } : null,
      { at: attempt.endedAt, text: html`Try ${attempt.number} failed: ${attempt.error} ${attempt.code
            ? html`<code>${attempt.code}</code>` : ""}`, tone: "bad" },
    ]),
    page.startedAt && !page.attempts.some((attempt) => attempt.startedAt === page.startedAt) ? { at: page.startedAt,
      text: page.status === "running" ? "Being worked on" : "Work began", tone: "busy" } : null,
    ...(page.startedAt ? page.steps || [] : []).map((step) => ({
      at: new Date(new Date(page.startedAt).getTime() + step.beganMs + step.tookMs).toISOString(),
      text: html`${STEPS[step.name] || step.name} <span class="soft num">in ${format.duration(step.tookMs)}</span>`,
      tone: "busy" })),
    page.finishedAt && !page.attempts.some((attempt) => attempt.endedAt === page.finishedAt) ? { at: page.finishedAt,
      text: { done: "Committed", failed: "Given up", cancelled: "Cancelled" }[page.status]
        || page.status, tone: page.status === "done" ? "good" : page.status === "failed" ? "bad" : "" } : null,
  ].filter((event) => event && event.at).sort((a, b) => new Date(a.at) - new Date(b.at));
  const metadata = (page.document && page.document.metadata) || {};
  return html`<ol class="timeline">
      ${events.map((event, at) => html`
            <li key=${at} class=${event.tone}><${Time} at=${event.at} />
              <span class="wrap-any">${event.text}
                ${at > 0 ? html` <span class="soft num">+${format.duration(new Date(event.at) - new Date(events[0].at))}
                      </span>` : null}</span></li>`)}</ol>
    ${page.startedAt && page.queuedAt ? html`<${Facts} items=${[
    ["Waited", format.duration(Math.max(0, new Date(page.startedAt) - new Date(page.queuedAt)))],
    ["Worked on", html`<${Lasting} from=${page.startedAt} to=${page.finishedAt} />`],
    metadata.statusCode ? ["The site answered", `HTTP ${metadata.statusCode}`] : null,
    metadata.proxyUsed ? ["Proxy", String(metadata.proxyUsed)] : null,
    metadata.cacheState ? ["Cache", String(metadata.cacheState)] : null,
    metadata.creditsUsed !== undefined ? ["Credits", format.count(metadata.creditsUsed)] : null,
  ]} />` : null}`;
}

/// A page that came with headers may be another without them, so it is not compared.
const LeftOutUnknown = ({ hidden }) => html`<div class="stack-s"><${NotKept} hidden=${hidden} />
  <${Empty} title="The job kept no raw HTML of this page">It cannot be scraped once more here: without these values the site
    may answer with another page. Open it in the playground, fill them in, and ask for the format rawHtml.<//></div>`;

const PAGES_OF = ["scrape", "batch", "crawl"];

/// The same for a page whose job kept no raw HTML: it is scraped once more, in both forms, when somebody asks for that.
function LeftOutAnew({ body, team }) {
  const [state, set] = useState({});
  const look = async () => {
    set({ busy: true });
    try {
      const answer = await callOk("POST", "/v2/scrape", { body, query: seesAll() ? { team } : undefined });
      set({ page: answer.data });
    } catch (error) {
      set({ error });
    }
  };
  if (state.page) return html`<p class="hint">As the page is now.</p><${LeftOut} page=${state.page} />`;
  return html`${state.error ? html`<${Trouble} error=${state.error} />` : null}
    <${Empty} title="The job kept no raw HTML of this page"
      action=${html`<${Button} kind="primary" busy=${state.busy} onClick=${look}>Scrape it and compare<//>`}>
      Scraped once more, with the job's options, it shows what the filter left out. That costs what a scrape costs.<//>`;
}

function LeftOut({ page }) {
  const [which, setWhich] = useState("all");
  const blocks = useMemo(() => leftOut(page.rawHtml, keptText(page)), [page]);
  if (!blocks) return html`<${Empty} title="The page is too long to be compared here" />`;
  const out = blocks.filter((block) => !block.kept);
  const shown = which === "all" ? blocks : blocks.filter((block) => !block.kept);
  return html`<div><div class="pane-tools">
        <${Segments} label="Blocks" at=${which} onChange=${setWhich}
          options=${[["all", "Whole page"], ["left", "Left out only"]]} />
            <span class="soft">${format.count(out.length)} of ${format.plural(blocks.length,
                    "block")} of text left out</span></div>
    <div class="blocks">${shown.slice(0, 2000).map((block, at) => html`
            <p key=${at} class=${cls("block", !block.kept && "left")} dir="auto">
              ${block.kept ? null : html`
                  <span class="block-place">${block.place || `<${block.tag}>`}<span class="hidden"> left out: </span>
                  </span>`}${block.text}</p>`)}</div></div>`;
}

function History({ base }) {
  const list = useData((signal) => get(`${base}/history`, {}, signal), [base]);
  if (list.error) return html`<${Trouble} error=${list.error} retry=${list.reload} />`;
  if (!list.data) return html`<${Loading} />`;
  const { history, whole } = list.data;
  const seen = history.map((entry) => ({ ...entry, tracked: entry.changeTracking || {} }));
  return html`
    ${seen.some((entry) => entry.changeTracking) ? null : html`<p class="banner">
      No change was looked for. Scrape the address with the changeTracking format, and each later scrape is compared
      with the one before.</p>`}
    <ol class="timeline" aria-label="Scrapes of this address">${seen.map((entry) => html`
      <li key=${entry.pageId} class=${TONES[entry.tracked.changeStatus] || ""}><${Time} at=${entry.at} />
        <div class="stack-s"><div class="actions">
          ${entry.tracked.changeStatus ? html`<${Status} value=${String(entry.tracked.changeStatus)} />`
            : html`<span class="soft">not compared</span>`}
          <a href=${link(`/jobs/${entry.jobId}/pages/${entry.pageId}`)}>Open</a>
          ${entry.tracked.previousScrapeAt
            ? html`<span class="soft">compared with <${Time} at=${entry.tracked.previousScrapeAt} /></span>` : null}</div>
          ${entry.tracked.diff ? html`<${Diff} text=${textOfDiff(entry.tracked.diff)} />` : null}</div></li>`)}</ol>
    ${whole ? null : html`<p class="hint">Older scrapes of the site were not looked through.</p>`}`;
}

const TONES = { changed: "busy", removed: "bad", new: "good", same: "good" };
