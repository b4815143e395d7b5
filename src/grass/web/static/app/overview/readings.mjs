// What the overview reads beside its own document: the past hour of each GPU, when jobs
// may end or start, the last failures and their last lines. Each is read when something
// tells that it changed, or when it has become old.

import { call, daemonNow, read } from "../api.mjs";
import { inSlots } from "../components/sparkline.mjs";
import { now } from "../state.mjs";
import { signal, useEffect } from "../ui.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {import("../documents.mjs").Explanation} Explanation
 * @typedef {{check: string, status: string, finding: string, fix: string}} Finding
 */

export const SLOTS = 60;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const MOST_FAILURES = 5;

/** Something of the past that is read once a minute. */
function useEachMinute() {
  return Math.floor(now.value / MINUTE_MS);
}

/**
 * The utilization of each GPU in the last hour, by `worker/unit`.
 * @type {import("../../vendor/signals.mjs").Signal<Record<string, (number | null)[]>>}
 */
export const histories = signal({});

/** @param {string} worker @param {string} unit */
async function readHistory(worker, unit) {
  const path = `/workers/${encodeURIComponent(worker)}/gpus/${encodeURIComponent(unit)}/usage`;
  const { points } = await read(path);
  const to = daemonNow();
  const told = points.map((/** @type {import("../documents.mjs").UsagePoint} */ point) => ({
    at: Date.parse(point.at),
    span: point.span_s * 1000,
    value: point.gpus[unit]?.utilization ?? null,
  }));
  const slots = inSlots(told, { from: to - HOUR_MS, to, slots: SLOTS });
  histories.value = { ...histories.value, [`${worker}/${unit}`]: slots };
}

/** @param {string} worker @param {string} unit */
export function useHistory(worker, unit) {
  const minute = useEachMinute();
  useEffect(() => {
    // A worker that is away has no history to give; what was read stays.
    readHistory(worker, unit).catch(() => {});
  }, [worker, unit, minute]);
  return histories.value[`${worker}/${unit}`] ?? null;
}

/**
 * When running jobs may end, by id, as far as earlier runs tell.
 * @type {import("../../vendor/signals.mjs").Signal<Record<number, string | null>>}
 */
export const ends = signal({});

/** @param {Job[]} running */
export function useEnds(running) {
  const ids = running.map((job) => job.id);
  useEffect(() => {
    for (const id of ids.filter((one) => !(one in ends.value))) {
      call("POST", "/jobs/estimate", { select: [String(id)] }).then(
        ({ ends_at: end }) => { ends.value = { ...ends.value, [id]: end }; },
        () => {},
      );
    }
  }, [ids.join()]);
}

/**
 * Explanations of jobs: of those in line for their start, of those that failed for their
 * last lines.
 * @type {import("../../vendor/signals.mjs").Signal<Record<string, Explanation>>}
 */
export const explanations = signal({});

/** @param {Job} job */
export function explanationOf(job) {
  return explanations.value[versionOf(job)] ?? explanations.value[`last ${job.id}`] ?? null;
}

/** What an explanation is of: another state or reason of a job gets another one.
 * @param {Job} job */
function versionOf(job) {
  return `${job.id} ${job.state} ${job.reason} ${job.finished_at}`;
}

/** @param {Job[]} jobs @param {unknown} again */
export function useExplanations(jobs, again = null) {
  const versions = jobs.map(versionOf);
  useEffect(() => {
    for (const [place, version] of versions.entries()) {
      const { id } = jobs[place];
      read(`/jobs/${id}/explain`).then(
        (told) => {
          explanations.value = { ...explanations.value, [version]: told, [`last ${id}`]: told };
        },
        () => {},
      );
    }
  }, [versions.join("\n"), again]);
}

/** @type {import("../../vendor/signals.mjs").Signal<Job[] | null>} */
export const failures = signal(null);

/** Read the last failures when their number changes. @param {number | undefined} count */
export function useFailures(count) {
  useEffect(() => {
    if (count === undefined) return;
    read("/jobs", { state: ["failed", "lost"], order: "-ended", limit: MOST_FAILURES }).then(
      ({ jobs }) => { failures.value = jobs; },
      () => {},
    );
  }, [count]);
  useExplanations(failures.value ?? []);
  return failures.value;
}

/**
 * What `grass doctor` finds wrong with GPUs, where there are none.
 * @type {import("../../vendor/signals.mjs").Signal<Finding | null>}
 */
const driver = signal(null);

/** @param {boolean} wanted */
export function useDriver(wanted) {
  useEffect(() => {
    if (!wanted) return;
    read("/doctor").then(
      ({ findings }) => {
        const checks = /** @type {Finding[]} */ (findings);
        driver.value = checks.find((one) => one.check === "driver") ?? null;
      },
      () => {},
    );
  }, [wanted]);
  return driver.value;
}
