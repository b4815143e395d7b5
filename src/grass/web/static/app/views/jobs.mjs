// All jobs, as a table: filtered by the words of the command line, in any order, with the
// columns and groups that the address says.

import { Empty } from "../components/empty.mjs";
import { itemsFor, Menu, pressMenu } from "../components/menu.mjs";
import { Table } from "../components/table.mjs";
import { BulkBar } from "../jobs/bulk_bar.mjs";
import { columnsOf, groupOf, USUAL } from "../jobs/columns.mjs";
import { FilterBox } from "../jobs/filter_box.mjs";
import { wordsOf } from "../jobs/filter_words.mjs";
import { MOST_ROWS, useJobs } from "../jobs/pages.mjs";
import { ViewTools } from "../jobs/view_tools.mjs";
import { useKeys } from "../keys.mjs";
import { changeQuery, navigate, query } from "../router.mjs";
import { overview } from "../state.mjs";
import { html, useEffect, useRef, useState } from "../ui.mjs";
import { plural } from "../words.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

const NEWEST = "-id";
const ACTIONS_COLUMN = { id: "actions", label: "Actions", silent: true, className: "col-actions", cell: (/** @type {Job} */ job) => html`<${Menu} items=${itemsFor("job", [job])} label=${`actions on job ${job.id}`} />` };

/** What the address says. */
function viewOf() {
  const asked = query.value;
  const columns = asked.get("columns")?.split(",").filter(Boolean) ?? USUAL;
  return {
    words: wordsOf(asked.getAll("select").join(" ")),
    order: asked.get("order") ?? NEWEST,
    columns: columns.includes("id") ? columns : ["id", ...columns],
    group: asked.get("group") ?? "",
  };
}

export default function Jobs() {
  const view = viewOf();
  const columns = columnsOf(view.columns);
  const { words, order } = view;
  const shown = useJobs({ words, order, usage: columns.some((one) => one.usage) });
  const jobs = shown.jobs ?? [];
  const total = Object.values(shown.totals).reduce((sum, count) => sum + count, 0);
  const [selected, setSelected] = useState(/** @type {Set<string | number>} */ (new Set()));
  const [isAll, setAll] = useState(false);
  const choose = (/** @type {Set<string | number>} */ keys) => {
    setSelected(keys);
    setAll(false);
  };
  const clear = () => choose(new Set());
  const chosen = useChosen(jobs, shown.before, selected);
  useEffect(clear, [words.join(" ")]);
  useKeys({ Escape: clear });
  const setWords = (/** @type {string[]} */ next) => next.join(" ") !== words.join(" ") && changeQuery({ select: next.join(" ") });
  const meant = words.length ? words : [`1-${overview.value?.daemon.last_job ?? jobs[0]?.id ?? 1}`];
  const params = [...new Set(jobs.flatMap((job) => Object.keys(job.params)))];
  return html`
    <div class="jobs">
      <div class="jobs-head">
        <${FilterBox} words=${words} known=${knownOf(jobs)} onWords=${setWords} />
        <${ViewTools} view=${view} params=${params} />
      </div>
      ${shown.problem && html`<p class="problem" role="alert">${shown.problem.message}${shown.problem.hint && html` · ${shown.problem.hint}`}</p>`}
      ${shown.jobs && !shown.problem && html`<${Total} before=${shown.before} count=${jobs.length} total=${total} totals=${shown.totals} words=${words} />`}
      ${shown.jobs?.length === 0 && !shown.problem && html`<${NoJobs} words=${words} onClear=${() => setWords([])} />`}
      ${jobs.length > 0 && html`
        <${Table} caption="jobs" columns=${[...columns, ACTIONS_COLUMN]} rows=${jobs} keyOf=${(/** @type {Job} */ job) => job.id}
          order=${order} onOrder=${(/** @type {string} */ next) => changeQuery({ order: next === NEWEST ? null : next })}
          selected=${selected} onSelect=${choose} onOpen=${(/** @type {Job} */ job) => navigate(`/jobs/${job.id}`)}
          groupOf=${view.group ? (/** @type {Job} */ job) => groupOf(job, view.group) : undefined} epoch=${shown.epoch}
          keys=${{ l: (/** @type {Job} */ job) => navigate(`/jobs/${job.id}`), ".": rowMenu(selected) }} />
        ${shown.next && jobs.length < MOST_ROWS && html`<${More} onMore=${shown.more} left=${total - shown.before - jobs.length} />`}
        <${Turns} shown=${shown} />`}
      <${BulkBar} jobs=${chosen} total=${total} totals=${shown.totals} words=${meant}
        isAll=${isAll} onAll=${() => setAll(true)} onClear=${clear} />
    </div>
  `;
}

