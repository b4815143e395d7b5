// What went on over time, as a strip of bars: small, without axes, told in words too.

import { html } from "../ui.mjs";

const HEIGHT = 32;

/**
 * @param {{values: (number | null)[], most?: number, label: string}} props `values` from
 * the oldest to the newest; null is a gap, where nothing was measured
 */
export function Sparkline({ values, most = 100, label }) {
  const width = values.length * 4;
  return html`
    <svg class="sparkline" role="img" aria-label=${label} viewBox=${`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none">
      ${values.map((value, place) => {
        if (value === null) {
          return html`<rect class="gap" x=${place * 4} y=${HEIGHT - 1} width="3" height="1" />`;
        }
        const height = Math.max(1.5, (HEIGHT * Math.min(value, most)) / most);
        return html`<rect x=${place * 4} y=${HEIGHT - height} width="3" height=${height} />`;
      })}
    </svg>
  `;
}

/**
 * The mean of points in equal slots of time; null where there is no point.
 * @param {{at: number, span: number, value: number | null}[]} points times in milliseconds
 * @param {{from: number, to: number, slots: number}} range
 */
export function inSlots(points, { from, to, slots }) {
  const step = (to - from) / slots;
  const sums = new Array(slots).fill(0);
  const weights = new Array(slots).fill(0);
  for (const { at, span, value } of points) {
    if (value === null) continue;
    const first = Math.floor((at - span - from) / step);
    const last = Math.min(slots - 1, Math.floor((at - from) / step));
    for (let slot = Math.max(0, first); slot <= last; slot += 1) {
      const begin = Math.max(at - span, from + slot * step);
      const weight = Math.max(1, Math.min(at, from + (slot + 1) * step) - begin);
      sums[slot] += value * weight;
      weights[slot] += weight;
    }
  }
  return sums.map((sum, slot) => (weights[slot] ? sum / weights[slot] : null));
}
