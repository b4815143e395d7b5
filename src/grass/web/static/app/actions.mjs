// The one table of what can be done here. Menus, the palette and the keys are made from
// it; every row is a route of the API and a command, which a test compares.

import { call } from "./api.mjs";
import { session } from "./state.mjs";
import { ENDED, plural, UNSTARTED } from "./words.mjs";

/**
 * @typedef {import("./documents.mjs").Job} Job
 * @typedef {object} Action
 * @property {string} id
 * @property {string} label
 * @property {string} past what a message says was done: `cancelled`
 * @property {string} key the letter in an open menu
 * @property {string} endpoint `POST /jobs/cancel`
 * @property {string} command the command line's word for it
 * @property {import("./documents.mjs").Right} right
 * @property {import("./documents.mjs").Right} [own] what suffices for one's own jobs
 * @property {"job" | "queue" | "worker" | "unit" | "pool" | "daemon"} target
 * @property {(thing: any) => boolean} applies whether it makes sense for this thing now
 * @property {(things: any[], more?: object) => object | undefined} body
 * @property {boolean} [asks] whether it is confirmed, with the count, before it is done
 * @property {boolean} [danger]
 * @property {boolean} [form] a form of a view asks what it needs; menus leave it out
 */

const select = (/** @type {Job[]} */ jobs, /** @type {object} */ more = {}) => ({
  select: jobs.map((job) => String(job.id)),
  ...more,
});
const is = (/** @type {string[]} */ ...states) => (/** @type {Job} */ job) =>
  states.includes(job.state);
const runs = (/** @type {Job} */ job) => job.state === "running";
const suspended = (/** @type {Job} */ job) => job.flags.includes("suspended");
const own = "submit";

/** @type {Action[]} */
export const ACTIONS = [
  { id: "cancel", label: "Cancel", past: "cancelled", key: "c", endpoint: "POST /jobs/cancel", command: "cancel", right: "operate", own, target: "job", applies: is(...UNSTARTED, "running"), body: select, asks: true, danger: true },
  { id: "rerun", label: "Rerun", past: "rerun", key: "r", endpoint: "POST /jobs/rerun", command: "rerun", right: "operate", own, target: "job", applies: is(...ENDED), body: select },
  { id: "hold", label: "Hold", past: "held", key: "h", endpoint: "POST /jobs/hold", command: "hold", right: "operate", own, target: "job", applies: is("waiting", "queued"), body: select },
  { id: "release", label: "Release", past: "released", key: "e", endpoint: "POST /jobs/release", command: "release", right: "operate", own, target: "job", applies: is("held"), body: select },
  { id: "first", label: "Move to the front", past: "moved to the front", key: "f", endpoint: "POST /jobs/edit", command: "edit", right: "operate", own, target: "job", applies: is(...UNSTARTED), body: (jobs) => select(jobs, { first: true }) },
  { id: "suspend", label: "Suspend", past: "suspended", key: "s", endpoint: "POST /jobs/suspend", command: "suspend", right: "operate", own, target: "job", applies: (job) => runs(job) && !suspended(job), body: select },
  { id: "continue", label: "Continue", past: "continued", key: "o", endpoint: "POST /jobs/continue", command: "continue", right: "operate", own, target: "job", applies: (job) => runs(job) && suspended(job), body: select },
  { id: "interrupt", label: "Send SIGINT", past: "sent SIGINT", key: "i", endpoint: "POST /jobs/signal", command: "signal", right: "operate", own, target: "job", applies: runs, body: (jobs) => select(jobs, { signal: 2 }), asks: true },
  { id: "terminate", label: "Send SIGTERM", past: "sent SIGTERM", key: "t", endpoint: "POST /jobs/signal", command: "signal", right: "operate", own, target: "job", applies: runs, body: (jobs) => select(jobs, { signal: 15 }), asks: true },
  { id: "kill", label: "Kill now", past: "killed", key: "k", endpoint: "POST /jobs/cancel", command: "cancel", right: "operate", own, target: "job", applies: runs, body: (jobs) => select(jobs, { signal: 9, grace_s: 0 }), asks: true, danger: true },
  { id: "remove", label: "Remove, with its output", past: "removed", key: "d", endpoint: "POST /jobs/remove", command: "remove", right: "operate", own, target: "job", applies: is(...ENDED), body: select, asks: true, danger: true },
  { id: "pause-queue", label: "Pause", past: "paused", key: "p", endpoint: "POST /pause", command: "pause", right: "operate", target: "queue", applies: (queue) => !queue.paused, body: ([queue]) => ({ queue: queue.name }) },
  { id: "resume-queue", label: "Resume", past: "resumed", key: "r", endpoint: "POST /resume", command: "resume", right: "operate", target: "queue", applies: (queue) => queue.paused, body: ([queue]) => ({ queue: queue.name }) },
  { id: "delete-queue", label: "Delete", past: "deleted", key: "d", endpoint: "DELETE /queues/{name}", command: "delete-queue", right: "operate", target: "queue", applies: (queue) => queue.name !== "default", body: () => undefined, asks: true, danger: true },
  { id: "drain-worker", label: "Drain", past: "drained", key: "d", endpoint: "POST /workers/{name}/drain", command: "drain", right: "operate", target: "worker", applies: (worker) => !worker.draining, body: () => ({ on: true }) },
  { id: "resume-worker", label: "Resume", past: "resumed", key: "r", endpoint: "POST /workers/{name}/drain", command: "resume", right: "operate", target: "worker", applies: (worker) => worker.draining, body: () => ({ on: false }) },
  { id: "forget-worker", label: "Forget", past: "forgotten", key: "f", endpoint: "DELETE /workers/{name}", command: "workers", right: "admin", target: "worker", applies: (worker) => !worker.connected, body: () => undefined, asks: true, danger: true },
  { id: "pause-pool", label: "Pause", past: "paused", key: "p", endpoint: "POST /pools/{name}/pause", command: "pool", right: "operate", target: "pool", applies: (pool) => !pool.paused, body: () => undefined },
  { id: "resume-pool", label: "Resume", past: "resumed", key: "r", endpoint: "POST /pools/{name}/resume", command: "pool", right: "operate", target: "pool", applies: (pool) => pool.paused, body: () => undefined },
  { id: "drain-unit", label: "Drain", past: "drained", key: "d", endpoint: "POST /drain", command: "drain", right: "operate", target: "unit", applies: (unit) => !unit.drained, body: ([unit]) => ({ unit: unit.unit, worker: unit.worker }) },
  { id: "acknowledge-unit", label: "Acknowledge its fault", past: "acknowledged", key: "a", endpoint: "POST /resume", command: "resume", right: "operate", target: "unit", applies: (unit) => unit.faulty && !unit.drained, body: ([unit]) => ({ unit: unit.unit, worker: unit.worker }) },
  { id: "resume-unit", label: "Resume", past: "resumed", key: "r", endpoint: "POST /resume", command: "resume", right: "operate", target: "unit", applies: (unit) => unit.drained, body: ([unit]) => ({ unit: unit.unit, worker: unit.worker }) },
  { id: "add-queue", label: "New queue", past: "created", key: "", endpoint: "PUT /queues/{name}", command: "create-queue", right: "operate", target: "queue", applies: () => true, body: (_, more) => more, form: true },
  { id: "limit-queue", label: "Change its limits", past: "changed", key: "", endpoint: "PATCH /queues/{name}", command: "edit-queue", right: "operate", target: "queue", applies: () => true, body: (_, more) => more, form: true },
  { id: "add-unit", label: "Add units", past: "added", key: "", endpoint: "POST /capacity/add", command: "capacity", right: "operate", target: "unit", applies: () => true, body: ([unit], more) => ({ worker: unit.worker, ...more }), form: true },
  { id: "remove-unit", label: "Remove", past: "removed", key: "x", endpoint: "POST /capacity/remove", command: "capacity", right: "operate", target: "unit", applies: (unit) => unit.declared || unit.faulty, body: ([unit]) => ({ unit: unit.unit, worker: unit.worker }), asks: true, danger: true },
  { id: "edit", label: "Edit", past: "changed", key: "", endpoint: "POST /jobs/edit", command: "edit", right: "operate", own, target: "job", applies: is(...UNSTARTED), body: select, form: true },
  { id: "move", label: "Move before another", past: "moved", key: "", endpoint: "POST /jobs/edit", command: "edit", right: "operate", target: "job", applies: is(...UNSTARTED), body: select, form: true },
  { id: "enqueue", label: "New job", past: "enqueued", key: "", endpoint: "POST /jobs", command: "enqueue", right: "submit", target: "daemon", applies: () => true, body: (_, more) => more, form: true },
  { id: "plan", label: "Check it", past: "checked", key: "", endpoint: "POST /jobs/plan", command: "enqueue", right: "submit", target: "daemon", applies: () => true, body: (_, more) => more, form: true },
  { id: "pause-all", label: "Pause all queues", past: "paused", key: "p", endpoint: "POST /pause", command: "pause", right: "operate", target: "daemon", applies: (daemon) => !daemon.paused, body: () => ({}) },
  { id: "resume-all", label: "Resume all queues", past: "resumed", key: "r", endpoint: "POST /resume", command: "resume", right: "operate", target: "daemon", applies: (daemon) => daemon.paused, body: () => ({}) },
];

