// The address bar is the state: path and query say what is shown, so that a link, a reload and the back button bring the
// same again.
import { useEffect, useState } from "./ui.js";

export const BASE = "/console";
const listeners = new Set();

export function current() {
  return { path: location.pathname.replace(/\/+$/, "") || BASE, query: new URLSearchParams(location.search) };
}

export function go(to, { replace = false } = {}) {
  const url = new URL(to, location.href);
  if (url.href === location.href) return;
  const samePath = url.pathname === location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  if (!samePath) scrollTo(0, 0);
  for (const listener of listeners) listener(samePath);
}

addEventListener("popstate", () => {
  for (const listener of listeners) listener(false);
});

/// Links below /console are followed without loading anything anew.
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey
      || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.pathname !== BASE && !link.pathname.startsWith(`${BASE}/`)) return;
  if (link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.href);
});

export function useLocation() {
  const [at, set] = useState(current);
  useEffect(() => {
    const listener = () => set(current());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return at;
}

/// The query as an object, and a way to change some of it. Choices that lead back go into the history; typing does not.
export function useQuery() {
  const { path, query } = useLocation();
  const values = Object.fromEntries(query);
  const change = (next, { replace = false } = {}) => {
    const now = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(next)) {
      if (value === null || value === undefined || value === "") now.delete(name);
      else now.set(name, value);
    }
    const text = now.toString();
    go(path + (text ? `?${text}` : ""), { replace });
  };
  return [values, change];
}

export function link(path, query) {
  const text = new URLSearchParams(Object.entries(query || {}).filter(([, value]) => value !== undefined
        && value !== null && value !== "")).toString();
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}
