// Durations, sizes, states and endings, in the words of the command line.

/** @typedef {import("./documents.mjs").Job} Job */

const GIB = 2 ** 30;
const MIB = 2 ** 20;

export const UNSTARTED = ["held", "waiting", "queued"];
export const UNFINISHED = [...UNSTARTED, "running"];
export const ENDED = ["succeeded", "failed", "cancelled", "lost"];

/** A duration in at most six characters: `12s`, `3m05s`, `2h10m`, `4d3h`.
 * @param {number} seconds */
export function brief(seconds) {
  const left = Math.max(0, Math.trunc(seconds));
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  if (left >= 86400) return `${Math.floor(left / 86400)}d${Math.floor((left % 86400) / 3600)}h`;
  if (left >= 3600) return `${Math.floor(left / 3600)}h${two(Math.floor((left % 3600) / 60))}m`;
  if (left >= 60) return `${Math.floor(left / 60)}m${two(left % 60)}s`;
  return `${left}s`;
}

/** A duration to the digit that matters: `42s`, `3m05s`, `2h10m`, `23h`.
 * @param {number} seconds */
export function rough(seconds) {
  const size = seconds >= 172_800 ? 86_400 : seconds >= 36_000 ? 3600 : seconds >= 600 ? 60 : 1;
  return brief(Math.round(seconds / size) * size).replace(/(m00s|h00m|d0h)$/, (all) => all[0]);
}

/** Seconds since a time of the API. @param {string | null} at @param {number} now */
export function age(at, now) {
  return at ? Math.max(0, (now - Date.parse(at)) / 1000) : 0;
}

/** How long something ran, or runs; null: it has not begun.
 * @param {{ran_s?: number | null, started_at: string | null, finished_at: string | null}} one
 * @param {number} now */
export function ran(one, now) {
  if (one.ran_s !== null && one.ran_s !== undefined) return one.ran_s;
  if (!one.started_at) return null;
  const end = one.finished_at ? Date.parse(one.finished_at) : now;
  return Math.max(0, (end - Date.parse(one.started_at)) / 1000);
}

/** How long ago: `3m05s ago`. @param {string | null} at @param {number} now */
export function ago(at, now) {
  return at ? `${rough(age(at, now))} ago` : "";
}

/** A time of day, with its date if that is not today.
 * @param {string | number | null} at @param {number} now */
