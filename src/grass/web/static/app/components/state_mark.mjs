// A state is told by a shape, a word and a colour: any two may be missing.

import { html } from "../ui.mjs";

const SHAPES = {
  running: "M6 2.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  starting: "M6 2.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  stopping: "M3 3h6v6h-6z",
  unreachable: "M6 1.8l4.2 4.2-4.2 4.2-4.2-4.2z",
  queued: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4z",
  waiting: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4z",
  held: "M4 2.5v7M8 2.5v7",
  suspended: "M4 2.5v7M8 2.5v7",
  succeeded: "M2 6.5l2.7 2.7 5.3-6",
  failed: "M2.5 2.5l7 7M9.5 2.5l-7 7",
  cancelled: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4zM3.2 8.8l5.6-5.6",
  lost: "M4 4.2a2 2 0 1 1 2.9 1.8c-.6.3-.9.6-.9 1.2M6 9.6h.01",
};

/** The shape alone, where the word stands beside it. @param {{state: string}} props */
export function StateShape({ state }) {
  const path = /** @type {Record<string, string>} */ (SHAPES)[state] ?? SHAPES.lost;
  return html`<span class=${`state state-${state}`} aria-hidden="true">
    <svg viewBox="0 0 12 12" width="12" height="12"><path d=${path} /></svg>
  </span>`;
}

/** @param {{state: string, words?: boolean}} props `words` false: only for screen readers */
export function StateMark({ state, words = true }) {
  return html`<span class=${`state state-${state}`}>
    <${StateShape} state=${state} /><span class=${words ? "" : "unseen"}>${state}</span>
  </span>`;
}
