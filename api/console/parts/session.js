// Ends a session, after it was asked.
import { html } from "../lib/ui.js";
import { callOk } from "../lib/api.js";
import { seesAll, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Confirm } from "./basics.js";

export const teamOf = (session) => (seesAll() ? { team: session.team.id } : {});

export function EndSession({ session, onClose, onDone }) {
  return html`<${Confirm} title=${`End session ${format.shortId(session.id)}?`} verb="End session" danger
      onClose=${onClose} run=${async () => {
    await callOk("DELETE", `/v2/browser/${session.id}`, { query: teamOf(session) });
    store.notify("The session is ended.");
    onDone();
  }}><p>Its browser closes for everybody who uses it.${session.profile && session.profile.save ? " Its profile is saved first." : ""}
    </p><//>`;
}
