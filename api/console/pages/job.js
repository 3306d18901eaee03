// One job: how far it is, what it was asked, its pages and their errors, what was told to its webhook.
import { html, cls, useEffect, useRef, useState } from "../lib/ui.js";
import { get, post } from "../lib/api.js";
import { go, link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { usePages } from "../lib/pager.js";
import { throughAll } from "../lib/bulk.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import { explain, kindName } from "../lib/words.js";
import { operation } from "../lib/operations.js";
import { operationOf, snippets } from "../lib/snippets.js";
import * as format from "../lib/format.js";
import { Button, Card, Confirm, Empty, Facts, Head, Id, Lasting, Loading, Outside, Progress, RowAddress, Segments, Status, Tabs, Tag, Time, Trouble, Typed } from "../parts/basics.js";
import { Code, Json } from "../parts/code.js";
import { Result, Steps } from "../parts/steps.js";
import { Download, hasResults, listOfPages, results } from "../parts/download.js";
import { Table } from "../parts/table.js";
import { ACTIONS } from "../parts/bulk.js";
import { NotKept, playgroundLink, withoutWebhook } from "./playground.js";

export default function Job({ one }) {
  const [query, change] = useQuery();
  const [ended, setEnded] = useState(false);
  const job = useData(async (signal) => {
    const found = await get(`/jobs/${encodeURIComponent(one)}`, {}, signal);
    setEnded(found.status !== "scraping");
    return found;
  }, [one], { every: ended ? 10_000 : 1500 });
  const [asking, ask] = useState(null);
  // The id of a page leads to the page: its callers know a scrape by it.
  const found = job.data && job.data.id !== one ? job.data : null;
  useEffect(() => {
    if (found) go(link(found.page ? `/jobs/${found.id}/pages/${found.page}` : `/jobs/${found.id}`), { replace: true });
  }, [found]);
  if (job.error && !job.data) return html`<${Head} title="Job" back=${{ href: link("/jobs"), label: "Jobs" }} />
    <${Trouble} error=${job.error} retry=${job.reload} />`;
  if (!job.data || found) return html`<${Head} title="Job" back=${{ href: link("/jobs"), label: "Jobs" }} />
    <${Card}><${Loading} rows=${6} /><//>`;
  const it = job.data;
  const isTask = it.kind === "agent" || it.kind === "extract";
  const first = isTask ? "result" : "pages";
  const tab = query.tab || first;
  const failed = it.failed > 0;
  const run = async () => {
    const sum = await throughAll(`/jobs/${asking}`, { ids: [one] });
    if (asking === "delete") {
      store.notify("The job and its results are gone.");
      go(link("/jobs"));
      return;
    }
    store.notify(asking === "replay" ? `${format.plural(sum.pages,
              "page")} put back.` : sum.done ? "The job is cancelled." : "The job had ended already.");
    job.reload();
  };
  return html`<${Head} title=${it.target || "Job"} back=${{ href: link("/jobs"), label: "Jobs" }}
      note=${html`<${Tag}>${kindName(it.kind)}<//><${Status} value=${it.status} />`}>
      ${mayChange() ? html`
        ${it.status === "scraping" ? html`<${Button} icon="cancel" onClick=${() => ask("cancel")}>Cancel<//>` : null}
        ${failed && it.status !== "cancelled"
          ? html`<${Button} icon="replay" onClick=${() => ask("replay")}>Replay failed<//>` : null}
        <${Button} icon="trash" kind="danger-quiet" onClick=${() => ask("delete")}>Delete<//>` : null}
    <//>
    ${job.error ? html`<${Trouble} error=${job.error} />` : null}
    <${Card}><div class="stack">
      <${Flow} job=${it} />
      ${it.total > 1 || it.status === "scraping"
        ? html`<div class="progress-cell">
            <${Progress} done=${it.completed + it.failed} failed=${it.failed} total=${it.total} />
        <div class="progress-words">
          <span>${it.status === "cancelled" ? `${format.plural(it.total, "page")} had ended when it was cancelled`
            : `${format.count(it.completed + it.failed)} of ${format.plural(it.total, "page")}`}</span>
          <span>${it.status === "scraping" && it.rate !== null ? `${format.decimal(it.rate)} pages/s${it.leftMs !== null ? `, ${format.duration(it.leftMs)} left` : ""}` : ""}
            </span></div></div>` : null}
      <${Facts} items=${[
    ["Id", html`<${Id} id=${it.id} />`],
    seesAll() && it.team ? ["Team", it.team.name] : null,
    ["Started", html`<${Time} at=${it.createdAt} />`],
    ["Took", html`<${Lasting} from=${it.createdAt} to=${it.finishedAt} />`],
    ["Credits", html`<span class="num">${format.count(it.creditsUsed)}</span>`],
    ["Results expire", html`<${Time} at=${it.expiresAt} />`],
    it.key ? ["Key", html`${it.key.name || ""} <code>${it.key.prefix}…</code>`] : null,
    it.origin ? ["Called by", it.origin] : null,
    it.maxConcurrency ? ["Pages at once", format.count(it.maxConcurrency)] : null,
    it.zeroRetention ? ["Retention", html`<${Tag} tone="good">nothing is kept<//>`] : null,
    it.crawl ? ["Addresses found", format.count(it.crawl.discovered)] : null,
    it.crawl ? ["Most pages", format.count(it.crawl.limit)] : null,
    it.crawl && it.crawl.blocked ? ["Forbidden by robots.txt", format.count(it.crawl.blocked)] : null,
  ]} />
      ${it.crawl && it.crawl.warning ? html`<p class="banner warn">${it.crawl.warning}</p>` : null}
    </div><//>
    <${Card}>
      <${Tabs} label="About the job" at=${tab} onChange=${(id) => change({ tab: id === first ? "" : id, status: "", url: "" })}
        tabs=${[
    isTask ? { id: "result", label: "Result" } : null,
    it.kind === "agent" ? { id: "steps", label: "Steps" } : null,
    { id: "pages", label: "Pages", count: it.total }, { id: "request", label: "Request" },
    it.webhook ? { id: "webhooks", label: "Webhooks" } : null,
  ].filter(Boolean)}>
        ${tab === "result" ? html`<${Result} job=${it} ended=${ended} />`
          : tab === "steps" ? html`<${Steps} job=${it} ended=${ended} />`
          : tab === "request" ? html`<${Request} job=${it} />` : tab === "webhooks" ? html`<${Webhooks} job=${it} />`
          : html`<${Pages} job=${it} ended=${ended} status=${query.status} url=${query.url} onChange=${change} />`}
      <//>
    <//>
    ${asking ? html`<${Confirm}
          title=${asking === "replay" ? `Replay ${format.plural(it.failed,
                    "failed page")}?` : `${ACTIONS[asking].verb} this job?`} verb=${ACTIONS[asking].verb}
                      danger=${ACTIONS[asking].danger} run=${run} onClose=${() => ask(null)}>
                        <p>${ACTIONS[asking].says}</p><//>` : null}`;
}

/// The states of a job, drawn: where it is, and how many of its pages stand in each.
function Flow({ job }) {
  const { states } = job;
  const over = job.status !== "scraping";
  const cancelled = job.status === "cancelled"
    ? Math.max(0, job.total - states.queued - states.running - states.done - states.failed) : 0;
  const steps = [
    { name: "Queued", count: states.queued, tone: states.queued ? "now" : "done" },
    { name: "Running", count: states.running,
      tone: states.running ? "now" : over || states.done + states.failed ? "done" : "" },
    { name: "Done", count: states.done, tone: states.done ? "done" : "" },
    { name: "Failed", count: states.failed, tone: states.failed ? "bad" : "" },
    cancelled ? { name: "Not done", count: cancelled, tone: "idle" } : null,
    { name: over ? job.status.charAt(0).toUpperCase() + job.status.slice(1) : "Ends", count: null,
      tone: over ? { completed: "done", failed: "bad", cancelled: "idle" }[job.status] : "" },
  ].filter(Boolean);
  return html`<ol class="flow" aria-label="States of its pages">
      ${steps.map((step) => html`
            <li key=${step.name} class=${step.tone}><strong>${step.name}</strong>
              <span class="soft num">${step.count === null ? (job.finishedAt
                    ? html`<${Time} at=${job.finishedAt} />` : "when all are") : format.plural(step.count, "page")}
                      </span></li>`)}</ol>`;
}

const STATES = ["queued", "running", "done", "failed", "cancelled"];

/// Jobs with fewer pages are looked through by eye.
const SEARCHED = 10;

function Pages({ job, ended, status, url, onChange }) {
  const list = usePages(async (cursor, signal) => {
    const answer = await get(`/jobs/${job.id}/pages`, { status, url, cursor, limit: 50 }, signal);
    return { rows: answer.pages, next: answer.next };
  }, [job.id, status, url], { every: ended ? 0 : 2500 });
  // Nothing is read as time passes once the job has ended, so its end is read, and what was replayed afterwards.
  const before = useRef(ended);
  useEffect(() => {
    if (before.current !== ended) list.reload();
    before.current = ended;
  }, [ended]);
  // Cancelled pages are not counted.
  const shown = STATES.filter((one) => job.states[one] || one === status || (one === "cancelled" && job.status === one));
  return html`<div class="stack-s">
    <div class="pane-tools">
      <${Segments} label="State of pages" at=${status || ""} onChange=${(value) => onChange({ status: value })}
        options=${[["", "All"], ...shown.map((one) => [one,
          `${one.charAt(0).toUpperCase()}${one.slice(1)}${job.states[one] ? ` ${format.short(job.states[one])}` : ""}`])]} />
      ${job.total > SEARCHED || url ? html`<${Typed} label="Part of the address" placeholder="Part of the address"
            value=${url} onChange=${(value) => onChange({ url: value }, { replace: true })} />` : null}
      ${list.rows && list.rows.length ? html`<div class="actions">
        <${Download} title=${`A table of these pages for spreadsheets (CSV)${status || url ? ", those that fit the filter" : ""}`}
          make=${(signal, onCount) => listOfPages(job, { status, url }, signal, onCount)}>List<//>
        ${hasResults(job) ? html`<${Download} title="What came of all pages, a document a line (JSON Lines)"
          make=${(signal, onCount) => results(job, signal, onCount)}>Results<//>` : null}</div>` : null}</div>
    <${Table} label="Pages of the job" ...${list} retry=${list.reload} id=${(page) => page.id}
      empty=${html`<${Empty} title=${url ? "No page has this in its address" : "No pages in this state"} />`} columns=${[
    { name: "No.", kind: "tight", numeric: true, hide: "narrow", cell: (page) => format.count(page.index + 1) },
    { name: "Page", kind: "lead", cell: (page) => html`
        <${RowAddress} href=${link(`/jobs/${job.id}/pages/${page.id}`)} url=${page.url} />${page.code || page.error
          ? html`<span class="row-sub" title=${page.error}>${(explain(page.code) || {}).what || page.error}
              </span>` : null}` },
    { name: "State", kind: "tight", cell: (page) => html`<${Status} value=${page.status} />` },
    { name: "Error", kind: "tight", hide: "medium", cell: (page) => (page.code
        ? html`<${Tag} tone="bad"><code>${page.code}</code><//>` : "") },
    { name: "Tries", numeric: true, hide: "medium", cell: (page) => format.count(page.claims) },
    { name: "Took", numeric: true, hide: "narrow", cell: (page) => (page.startedAt
        ? html`<${Lasting} from=${page.startedAt} to=${page.finishedAt} />` : "–") },
    { name: "Ended", kind: "tight", hide: "medium", cell: (page) => html`<${Time} at=${page.finishedAt} />` },
  ]} />
  </div>`;
}

function Request({ job }) {
  const [as, setAs] = useState("json");
  if (!job.request) return html`
    <${Empty} title="The request is not kept">It asked for zero data retention, or its results have expired.<//>`;
  const { method, path, body, hidden = [], isWhole, file } = job.request;
  // What was sent with a file cannot be sent again without it.
  const known = file ? undefined : operationOf(job.kind);
  const same = known ? snippets(known, body, { base: store.value.me.publicUrl || location.origin }) : {};
  return html`<div class="stack-s">
    <div class="pane-tools"><code><strong>${method}</strong> ${path}</code>
      <${Segments} label="As" at=${as} onChange=${setAs}
        options=${[["json", "As sent"],
              ...(known ? [["curl", "curl"], ["python", "Python"], ["javascript", "JavaScript"]] : [])]} />
      ${known && operation(known)
        ? html`<a class="button small" href=${playgroundLink(known, ...forPlayground(job))}>Open in the playground</a>`
        : null}</div>
    ${hidden.length ? html`<${NotKept} hidden=${hidden} />` : null}
    ${file ? html`<p class="banner">It came with the file <strong class="wrap-any">${file}</strong>, which is not kept.</p>`
      : null}
    ${isWhole ? null : html`<p class="banner">${job.kind === "batch" ? html`The first ${format.count(body.urls.length)} of
        ${" "}${format.plural(job.total, "address", "addresses")} are shown.`
        : "What is not kept with the pages of its hits is left out, such as sources and limit."}</p>`}
    ${as === "json" ? html`<${Json} value=${body} />`
      : html`<${Code} kind="code" text=${same[as] || ""} wrap=${false} />`}
  </div>`;
}

/// The job's call as the playground makes it, and what it has to say about it.
function forPlayground(job) {
  const { body, hidden = [], isWhole } = job.request;
  const part = !isWhole && job.kind === "batch" ? { part: body.urls.length, of: job.total } : {};
  return [withoutWebhook(body), { ...part, hidden: hidden.filter((name) => !name.startsWith("webhook.")) }];
}

function Webhooks({ job }) {
  const list = usePages(async (cursor, signal) => {
    const answer = await get(`/jobs/${job.id}/webhooks`, { cursor, limit: 50 }, signal);
    return { rows: answer.deliveries, next: answer.next };
  }, [job.id], { every: 4000 });
  const [busy, setBusy] = useState(null);
  const replay = async (id) => {
    setBusy(id || "all");
    try {
      const { done } = await post(`/jobs/${job.id}/webhooks/replay`, { id });
      store.notify(`${format.plural(done, "delivery", "deliveries")} put back.`);
      list.reload();
    } catch (error) {
      store.notify(error.message, "bad");
    }
    setBusy(null);
  };
  return html`<div class="stack-s">
    <div class="pane-tools"><span>To <${Outside} url=${job.webhook.url} /></span>
      <span class="soft">${job.webhook.events.join(", ") || "all events"}</span>
      ${(list.rows || []).some((one) => one.state === "dead") && mayChange()
        ? html`<${Button} small icon="replay" busy=${busy === "all"}
            onClick=${() => replay(null)}>Replay all that were given up<//>` : null}</div>
    <${Table} label="Deliveries" ...${list} retry=${list.reload} id=${(one) => one.id}
      empty=${html`<${Empty} title="Nothing was sent yet" />`} columns=${[
    { name: "Event", cell: (one) => html`<code>${one.event}</code>` },
    { name: "State", kind: "tight", cell: (one) => html`
        <${Status} value=${one.state} label=${one.state === "dead" ? "given up" : one.state} />` },
    { name: "Answer", cell: (one) => html`
        <div>${one.lastStatus ? html`<span class="num">HTTP ${one.lastStatus}</span>` : ""} ${one.lastError
            ? html`<span class="soft wrap-any">${one.lastError}</span>` : ""}</div>
              ${(one.tries || []).length
                ? html`<details class="tries"><summary>${format.plural(one.tries.length, "try", "tries")}</summary>
                    <ol class="timeline">${one.tries.map((attempt) => html`
                            <li class=${cls(attempt.error || attempt.status >= 400 ? "bad" : "good")}>
                              <${Time} at=${attempt.at} />
                              <span class="wrap-any">${attempt.status ? `HTTP ${attempt.status}` : ""} ${attempt.error || ""} <span
                                  class="soft num">${format.duration(attempt.durationMs)}</span></span></li>`)}</ol>
                                    </details>` : null}` },
    { name: "Created", kind: "tight", hide: "narrow", cell: (one) => html`<${Time} at=${one.createdAt} />` },
    { name: "Next try", kind: "tight", hide: "narrow", cell: (one) => (one.state !== "waiting" ? "–"
        // One by one: what may go already waits for those before it.
        : new Date(one.nextAt) < Date.now() ? html`<span class="soft">in its turn</span>` : html`<${Time} at=${one.nextAt} />`) },
    { name: "Replay", silent: true, kind: "tight buttons", cell: (one) => (one.state === "dead" && mayChange()
        ? html`<${Button} small icon="replay" busy=${busy === one.id}
            onClick=${() => replay(one.id)}>Replay<//>` : "") },
  ]} />
  </div>`;
}
