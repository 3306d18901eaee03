// The playground: a form made of the API's own description, the answer beside it, and the same call to copy.
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { call, get, openapi } from "../lib/api.js";
import { go, link, useQuery } from "../lib/router.js";
import { useData, useTicks } from "../lib/data.js";
import { mayChange, store } from "../lib/store.js";
import { OPERATIONS, operation as find } from "../lib/operations.js";
import { snippets } from "../lib/snippets.js";
import * as format from "../lib/format.js";
import { Button, Card, Empty, Head, Id, Loading, Outside, Progress, Segments, Status, Tabs, Trouble } from "../parts/basics.js";
import { Code, Json } from "../parts/code.js";
import { DocumentView, Links } from "../parts/document.js";
import { JsonField, Mistakes, SchemaForm } from "../parts/form.js";
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
/// A link that brings a call. What the call lacks is said there: `hidden` names headers whose values are not kept, `part`
/// addresses are there `of` so many.
export const playgroundLink = (id, body, { hidden = [], part, of } = {}) => `${link(`/playground/${id}`,
  { hidden: hidden.join(" "), part, of })}#${encodeURIComponent(JSON.stringify(body || {}))}`;

/// A call that is tried out tells nobody: its webhook's receiver would take it for the real one.
export function withoutWebhook({ webhook: _, ...body }) {
  return body;
}

export const NotKept = ({ hidden }) => html`<p class="banner warn">Values of headers are not kept here: fill them in.
  Left out: ${hidden.map((name, at) => html`${at ? ", " : ""}<code key=${name}>${name}</code>`)}.</p>`;

/// What the call lacks that a link has brought.
function Lacks() {
  const [{ hidden = "", part, of }] = useQuery();
  const names = hidden.split(" ").filter(Boolean);
  return html`${names.length ? html`<${NotKept} hidden=${names} />` : null}
    ${Number(part) < Number(of) ? html`<p class="banner warn">These are the first ${format.count(Number(part))} of
      ${" "}${format.plural(Number(of), "address", "addresses")} of the job.</p>` : null}`;
}

export default function Playground({ one }) {
  const chosen = find(one) || OPERATIONS[0];
  return html`<${Head} title="Playground" note=${html`<span class="soft">${chosen.says}</span>`} />
    <${Segments} label="Operation" at=${chosen.id} options=${OPERATIONS.map((each) => [each.id, each.name])}
      onChange=${(id) => go(link(`/playground/${id}`))} />
    <${Bench} key=${chosen.id} operation=${chosen} />`;
}

