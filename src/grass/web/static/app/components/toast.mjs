// Short messages at the edge of the page: what was done, or why it was refused.

import { Icon } from "./icon.mjs";
import { html, signal } from "../ui.mjs";

const SHOWN_MS = 6000;
/** @typedef {{id: number, text: string, hint: string, tone: "done" | "wrong"}} Toast */
/** @type {import("../../vendor/signals.mjs").Signal<Toast[]>} */
const shown = signal([]);
let last = 0;

/** @param {string} text @param {string} [hint] */
export function say(text, hint = "") {
  add({ id: ++last, text, hint, tone: "done" });
}

/** @param {unknown} error what a call was refused with */
export function complain(error) {
  const text = error instanceof Error ? error.message : String(error);
  const hint = error instanceof Error && "hint" in error ? String(error.hint) : "";
  add({ id: ++last, text, hint, tone: "wrong" });
}

/** @param {Toast} toast */
function add(toast) {
  shown.value = [...shown.value.slice(-3), toast];
  if (toast.tone === "done") setTimeout(() => drop(toast.id), SHOWN_MS);
}

/** @param {number} id */
function drop(id) {
  shown.value = shown.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return html`
    <div class="toasts" role="status" aria-live="polite">
      ${shown.value.map(
        (one) => html`
          <div class=${`toast toast-${one.tone}`} key=${one.id}>
            <${Icon} name=${one.tone === "done" ? "check" : "warning"} />
            <p>${one.text}${one.hint && html`<span class="muted">${one.hint}</span>`}</p>
            <button type="button" class="quiet" aria-label="dismiss" onClick=${() => drop(one.id)}>
              <${Icon} name="close" size=${14} />
            </button>
          </div>
        `,
      )}
    </div>
  `;
}
