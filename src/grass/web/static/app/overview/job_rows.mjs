// Jobs as rows of the overview: those that run, those in line, those that failed.

import { Bar } from "../components/meter.mjs";
import { Menu, itemsFor } from "../components/menu.mjs";
import { Prose } from "../components/prose.mjs";
import { StateMark } from "../components/state_mark.mjs";
import { devices, now } from "../state.mjs";
import { html } from "../ui.mjs";
import { ago, asked, brief, clock, ending, inLocalTime, label, ran, rough, size, stateOf, units } from "../words.mjs";
import { ends, failings, starts } from "./readings.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {import("../documents.mjs").JobArray} JobArray
 */

/** A row is a link to its job; what else it offers lies above that link.
 * @param {{job: Job, state?: string, title?: any, side?: any, children?: any}} props */
function Row({ job, state, title, side, children }) {
  return html`
    <li class="job-row" data-job=${job.id}>
      <${StateMark} state=${state ?? stateOf(job)} words=${false} />
      <div class="job-main">
        <p class="job-title">
          <a class="job-link cut" href=${`/jobs/${job.id}`} data-row>${title ?? html`<span class="id">${label(job)}</span> ${job.name}`}</a>
          <span class="job-side">${side}</span>
        </p>
        ${children}
      </div>
      <${Menu} items=${itemsFor("job", [job])} label=${`actions on job ${job.id}`} />
    </li>
  `;
}

/** How far a job is: of what earlier runs took, else of its time limit.
 * @param {Job} job */
function progress(job) {
  const seconds = ran(job, now.value) ?? 0;
  const end = ends.value[job.id];
  if (end && job.started_at) {
    const whole = (Date.parse(end) - Date.parse(job.started_at)) / 1000;
    const left = whole - seconds;
    const text = left >= 0 ? `about ${rough(left)} left` : `${rough(-left)} longer than usual`;
    return { share: seconds / whole, text, tone: left >= 0 ? "" : "over" };
  }
  if (job.time_limit_s) {
    const left = rough(Math.max(0, job.time_limit_s - seconds));
    return { share: seconds / job.time_limit_s, text: `${left} to its limit`, tone: "limit" };
  }
  return null;
}

/** What a job uses of the GPU memory that it has: `22G of 39.7G`. @param {Job} job */
function memoryOf(job) {
  const held = (devices.value?.workers ?? [])
    .flatMap((one) => one.gpus.flatMap((gpu) => gpu.jobs))
    .filter((one) => one.job === job.id);
  if (held.length === 0) return "";
  const used = held.reduce((sum, one) => sum + one.used, 0);
  const given = held.reduce((sum, one) => sum + one.reserved, 0);
  return ` · ${size(used)}${given ? ` of ${size(given)}` : ""}`;
}

/** @param {{job: Job, workers: number}} props */
export function RunningRow({ job, workers }) {
  const told = progress(job);
  const gpus = job.allocation.gpu;
  const where = units(gpus ? { gpu: gpus } : job.allocation);
  const memory = memoryOf(job);
  return html`
    <${Row} job=${job} side=${brief(ran(job, now.value) ?? 0)}>
      <p class="job-more">
        <span class="cut">${where}${workers > 1 && job.worker ? ` on ${job.worker}` : ""}${memory}</span>
        ${told && html`<span class="progress">
          <${Bar} share=${told.share} tone=${told.tone} label=${`progress of job ${job.id}`} />
          <span class="muted">${told.text}</span></span>`}
      </p>
    <//>
  `;
}

/** @param {{job: Job, array: JobArray | null}} props */
export function NextRow({ job, array }) {
  const start = starts.value[job.id]?.told.estimated_start_at ?? null;
  const title = array
    ? html`<span class="id">${array.id}-${array.last}</span> ${array.name}`
    : undefined;
  const left = array ? `${array.total - endedOf(array)} of ${array.total} left` : asked(job.request);
  const why = inLocalTime((array ? array.reason : job.reason) ?? job.reason, now.value);
  const side = start
    ? html`<b title=${`about ${clock(start, now.value)}, as far as earlier runs tell`}>${soon(start)}</b>`
    : left;
  return html`
    <${Row} job=${job} title=${title} side=${side}>
      <p class="job-more muted"><span class="cut" title=${why}><${Prose} text=${why} /></span></p>
    <//>
  `;
}

/** @param {string} start */
function soon(start) {
  const left = (Date.parse(start) - now.value) / 1000;
  return left > 0 ? `starts in ${rough(left)}` : "starts soon";
}

/** @param {JobArray} array */
function endedOf(array) {
  const { succeeded = 0, failed = 0, cancelled = 0, lost = 0, running = 0 } = array.states;
  return succeeded + failed + cancelled + lost + running;
}

/** @param {{job: Job}} props */
export function FailedRow({ job }) {
  const lines = failings.value[job.id]?.told.last_lines ?? [];
  const last = lines.filter((line) => line.trim()).at(-1);
  const how = job.reason ? inLocalTime(job.reason, now.value) : ending(job) || job.state;
  return html`
    <${Row} job=${job} side=${html`<span class="failed">${how}</span> ${ago(job.finished_at, now.value)}`}>
      <p class="job-more last-line">
        ${last ? html`<code class="cut" title=${last}>${last}</code>` : html`<span class="muted">it wrote nothing</span>`}
      </p>
    <//>
  `;
}
