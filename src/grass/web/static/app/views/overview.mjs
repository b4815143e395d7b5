// What runs where, how well the GPUs are used, and why the rest waits.

import { Command } from "../components/command.mjs";
import { Lists } from "../overview/lists.mjs";
import { Machines } from "../overview/machines.mjs";
import { may, overview, useDevices } from "../state.mjs";
import { html } from "../ui.mjs";

const PLAIN = { about: "Run something", text: "grass enqueue -- python train.py" };
const ON_GPUS = [
  { about: "On a GPU of its own", text: "grass enqueue -g 1 -- python train.py" },
  { about: "Once for each value, two on a GPU", text: "grass enqueue -g 0.5 -- python train.py --lr {} ::: 0.1 0.01 0.001" },
];
const ON_CORES = [
  { about: "With two cores and 4 GiB", text: "grass enqueue -c 2 -m 4G -- python train.py" },
  { about: "Once for each value", text: "grass enqueue -- python train.py --lr {} ::: 0.1 0.01 0.001" },
];

export default function Overview() {
  const devices = useDevices();
  const shown = overview.value;
  if (!shown) return html`<${Loading} />`;
  const isNew = shown.daemon.last_job === 0;
  return html`
    <div class="overview">
      ${isNew && html`<${Welcome} commands=${[PLAIN, ...(hasGpu(shown) ? ON_GPUS : ON_CORES)]} />`}
      <${Machines} workers=${shown.workers} devices=${devices} />
      ${!isNew && html`<${Lists} shown=${shown} />`}
    </div>
  `;
}

/** @param {import("../documents.mjs").Overview} shown */
function hasGpu(shown) {
  return shown.workers.some((worker) => Object.keys(worker.capacity.gpu ?? {}).length > 0);
}

/** @param {{commands: {about: string, text: string}[]}} props */
function Welcome({ commands }) {
  return html`
    <section class="welcome card" aria-label="first steps">
      <h2>Nothing has run here yet</h2>
      <p class="muted">Type one of these in a shell${may("submit") && html`, or <a href="/new">fill in a form</a>`}.
        The job shows up here at once, and runs on when you log out.</p>
      ${commands.map((one) => html`<div class="first" key=${one.text}><span>${one.about}</span><${Command} text=${one.text} /></div>`)}
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
