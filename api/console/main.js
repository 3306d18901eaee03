// The console's start: who is signed in, the frame of navigation, and which page stands in it.
import { html, render, cls, useEffect, useRef, useState } from "./lib/ui.js";
import { BASE, current, go, link, useLocation } from "./lib/router.js";
import { get, post } from "./lib/api.js";
import { seesAll, store, useStore } from "./lib/store.js";
import { useStream } from "./lib/stream.js";
import { nameOf, ROLES } from "./lib/words.js";
import * as format from "./lib/format.js";
import { Button, Empty, Head, Loading, Notices, Trouble } from "./parts/basics.js";
import { Icon } from "./parts/icon.js";
import { AT, SignIn, takeToken } from "./pages/sign-in.js";

/// The page map. `file` is read when its page is first opened.
const PAGES = [
  { path: /^$/, file: "overview" },
  { path: /^\/jobs$/, file: "jobs" },
  { path: /^\/jobs\/([^/]+)$/, file: "job" },
  { path: /^\/jobs\/([^/]+)\/pages\/([^/]+)$/, file: "page" },
  { path: /^\/playground(?:\/([^/]+))?$/, file: "playground" },
  { path: /^\/sessions$/, file: "sessions" },
  { path: /^\/sessions\/([^/]+)$/, file: "session" },
  { path: /^\/monitors$/, file: "monitors" },
  { path: /^\/monitors\/([^/]+)$/, file: "monitor" },
  { path: /^\/failures$/, file: "failures" },
  { path: /^\/usage$/, file: "usage" },
  { path: /^\/keys$/, file: "keys" },
  { path: /^\/teams$/, file: "teams", all: true },
  { path: /^\/workers$/, file: "workers", all: true },
];

const NAVIGATION = [
  ["", "overview", "Overview"], ["/jobs", "jobs", "Jobs"], ["/playground", "playground", "Playground"],
    ["/sessions", "sessions", "Sessions"], ["/monitors", "monitors", "Monitors"],
  ["/failures", "failures", "Failures"], ["/usage", "usage", "Usage"], ["/keys", "keys", "Keys"],
    ["/teams", "teams", "Teams", true], ["/workers", "workers", "Workers", true],
];

const loaded = new Map();
function load(file) {
  if (!loaded.has(file)) loaded.set(file, import(`./pages/${file}.js`));
  return loaded.get(file);
}

/// Between two tries to load a page, milliseconds.
const AGAIN = 2_000;

/// Whether the service answers: then a page that could not be loaded is there, or is another one by now.
async function isThere() {
  try {
    await get("/me");
    return true;
  } catch (error) {
    return error.status === 401;
  }
}

function Page({ file, parts }) {
  const [module, set] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let mine = true;
    let timer;
    const attempt = async (before) => {
      try {
        const found = await load(file);
        if (mine) {
          set({ file, found });
          setError(null);
        }
      } catch {
        loaded.delete(file);
        if (!mine) return;
        const there = await isThere();
        if (!mine) return;
        // It answers, and the page still cannot be loaded: its address has changed with an update.
        if (there && before === "there") {
          setError(new Error("This page could not be loaded. The service may have been updated: load the console anew."));
          return;
        }
        if (!there) setError(new Error("The service does not answer. The page is loaded as soon as it does."));
        timer = setTimeout(() => attempt(there ? "there" : "away"), AGAIN);
      }
    };
    setError(null);
    attempt("");
    return () => {
      mine = false;
      clearTimeout(timer);
    };
  }, [file]);
  if (error) return html`<${Trouble} error=${error} retry=${() => location.reload()} />`;
  if (!module || module.file !== file) return html`<${Loading} rows=${6} />`;
  return html`<${module.found.default} ...${parts} />`;
}

