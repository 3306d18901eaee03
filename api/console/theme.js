// Runs before the first paint, so that a chosen theme never flashes into the other one. A plain script: modules wait.
"use strict";
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("weir.theme");
  } catch {
    // Storage may be forbidden: the system's theme is used then.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
