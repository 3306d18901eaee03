// Is it healthy, what does it do, what goes wrong: live figures on top, the last hour, day or week below.
import { html, cls, useEffect, useMemo, useRef } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { useStream } from "../lib/stream.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import { explain } from "../lib/words.js";
import * as format from "../lib/format.js";
import { Card, Empty, Head, Loading, RowAddress, Segments, Status, Time, Trouble } from "../parts/basics.js";
import { Chart, Spark } from "../parts/chart.js";
import { Table } from "../parts/table.js";
import { ProgressCell } from "./jobs.js";

const RANGES = [["hour", "Hour"], ["day", "Day"], ["week", "Week"]];
const SINCE = { hour: "1h", day: "24h", week: "168h" };
const ERROR_COLORS = ["c5", "c2", "c4", "c7", "c8", "c6"];

export default function Overview() {
  const [query, change] = useQuery();
  const range = RANGES.some(([name]) => name === query.range) ? query.range : "hour";
  const overview = useData((signal) => get("/overview", { range }, signal), [range],
    // Figures are written once a minute.
    { every: 30_000 });
  const it = overview.data;
  // The live figures change every second; what is below them is drawn when it was read anew.
  const below = useMemo(() => html`${!it ? (overview.error ? null : html`<${Card}><${Loading} rows=${6} /><//>`)
        : html`<${Charts} it=${it} range=${it.range} />`}
    <div class="grid-2">${it || !overview.error ? html`<${Errors} it=${it} range=${range} />` : null}<${Latest} /></div>`,
      [it, range, Boolean(overview.error)]);
  return html`<${Head} title="Overview">
      <${Segments} label="Time" at=${range} options=${RANGES}
        onChange=${(value) => change({ range: value === "hour" ? "" : value })} /><//>
    <${Trouble} error=${overview.error} retry=${overview.reload} />
    ${it ? html`<${Health} health=${it.health} />` : null}
    <${Now} overview=${it} />
    <div class=${cls("stack", overview.stale && "stale")}>${below}</div>`;
}

const WORDS = { ok: ["Healthy", ""], degraded: ["Degraded", "warn"], down: ["Down", "bad"] };

function Health({ health }) {
  const [word, tone] = WORDS[health.word] || [health.word, "warn"];
  return html`<section class=${cls("health", tone)} aria-label="Health" role="status">
      <span class="health-word">${word}</span>
    ${health.reasons.length ? html`<ul>${health.reasons.map((reason) => html`<li key=${reason}>${reason}</li>`)}</ul>`
      : html`<span class="soft">Workers are there, and nothing waits too long.</span>`}</section>`;
}

/// A minute of what the stream said, for the lines in the tiles.
function useTrail(figures) {
  const trail = useRef([]);
  useEffect(() => {
    if (!figures) return;
    const last = trail.current[trail.current.length - 1];
    if (!last || last.at !== figures.at) trail.current = [...trail.current.slice(-59), figures];
  }, [figures]);
  return trail.current;
}

/// What the tiles' lines show: the time that was chosen, and now at its end. A team has no gauges of that time: its lines
/// are of the last minute, and grow.
function useLines(overview, figures) {
  const trail = useTrail(figures);
  return useMemo(() => {
    const points = overview ? overview.points : [];
    const isGauged = points.some((point) => point.queued !== null);
    // The minute that runs is written when it is over.
    const written = points.slice(0, isGauged ? points.findLastIndex((point) => point.queued !== null) + 1 : -1);
    const seconds = points.length ? (new Date(overview.to) - new Date(overview.from)) / 1000 / points.length : 1;
    const sum = (point, of) => Object.values(point.pages).reduce((all, each) => all + of(each), 0);
    const line = (name, pick) => (isGauged ? [...written.map(pick), figures ? figures[name] : null]
      : trail.map((one) => one[name]));
    return {
      pagesPerSecond: line("pagesPerSecond", (point) => sum(point, (each) => each.done + each.failed) / seconds),
      ...Object.fromEntries(["queued", "running", "sessions", "memoryBytes"].map((name) => [name, line(name, (point) => point[name])])),
      failed: written.map((point) => sum(point, (each) => each.failed)), p50Ms: written.map((point) => point.p50Ms),
    };
  }, [overview, figures]);
}

function Now({ overview }) {
  const { figures } = useStream();
  const lines = useLines(overview, figures);
  const now = figures || {};
  const none = figures ? format.DASH : "…";
  const show = (value, say = format.short) => (value === null || value === undefined ? none : say(value));
  const all = seesAll() && !store.value.team;
  const share = overview && overview.totals.pages ? format.percent(overview.totals.failed,
    overview.totals.pages) : format.DASH;
  const late = now.oldestMs > 300_000 ? "bad" : now.oldestMs > 60_000 ? "warn" : "";
  return html`<div class="tiles" aria-label="Now">
    ${all ? html`<${Tile} name="Pages a second" value=${show(now.pagesPerSecond, format.decimal)}
          note=${now.failedPerSecond ? `${format.decimal(now.failedPerSecond)} failed` : ""}
            line=${lines.pagesPerSecond} />` : null}
    <${Tile} name="Waiting" href=${link("/jobs", { status: "scraping" })} value=${show(now.queued)} exact=${now.queued}
      note=${now.oldestMs ? `oldest ${format.duration(now.oldestMs)}` : ""} line=${lines.queued} tone=${late} />
    <${Tile} name="In work" value=${show(now.running)}
      note=${now.slots ? `of ${format.count(now.slots)} slots` : now.jobs !== undefined && now.jobs !== null ? `in ${format.plural(now.jobs,
                "job")}` : ""} line=${lines.running} />
    <${Tile} name="Failed" href=${link("/failures", { since: SINCE[overview ? overview.range : "hour"] })}
      value=${overview ? share : none}
        note=${overview ? `${format.count(overview.totals.failed)} of ${format.count(overview.totals.pages)}` : ""}
          line=${lines.failed} color="c5" />
    <${Tile} name="Half of pages take" value=${overview ? format.duration(overview.totals.p50Ms) : none}
      note=${overview ? `95 % in ${format.duration(overview.totals.p95Ms)}` : ""} line=${lines.p50Ms} />
    <${Tile} name="Sessions" href=${link("/sessions")} value=${show(now.sessions)}
      note=${now.browsers !== null && now.browsers !== undefined ? format.plural(now.browsers, "page browser") : ""}
        line=${lines.sessions} />
    ${all ? html`<${Tile} name="Memory" href=${link("/workers")} value=${show(now.memoryBytes, format.bytes)}
          note=${now.workers ? format.plural(now.workers.filter((worker) => worker.state !== "dead").length,
                "worker") : ""} line=${lines.memoryBytes}
                  tone=${now.workers && !now.workers.some((worker) => worker.state === "live") ? "bad" : ""} />` : null}
  </div>`;
}

function Tile({ name, value, exact, note, line, color, href, tone }) {
  const body = html`<span class="tile-name">${name}</span>
    <span class="tile-value" title=${exact !== undefined && exact !== null ? format.count(exact) : undefined}>${value}
      </span><span class="tile-note">${note}</span><${Spark} values=${line} color=${color} />`;
  return href ? html`<a class=${cls("tile", tone)} href=${href}>${body}</a>`
    : html`<div class=${cls("tile", tone)}>${body}</div>`;
}

function Charts({ it, range }) {
  const from = new Date(it.from).getTime();
  const to = new Date(it.to).getTime();
  const at = (point) => new Date(point.at).getTime();
  // Whatever else pages come from counts as other: the cache, maps, files, and what was tried with no engine.
  const sum = (point, what, which = () => true) => Object.entries(point.pages)
    .reduce((sum, [name, of]) => sum + (which(name) ? of[what] : 0), 0);
  const isOther = (name) => name !== "http" && name !== "browser";
  const other = it.points.some((point) => sum(point, "done", isOther));
  const pages = it.points.map((point) => ({ at: at(point), values: [sum(point, "done", (name) => name === "http"),
    sum(point, "done", (name) => name === "browser"), ...(other ? [sum(point, "done", isOther)] : []),
    sum(point, "failed")] }));
  const codes = Object.entries(it.totals.errors).sort((a, b) => b[1] - a[1]).map(([code]) => code).slice(0, 6);
  const unit = { hour: "a minute", day: "in 15 minutes", week: "in 2 hours" }[range];
  const gauges = it.points.some((point) => point.queued !== null);
  const whole = { from, to };
  return html`<div class="grid-2">
    <${Chart} title="Pages" note=${unit} kind="stack" integers ...${whole} points=${pages} sayExact=${format.count}
      series=${[{ name: "HTTP", color: "c1" }, { name: "Browser", color: "c3" },
            ...(other ? [{ name: "Cache and others", color: "c6" }] : []), { name: "Failed", color: "c5" }]} />
    <${Chart} title="Time a page takes" ...${whole}
      points=${it.points.map((point) => ({ at: at(point), values: [point.p50Ms, point.p95Ms] }))} say=${format.duration} lengths
        series=${[{ name: "Half (p50)", color: "c1" }, { name: "95 % (p95)", color: "c2" }]} />
    <${Chart} title="Failures" note=${unit} kind="stack" integers ...${whole}
      points=${it.points.map((point) => ({ at: at(point), values: codes.map((code) => point.errors[code] || 0) }))}
        sayExact=${format.count} series=${codes.length ? codes.map((code,
                i) => ({ name: code, color: ERROR_COLORS[i] })) : [{ name: "None", color: "c6" }]} />
    ${gauges ? html`<${Chart} title="Queue" ...${whole} integers
          points=${it.points.map((point) => ({ at: at(point), values: [point.queued, point.running] }))}
            sayExact=${format.count} series=${[{ name: "Waiting", color: "c2" }, { name: "In work", color: "c1" }]} />
    <${Chart} title="Oldest waiting page" ...${whole}
      points=${it.points.map((point) => ({ at: at(point), values: [point.oldestMs] }))} say=${format.duration} lengths
        series=${[{ name: "Waits", color: "c4" }]} />
    <${Chart} title="Memory of workers" ...${whole}
      points=${it.points.map((point) => ({ at: at(point), values: [point.memoryBytes] }))} say=${format.bytes} binary
        series=${[{ name: "Memory", color: "c3" }]} />
    <${Chart} title="Browsers and sessions" ...${whole} integers
      points=${it.points.map((point) => ({ at: at(point), values: [point.browsers, point.sessions] }))}
        sayExact=${format.count} series=${[ { name: "Page browsers", color: "c3" },
              { name: "Sessions", color: "c2" }]} />` : null}
    <${Chart} title="Credits" note=${unit} kind="stack" integers ...${whole}
      points=${it.points.map((point) => ({ at: at(point), values: [point.credits] }))} sayExact=${format.count}
        series=${[{ name: "Credits", color: "c8" }]} />
  </div>`;
}

function Errors({ it, range }) {
  const rows = it ? Object.entries(it.totals.errors).map(([code, count]) => ({ code, count })).sort((a,
      b) => b.count - a.count) : undefined;
  return html`<${Card} title="Why pages failed" flush
      actions=${html`<a class="button small" href=${link("/failures", { since: SINCE[range] })}>All failures</a>`}>
    <${Table} label="Why pages failed" rows=${rows} id=${(row) => row.code}
      empty=${html`<${Empty} title="Nothing failed" />`} columns=${[
    { name: "Reason", cell: (row) => html`
        <a class="row-link wrap-any" href=${link("/failures", { since: SINCE[range], code: row.code })}>
          ${row.code || "Without a code"}</a><div class="row-sub">${(explain(row.code) || {}).what || ""}</div>` },
    { name: "Pages", numeric: true, cell: (row) => format.count(row.count) },
    { name: "Of all", numeric: true, hide: "narrow", cell: (row) => format.percent(row.count, it.totals.pages) },
  ]} /><//>`;
}

function Latest() {
  const jobs = useData(async (signal) => (await get("/jobs", { limit: 8 }, signal)).jobs, [], { every: 30_000 });
  return html`<${Card} title="Latest jobs" flush
      actions=${html`<a class="button small" href=${link("/jobs")}>All jobs</a>`}>
    <${Table} label="Latest jobs" rows=${jobs.data} error=${jobs.error} retry=${jobs.reload} id=${(job) => job.id}
      empty=${html`<${Empty} title="There are no jobs yet"
            action=${mayChange() ? html`<a class="button primary"
                  href=${link("/playground")}>Open the playground</a>` : null}>Scrape a first page in the playground.<//>`}
                    columns=${[
    { name: "Job", kind: "lead", cell: (job) => html`
        <${RowAddress} href=${link(`/jobs/${job.id}`)} url=${job.target} />
        <span class="row-sub">${job.kind} · <${Time} at=${job.createdAt} /></span>` },
    { name: "Status", kind: "tight", cell: (job) => html`<${Status} value=${job.status} />` },
    { name: "Pages", hide: "narrow", kind: "narrow", cell: (job) => html`<${ProgressCell} job=${job} brief />` },
  ]} /><//>`;
}
