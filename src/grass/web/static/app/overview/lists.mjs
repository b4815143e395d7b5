// What runs, what is next, what failed, and the queues. All of it keeps its place while
// somebody points at any of it.

import { queryText } from "../api.mjs";
import { useSteady, WaitingChip } from "../components/steady.mjs";
import { Menu, itemsFor } from "../components/menu.mjs";
import { StateShape } from "../components/state_mark.mjs";
import { useKeys } from "../keys.mjs";
import { html, useRef } from "../ui.mjs";
import { UNSTARTED } from "../words.mjs";
import { FailedRow, NextRow, RunningRow } from "./job_rows.mjs";
import { starts, useEnds, useExplanations, useFailures } from "./readings.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {import("../documents.mjs").Overview} Overview
 * @typedef {{part: "running" | "next" | "failed", job: Job,
 *   array: import("../documents.mjs").JobArray | null}} Line
 */

const MOST_RUNNING = 12;
const MOST_NEXT = 8;
const EXPLAINED = 5;

/** The lines of all lists, in their order; an array in line is one of them.
 * @param {Overview} shown @param {Job[]} failed */
function linesOf(shown, failed) {
  const arrays = new Map(shown.arrays.map((one) => [one.id, one]));
  const seen = new Set();
  /** @type {Line[]} */
  const next = [];
  for (const job of shown.jobs.filter((one) => UNSTARTED.includes(one.state))) {
    const array = job.array === null ? null : (arrays.get(job.array) ?? null);
    if (array && seen.has(array.id)) continue;
    if (array) seen.add(array.id);
    next.push({ part: "next", job, array });
  }
  const line = (/** @type {Line["part"]} */ part) => (/** @type {Job} */ job) => ({ part, job, array: null });
  const running = shown.jobs.filter((one) => one.state === "running").slice(0, MOST_RUNNING);
  return [...running.map(line("running")), ...next.slice(0, MOST_NEXT), ...failed.map(line("failed"))];
}

/** @param {Line} line */
function keyOf({ part, job, array }) {
  return `${part} ${array ? `array ${array.id}` : job.id}`;
}

/** @param {{shown: Overview}} props */
export function Lists({ shown }) {
  const counts = shown.daemon.jobs;
  const failed = useFailures(counts.failed + counts.lost);
  const jobs = new Map(shown.jobs.map((job) => [job.id, job]));
  const latest = (/** @type {Line} */ line) => ({ ...line, job: jobs.get(line.job.id) ?? line.job });
  const { rows, waiting, handlers, showNow } = useSteady(linesOf(shown, failed ?? []), keyOf, latest);
  const part = (/** @type {Line["part"]} */ name) => rows.filter((one) => one.part === name);
  useEnds(part("running").map((one) => one.job));
  useExplanations(starts, part("next").slice(0, EXPLAINED).map((one) => one.job));
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useRowKeys(box);
  const waits = counts.queued + counts.waiting + counts.held;
  return html`
    <div class="lists" ref=${box} ...${handlers}>
      <${WaitingChip} waiting=${waiting} onShow=${showNow} />
      <${Part} name="running" title="Running" count=${counts.running} select="state:running"
        nothing=${waits ? "Nothing runs at the moment." : "Nothing runs, and nothing waits."}>
        ${part("running").map((one) => html`<${RunningRow} key=${keyOf(one)} job=${one.job} workers=${shown.workers.length} />`)}
      <//>
      <${Part} name="next" title="Next up" count=${waits} select="state:queued state:waiting state:held" nothing="Nothing waits: the next job starts at once.">
        ${part("next").map((one) => html`<${NextRow} key=${keyOf(one)} job=${one.job} array=${one.array} />`)}
      <//>
      <${Part} name="failed" title="Last failures" count=${counts.failed + counts.lost} select="state:failed state:lost" nothing="Nothing has failed.">
        ${part("failed").map((one) => html`<${FailedRow} key=${keyOf(one)} job=${one.job} />`)}
      <//>
      <${Queues} queues=${shown.queues} />
    </div>
  `;
}

/** @param {{name: string, title: string, count: number, select: string, nothing: string, children?: any}} props */
function Part({ name, title, count, select, nothing, children }) {
  const some = children.length > 0;
  return html`
    <section class=${`part-${name}-list`} aria-label=${title}>
      <div class="section-head">
        <h2>${title}</h2><span class="muted">${count || ""}</span>
        ${count > 0 && html`<a href=${`/jobs${queryText({ select })}`} aria-label=${`all of: ${title}`}>all</a>`}
      </div>
      ${some ? html`<ul class="card rows">${children}</ul>` : html`<p class="card note muted">${nothing}</p>`}
    </section>
  `;
}

/** @param {{queues: import("../documents.mjs").Queue[]}} props */
function Queues({ queues }) {
  return html`
    <section class="part-queues-list" aria-label="Queues">
      <div class="section-head"><h2>Queues</h2><a href="/queues" aria-label="all of: Queues">all</a></div>
      <ul class="card rows">
        ${queues.map(
          (queue) => html`<li class="queue-row" key=${queue.name}>
            <a class="cut" href=${`/jobs?select=queue:${encodeURIComponent(queue.name)}`} data-row>${queue.name}</a>
            ${queue.paused && html`<span class="tag tag-note" title=${queue.paused_reason ?? ""}>paused</span>`}
            <span class="queue-counts">
              <span><${StateShape} state="running" />${queue.running}<span class="unseen"> running</span></span>
              <span><${StateShape} state="queued" />${queue.waiting}<span class="unseen"> waiting</span></span>
            </span>
            <${Menu} items=${itemsFor("queue", [queue])} label=${`actions on queue ${queue.name}`} />
          </li>`,
        )}
      </ul>
    </section>
  `;
}

/** Keys over all rows: `j` and `k` move, `l` opens the log, `.` the actions.
 * @param {{current: HTMLElement | null}} box */
function useRowKeys(box) {
  const links = () => [.../** @type {NodeListOf<HTMLElement>} */ (box.current?.querySelectorAll("[data-row]") ?? [])];
  const move = (/** @type {number} */ by) => {
    const all = links();
    const at = all.findIndex((one) => one.closest("li")?.contains(document.activeElement));
    all[Math.min(all.length - 1, Math.max(0, at + by))]?.focus();
  };
  const row = () => document.activeElement?.closest("li");
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    l: () => /** @type {HTMLElement | null | undefined} */ (row()?.querySelector("[data-row]"))?.click(),
    ".": () => /** @type {HTMLElement | null | undefined} */ (row()?.querySelector(".menu > button"))?.click(),
  });
}
