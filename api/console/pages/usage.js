// What a team used: credits by day, kind and key, model tokens by month, and how near it is to its limits. Operators who
// look at all teams see what each used first.
import { html, useMemo } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { kindName } from "../lib/words.js";
import { csv } from "../lib/download.js";
import * as format from "../lib/format.js";
import { Card, Empty, Head, Loading, Segments, Trouble } from "../parts/basics.js";
import { Chart, Meter } from "../parts/chart.js";
import { Download } from "../parts/download.js";
import { Table } from "../parts/table.js";
import { useActing } from "../parts/team.js";

const COLORS = ["c1", "c2", "c3", "c4", "c7", "c8", "c6"];
const DAY = 86_400_000;
const KINDS = { batch_scrape: "Batch", browser_execute: "Browser" };
const nameOfKind = (kind) => KINDS[kind] || kindName(kind);

export default function Usage() {
  const [query, change] = useQuery();
  const days = ["7", "30", "90"].includes(query.days) ? query.days : "30";
  const by = query.by === "key" ? "key" : "kind";
  const acting = useActing(query.team, (team) => change({ team }), "What this team used by kind and key, and its limits.");
  const usage = useData((signal) => (acting.id ? get("/usage", { days, ...acting.query },
        signal) : Promise.resolve(null)), [days, acting.id], { every: 30_000 });
  const head = html`<${Head} title="Usage">
      <${Segments} label="Days" at=${days} options=${[["7", "7 days"], ["30", "30 days"], ["90", "90 days"]]}
        onChange=${(value) => change({ days: value === "30" ? "" : value })} /><//>
    ${acting.field ? html`<${Card}><div class="form">${acting.field}</div><//>` : null}`;
  if (!acting.id) return html`${head}<${OfTeams} days=${Number(days)} />`;
  if (usage.error) return html`${head}<${Trouble} error=${usage.error} retry=${usage.reload} />`;
  if (!usage.data) return html`${head}<${Card}><${Loading} rows=${6} /><//>`;
  return html`${head}<${Shown} usage=${usage.data} days=${Number(days)} by=${by}
      onBy=${(value) => change({ by: value === "kind" ? "" : value })} />`;
}

/// What goes into a file of credits: a line for each day and thing that used any.
const fileOf = (list, field, of, nameOf) => ({ name: `credits-by-${of}.csv`, type: "text/csv",
  parts: [csv([["day", of, "credits"], ...list.flatMap((day) => Object.entries(day[field] || {})
    .map(([id, credits]) => [day.day, nameOf(id), credits]))])] });

const CREDITS_FILE = "Credits of each day as a table for spreadsheets (CSV)";

/// All teams beside each other.
function OfTeams({ days }) {
  const usage = useData((signal) => get("/usage/teams", { days }, signal), [days], { every: 60_000 });
  const shown = useMemo(() => usage.data && byDay(usage.data.days, days, "byTeam"), [usage.data, days]);
  if (usage.error && !usage.data) return html`<${Trouble} error=${usage.error} retry=${usage.reload} />`;
  if (!shown) return html`<${Card}><${Loading} rows=${6} /><//>`;
  const nameOf = (id) => usage.data.teams[id] || format.shortId(id);
  const { series, points, rows, total } = shown;
  return html`<${Trouble} error=${usage.error} retry=${usage.reload} />
    <${Chart} title="Credits by day" note="days of UTC, all teams" kind="stack" integers daily points=${points}
      series=${series.map((id, at) => ({ name: id === "*" ? "Others" : rows.length ? nameOf(id) : "All teams", color: COLORS[at] }))}
        sayExact=${format.count} />
    <${Card} title="Credits by team" flush actions=${rows.length ? html`<${Download} title=${CREDITS_FILE}
        make=${async () => fileOf(usage.data.days, "byTeam", "team", nameOf)}>CSV<//>` : null}>
      <${Table} label="Credits by team" rows=${rows} id=${(row) => row.id}
        empty=${html`<${Empty} title="Nothing was used in this time" />`} columns=${[
    { name: "Team", kind: "lead", cell: (row) => html`<a class="row-link"
        href=${link("/usage", { team: row.id, days: days === 30 ? "" : days })}>${nameOf(row.id)}</a>` },
    { name: "Credits", numeric: true, cell: (row) => format.count(row.sum) },
    { name: "Share", numeric: true, cell: (row) => format.percent(row.sum, total) },
  ]} /><//>`;
}

