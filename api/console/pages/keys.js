// Keys: made here (shown once), named, revoked; and what a team may do for itself, its webhook secret.
import { html, useState } from "../lib/ui.js";
import { get, patch, post, remove } from "../lib/api.js";
import { useData } from "../lib/data.js";
import { mayChange, seesAll, store } from "../lib/store.js";
import { Button, Card, Confirm, Copy, Dialog, Empty, Field, Head, Status, Tag, Time, Trouble } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { useActing, WebhookSecret } from "../parts/team.js";

export default function Keys() {
  const list = useData(async (signal) => (await get("/keys", {}, signal)).keys, [], { every: 15_000 });
  const [making, make] = useState(false);
  const [naming, name] = useState(null);
  const [revoking, revoke] = useState(null);
  const [old, showOld] = useState(false);
  const teamless = seesAll() && !store.value.team;
  const rows = list.data && list.data.filter((key) => old || !key.revokedAt);
  const gone = list.data ? list.data.filter((key) => key.revokedAt).length : 0;
  return html`<${Head} title="Keys">
      ${mayChange() ? html`<${Button} kind="primary" icon="plus" onClick=${() => make(true)}>New key<//>` : null}<//>
    <${Card} flush actions=${gone
      ? html`<label class="choice">
          <input type="checkbox" checked=${old}
            onChange=${(event) => showOld(event.target.checked)} />Revoked too (${gone})</label>` : null}>
      <${Table} label="Keys" rows=${rows} error=${list.error} retry=${list.reload} id=${(key) => key.id}
        empty=${html`<${Empty} title="There are no keys">Without a key nobody can call the API.<//>`} columns=${[
    { name: "Name", kind: "lead", cell: (key) => html`
        <span>${key.name || html`<span class="soft">No name</span>`}${key.isOwn ? html` <${Tag}>you<//>` : null}</span>
        <span class="row-sub"><code>${key.prefix}…</code><span class="only-narrow">
          ${teamless ? ` · ${key.team.name}` : ""}${key.revokedAt ? " · revoked" : ""}</span></span>` },
    ...(teamless ? [{ name: "Team", kind: "short", hide: "narrow", cell: (key) => html`<span title=${key.team.name}>${key.team.name}</span>` }] : []),
    { name: "State", kind: "tight", hide: "narrow", cell: (key) => html`
        <${Status} value=${key.revokedAt ? "revoked" : "active"} />` },
    { name: "Last used", kind: "tight", cell: (key) => html`<${Time} at=${key.lastUsedAt} fallback="never" />` },
    { name: "Created", kind: "tight", hide: "narrow", cell: (key) => html`<${Time} at=${key.createdAt} />` },
    { name: "Change", silent: true, kind: "tight buttons", cell: (key) => (mayChange() && !key.revokedAt
        ? html`<div class="actions"><${Button} small onClick=${() => name(key)}>Rename<//>
            <${Button} small kind="danger-quiet" onClick=${() => revoke(key)}>Revoke<//></div>` : "") },
  ]} /><//>
    ${!seesAll() ? html`<${WebhookSecret} team=${store.value.me.team} />` : null}
    ${making ? html`<${NewKey} onClose=${() => make(false)} onDone=${list.reload} />` : null}
    ${naming ? html`<${Rename} thing=${naming} onClose=${() => name(null)} onDone=${list.reload} />` : null}
    ${revoking ? html`<${Confirm} title=${`Revoke ${nameOfKey(revoking)}?`} verb="Revoke" danger
          onClose=${() => revoke(null)} run=${async () => {
    await remove(`/keys/${revoking.id}`);
    store.notify("The key is revoked.");
    list.reload();
  }}><p>Whoever uses it is refused from now on. A revoked key cannot be brought back.</p>
    ${revoking.isOwn ? html`<p class="banner warn">You are signed in with this key: you will be signed out.</p>` : null}
    <//>` : null}`;
}

/// What a question calls a key: who sees all teams hears whose it is.
const nameOfKey = (key) => `${key.name || `${key.prefix}…`}${seesAll() ? ` of ${key.team.name}` : ""}`;

function NewKey({ onClose, onDone }) {
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [made, setMade] = useState(null);
  const acting = useActing();
  const create = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      setMade(await post("/keys", { name: name.trim() || null }, acting.query));
      onDone();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  if (made) return html`<${Dialog} title="The new key" stays onClose=${onClose}
      actions=${html`<${Button} kind="primary" onClick=${onClose}>I have kept it<//>`}>
    <p>This is the only time that the key is shown. Only its digest is stored.</p>
    <div class="secret"><code data-key>${made.key}</code><${Copy} text=${made.key} words="Copy" label="Copy the key" />
    </div>
    <p class="soft">Your colleague can sign in here with it, and see and change this team alone. The playground has the
      calls to copy.</p><//>`;
  return html`<${Dialog} title="New key" onClose=${onClose}><form class="form" onSubmit=${create}>
    <${Field} label="Name" hint="Who or what will use it. It can be changed later.">
      <input class="input" maxlength="100" value=${name} onInput=${(event) => setName(event.target.value)}
        placeholder="Ada's notebook" /><//>
    ${acting.field}
    <${Trouble} error=${error} />
    <div class="actions"><${Button} kind="primary" type="submit" busy=${busy}>Create key<//></div>
  </form><//>`;
}

function Rename({ thing, onClose, onDone }) {
  const [name, setName] = useState(thing.name || "");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const save = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await patch(`/keys/${thing.id}`, { name: name.trim() || null });
      onDone();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Rename ${nameOfKey(thing)}`} onClose=${onClose}><form class="form" onSubmit=${save}>
    <${Field} label="Name"><input class="input" maxlength="100" value=${name}
        onInput=${(event) => setName(event.target.value)} /><//>
    <${Trouble} error=${error} /><div class="actions"><${Button} kind="primary" type="submit" busy=${busy}>Save<//>
    </div></form><//>`;
}
