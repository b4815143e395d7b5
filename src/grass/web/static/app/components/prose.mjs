// A sentence of the daemon, in which `commands` stand between backticks.

import { html } from "../ui.mjs";

/** @param {{text: string}} props */
export function Prose({ text }) {
  return text
    .split("`")
    .map((part, place) => (place % 2 ? html`<code key=${place}>${part}</code>` : part));
}
