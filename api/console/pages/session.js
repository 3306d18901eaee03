// One session: watch it or take it over, run code in it, end it.
import { html, cls, useEffect, useRef, useState } from "../lib/ui.js";
import { call, get } from "../lib/api.js";
import { link, useQuery } from "../lib/router.js";
import { useData } from "../lib/data.js";
import { mayChange, seesAll } from "../lib/store.js";
import { sameOrigin } from "../lib/live.js";
import * as format from "../lib/format.js";
import { Button, Card, Empty, Facts, Field, Head, Id, Lasting, Loading, Segments, Status, Time, Trouble } from "../parts/basics.js";
import { Code, Json } from "../parts/code.js";
import { EndSession, teamOf } from "../parts/session.js";

/// There is no route for one session: it is looked for among those that are open, then among those that have ended.
async function find(id, signal) {
  for (const status of ["active", "destroyed"]) {
    let cursor;
    for (let round = 0; round < 10; round += 1) {
      const answer = await get("/sessions", { status, cursor, limit: 200 }, signal);
      const found = answer.sessions.find((session) => session.id === id);
      if (found) return found;
      cursor = answer.next;
      if (!cursor) break;
    }
  }
  return null;
}

export default function Session({ one }) {
  const [query, change] = useQuery();
  const found = useData((signal) => find(one, signal), [one], { every: 5000 });
  const [ending, end] = useState(false);
  const back = { href: link("/sessions"), label: "Sessions" };
  if (found.error && !found.data) return html`<${Head} title="Session" back=${back} />
    <${Trouble} error=${found.error} retry=${found.reload} />`;
  if (found.data === undefined) return html`<${Head} title="Session" back=${back} /><${Card}><${Loading} rows=${6} />
    <//>`;
  if (!found.data) return html`<${Head} title="Session" back=${back} />
    <${Card}><${Empty} title="There is no such session">It may have ended long ago, or belong to another team.<//><//>`;
  const it = found.data;
  const open = it.status === "active";
  const inHand = query.view === "use" && it.interactiveLiveViewUrl;
  const frame = useRef(null);
  const view = sameOrigin(inHand ? it.interactiveLiveViewUrl : it.liveViewUrl);
  return html`<${Head} title=${`Session ${format.shortId(it.id)}`} back=${back}
      note=${html`<${Status} value=${it.status} label=${open ? "open" : "ended"} />`}>
      ${open && it.interactiveLiveViewUrl
        ? html`<${Segments} label="View" at=${inHand ? "use" : "watch"}
            options=${[["watch", "Watch"], ["use", "Take over"]]}
              onChange=${(value) => change({ view: value === "use" ? "use" : "" }, { replace: true })} />` : null}
      ${open && mayChange() ? html`
          <${Button} kind="danger-quiet" icon="cancel" onClick=${() => end(true)}>End<//>` : null}<//>
    ${inHand ? html`<p class="banner">Your pointer and keys go to this browser. Whoever else uses it sees what you do.</p>` : null}
    <div class="grid-side">
      <div class="stack">
        ${open ? (view ? html`<section class="card" aria-label="Live view">
                <iframe key=${view} ref=${frame} class="session-frame" src=${view}
                  title=${inHand ? "The session's browser, yours to use" : "Live view of the session"}
                    allow="clipboard-read; clipboard-write"></iframe></section>`
    : html`<${Card}><${Empty} title="This session may not be watched">It was opened without a live view.<//><//>`)
    : html`<${Card}><${Empty} title="The session has ended">${it.endReason ? `Because: ${it.endReason}.` : ""}<//><//>`}
        ${open && view ? html`<${AsItHappens} frame=${frame} />` : null}
        ${open && mayChange() ? html`<${Run} session=${it} />` : null}
      </div>
      <${Card} title="About"><${Facts} items=${[
    ["Id", html`<${Id} id=${it.id} />`],
    ["Kind", it.kind],
    seesAll() ? ["Team", it.team.name] : null,
    ["Opened", html`<${Time} at=${it.createdAt} />`],
    ["Last used", html`<${Time} at=${it.lastActivity} />`],
    open ? ["Ends", html`<${Time} at=${it.expiresAt} />`] : ["Ended", html`<${Time} at=${it.endedAt} />`],
    ["Lived", html`<${Lasting} from=${it.createdAt} to=${it.endedAt} />`],
    [open ? "Reserved" : "Credits", html`<span title=${open ? "Credits that it may use at most; what it used is counted when it ends"
      : undefined}>${format.plural(it.credits, "credit")}</span>`],
    it.profile ? ["Profile", `${it.profile.name}${it.profile.save ? ", saved at the end" : ", not saved"}`] : ["Profile",
        "none"],
    ["Worker", html`<code>${format.shortId(it.worker || "–")}</code>`],
    it.pageId ? ["Goes on from the page", html`<${Id} id=${it.pageId} /> <a href=${link(`/jobs/${it.pageId}`)}>Open</a>`] : null,
  ]} /><//>
    </div>
    ${ending ? html`<${EndSession} session=${it} onClose=${() => end(false)} onDone=${found.reload} />` : null}`;
}

/// What the live view tells of, such as each step of a task while it is carried out. Only the frame of this page is heard.
function AsItHappens({ frame }) {
  const [told, setTold] = useState([]);
  useEffect(() => {
    const hear = (event) => {
      const { data, origin, source } = event;
      if (origin !== location.origin || !frame.current || source !== frame.current.contentWindow) return;
      if (!data || data.liveView !== "notice" || typeof data.text !== "string") return;
      setTold((told) => [{ at: new Date().toISOString(), text: data.text.slice(0, 500) }, ...told].slice(0, 100));
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, []);
  if (!told.length) return null;
  return html`<${Card} title="As it happens"><ol class="timeline" aria-label="What happens in this browser">
      ${told.map((entry, at) => html`<li key=${told.length - at}><${Time} at=${entry.at} />
          <span class="wrap-any">${entry.text}</span></li>`)}</ol><//>`;
}

