// The small things that every page uses: times, states, buttons, notices, places where nothing is.
import { cloneElement, html, cls, useEffect, useId, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { useNow } from "../lib/data.js";
import { store, useStore } from "../lib/store.js";
import * as format from "../lib/format.js";
import { Icon } from "./icon.js";

/// A time in words, exact on hover and for screen readers that ask.
export function Time({ at, fallback = format.DASH }) {
  const now = useNow();
  if (!at) return html`<span class="soft">${fallback}</span>`;
  const exact = format.exact(at);
  const date = new Date(at);
  return html`<time datetime=${Number.isNaN(date.getTime()) ? undefined : date.toISOString()} title=${exact}>
      ${format.relative(at, now)}</time>`;
}

/// A length of time that may still be growing.
export function Lasting({ from, to }) {
  const now = useNow();
  if (!from) return html`<span class="soft">${format.DASH}</span>`;
  const until = to ? new Date(to).getTime() : now;
  return html`<span class="num">${format.duration(Math.max(0, until - new Date(from).getTime()))}</span>`;
}

const TONES = {
  completed: "good", delivered: "good", live: "good", active: "good", ok: "good", healthy: "good", done: "good",
  scraping: "busy", running: "busy", processing: "busy", opening: "busy", started: "busy",
  queued: "idle", waiting: "idle", cancelled: "idle", destroyed: "idle", ended: "idle", skipped: "idle",
    removed: "idle", same: "idle", revoked: "idle",
  failed: "bad", dead: "bad", error: "bad", unhealthy: "bad", down: "bad",
  draining: "warn", closing: "warn", degraded: "warn", changed: "warn", new: "good",
};
const SHAPES = { good: "M2 6.500l2.500 2.500L10 3", busy: "M6 2a4 4 0 1 1-4 4", idle: "M3 6h6",
  bad: "M3 3l6 6M9 3l-6 6", warn: "M6 2v5M6 9.500v.200" };

/// A state as a word with a shape, so that colour is never all there is.
export function Status({ value, label, tone }) {
  const kind = tone || TONES[value] || "idle";
  return html`<span class=${cls("status", kind)}>
    <svg viewBox="0 0 12 12" aria-hidden="true"><path d=${SHAPES[kind]} /></svg>${label || value}
  </span>`;
}

export const Tag = ({ children, tone }) => html`<span class=${cls("tag", tone)}>${children}</span>`;

export function Button({ children, icon, kind, small, busy, title, label, ...rest }) {
  return html`<button type="button" ...${rest}
      class=${cls("button", kind, small && "small", !children && "square", rest.class)}
      aria-label=${label} title=${title || label} aria-busy=${busy ? "true" : undefined}
        disabled=${rest.disabled || busy}>
    ${icon ? html`<${Icon} name=${icon} />` : null}${children ? html`<span>${children}</span>` : null}
  </button>`;
}

/// A link to a page of the web as text. Only http and https become links; nothing is told of where they were followed from.
export function Outside({ url, children }) {
  const safe = format.safeUrl(url);
  const text = children || String(url);
  if (!safe) return html`<span class="url">${text}</span>`;
  return html`<a class="url" href=${safe} target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;
}

/// A link within the console whose words are an address of the web, in a row where room is short. Its name is all of it.
export function RowAddress({ href, url }) {
  const [head, tail] = format.halves(url || "Not kept");
  return html`<a class="row-link" href=${href} title=${url} aria-label=${url || undefined}>
      ${tail ? html`<span class="cut"><span class="cut-head">${head}</span><span class="cut-tail">${tail}</span></span>`
        : head}</a>`;
}

export function Loading({ rows = 4, label = "Loading" }) {
  return html`<div class="loading" role="status"><span class="hidden">${label}…</span>
    ${Array.from({ length: rows }, () => html`<div class="bone" aria-hidden="true"></div>`)}</div>`;
}

export function Trouble({ error, retry }) {
  if (!error) return null;
  return html`<div class="trouble" role="alert">
    <${Icon} name="failures" />
    <div><strong>${error.message}</strong>${error.code ? html` <code>${error.code}</code>` : null}
      ${error.status === 403 ? html`<p>Your sign-in does not allow this.</p>` : null}</div>
    ${retry ? html`<${Button} small onClick=${retry}>Try again<//>` : null}
  </div>`;
}

export function Empty({ title, children, action }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children ? html`<p>${children}</p>` : null}
      ${action || null}</div>`;
}

/// Copies where the browser gives no clipboard, as over plain HTTP. A dialog that is open makes all outside of it inert,
/// so the text to be selected has to stand in it. Whether it was copied.
function copyBySelection(value) {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = value;
  area.className = "hidden";
  const dialogs = document.querySelectorAll("dialog[open]");
  (dialogs[dialogs.length - 1] || document.body).append(area);
  area.select();
  area.focus();
  const done = document.activeElement === area && document.execCommand("copy");
  area.remove();
  if (before && before.isConnected) before.focus();
  return done;
}

export function Copy({ text, label = "Copy", small = true, words }) {
  const [state, set] = useState("");
  const copy = async () => {
    const value = typeof text === "function" ? text() : text;
    let done = true;
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      done = copyBySelection(value);
    }
    set(done ? "done" : "failed");
    if (!done && !words) store.notify("The browser does not let this page copy. Select the text and copy it.", "bad");
    setTimeout(() => set(""), done ? 1600 : 10_000);
  };
  return html`<${Button} small=${small} kind="quiet" icon=${state === "done" ? "check" : "copy"}
      label=${words ? undefined : label} title=${label}
      onClick=${copy}>${words ? { done: "Copied", failed: "Select it and copy" }[state] || words : null}<//>`;
}

