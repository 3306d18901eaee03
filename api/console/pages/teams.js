// Teams, for operators: what each may do, and how much it has used.
import { html, useState } from "../lib/ui.js";
import { get, post } from "../lib/api.js";
import { go, link } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { mayChange, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button, Card, Dialog, Empty, Field, Head, Tag, Time, Trouble } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { TeamDialog } from "../parts/team.js";

export default function Teams() {
  const list = useData(async (signal) => (await get("/teams", {}, signal)).teams, [], { every: 15_000 });
  const [making, make] = useState(false);
  const [changing, edit] = useState(null);
  const { metered } = store.value.me.features || {};
  const reload = () => {
    list.reload();
    dispatchEvent(new Event("weir-teams"));
  };
  const limit = (value, usual) => (value === null || value === undefined
    ? html`<span class="soft" title="As for the whole installation">${format.short(usual)}
        </span>` : format.short(value));
  return html`<${Head} title="Teams">
      ${mayChange() ? html`<${Button} kind="primary" icon="plus" onClick=${() => make(true)}>New team<//>` : null}<//>
    <${Card} flush><${Table} label="Teams" rows=${list.data} error=${list.error} retry=${list.reload}
        id=${(team) => team.id} empty=${html`<${Empty} title="There are no teams" />`} columns=${[
    { name: "Team", kind: "lead", cell: (team) => html`
        <span><strong>${team.removedAt ? formerName(team) : team.name}</strong>
          ${team.zeroDataRetention ? html` <${Tag} tone="good">zero retention<//>` : null}
          ${team.removedAt ? html` <${Tag} tone="warn">being removed<//>` : null}</span>
            <span class="row-sub"><code>${format.shortId(team.id)}</code></span>` },
    { name: "Pages at once", numeric: true, hide: "narrow",
        cell: (team) => limit(team.concurrency, team.defaults.concurrency) },
    { name: "Sessions", numeric: true, hide: "narrow", cell: (team) => limit(team.sessions, team.defaults.sessions) },
    { name: "Queue", numeric: true, hide: "medium", cell: (team) => limit(team.queue, team.defaults.queue) },
    { name: "Credits used", numeric: true, cell: (team) => html`
        <span title=${format.count(team.creditsUsed)}>${format.short(team.creditsUsed)}</span>
        ${metered ? html`<span class="soft"> of ${format.short(team.creditsGranted)}</span>` : null}` },
    { name: "Created", kind: "tight", hide: "medium", cell: (team) => html`<${Time} at=${team.createdAt} />` },
    { name: "Change", silent: true, kind: "tight buttons", cell: (team) => team.removedAt ? null : html`
        <div class="actions"><${Button} small onClick=${() => {
      store.choose(team.id);
      go(link("/jobs"));
    }}>Look at<//>${mayChange() ? html`<${Button} small onClick=${() => edit(team)}>Limits<//>` : null}</div>` },
  ]} /><//>
    ${making ? html`<${NewTeam} onClose=${() => make(false)} onDone=${reload} />` : null}
    ${changing ? html`<${TeamDialog} team=${changing} metered=${metered} onClose=${() => edit(null)}
          onDone=${reload} />` : null}`;
}

/// What a team was called before it was removed: its row bears its id since then, which stands below.
function formerName(team) {
  return team.name.replace(` (removed ${team.id})`, "");
}

function NewTeam({ onClose, onDone }) {
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const team = await post("/teams", { name: name.trim() });
      store.notify(`${team.name} is there. Choose it at the top to make its first key.`);
      onDone();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="New team" onClose=${onClose}>
      <form class="form" onSubmit=${create}>
        <p class="soft">A team has keys, limits, jobs and credits of its own, and sees nothing of other teams.</p>
    <${Field} label="Name"><input class="input" required maxlength="100" value=${name}
        onInput=${(event) => setName(event.target.value)} /><//>
    <${Trouble} error=${error} />
    <div class="actions"><${Button} kind="primary" type="submit" busy=${busy}>Create team<//></div></form><//>`;
}
