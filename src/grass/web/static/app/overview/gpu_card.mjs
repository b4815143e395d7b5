// A GPU: how busy it is and was, its memory in four parts, and who is on it. A card has
// the same height whoever comes and goes, so that nothing below it moves.

import { act, Menu, itemsFor } from "../components/menu.mjs";
import { Meter, MeterLegend } from "../components/meter.mjs";
import { Sparkline } from "../components/sparkline.mjs";
import { StateShape } from "../components/state_mark.mjs";
import { actionOf, offered } from "../actions.mjs";
import { now } from "../state.mjs";
import { html, useState } from "../ui.mjs";
import { age, brief, inLocalTime, owner, size } from "../words.mjs";
import { SLOTS, useHistory } from "./readings.mjs";

/** @typedef {import("../documents.mjs").Gpu} Gpu */

const ROOM = 3;
const NOTHING = new Array(SLOTS).fill(null);

/** @param {{worker: string, gpu: Gpu}} props */
export function GpuCard({ worker, gpu }) {
  const history = useHistory(worker, gpu.unit);
  const title = `GPU ${gpu.unit}`;
  const faulty = gpu.fault !== null && !gpu.fault.acknowledged;
  const unit = { unit: `gpu:${gpu.unit}`, worker, drained: gpu.drained, faulty };
  return html`
    <section class=${`card gpu ${gpu.fault ? "faulty" : ""}`} aria-label=${`${title} of ${worker}`}>
      <header>
        <h3>${title}</h3>
        <span class="gpu-name cut" title=${gpu.name}>${gpu.name.replace(/^NVIDIA /, "")}</span>
        ${gpu.drained && html`<span class="tag">drained</span>`}
        <${Menu} items=${itemsFor("unit", [unit])} label=${`actions on ${title}`} />
      </header>
      ${gpu.fault
        ? html`<${Fault} fault=${gpu.fault} unit=${unit} />`
        : html`<div class="gpu-busy">
            <span class="busy"><b>${gpu.utilization ?? "–"}</b>%</span>
            <${Sparkline} values=${history ?? NOTHING} label=${busyWords(title, history)} />
          </div>`}
      <${Memory} gpu=${gpu} />
      <${Who} gpu=${gpu} />
      <footer>
        <span>${gpu.temperature === null ? "" : `${gpu.temperature} °C`}</span>
        <span>${power(gpu)}</span>
      </footer>
    </section>
  `;
}

/** @param {{fault: import("../documents.mjs").GpuFault, unit: object}} props */
function Fault({ fault, unit }) {
  const action = actionOf("acknowledge-unit");
  const works = fault.works_since !== null;
  const lasts = brief(age(fault.works_since ?? fault.since, now.value));
  return html`
    <div class="gpu-fault fault" title=${inLocalTime(fault.why, now.value)}>
      <p>${fault.reason}${works ? `; it works again for ${lasts}` : `, for ${lasts}`}</p>
      ${offered(action, unit) && html`<button type="button" onClick=${() => void act(action, [unit])}>
        ${works ? "Use it again" : "Acknowledge"}</button>`}
    </div>
  `;
}

/** @param {string} title @param {(number | null)[] | null} history */
function busyWords(title, history) {
  const known = (history ?? []).filter((one) => one !== null);
  if (known.length === 0) return `${title}: nothing was measured in the last hour`;
  const mean = known.reduce((sum, one) => sum + one, 0) / known.length;
  return `${title} in the last hour: ${Math.round(mean)}% busy on average`;
}

/** @param {Gpu} gpu */
function power(gpu) {
  if (gpu.power_w === null) return "";
  const limit = gpu.power_limit_w === null ? "" : ` of ${Math.round(gpu.power_limit_w)}`;
  return `${Math.round(gpu.power_w)}${limit} W`;
}

/** @param {{gpu: Gpu}} props */
function Memory({ gpu }) {
  const { memory } = gpu;
  const used = (memory.jobs ?? 0) + (memory.strangers ?? 0);
  return html`
    <div class="gpu-memory">
      <p><span class="muted">memory</span>
        <span><b>${memory.jobs === null ? "?" : size(used)}</b> of ${size(memory.total)}</span></p>
      <${Meter} memory=${memory} />
      <${MeterLegend} memory=${memory} />
    </div>
  `;
}

/** Jobs first, then strangers, the largest first. @param {Gpu} gpu */
function onIt(gpu) {
  const jobs = gpu.jobs.map((job) => ({
    key: `job ${job.job}`,
    row: html`<a href=${`/jobs/${job.job}`} class="cut" title=${`job ${job.job}, ${owner(job.owner)}`}>
        <${StateShape} state="running" />${job.job} ${job.name}</a>
      <span class="share">${job.gpu ? share(job.gpu) : ""}</span>
      <span class="held">${size(job.used)}</span>`,
  }));
  const strangers = gpu.processes
    .filter((one) => one.job === null)
    .sort((one, other) => (other.memory ?? 0) - (one.memory ?? 0))
    .map((one) => ({
      key: `pid ${one.pid}`,
      row: html`<span class="cut stranger" title=${`pid ${one.pid}`}>${one.command || "process"}
          <span class="muted"> ${one.user}</span></span>
        <span class="share">stranger</span><span class="held">${size(one.memory)}</span>`,
    }));
  return [...jobs, ...strangers];
}

/** @param {number} amount */
function share(amount) {
  return amount === 1 ? "whole" : String(amount);
}

/** @param {{gpu: Gpu}} props */
function Who({ gpu }) {
  const [open, setOpen] = useState(false);
  const all = onIt(gpu);
  const shown = open || all.length <= ROOM ? all : all.slice(0, ROOM - 1);
  return html`
    <ul class="who">
      ${shown.map(({ key, row }) => html`<li key=${key}>${row}</li>`)}
      ${all.length === 0 && html`<li class="muted">nobody is on it</li>`}
      ${all.length > ROOM && html`<li><button type="button" class="more" onClick=${() => setOpen(!open)}>
        ${open ? "fewer" : `${all.length - shown.length} more`}</button></li>`}
    </ul>
  `;
}