export function Id({ id }) {
  return html`<span class="id"><code title=${id}>${format.shortId(id)}</code><${Copy} text=${id} label="Copy the id" />
    </span>`;
}

/// A part of a page with a heading.
export function Card({ title, note, actions, children, flush, id, wide }) {
  return html`<section class=${cls("card", flush && "flush", wide && "wide")} aria-label=${title}>
    ${title || actions ? html`
        <header class="card-head">${title ? html`<h2 id=${id}>${title}</h2>` : null}
          ${note ? html`<span class="soft">${note}</span>` : null}<div class="actions">${actions || null}</div>
            </header>` : null}
    <div class="card-body">${children}</div>
  </section>`;
}

export function Head({ title, children, back, note }) {
  useEffect(() => {
    document.title = `${typeof title === "string" ? title : "Weir"} · Weir`;
  }, [title]);
  return html`<header class="page-head">
    <div class="page-title">${back
        ? html`<a class="back" href=${back.href}><${Icon} name="left" />${back.label}</a>` : null}<h1
          title=${typeof title === "string" ? title : undefined}>${title}</h1>
          ${note || null}</div>
    <div class="actions">${children}</div>
  </header>`;
}

/// Pairs of a name and what it is; a third member that is true gives it the whole width.
export function Facts({ items }) {
  return html`<dl class="facts">
      ${items.filter(Boolean).map(([name, value, wide]) => html`
            <div class=${wide ? "wide" : undefined}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Progress({ done, failed = 0, total, label }) {
  const of = Math.max(total, 1);
  const good = Math.min(100, ((done - failed) / of) * 100);
  const bad = Math.min(100, (failed / of) * 100);
  return html`<div class="progress" role="progressbar" aria-label=${label || "Pages done"} aria-valuemin="0"
      aria-valuemax=${total} aria-valuenow=${Math.min(done, total)}
      title=${`${format.count(done)} of ${format.count(total)} done${failed ? `, ${format.count(failed)} failed` : ""}`}>
    <span class="progress-good" style=${{ width: `${good}%` }}></span>
    <span class="progress-bad" style=${{ width: `${bad}%` }}></span>
  </div>`;
}

/// Tabs as the ARIA pattern has them: arrows move, one tab stop.
export function Tabs({ tabs, at, onChange, label, children }) {
  const base = useId();
  const list = useRef(null);
  const now = tabs.some((tab) => tab.id === at) ? at : tabs[0] && tabs[0].id;
  // Where they stand in one line that is moved, the chosen one is in view.
  useLayoutEffect(() => {
    const line = list.current;
    const tab = line.querySelector('[aria-selected="true"]');
    if (!tab || line.scrollWidth <= line.clientWidth) return;
    const [from, to] = [tab.offsetLeft - line.offsetLeft, tab.offsetLeft - line.offsetLeft + tab.offsetWidth];
    if (from < line.scrollLeft || to > line.scrollLeft + line.clientWidth) {
      line.scrollLeft = from - (line.clientWidth - tab.offsetWidth) / 2;
    }
  }, [now]);
  const move = (event) => {
    const index = tabs.findIndex((tab) => tab.id === now);
    const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    onChange(next.id);
    list.current.querySelector(`[data-tab="${CSS.escape(next.id)}"]`).focus();
  };
  return html`<div class="tabs">
    <div class="tab-list" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
      ${tabs.map((tab) => html`
            <button type="button" role="tab" data-tab=${tab.id} key=${tab.id} id=${`${base}-${tab.id}`}
              aria-selected=${tab.id === now ? "true" : "false"}
        aria-controls=${`${base}-panel`} tabindex=${tab.id === now ? 0 : -1} class="tab"
          onClick=${() => onChange(tab.id)}>${tab.label}
            ${tab.count !== undefined ? html`<span class="tab-count">${format.short(tab.count)}</span>` : null}
            </button>`)}
    </div>
    <div class="tab-panel" role="tabpanel" id=${`${base}-panel`} aria-labelledby=${`${base}-${now}`} tabindex="0">
      ${children}</div>
  </div>`;
}

/// One of a few, as buttons side by side.
export function Segments({ options, at, onChange, label }) {
  return html`<div class="segments" role="group" aria-label=${label}>
    ${options.map(([value, text]) => html`
          <button type="button" key=${value} class="segment" aria-pressed=${value === at ? "true" : "false"}
            onClick=${() => onChange(value)}>${text}</button>`)}
  </div>`;
}

/// A native dialog: it holds the focus, and gives it back to where it was. One that `stays` is closed by its own buttons
/// alone, since what it shows is shown once.
export function Dialog({ title, onClose, children, actions, wide, stays }) {
  const ref = useRef(null);
  // A click whose pointer went down inside, as at the end of a selection, means nothing: it counts as one of the backdrop.
  const down = useRef(false);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = ref.current;
    dialog.showModal();
    const first = dialog.querySelector("input, select, textarea, .dialog-foot button");
    if (first) first.focus();
    return () => {
      dialog.close();
      if (before && before.isConnected) before.focus();
    };
  }, []);
  useEffect(() => {
    if (!stays) return undefined;
    // The second Escape closes a dialog whatever its first one was answered, unless the key itself comes to nothing.
    const hold = (event) => event.key === "Escape" && event.preventDefault();
    addEventListener("keydown", hold, true);
    return () => removeEventListener("keydown", hold, true);
  }, [stays]);
  return html`<dialog ref=${ref} class=${cls("dialog", wide && "dialog-wide")} aria-labelledby=${id}
      closedby=${stays ? "none" : undefined} onCancel=${(event) => {
    event.preventDefault();
    if (!stays) onClose();
  }} onPointerDown=${(event) => {
    down.current = event.target === ref.current;
  }} onClick=${(event) => {
    if (!stays && down.current && event.target === ref.current) onClose();
  }}>
    <div class="dialog-inner">
      <header class="dialog-head"><h2 id=${id}>${title}</h2>
        ${stays ? null : html`<${Button} kind="quiet" icon="close" label="Close" onClick=${onClose} />`}</header>
      <div class="dialog-body">${children}</div>
      ${actions ? html`<footer class="dialog-foot">${actions}</footer>` : null}
    </div>
  </dialog>`;
}

