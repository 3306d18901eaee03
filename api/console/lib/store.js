// What every page knows: who is signed in, which team is looked at, whether the figures are paused, the notices.
import { useEffect, useState } from "./ui.js";

const remember = (name, value) => {
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    // Without storage the choice lasts as long as the tab.
  }
};
const recall = (name) => {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
};

export const store = {
  value: { me: null, team: recall("weir.team"), paused: false, notices: [], said: "", teams: [] },
  listeners: new Set(),
  set(change) {
    this.value = { ...this.value, ...change };
    for (const listener of this.listeners) listener(this.value);
  },
  choose(team) {
    remember("weir.team", team || null);
    this.set({ team: team || null });
  },
  signedOut(said = "") {
    remember("weir.team", null);
    this.set({ me: null, team: null, teams: [], said });
  },
  /// Who is signed in, as the service says. What was chosen by somebody else goes.
  signedIn(me) {
    if (this.value.me && !isSameOne(this.value.me, me)) this.signedOut();
    this.set({ me, said: "" });
  },
  /// A notice that goes by itself; those that tell of more than success stay longer.
  notify(text, kind = "good") {
    const id = Math.random();
    this.set({ notices: [...this.value.notices.slice(-3), { id, text, kind }] });
    setTimeout(() => this.dismiss(id), kind === "good" ? 4_500 : 10_000);
  },
  dismiss(id) {
    this.set({ notices: this.value.notices.filter((notice) => notice.id !== id) });
  },
};

export function useStore() {
  const [value, set] = useState(store.value);
  useEffect(() => {
    store.listeners.add(set);
    set(store.value);
    return () => store.listeners.delete(set);
  }, []);
  return value;
}

/// Whether two sign-ins show and may do the same.
export const isSameOne = (one, other) => Boolean(one && other) && one.role === other.role
  && (one.team ? one.team.id : "") === (other.team ? other.team.id : "");

/// Whether the signed-in one may change things, and whether they see all teams.
export const mayChange = () => Boolean(store.value.me) && store.value.me.role !== "reader";
export const seesAll = () => Boolean(store.value.me) && store.value.me.role !== "team";
