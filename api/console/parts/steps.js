// What an agent does, step by step, and what came of a task: read from the public API as its team.
import { html } from "../lib/ui.js";
import { callOk } from "../lib/api.js";
import { useData } from "../lib/data.js";
import { seesAll } from "../lib/store.js";
import { Empty, Fold, Loading, Status, Time, Trouble } from "./basics.js";
import { Json } from "./code.js";

const asTeam = (job) => (seesAll() && job.team ? { team: job.team.id } : {});
const every = (ended) => (ended ? 0 : 2_500);

/// The answer of an agent or an extract.
export function Result({ job, ended }) {
  const task = useData((signal) => callOk("GET", `/v2/extract/${job.id}`, { query: asTeam(job), signal }),
    [job.id, ended], { every: every(ended) });
  if (task.error && !task.data) return html`<${Trouble} error=${task.error} retry=${task.reload} />`;
  if (!task.data) return html`<${Loading} />`;
  const { data, error, sources, warning } = task.data;
  return html`<div class="stack-s">
    ${warning ? html`<p class="banner warn">${String(warning)}</p>` : null}
    ${error ? html`<p class="banner warn">${String(error)}</p>` : null}
    ${data === null || data === undefined || (typeof data === "object" && Object.keys(data).length === 0)
      ? html`<${Empty} title=${ended ? "There is no answer" : "No answer yet"} />`
      : typeof data === "string" ? html`<p class="wrap-any">${data}</p>` : html`<${Json} value=${data} tall />`}
    ${sources ? html`<${Fold} title="Where it was read"><${Json} value=${sources} /><//>` : null}
  </div>`;
}

/// The steps of an agent. What a tool was given and what came of it are two events of one step.
export function Steps({ job, ended }) {
  const trace = useData((signal) => callOk("GET", `/v2/agent/${job.id}/trace`, { query: asTeam(job), signal }),
    [job.id, ended], { every: every(ended) });
  if (trace.error && !trace.data) return html`<${Trouble} error=${trace.error} retry=${trace.reload} />`;
  if (!trace.data) return html`<${Loading} />`;
  const done = new Map(trace.data.events.filter((event) => event.type === "tool_call.finished")
    .map((event) => [event.toolCallId, event]));
  const steps = trace.data.events.filter((event) => !["tool_call.finished", "artifact.updated"].includes(event.type));
  return html`<ol class="timeline">${steps.map((event) => html`
        <li key=${event.eventId} class=${toneOf(event, done)}><${Time} at=${event.occurredAt} />
          <${Step} event=${event} end=${done.get(event.toolCallId)} /></li>`)}</ol>`;
}

function toneOf(event, done) {
  if (event.type === "error.occurred" || (event.error && event.type === "run.finished")) return "bad";
  return event.type === "tool_call.started" && !done.has(event.toolCallId) ? "" : "good";
}

function Step({ event, end }) {
  if (event.type === "tool_call.started") return html`<div class="stack-s">
      <span><strong>${event.toolName}</strong>${end ? null : html` <${Status} value="running" />`}</span>
      <${Fold} title="What it was given"><${Json} value=${event.parameters} /><//>
      ${end ? html`<${Fold} title="What came of it"><${Json} value=${end.result} /><//>` : null}</div>`;
  if (event.type === "reasoning.summary") return html`<span class="wrap-any">${event.text}</span>`;
  if (event.type === "run.started") return html`<span>It began.</span>`;
  if (event.type === "run.cancel_requested") return html`<span>It was cancelled.</span>`;
  if (event.type === "run.finished") return html`<span>It ended: ${event.outcome}.
      ${event.error ? ` ${event.error.message}` : ""}</span>`;
  return html`<span class="wrap-any">${event.error ? event.error.message : event.type}</span>`;
}
