// What a form says about jobs, as the body of a call and as a command line.

import { amount, commandLine } from "./words.mjs";

/**
 * @typedef {import("./job_rows.mjs").Row} Row
 * @typedef {object} Draft
 * @property {string} name
 * @property {string} queue
 * @property {string} project
 * @property {string} gpu
 * @property {string} vram
 * @property {string} cpu
 * @property {string} ram
 * @property {string} require JSON5, in place of the four above
 * @property {string} pool
 * @property {string} priority
 * @property {string} limit
 * @property {string} after
 * @property {string} output
 * @property {string} cwd
 * @property {boolean} hold
 */

/** @type {Draft} */
export const EMPTY = {
  name: "", queue: "", project: "", gpu: "", vram: "", cpu: "", ram: "", require: "",
  pool: "", priority: "", limit: "", after: "", output: "", cwd: "", hold: false,
};

const SHORT = { gpu: "-g", vram: "--vram", cpu: "-c", ram: "-m" };
const UNITS = { s: 1, m: 60, h: 3600, d: 86400 };

/** Seconds of `90`, `90s`, `2h`, `1h30m`; null: it is none. @param {string} text */
export function seconds(text) {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  if (!/^(\d+[smhd])+$/.test(text)) return null;
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNITS[/** @type {keyof typeof UNITS} */ (unit)],
    0,
  );
}

/** What is wrong with a draft, by field; the daemon checks the rest.
 * @param {Draft} draft @returns {Partial<Record<keyof Draft, string>>} */
export function problems(draft) {
  const found = /** @type {Partial<Record<keyof Draft, string>>} */ ({});
  for (const kind of /** @type {("gpu" | "cpu")[]} */ (["gpu", "cpu"])) {
    if (draft[kind] && !/^\d*\.?\d+$/.test(draft[kind])) found[kind] = "a number such as 1 or 0.5";
  }
  if (draft.limit && seconds(draft.limit) === null) found.limit = "a time such as 90s, 30m or 2h";
  if (draft.priority && !/^-?\d+$/.test(draft.priority)) found.priority = "a whole number";
  if (lacksDirectory(draft.output, draft.cwd)) found.output = "begin with /, or fill in Directory";
  return found;
}

/** Rows, with what is wrong with them beside this draft. A page has no directory of its own, and the daemon's is no
 * place for a job: without one only a queue that has its own may be used.
 * @param {Draft} draft @param {Row[]} rows @param {Set<string>} placed the queues with a directory @returns {Row[]} */
export function checkedRows(draft, rows, placed) {
  return rows.map((row) => {
    const cwd = row.fields?.cwd ?? draft.cwd;
    if (row.problem) return row;
    if (lacksDirectory(row.output ?? "", cwd)) return { ...row, problem: `where is ${row.output}? Fill in Directory, or begin it with /` };
    if (hasValues(row.command)) return { ...row, problem: "::: is read by `grass enqueue` alone: write one command a line under Many jobs" };
    if (cwd.trim() || placed.has(row.fields?.queue ?? (draft.queue || "default"))) return row;
    return { ...row, problem: "where does it run? Fill in Directory" };
  });
}

/** Whether a command has lists of values, which GNU parallel reads itself. @param {string} command */
function hasValues(command) {
  return /(^|\s):::(\s|$)/.test(command) && !/(^|[\s/])parallel\s/.test(command);
}

const KEPT = "grass.directory";

/** The directory of the jobs that were last enqueued here. */
export function lastDirectory() {
  return localStorage.getItem(KEPT) ?? "";
}

/** @param {string} cwd */
export function keepDirectory(cwd) {
  if (cwd.trim()) localStorage.setItem(KEPT, cwd.trim());
}

/** Whether a file has no place: a daemon has no directory of its own. @param {string} file @param {string} cwd */
function lacksDirectory(file, cwd) {
  return Boolean(file.trim()) && !inDirectory(file.trim(), cwd).startsWith("/");
}

/** What a draft asks for, beside or in place of the queue's default. @param {Draft} draft */
function request(draft) {
  if (draft.require.trim()) return { require: draft.require.trim() };
  return amounts(draft);
}

/** @param {Partial<Record<keyof typeof SHORT, string>>} given */
function amounts({ gpu = "", vram = "", cpu = "", ram = "" }) {
  const numbers = { gpu: gpu && number(gpu), cpu: cpu && number(cpu), vram: vram.trim(), ram: ram.trim() };
  const asked = Object.entries(numbers).filter(([, value]) => value !== "");
  return asked.length ? { require_also: Object.fromEntries(asked) } : {};
}

