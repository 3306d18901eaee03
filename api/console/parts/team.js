// What can be changed about a team.
import { html, useState } from "../lib/ui.js";
import { patch } from "../lib/api.js";
import { readRates } from "../lib/rates.js";
import { mayChange, seesAll, store, useStore } from "../lib/store.js";
import { Button, Card, Confirm, Dialog, Field, Trouble } from "./basics.js";

/// The team that something is done as: the signed-in one's own, the one that is looked at, or one that is picked here
/// because all are looked at. Where there is only one, it is that. A page whose address says the team gives what it says,
/// and hears of what is picked: links from it, and a reload, keep the team. `hint` says what the team is needed for.
export function useActing(said, onPick, hint = "It is done as this team, and counted as its own.") {
  const { team, teams, me } = useStore();
  const [own, setOwn] = useState("");
  const picked = (onPick ? said : own) || (teams.length === 1 ? teams[0].id : "");
  const pick = onPick || setOwn;
  const asks = seesAll() && !team;
  const id = !seesAll() ? me.team.id : team || picked;
  const field = asks ? html`
    <${Field} label="As team" hint=${hint}>
      <select class="select acting" required value=${picked} onChange=${(event) => pick(event.target.value)}>
    <option value="">Choose a team</option>
    ${teams.map((one) => html`
          <option key=${one.id} value=${one.id} selected=${one.id === picked}>${one.name}</option>`)}</select>
            <//>` : null;
  // What a link needs that leads to a thing which is known within its team only.
  return { id, field, query: seesAll() ? { team: id } : {}, link: asks ? { team: id } : {} };
}

/// A team's own secret for the signatures of its webhooks. It can be set, never read.
export function WebhookSecret({ team }) {
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const [asking, ask] = useState(false);
  if (!mayChange()) return null;
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await patch(`/teams/${team.id}`, { webhookSecret: value });
      setValue("");
      store.notify("The webhook secret is set.");
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return html`<${Card} title="Webhook secret"><form class="form" onSubmit=${(event) => {
    event.preventDefault();
    if (value) save();
  }}>
    <p class="soft">Webhooks of this team are signed with it (HMAC-SHA256). It can be set, and is never shown.</p>
    <div class="run-bar"><input class="input secret-input" type="password" autocomplete="new-password"
        aria-label="New webhook secret" value=${value} onInput=${(event) => setValue(event.target.value)} />
          <${Button} type="submit" busy=${busy} disabled=${!value}>Set<//>
          <${Button} kind="quiet" onClick=${() => ask(true)}>Use the installation's<//></div>
    <${Trouble} error=${error} /></form>
    ${asking ? html`<${Confirm} title="Remove the team's webhook secret?" verb="Remove" danger onClose=${() => ask(false)}
          run=${async () => {
    await patch(`/teams/${team.id}`, { webhookSecret: null });
    store.notify("The team's own webhook secret is removed.");
  }}><p>Its webhooks are signed with the installation's secret from now on. Receivers that check with the team's own
      refuse them, and it cannot be brought back.</p><//>` : null}<//>`;
}

const number = (text) => (text === "" ? null : Number(text));

export function TeamDialog({ team, metered, onClose, onDone }) {
  const [values, setValues] = useState({
    concurrency: team.concurrency ?? "", sessions: team.sessions ?? "", queue: team.queue ?? "",
      zeroDataRetention: team.zeroDataRetention, webhookSecret: "", grantCredits: "",
    rates: Object.entries(team.rates || {}).map(([name, rate]) => `${name}=${rate}`).join("\n"),
  });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const { rates, wrong } = readRates(values.rates);
  const [isTold, tell] = useState(false);
  const set = (name, read = (event) => event.target.value) => (event) => setValues({ ...values, [name]: read(event) });
  const save = async (event) => {
    event.preventDefault();
    setError(null);
    tell(true);
    if (wrong) return;
    setBusy(true);
    try {
      await patch(`/teams/${team.id}`, changes(team, values, rates));
      store.notify(`${team.name} is changed.`);
      onDone();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const amount = (name, label, hint) => html`
    <${Field} label=${label} hint=${hint}>
      <input class="input num" type="number" min="1" step="1" value=${values[name]}
        placeholder=${team.defaults[name] ?? ""} onInput=${set(name)} /><//>`;
  return html`<${Dialog} title=${`Limits of ${team.name}`} onClose=${onClose}><form class="form" onSubmit=${save}>
    <p class="soft">An empty field means: as for the whole installation, which is shown in grey.</p>
    <div class="form-row">${amount("concurrency", "Pages at once")}${amount("sessions", "Browser sessions at once")}
      ${amount("queue", "Pages waiting")}</div>
    <${Field} label="Requests a minute" error=${isTold ? wrong : null}
      hint=${`One a line, as "scrape=100". Usual: ${Object.entries(team.defaults.rates || {}).map(([name,
                rate]) => `${name}=${rate}`).join(", ") || "no limits"}`}>
                  <textarea class="area" spellcheck="false" value=${values.rates} onInput=${set("rates")}></textarea>
                    <//>
    <${Field} label="New webhook secret"
      hint=${team.hasWebhookSecret ? "One is set. It is never shown." : "None of its own is set."}>
        <input class="input" type="password" autocomplete="new-password" value=${values.webhookSecret}
          onInput=${set("webhookSecret")} /><//>
    ${metered ? html`<${Field} label="Grant credits">
          <input class="input num" type="number" min="1" step="1" value=${values.grantCredits}
            onInput=${set("grantCredits")} /><//>` : null}
    <label class="choice"><input type="checkbox" checked=${values.zeroDataRetention}
        onChange=${set("zeroDataRetention", (event) => event.target.checked)} />
          <span>May ask for zero data retention</span></label>
    <${Trouble} error=${error} />
    <div class="actions"><${Button} kind="primary" type="submit" busy=${busy}>Save<//></div></form><//>`;
}

/// Only what is different is sent: somebody else may have changed the rest meanwhile.
function changes(team, values, rates) {
  const out = {};
  for (const name of ["concurrency", "sessions",
      "queue"]) if (number(values[name]) !== team[name]) out[name] = number(values[name]);
  if (JSON.stringify(rates) !== JSON.stringify(team.rates || {})) out.rates = Object.keys(rates).length ? rates : null;
  if (values.zeroDataRetention !== team.zeroDataRetention) out.zeroDataRetention = values.zeroDataRetention;
  if (values.webhookSecret) out.webhookSecret = values.webhookSecret;
  if (values.grantCredits) out.grantCredits = Number(values.grantCredits);
  return out;
}
