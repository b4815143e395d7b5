// The keys, and the switch that turns single letters off.

import { lettersOn, switchLetters } from "../keys.mjs";
import { Dialog } from "./dialog.mjs";
import { html } from "../ui.mjs";
import { VIEWS } from "../views.mjs";

const EVERYWHERE = [
  ["?", "this help"],
  ["Ctrl-K", "find a job, a view or an action"],
  ["/", "filter"],
  ["j  k", "next, previous row"],
  ["x", "select the row; shift for a range"],
  ["Enter", "open the row"],
  ["l", "its log"],
  [".", "actions"],
  ["n", "new job"],
  ["p", "pause the updates, and go on"],
  ["Esc", "close, clear"],
];

const IN_A_LOG = [
  ["f", "follow the log, or stop"],
  ["w", "wrap its lines"],
  ["/", "search it"],
  ["n  N", "next, previous match"],
  ["g  G", "its first, its last line"],
];
const IN_THE_TIMELINE = [
  ["+  -", "a shorter, a longer time"],
  ["←  →", "earlier, later"],
];

/** @param {{onClose: () => void}} props */
export function Help({ onClose }) {
  const goes = VIEWS.filter((one) => one.letter).map((one) => [`g ${one.letter}`, one.title]);
  const groups = /** @type {[string, string[][]][]} */ ([
    ["Everywhere", EVERYWHERE], ["Go to", goes], ["In a log", IN_A_LOG], ["In the timeline", IN_THE_TIMELINE],
  ]);
  const onSwitch = (/** @type {Event} */ event) =>
    switchLetters(/** @type {HTMLInputElement} */ (event.target).checked);
  return html`
    <${Dialog} title="Keys" onClose=${onClose} wide>
      <div class="keys">
        ${groups.map(
          ([title, rows]) => html`<section key=${title}><h3>${title}</h3><dl>
            ${rows.map(([key, what]) => html`<div key=${key}>
              <dt>${key.split(" ").filter(Boolean).map((one) => html`<kbd>${one}</kbd>`)}</dt>
              <dd>${what}</dd>
            </div>`)}
          </dl></section>`,
        )}
      </div>
      <label class="switch">
        <input type="checkbox" checked=${lettersOn.value} onChange=${onSwitch} />
        Single letters are shortcuts
      </label>
    <//>
  `;
}
