// All jobs in one list. What it shows is in the address bar; what is chosen, or what fits the filter, can be cancelled,
// replayed and deleted.
import { html, useEffect, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { usePages } from "../lib/pager.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import { KINDS, kindName } from "../lib/words.js";
import * as format from "../lib/format.js";
import { Button, Card, Empty, Head, Lasting, Progress, RowAddress, Status, Tag, Time, Typed } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { ACTIONS, BulkDialog } from "../parts/bulk.js";
import { Icon } from "../parts/icon.js";

const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
const STATUSES = ["scraping", "completed", "failed", "cancelled"];
const AGES = [["15m", "Last 15 minutes"], ["1h", "Last hour"], ["24h", "Last day"], ["168h", "Last week"]];
const KIND_NAMES = ["scrape", "batch", "crawl", "map", "search", "extract", "agent"];

export default function Jobs() {
  const [query, change] = useQuery();
  const { id, kind, status, host, since, code } = query;
  const filter = Object.fromEntries(Object.entries({ id, kind, status, host, since, code }).filter(([, value]) => value));
  const keys = [id, kind, status, host, since, code];
  const isId = !id || ID.test(id);
  const list = usePages(async (cursor, signal) => {
    if (!isId) return { rows: [], next: null };
    const answer = await get("/jobs", { ...filter, cursor, limit: 50 }, signal);
    return { rows: answer.jobs, next: answer.next };
  }, keys, { every: 4000 });
  const [chosen, choose] = useState(new Set());
  const [asking, ask] = useState(null);
  useEffect(() => choose(new Set()), keys);
  const filtered = Object.keys(filter).length > 0;
  const whole = { ...filter, ...(seesAll() && store.value.team ? { team: store.value.team } : {}) };

  return html`<${Head} title="Jobs">${mayChange() ? html`
      <a class="button primary" href=${link("/playground")}><${Icon} name="plus" /><span>New job</span></a>` : null}<//>
    <div class="filters" role="search" aria-label="Filter jobs">
      <select class="select" aria-label="Kind" value=${kind || ""}
        onChange=${(event) => change({ kind: event.target.value })}><option value="">All kinds</option>
          ${KIND_NAMES.map((one) => html`<option value=${one}>${KINDS[one]}</option>`)}</select>
      <select class="select" aria-label="Status" value=${status || ""}
        onChange=${(event) => change({ status: event.target.value })}><option value="">Any status</option>
          ${STATUSES.map((one) => html`<option value=${one}>${one}</option>`)}</select>
      <select class="select" aria-label="Age" value=${since || ""}
        onChange=${(event) => change({ since: event.target.value })}><option value="">Any age</option>
          ${AGES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
          ${since && !AGES.some(([value]) => value === since)
            ? html`<option value=${since}>Since ${since}</option>` : null}</select>
      <${Typed} label="Id" placeholder="Id of a job or scrape" value=${id} onChange=${(value) => change({ id: value })} />
      <${Typed} label="Site" placeholder="Site, such as example.com" value=${host}
        onChange=${(value) => change({ host: value })} />
      <${Typed} label="Error code" placeholder="Error code" value=${code}
        onChange=${(value) => change({ code: value })} />
      ${filtered ? html`<${Button} kind="quiet" icon="close"
            onClick=${() => change({ id: "", kind: "", status: "", host: "", since: "", code: "" })}>Clear<//>` : null}
    </div>
    ${mayChange() && list.rows && list.rows.length ? html`<div class="bulk">
      <strong>${chosen.size ? `${format.plural(chosen.size,
                "job")} chosen` : filtered ? "All that fit the filter" : "All jobs"}</strong>
      ${Object.entries(ACTIONS).map(([action, words]) => html`
            <${Button} key=${action} small icon=${{ cancel: "cancel", replay: "replay", delete: "trash" }[action]}
              onClick=${() => ask(action)}>${words.verb}<//>`)}
      ${chosen.size ? html`<${Button} small kind="quiet" onClick=${() => choose(new Set())}>Choose none<//>` : null}
    </div>` : null}
    <${Card} flush>
      <${Table} label="Jobs" ...${list} retry=${list.reload} id=${(job) => job.id}
        selection=${mayChange() ? chosen : undefined} onSelect=${choose}
        empty=${!isId ? html`<${Empty} title="This is no whole id">Ids have 36 characters, such as
            0197f2a0-3c5e-7cc1-b1a5-0e7d1c2b3a4f: the button beside a short one copies all of it.<//>`
          : filtered ? html`<${Empty} title="No job fits the filter" />`
          : html`<${Empty} title="There are no jobs yet"
              action=${mayChange() ? html`<a class="button primary"
                    href=${link("/playground")}>Open the playground</a>` : null}>Whatever is scraped, crawled or mapped shows up here.<//>`}
        columns=${columns()} />
    <//>
    ${asking ? html`<${BulkDialog} action=${asking} ids=${chosen.size ? [...chosen] : undefined} filter=${whole}
          onClose=${() => ask(null)} onDone=${() => {
    choose(new Set());
    list.reload();
  }} />` : null}`;
}

export function ProgressCell({ job, brief }) {
  const ended = job.completed + job.failed;
  const pace = job.status === "scraping" && job.rate !== null
    && job.rate !== undefined ? `${format.decimal(job.rate)}/s${job.leftMs !== null && job.leftMs !== undefined ? `, ${format.duration(job.leftMs)} left` : ""}` : "";
  return html`<div class="progress-cell"><${Progress} done=${ended} failed=${job.failed} total=${job.total} />
    <div class="progress-words"><span class="num">${format.count(ended)} of ${format.count(job.total)}</span>
      <span class="num">${brief ? "" : job.failed
          ? html`${pace ? `${pace} · ` : ""}${format.count(job.failed)} failed` : pace}</span></div></div>`;
}

function columns() {
  return [
    { name: "Job", kind: "lead",
      cell: (job) => html`<${RowAddress} href=${link(`/jobs/${job.id}`)} url=${job.target} />
            <span class="row-sub"><span class="only-narrow num">
                ${format.count(job.completed + job.failed)} of ${format.count(job.total)} · </span>
                  <code>${format.shortId(job.id)}</code>
                  ${seesAll() && !store.value.team && job.team ? ` · ${job.team.name}` : ""}</span>` },
    { name: "Kind", hide: "narrow", kind: "tight", cell: (job) => html`<${Tag}>${kindName(job.kind)}<//>` },
    { name: "Status", kind: "tight", cell: (job) => html`<${Status} value=${job.status} />` },
    { name: "Pages", hide: "narrow", cell: (job) => html`<${ProgressCell} job=${job} />` },
    { name: "Credits", numeric: true, hide: "medium", cell: (job) => format.count(job.creditsUsed) },
    { name: "Took", numeric: true, hide: "medium",
      cell: (job) => html`<${Lasting} from=${job.createdAt} to=${job.finishedAt} />` },
    { name: "Started", kind: "tight", hide: "narrow", cell: (job) => html`<${Time} at=${job.createdAt} />` },
  ];
}
