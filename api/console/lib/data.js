// Reading from the service into pages: what was read stays while it is read anew, and nothing is asked for by a tab that
// nobody looks at.
import { useEffect, useRef, useState, useCallback } from "./ui.js";
import { store, useStore } from "./store.js";

/// Reads with `read(signal)` when `keys` change, and every `every` milliseconds where that is given. `stale` says that what
/// is held belongs to earlier keys.
export function useData(read, keys, { every = 0 } = {}) {
  const [state, set] = useState({ data: undefined, error: null, key: null });
  const { team } = useStore();
  const key = JSON.stringify([...keys, team]);
  const latest = useRef(null);
  latest.current = { read, key };
  const abort = useRef(null);

  const reload = useCallback(async () => {
    if (abort.current) abort.current.abort();
    const mine = new AbortController();
    abort.current = mine;
    const asked = latest.current.key;
    const isMine = () => abort.current === mine && asked === latest.current.key;
    try {
      const data = await latest.current.read(mine.signal);
      if (isMine()) set({ data, error: null, key: asked });
    } catch (error) {
      if (error.name !== "AbortError" && isMine()) set((state) => ({ ...state, error, key: asked }));
    }
  }, []);

  useEffect(() => {
    reload();
  }, [key]);

  useEffect(() => () => {
    if (abort.current) abort.current.abort();
    abort.current = null;
  }, []);

  useTicks(every, reload);
  return { data: state.data, error: state.key === key ? state.error : null,
    stale: state.data !== undefined && state.key !== key, reload };
}

/// Calls `tick` every so often while the tab is seen and not paused, and at once when it is seen again after longer.
export function useTicks(every, tick) {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    if (!every) return undefined;
    let last = Date.now();
    const may = () => !document.hidden && !store.value.paused;
    const timer = setInterval(() => {
      if (!may()) return;
      last = Date.now();
      latest.current();
    }, every);
    const seen = () => {
      if (may() && Date.now() - last > every) {
        last = Date.now();
        latest.current();
      }
    };
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [every]);
}

/// One clock for all relative times on a page.
const clockListeners = new Set();
let clockTimer = null;
export function useNow() {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    clockListeners.add(set);
    clockTimer ||= setInterval(() => {
      if (document.hidden) return;
      const time = Date.now();
      for (const listener of clockListeners) listener(time);
    }, 1000);
    return () => {
      clockListeners.delete(set);
      if (!clockListeners.size) {
        clearInterval(clockTimer);
        clockTimer = null;
      }
    };
  }, []);
  return now;
}
