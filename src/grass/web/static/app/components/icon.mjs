// Icons: 16 by 16, drawn in the colour of the text beside them.

import { html } from "../ui.mjs";

const PATHS = {
  overview: "M2.5 2.5h4.5v5h-4.5zM9 2.5h4.5v3h-4.5zM9 7.5h4.5v6h-4.5zM2.5 9.5h4.5v4h-4.5z",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  timeline: "M2.5 4h5M6 8h7.5M4 12h4",
  queues: "M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11zM5 5h.01M5 11h.01",
  new: "M8 3v10M3 8h10",
  events: "M8 4.5v3.5l2.5 1.5M13.5 8a5.5 5.5 0 1 1-11 0 5.5 5.5 0 0 1 11 0z",
  doctor: "M2 8.5h3l1.5-4 3 7.5 1.5-3.5h3",
  search: "M11 11l3 3M12 7a5 5 0 1 1-10 0 5 5 0 0 1 10 0z",
  system: "M2.5 3h11v8h-11zM6 13.5h4M8 11v2.5",
  light: "M8 1.5v1.5M8 13v1.5M1.5 8h1.5M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0z",
  dark: "M13.5 9.5a5.8 5.8 0 0 1-7-7 5.8 5.8 0 1 0 7 7z",
  help: "M6 6.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.6-.8 1.2M8 11.5h.01M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M3 8.5l3.5 3.5 6.5-7.5",
  wrap: "M2.5 4h11M2.5 8h9a2 2 0 0 1 0 4h-3M10 10.5L8.5 12 10 13.5M2.5 12h3",
  download: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10",
  follow: "M8 2.5v7M4.5 6.5L8 10l3.5-3.5M3 13.5h10",
  log: "M3 3.5h10v9h-10zM5 6h4M5 8.5h6",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.5l7 4.5-7 4.5z",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  saved: "M4 2.5h8v11l-4-3-4 3z",
  gpu: "M2 4.5h12v7h-12zM4.5 13.5v-2M7 13.5v-2M11 8a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0z",
  worker: "M2.5 3h11v4.5h-11zM2.5 8.5h11v4.5h-11zM5 5.2h.01M5 10.7h.01",
  warning: "M8 2.5l6 11h-12zM8 6.5v3.5M8 11.8h.01",
};

/** @param {{name: keyof typeof PATHS | string, size?: number}} props */
export function Icon({ name, size = 16 }) {
  const path = /** @type {Record<string, string>} */ (PATHS)[name] ?? "";
  return html`<svg class=${`icon icon-${name}`} width=${size} height=${size} viewBox="0 0 16 16" aria-hidden="true">
    <path d=${path} />
  </svg>`;
}