/// Asks before something that cannot be taken back. `run` may take its time and may fail; the dialog tells of both.
export function Confirm({ title, children, verb, danger, run, onClose }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      await run();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${html`
      <${Button} onClick=${onClose}>Back<//>
      <${Button} kind=${danger ? "danger" : "primary"} busy=${busy} onClick=${act} data-confirm>${verb}<//>`}>
    ${children}<${Trouble} error=${error} />
  <//>`;
}

export function Notices() {
  const { notices } = useStore();
  return html`<div class="notices" role="status" aria-live="polite">
    ${notices.map((notice) => html`<div key=${notice.id} class=${cls("notice", notice.kind)}><span>${notice.text}</span>
      <${Button} kind="quiet" small icon="close" label="Dismiss" onClick=${() => store.dismiss(notice.id)} /></div>`)}
  </div>`;
}

/// A field with its name; what it is for is its description and no part of the name.
export function Field({ label, hint, error, children }) {
  const id = useId();
  const about = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const control = cloneElement(children,
    { id, "aria-describedby": about || undefined, "aria-invalid": error ? "true" : undefined });
  return html`<div class="field"><label class="field-label" for=${id}>${label}</label>${control}
      ${hint ? html`<span class="hint" id=${`${id}-hint`}>${hint}</span>` : null}
      ${error ? html`<span class="field-error" id=${`${id}-error`} role="alert">${error}</span>` : null}</div>`;
}

/// A part that opens: native, so that keys and search in the page work.
export function Fold({ title, children, open, count }) {
  const [shown, set] = useState(Boolean(open));
  return html`<details class="fold" open=${shown} onToggle=${(event) => set(event.currentTarget.open)}>
    <summary><${Icon} name="right" />${title}
      ${count !== undefined ? html`<span class="tab-count">${format.short(count)}</span>` : null}</summary>
    ${shown ? html`<div class="fold-body">${children}</div>` : null}
  </details>`;
}

/// Typing changes the address once it rests, and does not fill the history.
export function Typed({ label, placeholder, value, onChange }) {
  const [text, setText] = useState(value || "");
  useEffect(() => setText(value || ""), [value]);
  useEffect(() => {
    if (text.trim() === (value || "")) return undefined;
    const timer = setTimeout(() => onChange(text.trim()), 350);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<input class="input" type="search" aria-label=${label} placeholder=${placeholder} spellcheck="false"
      value=${text} onInput=${(event) => setText(event.target.value)}
        onKeyDown=${(event) => event.key === "Enter" && onChange(text.trim())} />`;
}