/// Code for the session's browser; what was run stays listed with what came out.
function Run({ session }) {
  const words = session.kind === "interact" && session.pageId;
  const [as, setAs] = useState("node");
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [done, setDone] = useState([]);
  const run = async (event) => {
    event.preventDefault();
    setBusy(true);
    const body = as === "prompt" ? { prompt: text } : { code: text, language: as };
    const path = words ? `/v2/scrape/${session.pageId}/interact` : `/v2/browser/${session.id}/execute`;
    const at = new Date().toISOString();
    try {
      const answer = await call("POST", path, { body, query: teamOf(session) });
      setDone((done) => [{ at, as, text, answer }, ...done]);
    } catch (error) {
      setDone((done) => [{ at, as, text, answer: { ok: false, body: { error: error.message }, ms: 0 } }, ...done]);
    }
    setBusy(false);
  };
  return html`<${Card} title="Run in this browser"
      actions=${html`<${Segments} label="Language" at=${as} onChange=${setAs}
            options=${[["node", "JavaScript"], ["python", "Python"], ["bash", "Bash"],
                  ...(words ? [["prompt", "Words"]] : [])]} />`}>
    <form class="form" onSubmit=${run}>
      <${Field} label=${as === "prompt" ? "What to do" : "Code"}
        hint=${as === "node" ? "page, context and browser are there, as in Playwright." : as === "python" ? "page, context and browser are there, as in Playwright for Python." : as === "bash" ? "agent-browser drives the page." : "A language model carries it out."}>
          <textarea class=${cls("area")} spellcheck="false" required value=${text}
            onInput=${(event) => setText(event.target.value)}
              placeholder=${as === "node" ? 'await page.goto("https://example.com");\nawait page.title()' : ""}>
                </textarea><//>
      <div class="actions"><${Button} kind="primary" icon="play" type="submit" busy=${busy}>Run<//></div>
    </form>
    <ol class="timeline" aria-label="What was run">
      ${done.map((entry, at) => html`
            <li key=${done.length - at}
              class=${entry.answer.ok && entry.answer.body && entry.answer.body.success !== false ? "good" : "bad"}>
                <${Time} at=${entry.at} />
                <div class="stack-s"><${Code} kind="code" text=${entry.text} /><${Output} answer=${entry.answer} />
                </div></li>`)}</ol><//>`;
}

function Output({ answer }) {
  const body = answer.body || {};
  const result = body.result ?? body.output;
  // What code prints is its result, too, where it has none of its own.
  const printed = String(body.stdout ?? "").trim() === String(result ?? "").trim() ? null : body.stdout;
  const parts = [["Result", result], ["Output", printed], ["Errors", body.stderr],
    ["Error", body.error]].filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<div class="stack-s"><span class="soft num">${format.duration(answer.ms)}</span>
      ${Array.isArray(body.steps) && body.steps.length ? html`<${Steps} steps=${body.steps} />` : null}
      ${parts.length ? parts.map(([name, value]) => html`
            <div key=${name} class="stack-s"><span class="soft">${name}</span>
              ${typeof value === "string" ? html`<${Code} text=${value} />` : html`<${Json} value=${value} />`}</div>`)
                : html`<${Json} value=${body} />`}</div>`;
}

/// What was done for a task, step by step.
function Steps({ steps }) {
  return html`<ol class="timeline" aria-label="Steps of the task">${steps.map((step) => html`
      <li key=${step.number} class=${step.done ? "good" : "bad"}>
        <span class="num">${format.count(step.number)}</span>
        <span class="wrap-any"><strong>${String((step.action && step.action.tool) || "no action")}</strong>
          ${" "}${String(step.thought || "")}
          <span class="soft"> ${String(step.outcome || "").slice(0, 300)}</span></span></li>`)}</ol>`;
}