/**
 * The actions that are offered for things, less those that need a form: each applies to one of them at least, and the
 * caller's role allows it.
 * @param {Action["target"]} target
 * @param {any[]} things
 */
export function actionsFor(target, things) {
  return ACTIONS.filter(
    (one) => !one.form && one.target === target && things.some((thing) => offered(one, thing)),
  );
}

/** The row of this id. @param {string} id */
export function actionOf(id) {
  const found = ACTIONS.find((one) => one.id === id);
  if (!found) throw new Error(`no action ${id}`);
  return found;
}

/** @param {Action} action @param {any} thing */
export function offered(action, thing) {
  return action.applies(thing) && allowed(action, thing);
}

/** @param {Action} action @param {any} thing */
function allowed(action, thing) {
  const who = session.value;
  if (!who) return false;
  if (who.rights.includes(action.right)) return true;
  return Boolean(action.own && who.rights.includes(action.own) && thing.owner === who.actor);
}

/**
 * Do it to all of the things that it applies to; returns what there is to say.
 * @param {Action} action
 * @param {any[]} things
 * @param {object} [more] further fields of the body
 */
export async function perform(action, things, more) {
  const meant = things.filter((thing) => offered(action, thing));
  const [method, pattern] = action.endpoint.split(" ");
  const path = pattern.replace("{name}", encodeURIComponent(meant[0]?.name ?? ""));
  const reply = await call(method, path, action.body(meant, more));
  return { text: `${subject(action, meant)} ${action.past}`, warnings: reply.warnings ?? [] };
}

/** What an action is about, in words: `job 7`, `3 jobs`, `queue nightly`.
 * @param {Action} action @param {any[]} things */
export function subject(action, things) {
  if (action.target === "daemon") return "all queues";
  if (things.length !== 1) return plural(things.length, action.target);
  if (action.target === "job") return `job ${things[0].id}`;
  return `${action.target} ${things[0].name ?? things[0].unit}`;
}
