// The journal: what happened, when, and who wanted it; the newest first, as it happens.

import { Problem, read } from "../api.mjs";
import { Empty } from "../components/empty.mjs";
import { Table } from "../components/table.mjs";
import { changeQuery, query } from "../router.mjs";
import { soon } from "../soon.mjs";
import { overview } from "../state.mjs";
import { follow } from "../stream.mjs";
import { html, useEffect, useState } from "../ui.mjs";
import { commandLine, owner, stamp, units } from "../words.mjs";

const SHOWN = 300;
/** How far back the journal is read at first, and how much further if that is not enough. */
const WINDOW = 1000;
const FURTHER = 8;
const NO_PERSON = "scheduler";

/**
 * @typedef {{seq: number, at: string, actor: string, kind: string, job: number | null,
 *   attempt: number | null, data: Record<string, unknown>}} Event
 * @typedef {{job: string, kind: string}} Filter
 */

/** What an event tells beside its kind. @param {Event} event */
function facts(event) {
  return Object.entries(event.data)
    .filter(([name, value]) => value !== null && !(name === "last" && value === event.job))
    // A worker that is told by its name needs no id.
    .filter(([name]) => name !== "worker" || !event.data.name)
    .map(([name, value]) => (name === "units" ? fact(name, value) : `${name}=${fact(name, value)}`))
    .join("  ");
}

/** @param {string} name @param {unknown} value */
function fact(name, value) {
  if (name === "units") return units(/** @type {import("../documents.mjs").Amounts} */ (value));
  if (name === "command" && Array.isArray(value)) return commandLine(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

const COLUMNS = [
  { id: "at", label: "When", className: "event-at", cell: (/** @type {Event} */ one) => stamp(one.at) },
  { id: "kind", label: "What", className: "event-kind", cell: (/** @type {Event} */ one) => one.kind },
  { id: "job", label: "Job", number: true, cell: jobCell },
  { id: "actor", label: "Who", cell: (/** @type {Event} */ one) => (one.actor === NO_PERSON ? "" : owner(one.actor)) },
  { id: "facts", label: "More", wide: true, className: "event-facts", cell: (/** @type {Event} */ one) => facts(one) },
];

/** @param {Event} event */
function jobCell(event) {
  if (event.job === null) return "";
  const attempt = (event.attempt ?? 1) > 1 ? `, ${event.attempt}` : "";
  return html`<a href=${`/jobs/${event.job}`}>${event.job}</a>${attempt}`;
}

/**
 * The newest events that match, the newest first.
 * @param {Filter} filter
 * @param {AbortSignal} signal
 * @returns {Promise<Event[]>}
 */
async function newest(filter, signal) {
  const last = overview.value?.daemon.last_event ?? 0;
  for (let window = WINDOW; ; window *= FURTHER) {
    const after = filter.job ? 0 : Math.max(0, last - window);
    const found = await readAfter(filter, after, signal);
    if (after === 0 || found.length >= SHOWN) return found.slice(-SHOWN).reverse();
  }
}

/** @param {Filter} filter @param {number} after @param {AbortSignal} signal */
async function readAfter(filter, after, signal) {
  /** @type {Event[]} */
  const found = [];
  /** @type {number | null} */
  let next = after;
  while (next !== null) {
    const wanted = { after: next, limit: 1000, job: filter.job, kind: filter.kind };
    const page = await read("/events", wanted, signal);
    found.push(...page.events);
    next = page.next;
  }
  return found;
}

/** @param {Filter} filter */
function useEvents(filter) {
  const [events, setEvents] = useState(/** @type {Event[] | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  const known = overview.value !== null;
  useEffect(() => {
    if (!known) return undefined;
    const reading = new AbortController();
    const resync = async () => {
      try {
        const found = await newest(filter, reading.signal);
        if (reading.signal.aborted) return;
        setProblem(null);
        setEvents((before) => merged((before ?? []).filter((one) => isWanted(one, filter)), found));
      } catch (error) {
        if (error instanceof Problem) setProblem(error);
      }
    };
    const { ask, stop: stopAsking } = soon(resync);
    const data = (/** @type {{events: Event[], more: number}} */ { events: come, more }) => {
      if (more > 0) return ask();
      const wanted = come.filter((one) => isWanted(one, filter)).reverse();
      if (wanted.length) setEvents((before) => merged(wanted, before ?? []));
      return undefined;
    };
    const stop = follow("events", { data, resync: ask });
    ask();
    return () => { stop(); stopAsking(); reading.abort(); };
  }, [filter.job, filter.kind, known]);
  return { events, problem };
}

/** @param {Event} event @param {Filter} filter */
function isWanted(event, filter) {
  if (filter.job && String(event.job) !== filter.job) return false;
  return !filter.kind || event.kind === filter.kind;
}

/** @param {Event[]} come @param {Event[]} before */
function merged(come, before) {
  const last = before[0]?.seq ?? 0;
  return [...come.filter((one) => one.seq > last), ...before].slice(0, SHOWN);
}

export default function Events() {
  const filter = { job: query.value.get("job") ?? "", kind: query.value.get("kind") ?? "" };
  const { events, problem } = useEvents(filter);
  return html`
    <div class="events">
      <${Filters} filter=${filter} />
      ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
      ${events === null && !problem && html`<p class="muted">Reading the journal…</p>`}
      ${events?.length === 0 && html`<${Empty} title="No event matches" text="The journal begins with the first job." />`}
      ${events && events.length > 0 && html`
        <${Table} caption="events" columns=${COLUMNS} rows=${events} keyOf=${(/** @type {Event} */ one) => one.seq} />
        ${events.length === SHOWN && html`<p class="muted events-more">The newest ${SHOWN} are shown; <code>grass events</code> prints all.</p>`}
      `}
    </div>
  `;
}

/** An input that keeps what is being typed while events come. @param {any} props */
function Field({ value, ...rest }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  return html`<input type="text" ...${rest} value=${typed}
    onInput=${(/** @type {{currentTarget: HTMLInputElement}} */ event) => setTyped(event.currentTarget.value)} />`;
}

/** @param {{filter: Filter}} props */
function Filters({ filter }) {
  const set = (/** @type {string} */ name) => (/** @type {{currentTarget: HTMLInputElement}} */ event) =>
    changeQuery({ [name]: event.currentTarget.value.trim() });
  return html`
    <form class="filters" role="search" onSubmit=${(/** @type {Event & {preventDefault: () => void}} */ event) => event.preventDefault()}>
      <label>Job <${Field} inputmode="numeric" pattern="[0-9]*" size="6" value=${filter.job} onChange=${set("job")} /></label>
      <label>Kind <${Field} size="14" value=${filter.kind} placeholder="any" onChange=${set("kind")} /></label>
      ${(filter.job || filter.kind) && html`<button type="button" onClick=${() => changeQuery({ job: null, kind: null })}>Clear</button>`}
    </form>
  `;
}
