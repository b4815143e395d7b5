// What runs where, how well the GPUs are used, and why the rest waits.

import { Command } from "../components/command.mjs";
import { Lists } from "../overview/lists.mjs";
import { Machines } from "../overview/machines.mjs";
import { may, overview, useDevices } from "../state.mjs";
import { html } from "../ui.mjs";

const FIRST = [
  { about: "Run something", text: "grass enqueue -- python train.py" },
  { about: "On a GPU of its own", text: "grass enqueue -g 1 -- python train.py" },
  { about: "A whole sweep, two on each GPU", text: "grass enqueue -g 0.5 -- python train.py --lr {} ::: 0.1 0.01 0.001" },
];

export default function Overview() {
  const devices = useDevices();
  const shown = overview.value;
  if (!shown) return html`<${Loading} />`;
  const isNew = shown.daemon.last_job === 0;
  return html`
    <div class="overview">
      ${isNew && html`<${Welcome} />`}
      <${Machines} workers=${shown.workers} devices=${devices} />
      ${!isNew && html`<${Lists} shown=${shown} />`}
    </div>
  `;
}

function Welcome() {
  return html`
    <section class="welcome card" aria-label="first steps">
      <h2>Nothing has run here yet</h2>
      <p class="muted">Type one of these in a shell${may("submit") && html`, or <a href="/new">fill in a form</a>`}.
        The job shows up here at once, and runs on when you log out.</p>
      ${FIRST.map((one) => html`<div class="first" key=${one.text}><span>${one.about}</span><${Command} text=${one.text} /></div>`)}
    </section>
  `;
}

/** The places of what will be here, without a word: it is there in a moment. */
function Loading() {
  return html`
    <div class="overview loading" aria-busy="true" aria-label="loading">
      <div class="gpus">${[0, 1, 2, 3].map((place) => html`<div class="card gpu" key=${place}></div>`)}</div>
    </div>
  `;
}
