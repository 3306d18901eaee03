// The stream of figures: one connection a tab, closed while the tab is hidden or the figures are paused.
import { useEffect, useState } from "./ui.js";
import { store, useStore } from "./store.js";

const listeners = new Set();
let source = null;
let last = null;
let state = "closed";

function tell() {
  for (const listener of listeners) listener({ figures: last, state });
}

function open() {
  if (source || document.hidden || store.value.paused || !store.value.me || !listeners.size) return;
  const team = store.value.team
    && store.value.me.role !== "team" ? `?team=${encodeURIComponent(store.value.team)}` : "";
  state = "opening";
  source = new EventSource(`/console/api/stream${team}`);
  source.onopen = () => {
    state = "live";
    tell();
  };
  const take = (event) => {
    try {
      last = JSON.parse(event.data);
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
  const [value, set] = useState({ figures: last, state });
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
