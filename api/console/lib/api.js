// Calls to the service: the console's own below /console/api, and the public API as the signed-in team. The session is
// an HttpOnly cookie that no script sees; what proves that a change was meant is the token that every unsafe call carries.
//
// The cookie is the browser's, and a tab shows what one sign-in may see: another tab may have signed in as somebody else
// since. Each answer says in `X-Weir-Session` which session it is of (of an API before this one it does not), and what is
// of somebody else is not handed on.
import { isSameOne, store } from "./store.js";
import { nameOf } from "./words.js";

const BASE = "/console/api";

class CallError extends Error {
  constructor(status, body) {
    super(words(status, body));
    this.status = status;
    this.code = body && typeof body === "object" ? body.code : undefined;
    this.body = body;
  }
}

function words(status, body) {
  const said = body && typeof body === "object" ? body.error : undefined;
  if (typeof said === "string" && said) return said;
  return status === 0 ? "The service does not answer." : `The service answered with status ${status}.`;
}

/// What can be narrowed to one team. Everything else is known by its id, and refuses a team.
const BY_TEAM = /^\/(overview|jobs|failures|usage|keys|sessions|public\/.*)$/;

/// The team an operator looks at is part of the address.
function address(path, query) {
  const url = new URL(BASE + path, location.origin);
  for (const [name, value] of Object.entries(query || {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  const team = store.value.team;
  if (team && BY_TEAM.test(path) && store.value.me && store.value.me.role !== "team"
      && !url.searchParams.has("team")) url.searchParams.set("team", team);
  return url;
}

async function ask(method, path, { query, body, form, signal } = {}) {
  const headers = {};
  if (method !== "GET") headers["X-Weir-CSRF"] = (store.value.me && store.value.me.csrf) || "";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(address(path, query), {
      method, headers, signal, credentials: "same-origin",
        body: form || (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, null);
  }
}

/// The text of an answer, and what it says; what is not JSON is kept as text, which is shown as text.
async function read(response) {
  const text = await response.text();
  try {
    return { text, parsed: text ? JSON.parse(text) : null };
  } catch {
    return { text, parsed: text };
  }
}

let looking = null;
/// Reads who is signed in now. Somebody else than before begins anew, and is told so.
export function lookWho() {
  looking ||= (async () => {
    const response = await ask("GET", "/me");
    const { parsed } = await read(response);
    const before = store.value.me;
    if (response.status === 401) store.signedOut(before ? "Your sign-in has ended. Sign in again to go on." : "");
    else if (!response.ok) throw new CallError(response.status, parsed);
    else {
      store.signedIn(parsed);
      if (before && !isSameOne(before, parsed)) store.notify(`You are now signed in as ${nameOf(parsed)}.`, "warn");
    }
  })().finally(() => {
    looking = null;
  });
  return looking;
}

const ELSE = "Somebody else has signed in in this browser.";
const sessionOf = (response) => response.headers.get("X-Weir-Session");

/// Whether an answer may be to somebody else than who the tab believes in: it is of another session, nobody is signed in,
/// or the token of a change is not that of the cookie.
function isDoubtful(method, response, me) {
  const session = sessionOf(response);
  return (session && me.session && session !== me.session) || response.status === 401
    || (response.status === 403 && method !== "GET");
}

async function send(method, path, options = {}) {
  const { me } = store.value;
  let response = await ask(method, path, options);
  if (!me) return response;
  if (isDoubtful(method, response, me)) await lookWho();
  const now = store.value.me;
  if (!now) throw new CallError(401, { error: "Your sign-in has ended." });
  if (!isSameOne(me, now)) throw new DOMException(ELSE, "AbortError");
  // The same one has signed in anew: what was refused for the token of before had no effect.
  if ([401, 403].includes(response.status) && now.csrf !== me.csrf) response = await ask(method, path, options);
  const session = sessionOf(response);
  if (session && now.session && ![me.session, now.session].includes(session)) throw new DOMException(ELSE, "AbortError");
  return response;
}

async function readAnswer(method, path, options) {
  const response = await send(method, path, options);
  const { parsed } = await read(response);
  if (!response.ok) throw new CallError(response.status, parsed);
  return parsed;
}

export const get = (path, query, signal) => readAnswer("GET", path, { query, signal });
export const post = (path, body = {}, query) => readAnswer("POST", path, { body, query });
export const patch = (path, body = {}, query) => readAnswer("PATCH", path, { body, query });
export const remove = (path, query) => readAnswer("DELETE", path, { query });

/// A call of the public API as the signed-in team: the status and the body, whatever they are.
export async function call(method, path, { body, form, query, signal } = {}) {
  const began = performance.now();
  const response = await send(method, `/public${path}`, { body, form, query, signal });
  const { text, parsed } = await read(response);
  return { status: response.status, ok: response.ok, body: parsed, size: text.length, ms: performance.now() - began };
}

/// The same where only success is of use.
export async function callOk(method, path, options) {
  const answer = await call(method, path, options);
  if (!answer.ok) throw new CallError(answer.status, answer.body);
  return answer.body;
}

let document_;
/// The API's own description, read once.
export function openapi() {
  document_ ||= fetch("/openapi.json").then((response) => {
    if (!response.ok) throw new CallError(response.status, null);
    return response.json();
  }).catch((error) => {
    document_ = undefined;
    throw error;
  });
  return document_;
}