function Shown({ usage, days, by, onBy }) {
  const keyName = (id) => {
    const key = usage.keys[id];
    return key ? key.name || `${key.prefix}…` : id ? format.shortId(id) : "Without a key";
  };
  const nameOf = by === "key" ? keyName : nameOfKind;
  const { series, points, rows, total } = useMemo(() => byDay(usage.days, days, by === "key" ? "byKey" : "byKind"),
    [usage, days, by]);
  const { balance } = usage;
  return html`
    <div class="tiles">
      <${Tile} name=${`Credits in ${days} days`} value=${total} />
      <${Tile} name="Credits in all" value=${balance.used} />
      ${balance.left === null ? null
        : html`<${Tile} name="Credits left" value=${balance.left}
            note=${`of ${format.count(balance.granted)} granted`} />`}
      ${balance.reserved ? html`
          <${Tile} name="Reserved" value=${balance.reserved} note="by what is open now" />` : null}
    </div>
    <${Chart} title="Credits by day" note="days of UTC" kind="stack" integers daily points=${points}
      series=${series.map((id, at) => ({ name: id === "*" ? "Others" : nameOf(id), color: COLORS[at] }))}
        sayExact=${format.count} />
    <div class="grid-2">
      <${Card} title="Where credits went" flush
        actions=${html`<${Segments} label="Credits by" at=${by} options=${[["kind", "By kind"], ["key", "By key"]]}
              onChange=${onBy} />${rows.length ? html`<${Download} title=${CREDITS_FILE}
                  make=${async () => fileOf(usage.days, by === "key" ? "byKey" : "byKind", by, nameOf)}>CSV<//>` : null}`}>
        <${Table} label="Credits" rows=${rows} id=${(row) => row.id}
          empty=${html`<${Empty} title="Nothing was used in this time" />`} columns=${[
    { name: by === "key" ? "Key" : "Kind", cell: (row) => nameOf(row.id) },
    { name: "Credits", numeric: true, cell: (row) => format.count(row.sum) },
    { name: "Share", numeric: true, cell: (row) => format.percent(row.sum, total) },
  ]} /><//>
      <${Card} title="Limits"><div class="stack">
          ${usage.limits.length ? usage.limits.map((limit) => html`
                <${Meter} key=${limit.name} label=${limitName(limit.name)} used=${limit.used} limit=${limit.limit} />`)
                  : html`<${Empty} title="There are no limits" />`}</div><//>
    </div>
    <${Card} title="Model tokens" note="by month" flush>
      <${Table} label="Model tokens" rows=${usage.tokens} id=${(row) => `${row.month} ${row.keyId}`}
        empty=${html`<${Empty} title="No language model was used" />`} columns=${[
    { name: "Month", cell: (row) => row.month },
    { name: "Key", cell: (row) => keyName(row.keyId || "") },
    { name: "Sent", numeric: true, cell: (row) => format.count(row.sent) },
    { name: "Received", numeric: true, cell: (row) => format.count(row.received) },
  ]} /><//>`;
}

const LIMITS = { concurrency: "Pages at once", sessions: "Browser sessions", queue: "Pages waiting" };
const limitName = (name) => LIMITS[name] || (name.startsWith("rate:") ? `${name.slice(5)} requests this minute` : name);

/// Days without use are there, too: a chart without them would lie about time.
function byDay(list, days, field) {
  const sums = new Map();
  for (const day of list) for (const [id, credits] of Object.entries(day[field] || {})) sums.set(id,
    (sums.get(id) || 0) + credits);
  const rows = [...sums].map(([id, sum]) => ({ id, sum })).sort((a, b) => b.sum - a.sum);
  const named = rows.slice(0, rows.length > 6 ? 5 : 6).map((row) => row.id);
  const series = rows.length > named.length ? [...named, "*"] : named;
  const found = new Map(list.map((day) => [day.day, day]));
  const today = Math.floor(Date.now() / DAY) * DAY;
  const points = Array.from({ length: days }, (_, i) => {
    const at = today - (days - 1 - i) * DAY;
    const day = found.get(new Date(at).toISOString().slice(0, 10));
    const of = (day && day[field]) || {};
    const others = Object.entries(of).reduce((sum, [id, credits]) => sum + (named.includes(id) ? 0 : credits), 0);
    return { at: at + DAY / 2, values: series.map((id) => (id === "*" ? others : of[id] || 0)) };
  });
  return { series: series.length ? series : ["scrape"], points, rows,
    total: rows.reduce((sum, row) => sum + row.sum, 0) };
}

function Tile({ name, value, note }) {
  return html`<div class="tile"><span class="tile-name">${name}</span>
      <span class="tile-value" title=${format.count(value)}>${format.short(value)}</span>
      <span class="tile-note">${note || ""}</span></div>`;
}