/** A number, or the text that is none: the daemon names it. @param {string} text */
function number(text) {
  return /^\d*\.?\d+$/.test(text) ? Number(text) : text;
}

/** The fields of a job that a draft fills. @param {Draft} draft */
export function jobFields(draft) {
  const { name, queue, project, pool, output, cwd, hold } = draft;
  const texts = Object.entries({ name, queue, project, pool, output, cwd }).filter(([, text]) => text.trim());
  return {
    ...Object.fromEntries(texts.map(([key, text]) => [key, text.trim()])),
    ...(output.trim() && { output: inDirectory(output.trim(), cwd) }),
    ...request(draft),
    ...(draft.priority && { priority: Number(draft.priority) }),
    ...(draft.limit && { time_limit_s: seconds(draft.limit) }),
    ...(draft.after.trim() && { after: draft.after.trim().split(/[\s,]+/) }),
    ...(hold && { hold }),
  };
}

/** A file of a job, in its directory unless the path is absolute. @param {string} file @param {string} cwd */
function inDirectory(file, cwd) {
  return file.startsWith("/") || !cwd.trim() ? file : `${cwd.trim().replace(/\/$/, "")}/${file}`;
}

/** The body of one call for all rows: they are enqueued together, or none of them.
 * @param {Draft} draft @param {Row[]} rows @param {string} [key] */
export function enqueueBody(draft, rows, key) {
  const jobs = rows.map(({ name, output, command, fields = {} }) => {
    const { priority, gpu, vram, cpu, ram, ...others } = fields;
    const own = amounts({ gpu, vram, cpu, ram });
    return {
      command,
      ...others,
      // Beside what the form asks for all of them.
      ...(own.require_also && { require_also: { ...(!draft.require.trim() && amounts(draft).require_also), ...own.require_also } }),
      ...(name && { name }),
      ...(output && { output: inDirectory(output, fields.cwd ?? draft.cwd) }),
      ...(priority && { priority: Number(priority) }),
    };
  });
  return { jobs, defaults: jobFields(draft), ...(key && { key }) };
}

/** A key by which a call that is repeated adds nothing a second time. */
export function newKey() {
  const random = crypto.getRandomValues(new Uint32Array(3));
  return `${Math.floor(Date.now() / 1000).toString(16)}-${[...random].map((one) => one.toString(16)).join("")}`;
}

/** What a form would say to add a job once more. @param {import("./documents.mjs").Job} job @returns {Draft} */
export function draftOf(job) {
  return {
    ...EMPTY,
    name: job.name,
    queue: job.queue,
    project: job.project === "default" ? "" : job.project,
    require: requestText(job.request),
    pool: job.pool ?? "",
    priority: job.priority ? String(job.priority) : "",
    limit: job.time_limit_s === null ? "" : `${job.time_limit_s}s`,
    after: job.after.join(" "),
    cwd: job.cwd ?? "",
  };
}

/** What was given as the command, without the queue's own part of it.
 * @param {import("./documents.mjs").Job} job */
export function ownWords(job) {
  return job.command.slice(job.prefix.length);
}

/** @param {Record<string, number | string>} request */
export function requestText(request) {
  const parts = Object.entries(request).map(([kind, one]) => {
    const sized = kind === "ram" || kind === "vram";
    return `${kind}:${sized ? `'${amount(one, kind)}'` : amount(one, kind)}`;
  });
  return `{${parts.join(",")}}`;
}

/** The same as a command to type. @param {Draft} draft @param {string[]} command */
export function asCommand(draft, command) {
  const words = ["grass", "enqueue"];
  if (draft.require.trim()) words.push("--require", draft.require.trim());
  else {
    for (const [kind, option] of Object.entries(SHORT)) {
      const value = draft[/** @type {keyof typeof SHORT} */ (kind)].trim();
      if (value) words.push(option, value);
    }
  }
  const named = { "--name": draft.name, "--project": draft.project, "--pool": draft.pool, "--priority": draft.priority, "--time-limit": draft.limit, "--output": draft.output, "--cwd": draft.cwd };
  for (const [option, value] of Object.entries(named)) if (value.trim()) words.push(option, value.trim());
  for (const one of draft.after.trim().split(/[\s,]+/).filter(Boolean)) words.push("--after", one);
  if (draft.hold) words.push("--hold");
  // What follows a queue that has a command of its own is that command's, options too.
  if (draft.queue && draft.queue !== "default") words.push(draft.queue);
  return `${commandLine(words)} -- ${commandLine(command)}`;
}
