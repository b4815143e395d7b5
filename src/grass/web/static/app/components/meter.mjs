// A GPU's memory in four parts, as a bar and in numbers.

import { size } from "../words.mjs";
import { html } from "../ui.mjs";

/** The parts in their order, and what each is called. */
export const PARTS = [
  { id: "jobs", word: "jobs" },
  { id: "reserved", word: "reserved" },
  { id: "strangers", word: "strangers" },
  { id: "free", word: "free" },
];
/** A little of something is never nothing: in percent of the bar. */
const LEAST = 1.5;

/** @param {{memory: import("../documents.mjs").GpuMemory}} props */
export function Meter({ memory }) {
  const amounts = /** @type {Record<string, number | null>} */ (
    /** @type {unknown} */ (memory)
  );
  const told = PARTS.map(({ id, word }) => `${word} ${size(amounts[id])}`).join(", ");
  return html`
    <div class="meter" role="img" aria-label=${`memory of ${size(memory.total)}: ${told}`}>
      ${PARTS.map(({ id }) => {
        const bytes = amounts[id] ?? 0;
        if (!bytes || !memory.total || id === "free") return null;
        const share = Math.max(LEAST, (100 * bytes) / memory.total);
        return html`<span class=${`part part-${id}`} key=${id} style=${{ width: `${share}%` }}></span>`;
      })}
    </div>
  `;
}

/** The parts in numbers, all four in their places.
 * @param {{memory: import("../documents.mjs").GpuMemory}} props */
export function MeterLegend({ memory }) {
  const amounts = /** @type {Record<string, number | null>} */ (
    /** @type {unknown} */ (memory)
  );
  return html`
    <ul class="legend">
      ${PARTS.map(
        ({ id, word }) => html`<li key=${id} class=${amounts[id] ? "" : "none"}>
          <span class=${`swatch part-${id}`}></span><span>${word}</span> <b>${size(amounts[id])}</b>
        </li>`,
      )}
    </ul>
  `;
}

/** One share of a whole as a thin bar.
 * @param {{share: number, label: string, tone?: string}} props */
export function Bar({ share, label, tone = "" }) {
  const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
  return html`
    <span class=${`bar ${tone}`} role="progressbar" aria-label=${label} aria-valuenow=${percent}
      aria-valuemin="0" aria-valuemax="100">
      <span style=${{ width: `${percent}%` }}></span>
    </span>
  `;
}
