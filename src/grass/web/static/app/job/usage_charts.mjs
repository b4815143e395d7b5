// What a job used over time, with the line of what it asked for or was given.

import { Chart } from "../components/chart.mjs";
import { Empty } from "../components/empty.mjs";
import { read } from "../api.mjs";
import { follow } from "../stream.mjs";
import { html, useEffect, useState } from "../ui.mjs";
import { size } from "../words.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {{at: string, memory: number | null, cpu: number | null,
 *   gpus: Record<string, {memory: number | null, utilization: number | null}>}} Point
 */

const MOST = 5000;
/** Memory is divided at powers of two. */
const SIZES = Array.from({ length: 24 }, (_, power) => 2 ** (power + 20));

/** @param {Job} job */
function usePoints(job) {
  const [points, setPoints] = useState(/** @type {Point[] | null} */ (null));
  const version = job.attempts.length;
  useEffect(() => {
    let current = true;
    const resync = () => void read(`/jobs/${job.id}/usage`).then(
      (told) => current && setPoints(told.points),
      () => current && setPoints((before) => before ?? []),
    );
    const data = (/** @type {{samples: Point[]}} */ told) => setPoints((before) => [...(before ?? []), ...told.samples].slice(-MOST));
    resync();
    const stop = job.state === "running" ? follow(`usage:${job.id}`, { data, resync }) : () => {};
    return () => { current = false; stop(); };
  }, [job.id, job.state, version]);
  return points;
}

/** The limit of something: the amount that was requested, else the amount that was given.
 * @param {Job} job @param {string} what @param {string} [unit] */
function limitOf(job, what, unit) {
  const found = job.usage?.find((one) => one.what === what && (unit === undefined || one.unit === unit));
  if (typeof found?.asked === "number") return { label: "asked", value: found.asked };
  return typeof found?.given === "number" ? { label: "given", value: found.given } : null;
}

/** @param {{job: Job}} props */
export function UsageCharts({ job }) {
  const points = usePoints(job);
  if (points === null) return html`<p class="muted">Reading what it used…</p>`;
  if (points.length === 0) return html`<${Empty} title="Nothing was measured yet" text="What a job uses is measured once a second while it runs." />`;
  const times = points.map((one) => Date.parse(one.at) / 1000);
  const gpus = [...new Set(points.flatMap((one) => Object.keys(one.gpus)))].sort();
  const percent = (/** @type {number} */ value) => `${Math.round(value)} %`;
  const cores = (/** @type {number} */ value) => String(Math.round(value * 100) / 100);
  return html`
    <div class="charts">
      ${gpus.map((unit) => html`
        <${Panel} key=${`memory ${unit}`} title=${`Memory of GPU ${unit}`} times=${times} format=${size} steps=${SIZES} limit=${limitOf(job, "gpu memory", unit)} values=${points.map((one) => one.gpus[unit]?.memory ?? null)} />
        <${Panel} key=${`use ${unit}`} title=${`Utilization of GPU ${unit}`} times=${times} format=${percent} most=${100} values=${points.map((one) => one.gpus[unit]?.utilization ?? null)} />
      `)}
      <${Panel} title="Memory" times=${times} format=${size} steps=${SIZES} limit=${limitOf(job, "memory")} values=${points.map((one) => one.memory)} />
      <${Panel} title="Cores" times=${times} format=${cores} limit=${limitOf(job, "cpu")} values=${points.map((one) => one.cpu)} />
    </div>
  `;
}

/** @param {{title: string, times: number[], values: (number | null)[], format?: (value: number) => string, steps?: number[], limit?: {label: string, value: number} | null, most?: number}} props */
function Panel({ title, times, values, format, steps, limit = null, most }) {
  const series = [{ label: "used", values }];
  return html`
    <section class="card chart-card" aria-label=${title}>
      <h2>${title}</h2>
      <${Chart} label=${title} times=${times} series=${series} format=${format} steps=${steps} limit=${limit} most=${most} />
    </section>
  `;
}
