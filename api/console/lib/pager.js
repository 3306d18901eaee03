// Lists that come in pieces by cursor. As time passes the first piece is read anew, and all that are shown more rarely;
// after an action all of them are, so that what was deleted goes wherever it stood.
import { useEffect, useRef, useState } from "./ui.js";
import { useData, useTicks } from "./data.js";
import { store } from "./store.js";

/// Requests after which a screen is shown although it is not full: each looks through a bounded number of rows.
const ROUNDS = 6;
const FULL = 20;
/// Every so many readings are of all pieces, or more rarely where there are more of them than that.
const RARELY = 5;

/// The service may answer a short piece and a cursor, where few of many rows fit the filter: it is asked on until a
/// screen is full.
async function screen(read, cursor, signal) {
  const rows = [];
  let next = cursor;
  for (let round = 0; round < ROUNDS; round += 1) {
    const piece = await read(next, signal);
    rows.push(...piece.rows);
    next = piece.next;
    if (!next || rows.length >= FULL) break;
  }
  return { rows, next };
}

/// A first piece before what was shown: rows that newer ones pushed out of it stay, and those are gone that should stand
/// in it. `null`: nothing of it was shown before, so that there may be more between the two.
export function merged(first, shown, id) {
  const fresh = new Set(first.map(id));
  const last = first.length ? shown.findIndex((row) => id(row) === id(first[first.length - 1])) : -1;
  if (last < 0) return null;
  return [...first, ...shown.slice(last + 1).filter((row) => !fresh.has(id(row)))];
}

/// Rows without those that a shifted list has shown before.
function once(rows, id) {
  const seen = new Set();
  return rows.filter((row) => !seen.has(id(row)) && seen.add(id(row)));
}

/// `read(cursor, signal)` answers `{rows, next}`; `id(row)` keeps rows from being shown twice.
export function usePages(read, keys, { every = 0, id = (row) => row.id } = {}) {
  // What is shown: {rows, next, pieces, key}.
  const shown = useRef(null);
  const [, draw] = useState(0);
  const [busy, setBusy] = useState(false);
  // How the next reading goes, and whether one is under way.
  const onlyFirst = useRef(false);
  const isReading = useRef(false);
  const ticks = useRef(0);
  const key = JSON.stringify([...keys, store.value.team]);

  const list = useData(async (signal) => {
    const before = shown.current && shown.current.key === key ? shown.current : null;
    const isShort = onlyFirst.current && before;
    onlyFirst.current = false;
    isReading.current = true;
    try {
      const found = await screen(read, undefined, signal);
      const isPart = isShort && found.next && shown.current.pieces > 1;
      const rows = isPart ? merged(found.rows, shown.current.rows, id) : null;
      if (rows) keep(signal, { ...shown.current, rows });
      else {
        // Pieces that somebody asks for meanwhile are read, too.
        let pieces = 1;
        while (found.next && before && pieces < shown.current.pieces) {
          const piece = await screen(read, found.next, signal);
          found.rows.push(...piece.rows);
          found.next = piece.next;
          pieces += 1;
        }
        keep(signal, { rows: once(found.rows, id), next: found.next, pieces, key });
      }
    } finally {
      if (!signal.aborted) isReading.current = false;
    }
    return true;
  }, keys);
  /// Of a reading that another one has taken the place of, nothing is kept.
  const keep = (signal, what) => {
    if (signal.aborted) throw new DOMException("Another reading has begun", "AbortError");
    shown.current = what;
  };
  const reload = () => {
    onlyFirst.current = false;
    return list.reload();
  };
  useTicks(every, () => {
    if (isReading.current) return;
    ticks.current += 1;
    onlyFirst.current = ticks.current % Math.max(RARELY, shown.current ? shown.current.pieces : 0) !== 0;
    list.reload();
  });
  useEffect(() => {
    ticks.current = 0;
  }, [key]);

  const more = async () => {
    setBusy(true);
    const { next } = shown.current;
    try {
      const piece = await screen(read, next);
      const now = shown.current;
      if (now && now.key === key) {
        shown.current = { ...now, rows: once([...now.rows, ...piece.rows], id), next: piece.next, pieces: now.pieces + 1 };
        draw((n) => n + 1);
        // The list has moved meanwhile: what stands between its end and this piece is read with all.
        if (now.next !== next) reload();
      }
    } catch (error) {
      store.notify(error.message, "bad");
    }
    setBusy(false);
  };
  const { rows, next } = shown.current || {};
  return { ...list, data: shown.current, reload, rows, more: Boolean(next), onMore: more, moreBusy: busy };
}