/// Addresses are typed by people, too: one that cannot be decoded is taken as it stands.
function readable(path) {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

function Shell() {
  const { path } = useLocation();
  const { me, team } = useStore();
  const [open, setOpen] = useState(false);
  const main = useRef(null);
  const below = readable(path.slice(BASE.length));
  const page = PAGES.find((page) => page.path.test(below) && (!page.all || seesAll()));
  const found = page && page.path.exec(below);
  useEffect(() => {
    setOpen(false);
    if (main.current && main.current.dataset.seen) main.current.focus({ preventScroll: true });
    if (main.current) main.current.dataset.seen = "1";
  }, [path]);
  useEffect(() => {
    const escape = (event) => event.key === "Escape" && setOpen(false);
    addEventListener("keydown", escape);
    return () => removeEventListener("keydown", escape);
  }, []);
  return html`<a class="skip" href="#main" onClick=${(event) => {
    event.preventDefault();
    main.current.focus();
  }}>To the content</a>
  <div class="shell">
    <aside class=${cls("side", open && "open")} id="side">
      <a class="brand" href=${BASE}><img src=${new URL("./icon.svg", import.meta.url).href} alt="" />Weir</a>
      <nav class="nav" aria-label="Pages">
        ${NAVIGATION.filter(([, , , all]) => !all || seesAll()).map(([to, icon, label]) => html`
              <a key=${label} href=${link(to)}
                aria-current=${(to === "" ? below === "" : below === to || below.startsWith(`${to}/`)) ? "page" : undefined}>
                  <${Icon} name=${icon} />${label}</a>`)}
      </nav>
      <${Who} me=${me} />
    </aside>
    <div class="veil" onClick=${() => setOpen(false)}></div>
    <div>
      <header class="top">
        <span class="menu-button">
          <${Button} kind="quiet" icon="menu" label="Pages" aria-expanded=${open ? "true" : "false"}
            aria-controls="side" onClick=${() => setOpen(!open)} /></span>
        ${seesAll() ? html`<${TeamChoice} team=${team} />` : null}
        <span class="space"></span>
        <${Live} /><${Theme} />
      </header>
      <main class="main" id="main" tabindex="-1" ref=${main} data-at=${location.href}>
        ${page ? html`<${Page} key=${`${page.file} ${found.slice(1).join(" ")} ${team || ""}`} file=${page.file}
              parts=${{ one: found[1], two: found[2] }} />`
    : html`<${Head} title="Not found" />
      <${Empty} title="There is no such page" action=${html`<a class="button" href=${BASE}>To the overview</a>`} />`}
      </main>
    </div>
  </div>
  <${Notices} />`;
}

function Who({ me }) {
  const out = async () => {
    try {
      await post("/sign-out");
    } catch (error) {
      // Whoever has signed in meanwhile is not the one who leaves. Otherwise the cookie may be gone already.
      if (error.name === "AbortError") return;
    }
    store.signedOut();
    go(AT);
  };
  return html`<div class="side-foot"><div class="who">
    <span class="who-name">${me.team ? me.team.name : "All teams"}
      <span class="who-role" title=${`This sign-in ends ${format.exact(me.expiresAt)} at the latest`}>
        ${ROLES[me.role] || me.role}</span></span>
    <${Button} kind="quiet" small icon="signout" label="Sign out" onClick=${out} /></div>
      ${me.version ? html`<span class="who-role">Weir ${me.version}</span>` : null}</div>`;
}

function TeamChoice({ team }) {
  const { teams } = useStore();
  useEffect(() => {
    // One that is removed is none that anything can be looked at or done as.
    const read = () => get("/teams").then((answer) => {
      const there = answer.teams.filter((one) => !one.removedAt);
      store.set({ teams: there });
      if (store.value.team && !there.some((one) => one.id === store.value.team)) store.choose("");
    }, (error) => store.notify(error.message, "bad"));
    read();
    addEventListener("weir-teams", read);
    return () => removeEventListener("weir-teams", read);
  }, []);
  return html`<select class="select team-choice" aria-label="Team" value=${team || ""}
      onChange=${(event) => store.choose(event.target.value)}>
    <option value="">All teams</option>
    ${teams.map((one) => html`<option key=${one.id} value=${one.id} selected=${one.id === team}>${one.name}</option>`)}
  </select>`;
}

function Live() {
  const { state } = useStream();
  const { paused } = useStore();
  const word = paused ? "Paused" : { live: "Live", opening: "Connecting", away: "Connection lost",
    closed: "Idle" }[state];
  return html`<span class=${cls("live", paused ? "paused" : state)} role="status"><span class="live-dot"></span>
      <span>${word}</span></span>
    <${Button} kind="quiet" small icon=${paused ? "play" : "pause"}
      label=${paused ? "Go on with live figures" : "Pause live figures"}
        onClick=${() => store.set({ paused: !paused })} />`;
}

const THEMES = [["system", "system"], ["light", "sun"], ["dark", "moon"]];
function Theme() {
  const [theme, set] = useState(document.documentElement.dataset.theme || "system");
  const next = THEMES[(THEMES.findIndex(([name]) => name === theme) + 1) % THEMES.length][0];
  const choose = () => {
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem("weir.theme");
      else localStorage.setItem("weir.theme", next);
    } catch {
      // The choice lasts as long as the tab.
    }
    set(next);
  };
  return html`<${Button} kind="quiet" small icon=${THEMES.find(([name]) => name === theme)[1]}
      label=${`Theme: ${theme}. Change to ${next}`} onClick=${choose} />`;
}

const USED = "This link has been used or has expired.";

/// Who is signed in at the start: by a link, which is meant more than the session that the browser has, or by that.
async function enter(token) {
  let isUsed = false;
  if (token) {
    try {
      store.signedIn(await post("/sign-in", { token }));
      return;
    } catch (failure) {
      if (failure.status !== 401) throw failure;
      isUsed = true;
    }
  }
  try {
    store.signedIn(await get("/me"));
    if (isUsed) store.notify(`${USED} You are still signed in as ${nameOf(store.value.me)}.`, "warn");
  } catch (failure) {
    if (failure.status !== 401) throw failure;
    if (isUsed) store.set({ said: `${USED} Sign in with a key.` });
  }
}

function App() {
  const { me, said } = useStore();
  const { path } = useLocation();
  const [ready, setReady] = useState(false);
  const [error, setError] = useState(null);
  // Kept until it was tried: the service may not answer at first.
  const token = useRef(null);
  const start = async () => {
    token.current = takeToken() || token.current;
    setReady(false);
    setError(null);
    try {
      await enter(token.current);
      token.current = null;
    } catch (failure) {
      setError(failure);
    }
    setReady(true);
  };
  useEffect(() => {
    start();
    // A link that is pasted where the form stands loads nothing anew.
    const pasted = () => current().path === AT && location.hash && start();
    addEventListener("hashchange", pasted);
    return () => removeEventListener("hashchange", pasted);
  }, []);
  const isDone = Boolean(me) && path === AT;
  useEffect(() => {
    if (isDone) go(BASE, { replace: true });
  }, [isDone]);
  if (!ready || isDone) return html`<p class="boot" role="status">Loading the console…</p>`;
  if (error) return html`<main class="sign">
      <div class="sign-box"><h1>Weir</h1><${Trouble} error=${error} retry=${start} /></div></main>`;
  // Somebody else begins anew: nothing of what was read before is theirs.
  return me ? html`<${Shell} key=${`${me.role} ${me.team ? me.team.id : ""}`} />`
    : html`<${SignIn} said=${said} /><${Notices} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
