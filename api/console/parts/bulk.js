// Asks before jobs are cancelled, replayed or deleted: how many there are, then yes or no, then how far it is.
import { html, useEffect, useState } from "../lib/ui.js";
import { post } from "../lib/api.js";
import { throughAll } from "../lib/bulk.js";
import { store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button, Confirm, Dialog, Loading, Trouble } from "./basics.js";

export const ACTIONS = {
  cancel: { verb: "Cancel", done: "cancelled", danger: true,
    says: "What is running stops, and what is waiting is not started. Pages that are done stay." },
  replay: { verb: "Replay", done: "put back",
    says: "Failed pages are tried again. Jobs that were cancelled stay as they are." },
  delete: { verb: "Delete", done: "deleted", danger: true,
    says: "What is running is cancelled, and all results are gone at once. This cannot be taken back." },
};

/// `ids` or `filter`.
export function BulkDialog({ action, ids, filter, onClose, onDone }) {
  const [counted, setCounted] = useState(ids ? { count: ids.length, isMore: false } : null);
  const [error, setError] = useState(null);
  const [so, setSo] = useState(null);
  const words = ACTIONS[action];
  const count = () => {
    setError(null);
    post("/jobs/count", { filter }).then(setCounted, setError);
  };
  useEffect(() => {
    if (!ids) count();
  }, []);
  if (error) return html`<${Dialog} title=${`${words.verb} jobs`} onClose=${onClose}>
      <${Trouble} error=${error} retry=${count} /><//>`;
  if (!counted) return html`
    <${Dialog} title=${`${words.verb} jobs`} onClose=${onClose}><p role="status">Counting…</p><${Loading} rows=${2} />
    <//>`;
  const many = `${format.count(counted.count)}${counted.isMore ? "+" : ""} ${counted.count === 1 && !counted.isMore ? "job" : "jobs"}`;
  if (!ids && counted.count === 0) return html`
    <${Dialog} title=${`${words.verb} jobs`} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Back<//>`}>
      <p>No job fits the filter any more.</p><//>`;
  const run = async () => {
    const body = ids ? { ids } : { filter, count: counted.count, isMore: counted.isMore, upTo: counted.upTo };
    const sum = await throughAll(`/jobs/${action}`, body, setSo);
    const skipped = sum.skipped ? ` ${format.count(sum.skipped)} needed nothing.` : "";
    store.notify(action === "replay" ? `${format.plural(sum.pages, "page")} of ${format.plural(sum.done,
              "job")} put back.${skipped}` : `${format.plural(sum.done, "job")} ${words.done}.${skipped}`);
    onDone();
  };
  return html`<${Confirm} title=${`${words.verb} ${many}?`} verb=${`${words.verb} ${many}`} danger=${words.danger}
      run=${run} onClose=${onClose}>
    <p>${words.says}</p>${ids ? null
      : html`<p class="soft">These are all jobs that fit the filter now, also those that are not shown. Later ones are left alone.</p>`}
    ${so ? html`<p role="status">${format.count(so.done)} done…</p>` : null}
  <//>`;
}
