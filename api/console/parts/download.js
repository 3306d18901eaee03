// Buttons that make a file, and say how far it is: pressed again, they stop.
import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { callOk, get } from "../lib/api.js";
import { csv, save } from "../lib/download.js";
import { seesAll, store } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Button } from "./basics.js";

/// `make(signal, onCount)` answers `{name, parts, type}`; `onCount` hears how many things are in it so far.
export function Download({ children, title, make }) {
  const [so, setSo] = useState(null);
  const control = useRef(null);
  useEffect(() => () => control.current && control.current.abort(), []);
  const press = async () => {
    if (control.current) {
      control.current.abort();
      return;
    }
    const mine = new AbortController();
    control.current = mine;
    setSo(0);
    try {
      const { name, parts, type } = await make(mine.signal, setSo);
      save(name, parts, type);
    } catch (error) {
      if (error.name !== "AbortError") store.notify(error.message, "bad");
    }
    control.current = null;
    setSo(null);
  };
  return html`<${Button} small icon=${so === null ? "download" : "cancel"} title=${so === null ? title : "Stop"}
      onClick=${press}>${so === null ? children : `Stop, ${format.count(so)} so far`}<//>`;
}

/// Pages that one request answers at most.
const PIECE = 200;

/// The list of a job's pages that fit the filter, as CSV.
export async function listOfPages(job, filter, signal, onCount) {
  const rows = [["number", "url", "state", "code", "error", "tries", "queuedAt", "startedAt", "finishedAt", "id"]];
  const parts = [];
  let [cursor, count] = [undefined, 0];
  do {
    const answer = await get(`/jobs/${job.id}/pages`, { ...filter, cursor, limit: PIECE }, signal);
    for (const page of answer.pages) rows.push([page.index + 1, page.url, page.status, page.code, page.error, page.claims,
        page.queuedAt, page.startedAt, page.finishedAt, page.id]);
    parts.push(csv(rows.splice(0)));
    count += answer.pages.length;
    onCount(count);
    cursor = answer.next;
  } while (cursor);
  return { name: `pages-${format.shortId(job.id)}.csv`, parts, type: "text/csv" };
}

const STATUS_OF = { batch: "/v2/batch/scrape", crawl: "/v2/crawl" };
/// Whether the public API gives the results of all pages of such a job.
export const hasResults = (job) => Object.hasOwn(STATUS_OF, job.kind) && job.completed > 0;

/// What came of a job's pages: a document a line, as the public API gives them.
export async function results(job, signal, onCount) {
  const parts = [];
  const team = seesAll() && job.team ? { team: job.team.id } : {};
  let [query, count] = [team, 0];
  while (query) {
    const answer = await callOk("GET", `${STATUS_OF[job.kind]}/${job.id}`, { query, signal });
    // A blob is kept by the browser and not by the page.
    parts.push(new Blob(answer.data.map((document) => `${JSON.stringify(document)}\n`)));
    count += answer.data.length;
    onCount(count);
    query = answer.next && answer.data.length
      ? { ...Object.fromEntries(new URL(answer.next, location.href).searchParams), ...team } : null;
  }
  return { name: `results-${format.shortId(job.id)}.jsonl`, parts, type: "application/x-ndjson" };
}
