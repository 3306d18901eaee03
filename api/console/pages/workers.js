// Workers: what each does and has, and a way to let one finish and stop.
import { html, useState } from "../lib/ui.js";
import { get, post } from "../lib/api.js";
import { useData } from "../lib/data.js";
import { useStream } from "../lib/stream.js";
import { mayChange, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button, Card, Confirm, Empty, Facts, Head, Id, Status, Tag, Time, Trouble, Loading } from "../parts/basics.js";
import { Meter } from "../parts/chart.js";

export default function Workers() {
  const list = useData(async (signal) => (await get("/workers", {}, signal)).workers, [], { every: 5000 });
  const { figures } = useStream();
  const [draining, drain] = useState(null);
  const live = new Map(((figures && figures.workers) || []).map((worker) => [worker.id, worker]));
  const rank = { live: 0, draining: 1, dead: 2 };
  const rows = list.data && [...list.data].sort((a, b) => rank[a.state] - rank[b.state]
      || a.name.localeCompare(b.name));
  return html`<${Head} title="Workers" note=${rows
      ? html`<span class="soft">
          ${format.count(rows.filter((worker) => worker.isAlive && worker.state === "live").length)} live</span>` : null} />
    <${Trouble} error=${list.error} retry=${list.reload} />
    ${!rows ? (list.error ? null : html`<${Loading} />`) : rows.length === 0
      ? html`<${Card}><${Empty}
            title="No worker has ever started">Pages wait in the database until one does: start <code>weir-worker</code>.<//>
              <//>`
    : html`<div class="grid-2">
        ${rows.map((worker) => html`
              <${Worker} key=${worker.id} worker=${{ ...worker, ...pick(live.get(worker.id)) }}
                onDrain=${() => drain(worker)} />`)}</div>`}
    ${draining ? html`<${Confirm} title=${`Drain ${draining.name}?`} verb="Drain" onClose=${() => drain(null)}
          run=${async () => {
    await post(`/workers/${draining.id}/drain`);
    store.notify(`${draining.name} finishes what it has and stops.`);
    list.reload();
  }}><p>It takes nothing new, finishes what it has, and stops. Its browser sessions end when they would. It does not start again by itself unless something on its machine starts it.</p>
    <//>` : null}`;
}

/// Figures of the stream are newer than the list.
function pick(worker) {
  if (!worker) return {};
  const { busy, sessions, memoryBytes, pagesPerSecond } = worker;
  return { busy, sessions, memoryBytes, pagesPerSecond };
}

function Worker({ worker, onDrain }) {
  const gone = worker.state === "dead" || !worker.isAlive;
  return html`<${Card} title=${worker.name}
      note=${html`<${Status} value=${worker.state === "live" && !worker.isAlive ? "dead" : worker.state}
            label=${worker.state === "live" && !worker.isAlive ? "silent" : worker.state} />`}
      actions=${worker.state === "live" && worker.isAlive && mayChange()
        ? html`<${Button} small icon="drain" onClick=${onDrain}>Drain<//>` : null}>
    <div class="stack">
      ${gone ? null : html`<div class="grid-2">
            <${Meter} label="Pages in work" used=${worker.busy} limit=${worker.slots} />
            <${Meter} label="Browser sessions" used=${worker.sessions} limit=${worker.sessionSlots} /></div>`}
      ${worker.browserProblem ? html`
          <p class="banner warn">It can start no browser for pages: ${worker.browserProblem}</p>` : null}
      ${worker.sessionsRefused ? html`
          <p class="banner warn">It takes no sessions: ${worker.sessionsRefused}</p>` : null}
      <${Facts} items=${[
    gone || worker.pagesPerSecond === undefined ? null : ["Pace", html`
        <span class="num">${format.decimal(worker.pagesPerSecond)} pages/s</span>`],
    gone ? null : ["Memory", html`<span class="num">${format.bytes(worker.memoryBytes)}</span>`],
    gone ? null : ["Browsers", html`<span class="num">${format.count(worker.browsers)}</span>`],
    ["Version", worker.version || "–"],
    ["Started", html`<${Time} at=${worker.startedAt} />`],
    ["Last heartbeat", html`<${Time} at=${worker.heartbeatAt} />`],
    worker.boxLimits ? ["Boxes", html`<${Tag}>${worker.boxLimits}<//>`] : null,
    ["Id", html`<${Id} id=${worker.id} />`],
  ]} />
    </div><//>`;
}