function Bench({ operation }) {
  const api = useData(openapi, []);
  const [, change] = useQuery();
  const [body, setBody] = useState(bodyOfAddress);
  const [asJson, setAsJson] = useState("form");
  const [file, setFile] = useState(null);
  const [running, setRunning] = useState(null);
  const [answer, setAnswer] = useState(null);
  const [right, setRight] = useState("answer");
  const answerRef = useRef(null);
  // Fields whose text says nothing that could be sent, and a count that makes all of them anew.
  const [wrong, setWrong] = useState(new Map());
  const [turn, setTurn] = useState(0);
  const mistakes = useCallback((id, what) => setWrong((before) => {
    if ((before.get(id) || null) === what) return before;
    const next = new Map(before);
    next.delete(id);
    if (what) next.set(id, what);
    return next;
  }), []);
  const isWrong = wrong.size > 0;
  useEffect(() => {
    const text = Object.keys(body).length ? `#${encodeURIComponent(JSON.stringify(body))}` : "";
    if (text.length < 8000) history.replaceState(null, "", location.pathname + location.search + text);
  }, [body]);
  useEffect(() => () => running && running.abort(), [running]);
  const schema = useMemo(() => api.data && schemaOf(api.data, operation), [api.data, operation]);
  const acting = useActing();

  const run = async (event) => {
    event.preventDefault();
    if (isWrong) return;
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
        <${Lacks} />
        ${operation.file ? html`<label class="field"><span class="field-label">File</span>
              <input class="input" type="file" required onChange=${(event) => setFile(event.target.files[0] || null)} />
                </label>` : null}
        <${Mistakes.Provider} value=${mistakes}>
          ${asJson === "form" ? html`
              <${SchemaForm} key=${turn} api=${api.data} schema=${schema} value=${body} onChange=${setBody}
                first=${operation.first} />`
    : html`<${JsonField} key=${turn} big object title="Body" value=${body} onChange=${setBody} />`}
        <//>
        ${acting.field}
        ${isWrong ? html`<p class="banner warn" role="status">
              What is written cannot be sent. Mend first: ${[...wrong.values()].join(", ")}.</p>`
          : null}
        ${!mayChange() ? html`<p class="banner">You are signed in to read only.</p>` : null}
        <div class="run-bar">
          <${Button} kind="primary" icon="play" type="submit" busy=${Boolean(running)}
            disabled=${!acting.id || !mayChange() || isWrong}>Run<//>
          ${running ? html`<${Button} onClick=${() => running.abort()}>Stop waiting<//>` : null}
          ${operation.id === "crawl"
            ? html`<${Button} disabled=${Boolean(running) || !acting.id || !mayChange() || isWrong || !body.url || !body.prompt}
                onClick=${preview} title="Turns the prompt into options, without crawling">Preview parameters<//>` : null}
          <${Button} kind="quiet" onClick=${() => {
    change({ hidden: "", part: "", of: "" }, { replace: true });
    setBody({});
    setTurn(turn + 1);
  }}>Clear<//>
        </div>
      </form>
    <//>
    <div class="stack" ref=${answerRef}>
      <${Card} title="Result">
        <${Tabs} label="Result" at=${right} onChange=${setRight}
          tabs=${[{ id: "answer", label: "Answer" }, { id: "json", label: "JSON" }, { id: "curl", label: "curl" },
                { id: "python", label: "Python" }, { id: "javascript", label: "JavaScript" }]}>
          ${right === "answer" ? html`
              <${Answer} operation=${operation} answer=${answer} running=${running} acting=${acting} />`
    : right === "json" ? (answer ? html`<${Json} value=${answer.body} tall />`
      : html`<${Empty} title="Nothing was run yet" />`)
      : isWrong ? html`<${Empty} title="What is written cannot be sent" />` : html`<div class="stack-s"><${Code} kind="code" text=${same[right]} label="Copy the call" wrap=${false} />
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

function Answer({ operation, answer, running, acting }) {
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
      ? html`<${PageLink} id=${body.data.metadata.scrapeId} />` : null}
        </div>`;
  if (!answer.ok || body.success === false) return html`
    <div class="stack-s">${head}
      <${Trouble} error=${{ message: typeof body === "string" ? body : body.error || "The call failed.",
            code: body.code }} />${body.details ? html`<${Json} value=${body.details} />` : null}</div>`;
  return html`<div>${head}${body.warning ? html`<p class="banner warn">${String(body.warning)}</p>` : null}
      ${shown(operation, body, acting)}</div>`;
}

function shown(operation, body, acting) {
  if (operation.job && body.id) return html`<${Started} operation=${operation} id=${body.id} query=${acting.query} />`;
  if (operation.id === "map" && Array.isArray(body.links)) return html`<${Links} links=${body.links} />`;
  if (operation.id === "search" && body.data) return html`<${Hits} data=${body.data} />`;
  if (operation.id === "browser" && body.id) return html`
    <div class="stack-s"><p>The session is open until <strong>
          ${body.expiresAt ? format.exact(body.expiresAt) : "its time is up"}</strong>.</p>
            <div class="actions"><a class="button primary" href=${link(`/sessions/${body.id}`)}>Watch it</a></div>
            <${Json} value=${body} /></div>`;
  if (operation.id === "monitor" && body.data && body.data.id) return html`
    <div class="stack-s"><div class="actions">
      <a class="button primary" href=${link(`/monitors/${body.data.id}`, acting.link)}>Open the monitor</a></div>
      <${Json} value=${body.data} tall /></div>`;
  if (body.data && typeof body.data === "object") return html`<${DocumentView} document=${body.data} />`;
  return html`<${Json} value=${body} tall />`;
}

/// Where the page of an answer is kept, if it is: the answer names the page only, by which its job is found.
function PageLink({ id }) {
  const found = useData((signal) => get(`/jobs/${encodeURIComponent(id)}`, {}, signal), [id]);
  return found.data && found.data.page
    ? html`<a class="button small" href=${link(`/jobs/${found.data.id}/pages/${id}`)}>Open the page</a>` : null;
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
