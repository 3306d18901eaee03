// Calls to the service: the console's own below /console/api, and the public API as the signed-in team. The session is
// an HttpOnly cookie that no script sees; what proves that a change was meant is the token that every unsafe call carries.
import { store } from "./store.js";

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

async function send(method, path, { query, body, form, signal, raw } = {}) {
  const headers = {};
  if (method !== "GET") headers["X-Weir-CSRF"] = (store.value.me && store.value.me.csrf) || "";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(path, query), {
      method, headers, signal, credentials: "same-origin",
        body: form || (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, null);
  }
  if (raw) return response;
  const text = await response.text();
  let parsed = text;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    // Not JSON: kept as text, which is shown as text.
  }
  if (response.status === 401 && store.value.me) store.signedOut("Your sign-in has ended. Sign in again to go on.");
  if (!response.ok) throw new CallError(response.status, parsed);
  return parsed;
}

export const get = (path, query, signal) => send("GET", path, { query, signal });
export const post = (path, body = {}, query) => send("POST", path, { body, query });
export const patch = (path, body = {}, query) => send("PATCH", path, { body, query });
export const remove = (path, query) => send("DELETE", path, { query });

/// A call of the public API as the signed-in team: the status and the body, whatever they are.
export async function call(method, path, { body, form, query, signal } = {}) {
  const began = performance.now();
  const response = await send(method, `/public${path}`, { body, form, query, signal, raw: true });
  const text = await response.text();
  let parsed = text;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    // As above.
  }
  if (response.status === 401 && store.value.me) store.signedOut("Your sign-in has ended. Sign in again to go on.");
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
