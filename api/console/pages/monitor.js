// One monitor: its schedule and targets, its checks, and what one of them found page by page.
import { html, useState } from "../lib/ui.js";
import { callOk } from "../lib/api.js";
import { go, link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { usePages } from "../lib/pager.js";
import { mayChange, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button, Card, Confirm, Empty, Facts, Fold, Head, Id, Lasting, Loading, Outside, Segments, Status, Time, Trouble } from "../parts/basics.js";
import { Json } from "../parts/code.js";
import { Diff, textOfDiff } from "../parts/document.js";
import { Found, targetsOf } from "../parts/monitor.js";
import { Table } from "../parts/table.js";
import { useActing } from "../parts/team.js";

const PIECE = 25;

export default function Monitor({ one }) {
  const [query, change] = useQuery();
  const acting = useActing(query.team, (team) => change({ team }), "Whose monitor it is.");
  const [asking, ask] = useState(false);
  const path = `/v2/monitor/${encodeURIComponent(one)}`;
  const monitor = useData(async (signal) => (acting.id
      ? (await callOk("GET", path, { query: acting.query, signal })).data : null), [one, acting.id], { every: 5000 });
  const checks = usePages(async (cursor, signal) => {
    if (!acting.id) return { rows: [], next: undefined };
    const offset = cursor || 0;
    const answer = await callOk("GET", `${path}/checks`, { query: { offset, limit: PIECE, ...acting.query }, signal });
    return { rows: answer.data, next: answer.data.length === PIECE ? offset + PIECE : undefined };
  }, [one, acting.id], { every: 5000 });
  const back = { href: link("/monitors", acting.link), label: "Monitors" };
  if (!acting.id) return html`<${Head} title="Monitor" back=${back} /><${Card}><div class="form">${acting.field}</div><//>`;
  if (!monitor.data) return html`<${Head} title="Monitor" back=${back} />${monitor.error
      ? html`<${Trouble} error=${monitor.error} retry=${monitor.reload} />` : html`<${Card}><${Loading} rows=${6} /><//>`}`;
  const it = monitor.data;
  const act = async (method, below, body, said) => {
    try {
      await callOk(method, `${path}${below}`, { body, query: acting.query });
      store.notify(said);
      monitor.reload();
      checks.reload();
    } catch (failure) {
      store.notify(failure.message, "bad");
    }
  };
  const isActive = it.status === "active";
  const shown = query.check || (checks.rows && checks.rows[0] && checks.rows[0].id);
  return html`<${Head} title=${it.name} back=${back}
      note=${html`<${Status} value=${it.status} />`}>
      ${mayChange() ? html`
        <${Button} icon="play" kind="primary" disabled=${Boolean(it.currentCheckId)}
          onClick=${() => act("POST", "/run", {}, "A check is under way.")}>Run now<//>
        <${Button} icon=${isActive ? "pause" : "play"} onClick=${() => act("PATCH", "",
    { status: isActive ? "paused" : "active" }, isActive ? "It is paused." : "It goes on.")}>
          ${isActive ? "Pause" : "Go on"}<//>
        <${Button} icon="trash" kind="danger-quiet" onClick=${() => ask(true)}>Delete<//>` : null}<//>
    <${Trouble} error=${monitor.error} />
    <${Card}><${Facts} items=${[
    ["Id", html`<${Id} id=${it.id} />`],
    ["Watches", targetsOf(it)],
    ["Schedule", html`<code>${it.schedule.cron}</code> <span class="soft">${it.schedule.timezone}</span>`],
    ["Next", it.currentCheckId ? "now" : html`<${Time} at=${it.nextRunAt} fallback="not while it is paused" />`],
    ["Last", html`<${Time} at=${it.lastRunAt} fallback="never" />`],
    ["Last found", html`<${Found} summary=${it.lastCheckSummary} />`],
    it.goal ? ["Goal", it.goal] : null,
    ["Changes are judged", it.judgeEnabled ? "by the language model" : "by what differs"],
    ["Checks are kept", format.plural(it.retentionDays, "day")],
    ["Credits a month", `about ${format.count(it.estimatedCreditsPerMonth)}`],
    it.webhook ? ["Webhook", it.webhook.url] : null,
  ]} /><${Fold} title="Targets as they were given"><${Json} value=${it.targets} /><//><//>
    <${Card} title="Checks" flush><${Table} label="Checks" ...${checks} retry=${checks.reload} id=${(check) => check.id}
      rowClass=${(check) => (check.id === shown ? "chosen" : "")}
      empty=${html`<${Empty} title="It has not looked yet" />`} columns=${[
    { name: "Check", kind: "lead", cell: (check) => html`
        <a class="row-link" href=${link(`/monitors/${it.id}`, { check: check.id, ...acting.link })}><${Time} at=${check.createdAt} /></a>
        ${check.error ? html`<span class="row-sub">${check.error}</span>` : null}` },
    { name: "State", kind: "tight", cell: (check) => html`
        <${Status} value=${check.status} tone=${check.status === "partial" ? "warn" : undefined} />` },
    { name: "Begun by", kind: "tight", hide: "medium", cell: (check) => check.trigger },
    { name: "Found", cell: (check) => html`<${Found} summary=${check.summary} />` },
    { name: "Took", numeric: true, hide: "narrow", cell: (check) => (check.startedAt
        ? html`<${Lasting} from=${check.startedAt} to=${check.finishedAt} />` : "–") },
    { name: "Credits", numeric: true, hide: "medium",
      cell: (check) => (check.actualCredits === null ? "–" : format.count(check.actualCredits)) },
  ]} /><//>
    ${shown ? html`<${Pages} key=${shown} path=${`${path}/checks/${shown}`} acting=${acting} status=${query.status || ""}
        onStatus=${(status) => change({ status })} />` : null}
    ${asking ? html`<${Confirm} title=${`Delete ${it.name}?`} verb="Delete" danger onClose=${() => ask(false)}
          run=${async () => {
    await callOk("DELETE", path, { query: acting.query });
    store.notify("The monitor and its checks are gone.");
    go(link("/monitors", acting.link));
  }}><p>Its checks, and what they found, go with it.</p><//>` : null}`;
}

/// What one check found.
function Pages({ path, acting, status, onStatus }) {
  const list = usePages(async (cursor, signal) => {
    const skip = cursor || 0;
    const answer = await callOk("GET", path, { query: { skip, limit: PIECE, status, ...acting.query }, signal });
    return { rows: answer.data.pages, next: answer.next ? skip + answer.data.pages.length : undefined };
  }, [path, status], { every: 5000 });
  return html`<${Card} title="What the check found" actions=${html`
      <${Segments} label="Result" at=${status} onChange=${onStatus}
        options=${[["", "All"], ...["changed", "new", "removed", "error", "same"].map((word) => [word, word])]} />`}>
    <${Trouble} error=${list.error} retry=${list.reload} />
    ${!list.rows ? html`<${Loading} />` : list.rows.length === 0 ? html`<${Empty} title="No pages of this kind" />`
      : html`<div class="stack">${list.rows.map((page) => html`<${Page} key=${page.id} page=${page} />`)}</div>`}
    ${list.more ? html`<div class="more"><${Button} busy=${list.moreBusy} onClick=${list.onMore}>Show more<//></div>` : null}
  <//>`;
}

function Page({ page }) {
  const { judgment } = page;
  return html`<section class="stack-s" aria-label=${page.url}>
    <div><${Status} value=${page.status} /> <${Outside} url=${page.url} />
      ${page.statusCode ? html` <span class="soft num">${page.statusCode}</span>` : null}</div>
    ${page.error ? html`<p class="banner warn">${page.error}</p>` : null}
    ${judgment ? html`<p>${judgment.meaningful ? "It matters: " : "It does not matter: "}${judgment.reason || ""}</p>` : null}
    ${page.diff && page.diff.text ? html`<${Diff} text=${textOfDiff(page.diff)} />` : null}
    ${page.diff && page.diff.json && !page.diff.json.files ? html`<${Fold} title="Fields that differ"><${Json} value=${page.diff.json} /><//>` : null}
    ${page.snapshot ? html`<${Fold} title="Fields as they are now"><${Json} value=${page.snapshot} /><//>` : null}
  </section>`;
}
