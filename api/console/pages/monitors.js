// Monitors: what is looked at, how often, and what the last look found.
import { html, useState } from "../lib/ui.js";
import { callOk } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { usePages } from "../lib/pager.js";
import { mayChange, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button, Card, Empty, Head, Status, Time } from "../parts/basics.js";
import { Found, targetsOf } from "../parts/monitor.js";
import { Icon } from "../parts/icon.js";
import { Table } from "../parts/table.js";
import { useActing } from "../parts/team.js";

const PIECE = 25;

export default function Monitors() {
  const [query, change] = useQuery();
  const acting = useActing(query.team, (team) => change({ team }), "Whose monitors are shown.");
  const list = usePages(async (cursor, signal) => {
    if (!acting.id) return { rows: [], next: undefined };
    const offset = cursor || 0;
    const answer = await callOk("GET", "/v2/monitor", { query: { offset, limit: PIECE, ...acting.query }, signal });
    return { rows: answer.data, next: answer.data.length === PIECE ? offset + PIECE : undefined };
  }, [acting.id], { every: 10_000 });
  const [busy, setBusy] = useState("");
  const run = async (monitor) => {
    setBusy(monitor.id);
    try {
      await callOk("POST", `/v2/monitor/${monitor.id}/run`, { body: {}, query: acting.query });
      store.notify(`${monitor.name} is looked at now.`);
      list.reload();
    } catch (failure) {
      store.notify(failure.message, "bad");
    }
    setBusy("");
  };
  const head = html`<${Head} title="Monitors">${mayChange() ? html`
    <a class="button primary" href=${link("/playground/monitor")}><${Icon} name="plus" /><span>New monitor</span></a>`
      : null}<//>
    ${acting.field ? html`<${Card}><div class="form">${acting.field}</div><//>` : null}`;
  if (!acting.id) return head;
  return html`${head}
    <${Card} flush><${Table} label="Monitors" ...${list} retry=${list.reload} id=${(monitor) => monitor.id}
      empty=${html`<${Empty} title="Nothing is monitored">A monitor looks at pages, sites or searches by a schedule, and
        tells what has changed.<//>`} columns=${[
    { name: "Monitor", kind: "lead", cell: (monitor) => html`
        <a class="row-link" href=${link(`/monitors/${monitor.id}`, acting.link)}>${monitor.name}</a>
        <span class="row-sub">${targetsOf(monitor)}</span>` },
    { name: "State", kind: "tight", cell: (monitor) => html`<${Status} value=${monitor.status} />` },
    { name: "Schedule", kind: "tight", hide: "medium", cell: (monitor) => html`
        <code>${monitor.schedule.cron}</code> <span class="soft">${monitor.schedule.timezone}</span>` },
    { name: "Last found", hide: "narrow", cell: (monitor) => html`<${Found} summary=${monitor.lastCheckSummary} />` },
    { name: "Last", kind: "tight", hide: "narrow", cell: (monitor) => html`
        <${Time} at=${monitor.lastRunAt} fallback="never" />` },
    { name: "Next", kind: "tight", hide: "narrow", cell: (monitor) => (monitor.currentCheckId ? "now"
        : html`<${Time} at=${monitor.nextRunAt} fallback="–" />`) },
    { name: "Credits a month", numeric: true, hide: "medium",
      cell: (monitor) => format.count(monitor.estimatedCreditsPerMonth) },
    { name: "Change", silent: true, kind: "tight buttons", cell: (monitor) => (mayChange() ? html`
        <${Button} small busy=${busy === monitor.id} disabled=${Boolean(monitor.currentCheckId)}
          onClick=${() => run(monitor)}>Run<//>` : "") },
  ]} /><//>`;
}
