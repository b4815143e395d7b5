// Views of the list under a name, kept by the browser. A view is what the address says.

import { signal } from "../ui.mjs";

const KEPT = "grass.views";

/** @typedef {{name: string, query: string}} SavedView */

/** @returns {SavedView[]} */
function readKept() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.name === "string" && typeof one?.query === "string") : [];
  } catch {
    return [];
  }
}

export const savedViews = signal(readKept());

/** @param {SavedView[]} views */
function keep(views) {
  savedViews.value = views;
  localStorage.setItem(KEPT, JSON.stringify(views));
}

/** @param {string} name @param {string} query */
export function saveView(name, query) {
  keep([...savedViews.value.filter((one) => one.name !== name), { name, query }]);
}

/** @param {string} name */
export function forgetView(name) {
  keep(savedViews.value.filter((one) => one.name !== name));
}
