// Browser sessions: what each shows now, and how long it lives.
import { html, useState } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { usePages } from "../lib/pager.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import { sameOrigin } from "../lib/live.js";
import * as format from "../lib/format.js";
import { Button, Card, Empty, Head, Loading, Segments, Status, Time, Trouble } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { EndSession } from "../parts/session.js";
import { Icon } from "../parts/icon.js";

/// Tiles that show their browser at once: each is a stream of pictures.
const WATCHED = 6;

export default function Sessions() {
  const [query, change] = useQuery();
  const status = query.status === "destroyed" ? "destroyed" : "active";
  const list = usePages(async (cursor, signal) => {
    const answer = await get("/sessions", { status, cursor, limit: 48 }, signal);
    return { rows: answer.sessions, next: answer.next };
  }, [status], { every: 4000 });
  const [ending, end] = useState(null);
  return html`<${Head} title="Sessions">
      <${Segments} label="State" at=${status} options=${[["active", "Open"], ["destroyed", "Ended"]]}
        onChange=${(value) => change({ status: value === "active" ? "" : value })} />
      ${mayChange() ? html`<a class="button primary" href=${link("/playground/browser")}>
          <${Icon} name="plus" /><span>New session</span></a>` : null}<//>
    <${Trouble} error=${list.error} retry=${list.reload} />
    ${!list.rows ? (list.error ? null : html`<${Loading} />`) : status === "active" ? html`
      ${list.rows.length === 0 ? html`
          <${Card}><${Empty} title="No browser is open"
              action=${mayChange() ? html`<a class="button primary"
                    href=${link("/playground/browser")}>Open one</a>` : null}>Sessions are opened by the API, the SDKs or the playground, and can be watched and used here.<//>
                      <//>`
    : html`<div class="screens">
        ${list.rows.map((session, at) => html`
              <${Screen} key=${session.id} session=${session} watched=${at < WATCHED} onEnd=${() => end(session)} />`)}
                </div>`}
      ${list.more ? html`<div class="more"><${Button} busy=${list.moreBusy} onClick=${list.onMore}>Show more<//>
          </div>` : null}`
    : html`<${Card} flush><${Table} label="Ended sessions" ...${list} retry=${list.reload} id=${(session) => session.id}
          empty=${html`<${Empty} title="No session has ended yet" />`} columns=${[
      { name: "Session", kind: "lead", cell: (session) => html`
          <a class="row-link" href=${link(`/sessions/${session.id}`)}><code>${format.shortId(session.id)}</code></a>
          <span class="row-sub">${session.kind}${seesAll() && !store.value.team ? ` · ${session.team.name}` : ""}
            </span>` },
      { name: "Ended because", cell: (session) => session.endReason || "–" },
      { name: "Credits", numeric: true, hide: "narrow", cell: (session) => format.count(session.credits) },
      { name: "Opened", kind: "tight", hide: "narrow", cell: (session) => html`<${Time} at=${session.createdAt} />` },
      { name: "Ended", kind: "tight", cell: (session) => html`<${Time} at=${session.endedAt} />` },
    ]} /><//>`}
    ${ending ? html`<${EndSession} session=${ending} onClose=${() => end(null)} onDone=${list.reload} />` : null}`;
}

function Screen({ session, watched, onEnd }) {
  const { paused } = store.value;
  const view = sameOrigin(session.liveViewUrl);
  return html`<article class="screen" aria-label=${`Session ${format.shortId(session.id)}`}>
    <div class="screen-view">
      ${view && watched && !paused
        ? html`<iframe src=${view} title=${`Live view of session ${format.shortId(session.id)}`} tabindex="-1"
            loading="lazy"></iframe>`
              : html`<span class="screen-none">
                  ${session.streamWebView === false ? "May not be watched" : "Open it to watch"}</span>`}</div>
    <div class="screen-body">
      <div class="screen-line">
        <a class="row-link" href=${link(`/sessions/${session.id}`)}>Session <code>${format.shortId(session.id)}</code>
        </a><${Status} value=${session.status} /></div>
      <div class="screen-line soft">
        <span>${session.kind}${session.profile ? html` · profile <strong>${session.profile.name}</strong>` : ""}
          ${seesAll() && !store.value.team ? ` · ${session.team.name}` : ""}</span>
            <span>ends <${Time} at=${session.expiresAt} /></span></div>
      <div class="screen-line"><span class="soft">used <${Time} at=${session.lastActivity} /></span>
        <span class="actions"><a class="button small" href=${link(`/sessions/${session.id}`)}>Open</a>
              ${mayChange() ? html`<${Button} small kind="danger-quiet" onClick=${onEnd}>End<//>` : null}</span></div>
    </div></article>`;
}
