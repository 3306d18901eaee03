// The playground: a form made of the API's own description, the answer beside it, and the same call to copy.
import { html, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { call, get, openapi } from "../lib/api.js";
import { go, link } from "../lib/router.js";
import { useData, useTicks } from "../lib/data.js";
import { mayChange, store } from "../lib/store.js";
import { OPERATIONS, operation as find } from "../lib/operations.js";
import { snippets } from "../lib/snippets.js";
import * as format from "../lib/format.js";
import { Button, Card, Empty, Head, Id, Loading, Outside, Progress, Segments, Status, Tabs, Trouble } from "../parts/basics.js";
import { Code, Json } from "../parts/code.js";
import { DocumentView, Links } from "../parts/document.js";
import { JsonField, SchemaForm } from "../parts/form.js";
import { useActing } from "../parts/team.js";

/// The body lives behind the "#", which browsers send to nobody: it may hold headers with passwords.
function bodyOfAddress() {
  try {
    const found = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}
export const playgroundLink = (id,
  body) => `${link(`/playground/${id}`)}#${encodeURIComponent(JSON.stringify(body || {}))}`;

export default function Playground({ one }) {
  const chosen = find(one) || OPERATIONS[0];
  return html`<${Head} title="Playground" note=${html`<span class="soft">${chosen.says}</span>`} />
    <${Segments} label="Operation" at=${chosen.id} options=${OPERATIONS.map((each) => [each.id, each.name])}
      onChange=${(id) => go(link(`/playground/${id}`))} />
    <${Bench} key=${chosen.id} operation=${chosen} />`;
}

function Bench({ operation }) {
  const api = useData(openapi, []);
  const [body, setBody] = useState(bodyOfAddress);
  const [asJson, setAsJson] = useState("form");
  const [file, setFile] = useState(null);
  const [running, setRunning] = useState(null);
  const [answer, setAnswer] = useState(null);
  const [right, setRight] = useState("answer");
  const answerRef = useRef(null);
  useEffect(() => {
    const text = Object.keys(body).length ? `#${encodeURIComponent(JSON.stringify(body))}` : "";
    if (text.length < 8000) history.replaceState(null, "", location.pathname + location.search + text);
  }, [body]);
  useEffect(() => () => running && running.abort(), [running]);
  const schema = useMemo(() => api.data && schemaOf(api.data, operation), [api.data, operation]);
  const acting = useActing();

  const run = async (event) => {
    event.preventDefault();
    const control = new AbortController();
    setRunning(control);
    setAnswer(null);
    setRight("answer");
    try {
      let options = { body, query: acting.query, signal: control.signal };
      if (operation.file) {
        const form = new FormData();
        form.append("file", file);
        form.append("options", new Blob([JSON.stringify(body)], { type: "application/json" }));
        options = { form, query: acting.query, signal: control.signal };
      }
      setAnswer({ ...(await call("POST", operation.path, options)), at: Date.now() });
    } catch (error) {
      if (error.name !== "AbortError") setAnswer({ status: error.status || 0, ok: false,
          body: { error: error.message, code: error.code }, ms: 0, size: 0 });
    }
    setRunning(null);
  };
  const preview = async () => {
    const control = new AbortController();
    setRunning(control);
    try {
      const found = await call("POST", "/v2/crawl/params-preview",
        { body: { url: body.url || "", prompt: body.prompt || "" }, query: acting.query, signal: control.signal });
      if (found.ok && found.body && found.body.data) {
        const { url: _url, prompt: _prompt, ...rest } = found.body.data;
        const given = Object.fromEntries(Object.entries(rest).filter(([name, value]) => value !== null
              && (!schema || !schema.properties || name in schema.properties)));
        setBody({ ...given, ...body });
        store.notify("The prompt was turned into options. What you had given stayed.");
      } else setAnswer({ ...found, at: Date.now() });
    } catch (error) {
      if (error.name !== "AbortError") store.notify(error.message, "bad");
    }
    setRunning(null);
  };

  if (api.error) return html`<${Trouble} error=${api.error} retry=${api.reload} />`;
  if (!schema) return html`<${Loading} rows=${8} />`;
  const same = snippets(operation.id, body, { file: file ? file.name : undefined });
  return html`<div class="play">
    <${Card} title="Request" actions=${html`
        <${Segments} label="How the request is written" at=${asJson} options=${[["form", "Form"], ["json", "JSON"]]}
          onChange=${setAsJson} />`}>
      <form class="form" onSubmit=${run}>
        ${operation.file ? html`<label class="field"><span class="field-label">File</span>
              <input class="input" type="file" required onChange=${(event) => setFile(event.target.files[0] || null)} />
                </label>` : null}
        ${asJson === "form" ? html`
            <${SchemaForm} api=${api.data} schema=${schema} value=${body} onChange=${setBody}
              first=${operation.first} />`
    : html`<${JsonField} big title="Body" value=${body}
        onChange=${(next) => setBody(next && typeof next === "object" && !Array.isArray(next) ? next : {})} />`}
        ${acting.field}
        ${!mayChange() ? html`<p class="banner">You are signed in to read only.</p>` : null}
        <div class="run-bar">
          <${Button} kind="primary" icon="play" type="submit" busy=${Boolean(running)}
            disabled=${!acting.id || !mayChange()}>Run<//>
          ${running ? html`<${Button} onClick=${() => running.abort()}>Stop waiting<//>` : null}
          ${operation.id === "crawl"
            ? html`<${Button} disabled=${Boolean(running) || !acting.id || !mayChange() || !body.url || !body.prompt}
                onClick=${preview} title="Turns the prompt into options, without crawling">Preview parameters<//>` : null}
          <${Button} kind="quiet" onClick=${() => setBody({})}>Clear<//>
        </div>
      </form>
    <//>
    <div class="stack" ref=${answerRef}>
      <${Card} title="Result">
        <${Tabs} label="Result" at=${right} onChange=${setRight}
          tabs=${[{ id: "answer", label: "Answer" }, { id: "json", label: "JSON" }, { id: "curl", label: "curl" },
                { id: "python", label: "Python" }, { id: "javascript", label: "JavaScript" }]}>
          ${right === "answer" ? html`
              <${Answer} operation=${operation} answer=${answer} running=${running} query=${acting.query} />`
    : right === "json" ? (answer ? html`<${Json} value=${answer.body} tall />`
      : html`<${Empty} title="Nothing was run yet" />`)
      : html`<div class="stack-s"><${Code} kind="code" text=${same[right]} label="Copy the call" wrap=${false} />
          <p class="hint">${right === "curl" ? "Put your API key into WEIR_KEY." : right === "python" ? "pip install firecrawl-py, and your API key in WEIR_KEY." : "npm install firecrawl, and your API key in WEIR_KEY."}
            </p></div>`}
        <//>
      <//>
    </div>
  </div>`;
}

function schemaOf(api, operation) {
  if (operation.schema) return api.components.schemas[operation.schema];
  const content = api.paths[operation.path].post.requestBody.content["application/json"];
  return content.schema.$ref ? content.schema.$ref.split("/").slice(1).reduce((at, key) => at[key],
    api) : content.schema;
}

function Answer({ operation, answer, running, query }) {
  if (running) return html`<div><p class="soft" role="status">Waiting for the answer…</p><${Loading} rows=${5} />
    </div>`;
  if (!answer) return html`
    <${Empty} title="Run a call to see its answer">The same call as curl, Python and JavaScript is in the tabs beside this one.<//>`;
  const body = answer.body || {};
  const head = html`<div class="pane-tools">
      <${Status} value=${answer.ok ? "completed" : "failed"} label=${`HTTP ${answer.status}`} />
      <span class="soft num">${format.duration(answer.ms)}</span>
      <span class="soft num">${format.bytes(answer.size)}</span>
    ${body.data && body.data.metadata && body.data.metadata.scrapeId
      ? html`<${PageLink} id=${body.data.metadata.scrapeId} query=${query} />` : null}
        </div>`;
  if (!answer.ok || body.success === false) return html`
    <div class="stack-s">${head}
      <${Trouble} error=${{ message: typeof body === "string" ? body : body.error || "The call failed.",
            code: body.code }} />${body.details ? html`<${Json} value=${body.details} />` : null}</div>`;
  return html`<div>${head}${body.warning ? html`<p class="banner warn">${String(body.warning)}</p>` : null}
      ${shown(operation, body, query)}</div>`;
}

function shown(operation, body, query) {
  if (operation.job && body.id) return html`<${Started} operation=${operation} id=${body.id} query=${query} />`;
  if (operation.id === "map" && Array.isArray(body.links)) return html`<${Links} links=${body.links} />`;
  if (operation.id === "search" && body.data) return html`<${Hits} data=${body.data} />`;
  if (operation.id === "browser" && body.id) return html`
    <div class="stack-s"><p>The session is open until <strong>
          ${body.expiresAt ? format.exact(body.expiresAt) : "its time is up"}</strong>.</p>
            <div class="actions"><a class="button primary" href=${link(`/sessions/${body.id}`)}>Watch it</a></div>
            <${Json} value=${body} /></div>`;
  if (operation.id === "monitor" && body.data && body.data.id) return html`
    <div class="stack-s"><div class="actions">
      <a class="button primary" href=${link(`/monitors/${body.data.id}`)}>Open the monitor</a></div>
      <${Json} value=${body.data} tall /></div>`;
  if (body.data && typeof body.data === "object") return html`<${DocumentView} document=${body.data} />`;
  return html`<${Json} value=${body} tall />`;
}

/// Where the page of an answer is kept. The answer names the page only; its job is one of the newest.
function PageLink({ id, query }) {
  const found = useData(async (signal) => {
    const { jobs } = await get("/jobs", { since: "15m", limit: 5, ...query }, signal);
    for (const job of jobs.filter((one) => one.total === 1)) {
      const { pages } = await get(`/jobs/${job.id}/pages`, { limit: 1 }, signal);
      if (pages.some((page) => page.id === id)) return link(`/jobs/${job.id}/pages/${id}`);
    }
    return null;
  }, [id]);
  return found.data ? html`<a class="button small" href=${found.data}>Open the page</a>` : null;
}

/// A job that was started: how far it is, until it ends.
function Started({ operation, id, query }) {
  const status = useData(async (signal) => {
    const answer = await call("GET", `${operation.job}/${id}`, { query: { limit: 20, ...query }, signal });
    return answer.body;
  }, [id]);
  const job = status.data;
  const ended = job && job.status && !["scraping", "processing"].includes(job.status);
  useTicks(ended ? 0 : 1000, status.reload);
  return html`<div class="stack">
    <div class="pane-tools"><${Id} id=${id} />${job ? html`<${Status} value=${job.status} />` : null}
      <a class="button small" href=${link(`/jobs/${id}`)}>Open the job</a></div>
    ${job && job.total !== undefined ? html`<div class="progress-cell"><${Progress} done=${job.completed || 0} total=${job.total || 0} />
          <div class="progress-words">
            <span>${format.count(job.completed || 0)} of ${format.plural(job.total || 0, "page")}</span>
            <span>${format.plural(job.creditsUsed || 0, "credit")}</span></div></div>` : null}
    ${job && Array.isArray(job.data) ? job.data.slice(0, 20).map((page, at) => html`
          <${PageOf} key=${at} page=${page} />`)
      : job && job.data && ended ? html`<${Json} value=${job.data} tall />` : null}
  </div>`;
}

function PageOf({ page }) {
  const [open, setOpen] = useState(false);
  const title = (page.metadata && (page.metadata.title || page.metadata.sourceURL)) || "Page";
  return html`<details class="fold" onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${String(title)}</summary>
      ${open ? html`<div class="fold-body"><${DocumentView} document=${page} /></div>` : null}</details>`;
}

function Hits({ data }) {
  const groups = Array.isArray(data) ? [["web", data]] : Object.entries(data).filter(([, list]) => Array.isArray(list));
  if (!groups.some(([, list]) => list.length)) return html`<${Empty} title="Nothing was found" />`;
  return html`<div class="stack">
      ${groups.map(([name, list]) => html`
            <section class="stack-s" key=${name}><h3>${name}</h3>
              ${list.map((hit) => html`
                    <article class="hit"><strong>${String(hit.title || hit.url || hit.imageUrl || "")}</strong>
                      <div><${Outside} url=${hit.url || hit.imageUrl || ""} /></div>
                      ${hit.description || hit.snippet
                        ? html`<p class="soft">${String(hit.description || hit.snippet)}</p>` : null}
                          ${hit.markdown ? html`<${PageOf} page=${hit} />` : null}</article>`)}</section>`)}</div>`;
}
