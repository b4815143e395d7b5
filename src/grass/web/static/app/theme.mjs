// Light, dark, or as the system has it. `?theme=dark` wins for one visit.

import { signal } from "./ui.mjs";

const KEPT = "grass.theme";
/** @typedef {"system" | "light" | "dark"} Theme */
/** @type {Theme[]} */
export const THEMES = ["system", "light", "dark"];

/** @param {string | null} word @returns {Theme} */
function known(word) {
  return THEMES.find((one) => one === word) ?? "system";
}

const asked = new URLSearchParams(window.location.search).get("theme");
/** @type {import("../vendor/signals.mjs").Signal<Theme>} */
export const theme = signal(known(asked ?? localStorage.getItem(KEPT)));

function apply() {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
}

/** @param {Theme} to */
export function setTheme(to) {
  theme.value = to;
  localStorage.setItem(KEPT, to);
  apply();
}

export function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]);
}

apply();