/** What can be done to those that are selected, else the menu of the row with the cursor. @param {Set<string | number>} selected */
function rowMenu(selected) {
  return (/** @type {Job} */ job) => {
    if (!selected.size) return pressMenu(`tr[data-key="${job.id}"]`);
    const first = document.querySelector(".bulk-verbs button");
    if (first instanceof HTMLElement) first.focus();
  };
}

/** @param {Job[]} jobs */
function knownOf(jobs) {
  const queues = overview.value?.queues.map((one) => one.name) ?? [];
  const all = [...jobs, ...(overview.value?.jobs ?? [])];
  return { queues, projects: [...new Set(all.map((job) => job.project))].sort() };
}

/**
 * The jobs that are selected, also those that were shown before one turned to others.
 * @param {Job[]} jobs @param {number} before how many rows are before these
 * @param {Set<string | number>} selected
 */
function useChosen(jobs, before, selected) {
  const known = useRef(/** @type {{job: Job, before: number}[]} */ ([]));
  const shown = new Set(jobs.map((job) => job.id));
  const elsewhere = known.current.filter((one) => one.before !== before && !shown.has(one.job.id));
  known.current = [...elsewhere, ...jobs.map((job) => ({ job, before }))].filter((one) => selected.has(one.job.id));
  return known.current.map((one) => one.job);
}

/** @param {{before: number, count: number, total: number, totals: Record<string, number>, words: string[]}} props */
function Total({ before, count, total, totals, words }) {
  const told = Object.entries(totals).filter(([, number]) => number > 0).map(([state, number]) => `${number.toLocaleString("en")} ${state}`);
  const number = (/** @type {number} */ one) => one.toLocaleString("en");
  const which = before ? `${number(before + 1)}–${number(before + count)}` : number(count);
  const of = count < total ? `${which} of ${plural(total, "job")}` : plural(total, "job");
  return html`<p class="jobs-total muted" role="status" tabindex="-1">${of}${words.length > 0 && " matching"}${told.length > 1 && html`<span> · ${told.join(", ")}</span>`}</p>`;
}

/** @param {{words: string[], onClear: () => void}} props */
function NoJobs({ words, onClear }) {
  const counts = overview.value?.daemon.jobs ?? {};
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (words.length === 0) {
    return html`<${Empty} title="No jobs yet" text="Type this in a shell, and it shows here at once." commands=${["grass enqueue -g 1 python train.py"]} link="/new" linkText="or enqueue one here" />`;
  }
  return html`<${Empty} title=${`0 of ${plural(all, "job")}`} text=${`No job matches ${words.join(" ")}.`}>
    <button type="button" onClick=${onClear}>Clear the filter</button>
  <//>`;
}

/** Reads the next page when it comes into sight. @param {{onMore: () => void, left: number}} props */
function More({ onMore, left }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const newest = useRef(onMore);
  newest.current = onMore;
  useEffect(() => {
    const sight = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && newest.current(), { rootMargin: "600px" });
    if (place.current) sight.observe(place.current);
    return () => sight.disconnect();
  }, [left]);
  return html`<div class="more" ref=${place}><button type="button" onClick=${onMore}>Show more of ${left.toLocaleString("en")}</button></div>`;
}

/** Turns to the rows after those that are shown, or back. @param {{shown: ReturnType<typeof useJobs>}} props */
function Turns({ shown }) {
  const { before, next, jobs, turn } = shown;
  const begun = useRef(before);
  useEffect(() => {
    if (begun.current === before) return;
    begun.current = before;
    // The button that was pressed may be gone: what is told first is what comes first.
    const told = document.querySelector(".jobs-total");
    if (told instanceof HTMLElement) told.focus();
  }, [before]);
  const isFull = next && (jobs?.length ?? 0) >= MOST_ROWS;
  if (!before && !isFull) return null;
  return html`<nav class="more" aria-label="rows">
    ${before > 0 && html`<button type="button" onClick=${() => turn(-1)}>Rows before these</button>`}
    ${isFull && html`<button type="button" onClick=${() => turn(1)}>Rows after these</button>`}
  </nav>`;
}