export function clock(at, now) {
  if (at === null) return "";
  const then = new Date(at);
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  if (then.toDateString() === new Date(now).toDateString()) return time;
  return `${then.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** A time in full, in the local zone: `2026-01-02 03:04:05`. @param {string | null} at */
export function stamp(at) {
  if (!at) return "";
  const then = new Date(at);
  const shifted = new Date(then.getTime() - then.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19).replace("T", " ");
}

/** Times in a text of the daemon, in the local zone: `since` one becomes `for 5m05s`.
 * @param {string | null} text @param {number} now */
export function inLocalTime(text, now) {
  return (text ?? "").replace(
    /(since )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g,
    (_, since, at) => {
      if (since) return `for ${brief(age(at, now))}`;
      const left = (Date.parse(at) - now) / 1000;
      return `${clock(at, now)}, ${left >= 0 ? `in ${rough(left)}` : `${rough(-left)} ago`}`;
    },
  );
}

/** A number of bytes, rounded down: `0`, `512M`, `8G`, `79.4G`. @param {number | null} bytes */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "?";
  if (bytes < MIB) return "0";
  if (bytes < GIB) return `${Math.floor(bytes / MIB)}M`;
  return `${String(Math.floor((bytes * 10) / GIB) / 10)}G`;
}

/** An amount of a kind: `0.5` of gpu, `8G` of ram. @param {number | string} amount @param {string} kind */
export function amount(amount, kind) {
  if (typeof amount === "string") return amount;
  if (kind === "ram" || kind === "vram") return gibibytes(amount);
  return String(Math.round(amount * 10_000) / 10_000);
}

/** An amount of memory with the digits that matter: `500M`, `3.25G`, `23.5G`. @param {number} gib */
function gibibytes(gib) {
  if (gib === 0) return "0";
  const letters = "MGTP";
  let [value, place] = gib < 1 ? [gib * 1024, 0] : [gib, 1];
  const digits = () => String(Number(value.toFixed((value < 10 ? 1 : 0) + (place ? 1 : 0))));
  while (Number(digits()) >= 1024 && place + 1 < letters.length) [value, place] = [value / 1024, place + 1];
  return digits() + letters[place];
}

/** A request: `gpu 0.5, ram 8G`. @param {Record<string, number | string>} request */
export function asked(request) {
  return Object.entries(request)
    .map(([kind, one]) => `${kind} ${amount(one, kind)}`)
    .join(", ");
}

/** An allocation: `gpu:0,1(0.5) cpu:4 ram:3.5G`. @param {import("./documents.mjs").Amounts} given */
export function units(given) {
  return Object.entries(given)
    .map(([kind, named]) => `${kind}:${unitsOf(kind, named)}`)
    .join(" ");
}

/** @param {string} kind @param {Record<string, number>} named */
function unitsOf(kind, named) {
  if (kind === "ram" && Object.keys(named).join() === "0") return amount(named["0"], kind);
  const sized = kind === "ram" || kind === "vram";
  return Object.entries(named)
    .map(([name, one]) => (one === 1 && !sized ? name : `${name}(${amount(one, kind)})`))
    .join(",");
}

/** The state of a job, or the flag that tells more. @param {Pick<Job, "state" | "flags">} job */
export function stateOf(job) {
  const telling = ["unreachable", "stopping", "suspended"];
  return telling.find((one) => job.flags?.includes(one)) ?? job.state;
}

/** A job's id, with its index if it is a member of an array. @param {Pick<Job, "id" | "index">} job */
export function label(job) {
  return job.index === null || job.index === undefined ? `${job.id}` : `${job.id} [${job.index}]`;
}

const SIGNALS = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT",
  7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2",
  13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
};
const ACCIDENTS = {
  4: "illegal instruction", 6: "abort", 7: "bus error", 8: "arithmetic",
  9: "out of memory?", 11: "segmentation fault",
};

/** How a job or attempt ended: `exit 3`, `killed by SIGTERM`.
 * @param {{signal: number | null, exit_code: number | null, reason?: string | null, state?: string}} one */
export function ending(one) {
  if (one.signal !== null) {
    const name = /** @type {Record<number, string>} */ (SIGNALS)[one.signal];
    const byGrass = Boolean(one.reason) || one.state === "cancelled";
    const hint = byGrass ? "" : /** @type {Record<number, string>} */ (ACCIDENTS)[one.signal];
    return `killed by ${name ?? `signal ${one.signal}`}${hint ? ` (${hint})` : ""}`;
  }
  return one.exit_code === null ? "" : `exit ${one.exit_code}`;
}

/** Why a job waits, or why it failed. @param {Job} job @param {number} now */
export function reason(job, now) {
  if (job.reason) return inLocalTime(job.reason, now);
  return job.state === "failed" ? ending(job) : "";
}

/** Who: `uid:1000`, `token alice`. @param {string} actor */
export function owner(actor) {
  return actor.replace(/^token:/, "token ");
}

/** A command, with what is known of its placeholders; a shell line as it was given.
 * @param {{command: string[], filled_command?: string[], shell: boolean}} job */
export function commandText(job) {
  const words = job.filled_command ?? job.command;
  return job.shell && words.length === 1 ? words[0] : commandLine(words);
}

/** Words as a line for a shell. @param {string[]} words */
export function commandLine(words) {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : quote(word))).join(" ");
}

/** @param {string} word */
function quote(word) {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** `1 job`, `2 jobs`. @param {number} count @param {string} noun */
export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** How many of some jobs run: `2 of them running`. @param {number} running @param {number} count */
export function runningOf(running, count) {
  if (running === count) return count === 1 ? "running" : "all of them running";
  return running ? `${running.toLocaleString("en")} of them running` : "none of them running";
}
