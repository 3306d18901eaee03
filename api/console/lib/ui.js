// What pages are made of: Preact with templates that need no build. Values become text nodes, never markup: nothing in
// the console sets innerHTML, and a test looks for it.
import { cloneElement, createContext, h, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { cloneElement, createContext, h, render };
export {
  useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useContext, useId,
} from "../vendor/hooks.js";

/// Class names, of which those that are falsy fall out.
export const cls = (...names) => names.filter(Boolean).join(" ");
