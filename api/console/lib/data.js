// Reading from the service into pages: what was read stays while it is read anew, and nothing is asked for by a tab that
// nobody looks at.
import { useEffect, useRef, useState, useCallback } from "./ui.js";
import { store, useStore } from "./store.js";

/// Reads with `read(signal)` when `keys` change, and every `every` milliseconds where that is given.
export function useData(read, keys, { every = 0 } = {}) {
  const [state, set] = useState({ data: undefined, error: null, loading: true });
  const { team } = useStore();
  const latest = useRef(read);
  latest.current = read;
  const run = useRef(0);
  const abort = useRef(null);

  const reload = useCallback(async () => {
    if (abort.current) abort.current.abort();
    const mine = new AbortController();
    abort.current = mine;
    run.current += 1;
    const turn = run.current;
    set((state) => ({ ...state, loading: true }));
    try {
      const data = await latest.current(mine.signal);
      if (turn === run.current) set({ data, error: null, loading: false });
    } catch (error) {
      if (error.name !== "AbortError" && turn === run.current) set((state) => ({ ...state, error, loading: false }));
    }
  }, []);

  useEffect(() => {
    set((state) => ({ ...state, error: null, loading: true, stale: true }));
    reload();
  }, [...keys, team]);

  useEffect(() => () => {
    run.current += 1;
    if (abort.current) abort.current.abort();
  }, []);

  useTicks(every, reload);
  return { ...state, reload };
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
