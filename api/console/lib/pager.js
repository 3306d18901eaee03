// Lists that come in pieces by cursor: the first is read anew as time passes, the further ones stay as they were read.
import { useEffect, useRef, useState } from "./ui.js";
import { useData } from "./data.js";
import { store } from "./store.js";

/// Requests after which a screen is shown although it is not full: each looks through a bounded number of rows.
const ROUNDS = 6;
const FULL = 20;

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

/// `read(cursor, signal)` answers `{rows, next}`; `id(row)` keeps rows from being shown twice.
export function usePages(read, keys, { every = 0, id = (row) => row.id } = {}) {
  const first = useData((signal) => screen(read, undefined, signal), keys, { every });
  const [rest, setRest] = useState({ rows: [], next: undefined, read: false });
  const [busy, setBusy] = useState(false);
  const turn = useRef(0);
  useEffect(() => {
    turn.current += 1;
    setRest({ rows: [], next: undefined, read: false });
  }, keys);
  const next = rest.read ? rest.next : first.data && first.data.next;
  const more = async () => {
    setBusy(true);
    const mine = turn.current;
    try {
      const piece = await screen(read, next);
      if (mine === turn.current) setRest((rest) => ({ rows: [...rest.rows, ...piece.rows], next: piece.next,
            read: true }));
    } catch (error) {
      store.notify(error.message, "bad");
    }
    setBusy(false);
  };
  const seen = new Set();
  const rows = first.data && [...first.data.rows,
    ...rest.rows].filter((row) => !seen.has(id(row)) && seen.add(id(row)));
  return { ...first, rows, more: Boolean(next), onMore: more, moreBusy: busy };
}
