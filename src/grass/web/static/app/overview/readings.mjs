// What the overview reads beside its own document: the past hour of each GPU, when jobs
// may end or start, the last failures and their last lines. Each is read when something
// tells that it changed, or when it has become old.

import { call, daemonNow, read } from "../api.mjs";
import { inSlots } from "../components/sparkline.mjs";
import { useSoon } from "../soon.mjs";
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

/** What is known of jobs that are shown: a tab may be open for weeks.
 * @template T @param {Record<number, T>} known @param {Job[]} jobs @returns {Record<number, T>} */
function onlyOf(known, jobs) {
  return Object.fromEntries(jobs.filter(({ id }) => id in known).map(({ id }) => [id, known[id]]));
}

/**
 * When running jobs may end, by id, as far as earlier runs tell.
 * @type {import("../../vendor/signals.mjs").Signal<Record<number, string | null>>}
 */
export const ends = signal({});

/** @param {Job[]} running */
export function useEnds(running) {
  useSoon(running.map((job) => job.id).join(), async () => {
    ends.value = onlyOf(ends.value, running);
    for (const { id } of running.filter((job) => !(job.id in ends.value))) {
      const told = await call("POST", "/jobs/estimate", { select: [String(id)] }).catch(() => null);
      if (told) ends.value = { ...ends.value, [id]: told.ends_at };
    }
  });
}

/**
 * Explanations by id, each of a version of its job.
 * @typedef {import("../../vendor/signals.mjs").Signal<Record<number, {version: string, told: Explanation}>>} Explanations
 */

/** Of jobs in line, for their start. @type {Explanations} */
export const starts = signal({});
/** Of jobs that failed, for their last lines. @type {Explanations} */
export const failings = signal({});

/** Another state or reason of a job gets another explanation. @param {Job} job */
function versionOf(job) {
  return `${job.id} ${job.state} ${job.reason} ${job.finished_at}`;
}

/** @param {Explanations} known @param {Job[]} jobs */
export function useExplanations(known, jobs) {
  const minute = useEachMinute();
  useSoon(`${minute} ${jobs.map(versionOf).join("\n")}`, async () => {
    known.value = onlyOf(known.value, jobs);
    for (const job of jobs) {
      const version = versionOf(job);
      // When a job may start depends on others too; how one ended does not.
      if (job.finished_at && known.value[job.id]?.version === version) continue;
      const told = await read(`/jobs/${job.id}/explain`).catch(() => null);
      if (told) known.value = { ...known.value, [job.id]: { version, told } };
    }
  });
}

/** @type {import("../../vendor/signals.mjs").Signal<Job[] | null>} */
export const failures = signal(null);

/** Read the last failures when their number changes. @param {number | undefined} count */
export function useFailures(count) {
  useSoon(String(count), async () => {
    if (count === undefined) return;
    const wanted = { state: ["failed", "lost"], order: "-ended", limit: MOST_FAILURES };
    const told = await read("/jobs", wanted).catch(() => null);
    if (told) failures.value = told.jobs;
  });
  useExplanations(failings, failures.value ?? []);
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
