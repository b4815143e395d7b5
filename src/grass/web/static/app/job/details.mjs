// What a job was asked to do, what it was given, its attempts and what happened to it.

import { Problem, read } from "../api.mjs";
import { Command, copyAndSay } from "../components/command.mjs";
import { Icon } from "../components/icon.mjs";
import { Prose } from "../components/prose.mjs";
import { asCommand, draftOf, ownWords, requestText } from "../job_form.mjs";
import { useSoon } from "../soon.mjs";
import { now, overview } from "../state.mjs";
import { html, useState } from "../ui.mjs";
import { ago, asked, brief, clock, commandText, ending, inLocalTime, owner, ran, rough, size, stamp, units } from "../words.mjs";
import { useAbout } from "./job_document.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

/** @param {{job: Job}} props */
export function Details({ job }) {
  return html`
    <div class="job-details">
      <section class="card about">
        <h2>${job.task ? "Function" : "Command"}</h2>
        <${Command} text=${commandText(job)} />
        <div class="buttons job-copies">
          ${!job.task && html`<button type="button" onClick=${() => copyAndSay(asCommand(draftOf(job), ownWords(job)))}>Copy as command line</button>`}
          <button type="button" onClick=${() => copyAndSay(asPython(job))}>Copy as Python</button>
        </div>
        <${Facts} rows=${facts(job)} />
      </section>
      ${job.usage && job.usage.length > 0 && html`<${Uses} job=${job} />`}
      <${History} job=${job} />
      <${Attempts} job=${job} />
    </div>
  `;
}

