// The stream of figures: one connection a tab, closed while the tab is hidden or the figures are paused.
import { useEffect, useState } from "./ui.js";
import { lookWho } from "./api.js";
import { store, useStore } from "./store.js";

const listeners = new Set();
let source = null;
let last = null;
let state = "closed";

/// Whose figures are shown: those of somebody else, or of another team, are none.
const whose = () => `${store.value.me ? store.value.me.csrf : ""} ${store.value.team || ""}`;
const now = () => ({ figures: last && last.whose === whose() ? last.figures : null, state });

function tell() {
  for (const listener of listeners) listener(now());
}

function open() {
  if (source || document.hidden || store.value.paused || !store.value.me || !listeners.size) return;
  const team = store.value.team
    && store.value.me.role !== "team" ? `?team=${encodeURIComponent(store.value.team)}` : "";
  const of = whose();
  state = "opening";
  source = new EventSource(`/console/api/stream${team}`);
  // A line that was cut is made again by the browser, with the cookie of whoever is signed in by then.
  source.addEventListener("session", (event) => {
    if (!store.value.me || event.data === store.value.me.session) return;
    close();
    lookWho().then(open, () => setTimeout(open, 5000));
  });
  source.onopen = () => {
    state = "live";
    tell();
  };
  const take = (event) => {
    try {
      last = { figures: JSON.parse(event.data), whose: of };
    } catch {
      return;
    }
    state = "live";
    tell();
  };
  source.addEventListener("figures", take);
  source.onerror = () => {
    state = "away";
    tell();
    // The browser tries again by itself, except where the answer was an error: then it is tried anew in a while.
    if (source && source.readyState === EventSource.CLOSED) {
      close();
      state = "away";
      setTimeout(open, 5000);
    }
  };
  tell();
}

function close() {
  if (source) source.close();
  source = null;
  state = store.value.paused ? "paused" : "closed";
  tell();
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));

/// The latest figures and how the stream stands: "live", "opening", "away", "paused" or "closed".
export function useStream() {
  const [value, set] = useState(now);
  const { paused, team, me } = useStore();
  useEffect(() => {
    listeners.add(set);
    return () => {
      listeners.delete(set);
      if (!listeners.size) close();
    };
  }, []);
  useEffect(() => {
    close();
    if (!paused) open();
  }, [paused, team, me && me.csrf]);
  return value;
}
