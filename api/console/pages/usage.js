// What a team used: credits by day, kind and key, model tokens by month, and how near it is to its limits.
import { html, useMemo } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { kindName } from "../lib/words.js";
import * as format from "../lib/format.js";
import { Card, Empty, Head, Loading, Segments, Trouble } from "../parts/basics.js";
import { Chart, Meter } from "../parts/chart.js";
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
  const acting = useActing(query.team, (team) => change({ team }));
  const usage = useData((signal) => (acting.id ? get("/usage", { days, ...acting.query },
        signal) : Promise.resolve(null)), [days, acting.id], { every: 30_000 });
  const head = html`<${Head} title="Usage">
      <${Segments} label="Days" at=${days} options=${[["7", "7 days"], ["30", "30 days"], ["90", "90 days"]]}
        onChange=${(value) => change({ days: value === "30" ? "" : value })} /><//>
    ${acting.field ? html`<${Card}><div class="form">${acting.field}</div><//>` : null}`;
  if (!acting.id) return head;
  if (usage.error) return html`${head}<${Trouble} error=${usage.error} retry=${usage.reload} />`;
  if (!usage.data) return html`${head}<${Card}><${Loading} rows=${6} /><//>`;
  return html`${head}<${Shown} usage=${usage.data} days=${Number(days)} by=${by}
      onBy=${(value) => change({ by: value === "kind" ? "" : value })} />`;
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
              onChange=${onBy} />`}>
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
