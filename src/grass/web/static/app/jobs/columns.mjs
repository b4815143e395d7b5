// The columns that the list of jobs may have, by the names that `grass show --columns` has
// for them. `params.lr` is a parameter.

import { StateMark } from "../components/state_mark.mjs";
import { Prose } from "../components/prose.mjs";
import { now } from "../state.mjs";
import { html } from "../ui.mjs";
import { age, ago, asked, brief, commandText, ending, label, owner, ran, reason, size, stamp, stateOf, units, UNSTARTED } from "../words.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {import("../components/table.mjs").Column<Job> & {field?: string, usage?: boolean}} JobColumn
 * `field`: its name in an export; `usage`: what jobs use has to be read
 */

export const USUAL = ["id", "state", "name", "queue", "request", "units", "waited", "ran", "reason"];
export const GROUPS = ["queue", "project", "name", "state", "owner", "worker"];

/** @param {{job: Job}} props */
function Waited({ job }) {
  const until = job.started_at ?? job.finished_at;
  const seconds = until ? (Date.parse(until) - Date.parse(job.created_at)) / 1000 : age(job.created_at, now.value);
  return html`${brief(seconds)}`;
}

/** @param {{job: Job}} props */
function Ran({ job }) {
  const seconds = ran(job, job.state === "running" ? now.value : 0);
  return html`${seconds === null ? "" : brief(seconds)}`;
}

/** @param {{at: string | null}} props */
function When({ at }) {
  return at && html`<time datetime=${at} title=${stamp(at)}>${ago(at, now.value)}</time>`;
}

/** @param {{job: Job}} props */
function Reason({ job }) {
  const text = reason(job, job.reason && UNSTARTED.includes(job.state) ? now.value : Date.now());
  return html`<span title=${text} class=${job.state === "failed" ? "failed" : "muted"}><${Prose} text=${text} /></span>`;
}

/** What a job holds, or held last. @param {Job} job */
export function given(job) {
  return Object.keys(job.allocation).length ? job.allocation : job.attempts.at(-1)?.allocation ?? {};
}

/** Its GPUs, where it has some: they tell most. @param {Job} job */
function givenCell(job) {
  const all = given(job);
  return html`<span title=${units(all)}>${units(all.gpu ? { gpu: all.gpu } : all)}</span>`;
}

/** @param {Job} job @param {string} what @param {"peak" | "now"} field */
function used(job, what, field) {
  const all = (job.usage ?? []).filter((one) => one.what === what && one[field] !== null);
  return all.length ? all.reduce((sum, one) => sum + Number(one[field]), 0) : null;
}

/** @param {string} what @param {(amount: number) => string} format @param {"peak" | "now"} field */
const usage = (what, format, field = "peak") => (/** @type {Job} */ job) => {
  const amount = used(job, what, field);
  return amount === null ? "" : format(amount);
};

const link = (/** @type {Job} */ job, /** @type {string} */ text) => html`<a href=${`/jobs/${job.id}`} title=${text}>${text}</a>`;

/** @type {JobColumn[]} */
export const COLUMNS = [
  { id: "id", label: "Id", number: true, order: "id", field: "id", className: "col-id", cell: (job) => html`<a href=${`/jobs/${job.id}`}>${label(job)}</a>` },
  { id: "state", label: "State", field: "state", className: "col-state", cell: (job) => html`<${StateMark} state=${stateOf(job)} />` },
  { id: "name", label: "Name", order: "name", field: "name", className: "col-name", cell: (job) => link(job, job.name) },
  { id: "queue", label: "Queue", field: "queue", cell: (job) => job.queue },
  { id: "project", label: "Project", field: "project", cell: (job) => job.project },
  { id: "owner", label: "Owner", field: "owner", cell: (job) => owner(job.owner) },
  { id: "priority", label: "Priority", number: true, order: "priority", field: "priority", cell: (job) => job.priority },
  { id: "request", label: "Request", field: "request", className: "col-request", cell: (job) => asked(job.request) },
  { id: "units", label: "Given", field: "allocation", className: "col-units", cell: givenCell },
  { id: "worker", label: "Worker", field: "worker", cell: (job) => job.worker ?? "" },
  { id: "waited", label: "Waited", number: true, className: "col-time", cell: (job) => html`<${Waited} job=${job} />` },
  { id: "ran", label: "Ran", number: true, order: "duration", field: "ran_s", className: "col-time", cell: (job) => html`<${Ran} job=${job} />` },
  { id: "created", label: "Enqueued", field: "created_at", cell: (job) => html`<${When} at=${job.created_at} />` },
  { id: "started", label: "Started", order: "started", field: "started_at", cell: (job) => html`<${When} at=${job.started_at} />` },
  { id: "finished", label: "Ended", order: "ended", field: "finished_at", cell: (job) => html`<${When} at=${job.finished_at} />` },
  { id: "exit", label: "Exit", field: "exit_code", cell: ending },
  { id: "pid", label: "Pid", number: true, field: "pid", cell: (job) => job.pid ?? job.attempts.at(-1)?.pid ?? "" },
  { id: "attempts", label: "Attempts", number: true, cell: (job) => job.attempts.length },
  { id: "memory", label: "Memory peak", number: true, usage: true, cell: usage("memory", size) },
  { id: "cores", label: "Cores", number: true, usage: true, cell: usage("cpu", (cores) => cores.toFixed(1), "now") },
  { id: "gpu-peak", label: "GPU memory peak", number: true, usage: true, cell: usage("gpu memory", size) },
  { id: "gpu-use", label: "GPU use", number: true, usage: true, cell: usage("gpu utilization", (percent) => `${Math.round(percent)} %`, "now") },
  { id: "params", label: "Parameters", field: "params", className: "mono", cell: (job) => Object.entries(job.params).map(([name, value]) => `${name}=${value}`).join(" ") },
  { id: "command", label: "Command", field: "command", className: "mono", cell: commandText },
  { id: "directory", label: "Directory", field: "cwd", className: "mono", cell: (job) => job.cwd ?? "" },
  { id: "reason", label: "Why", field: "reason", wide: true, className: "col-reason", cell: (job) => html`<${Reason} job=${job} />` },
];

/** The columns of these names, in their order. @param {string[]} names @returns {JobColumn[]} */
export function columnsOf(names) {
  const known = COLUMNS.filter((one) => names.includes(one.id));
  const params = names.filter((one) => one.startsWith("params.")).map(parameter);
  const at = known.findIndex((one) => one.id === "reason");
  return at < 0 ? [...known, ...params] : [...known.slice(0, at), ...params, ...known.slice(at)];
}

/** @param {string} id `params.lr` @returns {JobColumn} */
function parameter(id) {
  const name = id.slice("params.".length);
  return { id, label: name, field: id, className: "mono", cell: (job) => valueOf(job, name) };
}

/** The value of a parameter; any name may be asked for, also `constructor`.
 * @param {Job} job @param {string} name */
function valueOf(job, name) {
  return Object.hasOwn(job.params, name) ? job.params[name] : "";
}

/** What a job is grouped by. @param {Job} job @param {string} by a column, or a parameter */
export function groupOf(job, by) {
  if (by.startsWith("params.")) return valueOf(job, by.slice("params.".length));
  if (by === "state") return stateOf(job);
  // Members of an array have their index in the name.
  if (by === "name" && job.index !== null) return job.name.replace(/\[\d+\]$/, "").trim();
  return GROUPS.includes(by) ? String(/** @type {Record<string, any>} */ (/** @type {unknown} */ (job))[by] ?? "") : "";
}
