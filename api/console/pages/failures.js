// What failed, by site and reason, with one example each and a way to try all of them again.
import { html, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { throughAll } from "../lib/bulk.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import { explain } from "../lib/words.js";
import * as format from "../lib/format.js";
import { Button, Card, Confirm, Empty, Head, Loading, Segments, Tag, Time, Trouble } from "../parts/basics.js";

const SPANS = [["1h", "Hour"], ["24h", "Day"], ["168h", "Week"]];

export default function Failures() {
  const [query, change] = useQuery();
  const since = query.since || "24h";
  const list = useData((signal) => get("/failures", { since }, signal), [since], { every: 10_000 });
  const [asking, ask] = useState(null);
  const groups = list.data && list.data.groups.filter((group) => !query.code || group.code === query.code);
  const all = groups ? groups.reduce((sum, group) => sum + group.count, 0) : 0;
  return html`<${Head} title="Failures" note=${groups && groups.length
      ? html`<span class="soft">${format.plural(all, "page")} in ${format.plural(groups.length, "group")}
          </span>` : null}>
      <${Segments} label="How far back" at=${since} options=${SPANS}
        onChange=${(value) => change({ since: value === "24h" ? "" : value })} /><//>
    ${query.code ? html`<div class="filters"><${Tag}><code>${query.code}</code><//>
          <${Button} small kind="quiet" icon="close" onClick=${() => change({ code: "" })}>All codes<//></div>` : null}
    ${list.error ? html`<${Trouble} error=${list.error} retry=${list.reload} />` : null}
    ${list.data && list.data.isMore
      ? html`<p class="banner">The newest ${format.count(list.data.counted)} failures are counted, back to <${Time}
            at=${list.data.from} />.</p>` : null}
    <${Card} flush>
      ${!groups ? (list.error ? null : html`<${Loading} rows=${6} />`) : groups.length === 0
        ? html`<${Empty} title="Nothing failed">In this time every page came to a good end.<//>` : groups.map((group) => html`
            <${Group} key=${`${group.host} ${group.code}`} group=${group} since=${since}
              onReplay=${() => ask(group)} />`)}
    <//>
    ${asking ? html`<${ReplayGroup} group=${asking} since=${since} onClose=${() => ask(null)}
          onDone=${list.reload} />` : null}`;
}

function Group({ group, since, onReplay }) {
  const words = explain(group.code);
  return html`<article class="group">
    <div class="group-head"><span class="group-count" title=${format.plural(group.count, "page")}>
        ${format.short(group.count)}</span><strong class="wrap-any">${group.host || "Not kept"}</strong>
          ${group.code ? html`<${Tag} tone="bad"><code>${group.code}</code><//>` : null}
          <span class="soft">last <${Time} at=${group.lastAt} /></span>
      <div class="actions"><a class="button small"
          href=${link("/jobs", { code: group.code, since })}
          title="Jobs that have pages which failed so, on this site or another">Jobs</a>
            ${mayChange() ? html`<${Button} small icon="replay" onClick=${onReplay}>Replay<//>` : null}</div></div>
    ${words ? html`<p>${words.what} <span class="soft">${words.todo}</span></p>` : null}
    ${group.worthReplaying ? null : html`<p class="soft">Trying again will most likely end the same.</p>`}
    ${group.example ? html`<p
          class="soft wrap-any">For example <a
              href=${link(`/jobs/${group.example.jobId}/pages/${group.example.pageId}`)}>
                ${group.example.url || "a page"}</a>
                  ${seesAll() && !store.value.team && group.example.team ? ` of ${group.example.team.name}` : ""}: ${group.example.error || "no words"}
                  </p>` : null}
  </article>`;
}

function ReplayGroup({ group, since, onClose, onDone }) {
  const [so, setSo] = useState(null);
  const run = async () => {
    const body = { host: group.host, code: group.code, since, count: group.count };
    if (seesAll() && store.value.team) body.team = store.value.team;
    const sum = await throughAll("/failures/replay", body, setSo);
    store.notify(`${format.plural(sum.done,
              "page")} put back.${sum.skipped ? ` ${format.count(sum.skipped)} could not be.` : ""}`);
    onDone();
  };
  return html`<${Confirm} title=${`Replay ${format.plural(group.count, "page")}?`}
      verb=${`Replay ${format.plural(group.count, "page")}`} run=${run} onClose=${onClose}>
    <p>All failed pages of <strong class="wrap-any">${group.host}</strong> with ${group.code
        ? html`<code>${group.code}
            </code>` : "this error"} are tried again. Pages of jobs that were cancelled stay as they are.</p>
    ${group.worthReplaying ? null : html`<p class="banner warn">Trying again will most likely end the same.</p>`}
    ${so ? html`<p role="status">${format.count(so.done)} done…</p>` : null}<//>`;
}