/** @param {{rows: [string, any][]}} props */
function Facts({ rows }) {
  const told = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">${told.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** @param {Job} job @returns {[string, any][]} */
function facts(job) {
  return [
    ["Request", asked(job.request) || "nothing"],
    ["Given", units(job.allocation)],
    ["Worker", job.worker],
    ["Process", job.pid ?? job.guest],
    ["Directory", job.cwd],
    ["Environment", job.variables.length ? html`<span class="mono">${job.variables.join("  ")}</span> <span class="muted">added or changed</span>` : null],
    ["Project", job.project],
    ["Pool", job.pool],
    ["Owner", owner(job.owner)],
    ["Priority", String(job.priority)],
    ["Time limit", job.time_limit_s === null ? null : brief(job.time_limit_s)],
    ["Parameters", Object.entries(job.params ?? {}).map(([name, value]) => `${name}=${value}`).join("  ")],
    ["Array", job.array === null ? null : html`<a href=${`/jobs?select=${job.array}`}>${job.array}, index ${job.index}</a>`],
    ["Enqueued", `${stamp(job.created_at)}, ${ago(job.created_at, now.value)}`],
    ["Started", job.started_at && stamp(job.started_at)],
    ["Ended", job.finished_at && stamp(job.finished_at)],
  ];
}

/** The call in Python that would enqueue the same; of a function, what reads its result. @param {Job} job */
export function asPython(job) {
  if (job.task) return `import grass\n\ngrass.jobs(${job.id}).result()`;
  const words = ownWords(job);
  const command = job.shell && words.length === 1 ? words[0] : words;
  const named = {
    name: job.name, queue: job.queue, request: requestText(job.request), cwd: job.cwd, project: job.project,
    priority: job.priority || null, time_limit: job.time_limit_s, after: job.after.length ? job.after : null,
  };
  const given = Object.entries(named).filter(([, value]) => value !== null);
  const options = given.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  return `import grass\n\ngrass.enqueue(${JSON.stringify(command)}, ${options})`;
}

/** @param {{job: Job}} props */
function Uses({ job }) {
  const text = (/** @type {string} */ what, /** @type {number | null} */ value) => {
    if (value === null) return "";
    if (what.includes("memory")) return size(value);
    return what.includes("utilization") ? `${Math.round(value)} %` : String(Math.round(value * 100) / 100);
  };
  return html`
    <section class="card">
      <h2>Asked, given, used</h2>
      <div class="scrolls" tabindex="0" role="group" aria-label="asked, given, used">
        <table class="plain">
          <thead><tr><th scope="col">What</th>${["Asked", "Given", "Now", "Peak"].map((word) => html`<th scope="col" key=${word} class="number">${word}</th>`)}</tr></thead>
          <tbody>${job.usage?.map((one) => html`<tr key=${one.what + one.unit}>
            <th scope="row">${one.unit === null ? one.what : one.what.replace(/^gpu/, `gpu ${one.unit}`)}</th>
            ${[one.asked, one.given, one.now, one.peak].map((value, at) => html`<td key=${at} class="number">${text(one.what, value)}</td>`)}
          </tr>`)}</tbody>
        </table>
      </div>
    </section>
  `;
}

/** @param {{job: Job}} props */
function Attempts({ job }) {
  if (job.attempts.length === 0) return null;
  return html`
    <section class="card attempts">
      <h2>Attempts</h2>
      <div class="scrolls" tabindex="0" role="group" aria-label="attempts">
        <table class="plain">
          <thead><tr><th scope="col">#</th><th scope="col">State</th><th scope="col">Worker</th><th scope="col">Given</th><th scope="col">Process</th><th scope="col">Ran</th><th scope="col">End</th></tr></thead>
          <tbody>${job.attempts.map((one) => html`<tr key=${one.number}>
            <th scope="row">${one.number}</th><td>${one.state}</td><td>${one.worker}</td><td class="mono">${units(one.allocation)}</td><td>${one.pid}</td>
            <td>${ran(one, now.value) === null ? "" : brief(ran(one, now.value) ?? 0)}</td><td>${one.reason ?? ending(one)}</td>
          </tr>`)}</tbody>
        </table>
      </div>
    </section>
  `;
}

/** @param {{job: Job}} props */
function History({ job }) {
  const version = `${job.state} ${job.attempts.length} ${job.flags}`;
  const { found } = useAbout("/events", version, { job: job.id, limit: 200 });
  const events = /** @type {{events: {seq: number, at: string, kind: string, actor: string}[]} | null} */ (found)?.events ?? [];
  if (events.length === 0) return null;
  return html`
    <section class="card">
      <h2>Events</h2>
      <ol class="history">${events.map((one) => html`<li key=${one.seq}><span class="mono muted">${stamp(one.at)}</span> ${one.kind}
        ${one.actor !== "scheduler" && html`<span class="muted"> by ${owner(one.actor)}</span>`}</li>`)}</ol>
      <p><a href=${`/events?job=${job.id}`}>All about it in the journal</a></p>
    </section>
  `;
}

/** Why a job waits, anew when anything has happened: others hold what it needs.
 * @param {Job} job */
function useExplanation(job) {
  const [told, setTold] = useState({ found: /** @type {unknown} */ (null), problem: "" });
  useSoon(`${job.id} ${job.state} ${job.reason} ${overview.value?.daemon.last_event}`, async () => {
    try {
      setTold({ found: await read(`/jobs/${job.id}/explain`), problem: "" });
    } catch (error) {
      if (error instanceof Problem) setTold({ found: null, problem: error.message });
    }
  });
  return told;
}

/** `in 58m, at 11:06`. @param {string} at */
function start(at) {
  const left = (Date.parse(at) - now.value) / 1000;
  return left > 0 ? `in ${rough(left)}, at ${clock(at, now.value)}` : "soon";
}

/** Why a job waits: each thing it needs, and what there is of it. @param {{job: Job}} props */
export function Explain({ job }) {
  const { found, problem } = useExplanation(job);
  const told = /** @type {{why: string, constraints: {what: string, need: string, have: string, of: string | null, ok: boolean, note: string}[], holders: {job: number | null, name: string}[], position: number | null, estimated_start_at: string | null} | null} */ (found);
  if (problem) return html`<p class="problem">${problem}</p>`;
  if (!told) return null;
  return html`
    <section class="card explain">
      <h2><${Prose} text=${inLocalTime(told.why, now.value)} /></h2>
      ${told.position !== null && html`<p class="muted">Number ${told.position} in ${job.queue}${told.estimated_start_at ? `, may start ${start(told.estimated_start_at)}` : ""}.</p>`}
      ${told.constraints.length > 0 && html`<ul class="constraints">${told.constraints.map((one) => html`
        <li key=${one.what} class=${one.ok ? "met" : "unmet"}><${Icon} name=${one.ok ? "check" : "close"} size=${12} /><b>${one.what}</b> needs ${one.need}, has ${one.have}${one.of ? ` of ${one.of}` : ""} ${one.note && html`<span class="muted">${one.note}</span>`}</li>`)}</ul>`}
      ${told.holders.length > 0 && html`<p>Held by ${told.holders.map((one, at) => html`${at > 0 && ", "}${one.job === null ? one.name : html`<a href=${`/jobs/${one.job}`}>${one.job} ${one.name}</a>`}`)}</p>`}
    </section>
  `;
}
