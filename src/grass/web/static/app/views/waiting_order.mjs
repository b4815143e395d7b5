// The order in which the jobs of a queue start, changed by dragging or by Alt and an
// arrow.

import { actionOf, offered, perform } from "../actions.mjs";
import { Problem, read } from "../api.mjs";
import { Icon } from "../components/icon.mjs";
import { useSteady, WaitingChip } from "../components/steady.mjs";
import { complain, say } from "../components/toast.mjs";
import { soon } from "../soon.mjs";
import { now } from "../state.mjs";
import { follow } from "../stream.mjs";
import { html, useEffect, useRef, useState } from "../ui.mjs";
import { label, reason } from "../words.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

const SHOWN = 50;

/** @param {string} queue */
function useWaiting(queue) {
  const [found, setFound] = useState({ jobs: /** @type {Job[]} */ ([]), epoch: 0 });
  const again = useRef(/** @type {(isWanted: boolean) => Promise<void>} */ (async () => {}));
  useEffect(() => {
    let current = true;
    let asked = 0;
    let epoch = 0;
    again.current = async (isWanted) => {
      const mine = ++asked;
      if (isWanted) epoch += 1;
      const wanted = { queue, state: ["queued", "waiting", "held"], order: "display", members: 1, limit: SHOWN };
      try {
        const page = await read("/jobs", wanted);
        const jobs = page.jobs.filter((/** @type {Job} */ job) => job.state === "queued");
        if (!current || mine !== asked) return;
        setFound({ jobs, epoch });
      } catch (error) {
        if (error instanceof Problem) complain(error);
      }
    };
    const { ask, stop: stopAsking } = soon(() => again.current(false));
    ask();
    const stop = follow("jobs", { data: ask, resync: ask });
    return () => { current = false; stop(); stopAsking(); };
  }, [queue]);
  return { ...found, again: () => again.current(true) };
}

/**
 * Put a job at another place: right before the one that is to follow it. At the end none
 * follows, so the last one goes before it instead.
 * @param {Job[]} jobs @param {number} from @param {number} to
 */
async function apply(jobs, from, to) {
  const follower = jobs[to < from ? to : to + 1];
  const [job, before] = follower ? [jobs[from], follower] : [jobs[to], jobs[from]];
  // What lies between the two stays between them.
  if (!follower && to - from > 1) await apply(jobs, from, to - 1);
  await perform(actionOf("move"), [job], { before: before.id });
}

/** @param {Job} job */
function idOf(job) {
  return job.id;
}

/** @param {{queue: string}} props */
export function WaitingOrder({ queue }) {
  const { jobs: newest, epoch, again } = useWaiting(queue);
  const { rows: jobs, waiting, handlers, showNow } = useSteady(newest, idOf, undefined, epoch);
  const [dragged, setDragged] = useState(0);
  const [over, setOver] = useState(0);
  const list = useRef(/** @type {HTMLOListElement | null} */ (null));
  const move = async (/** @type {number} */ id, /** @type {number} */ place) => {
    // A row that is held may be of a job that waits no more.
    const isThere = new Set(newest.map(idOf));
    const left = jobs.filter((job) => isThere.has(job.id) || job.id === place);
    const from = left.findIndex((job) => job.id === id);
    const to = left.findIndex((job) => job.id === place);
    if (from < 0 || to < 0 || from === to) return;
    try {
      await apply(left, from, to);
      say(`job ${id} is number ${to + 1} in ${queue}`);
    } catch (error) {
      complain(error);
    }
    await again();
    requestAnimationFrame(() => /** @type {HTMLElement | undefined} */ (list.current?.querySelector(`[data-job="${id}"]`))?.focus());
  };
  const moveBy = (/** @type {number} */ at, /** @type {number} */ step) => move(jobs[at].id, jobs[at + step]?.id);
  const onKey = (/** @type {number} */ at) => (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!event.altKey || step === undefined) return;
    event.preventDefault();
    void moveBy(at, step);
  };
  const endDrag = () => {
    setDragged(0);
    setOver(0);
  };
  const drop = (/** @type {number} */ id) => (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    void move(dragged, id);
    endDrag();
  };
  const movable = (/** @type {Job} */ job) => offered(actionOf("move"), job);
  return html`
    <${WaitingChip} waiting=${waiting} onShow=${showNow} />
    <ol class="order" ref=${list} ...${handlers} aria-label=${`order of ${queue}`}>
      ${jobs.map((job, at) => html`
        <li key=${job.id} data-job=${job.id} tabindex="0" draggable=${movable(job)} class=${job.id === over && over !== dragged ? "order-target" : ""}
          aria-label=${`job ${job.id} ${job.name}, number ${at + 1}`}
          onKeyDown=${movable(job) ? onKey(at) : undefined} onDragStart=${() => setDragged(job.id)} onDragEnd=${endDrag}
          onDragOver=${(/** @type {DragEvent} */ event) => { event.preventDefault(); setOver(job.id); }} onDrop=${drop(job.id)}>
          <span class="muted number">${at + 1}</span>
          <a href=${`/jobs/${job.id}`}>${label(job)}</a>
          <span class="cut">${job.name}</span>
          <span class="muted cut order-why">${reason(job, now.value)}</span>
          ${movable(job) && html`<span class="order-moves">
            <button type="button" class="quiet" aria-label=${`move job ${job.id} up`} disabled=${at === 0} onClick=${() => moveBy(at, -1)}><${Icon} name="up" size=${14} /></button>
            <button type="button" class="quiet" aria-label=${`move job ${job.id} down`} disabled=${at === jobs.length - 1} onClick=${() => moveBy(at, 1)}><${Icon} name="down" size=${14} /></button>
          </span>`}
        </li>
      `)}
    </ol>
    ${jobs.length > 1 && html`<p class="muted order-hint">Drag a job, or press <kbd>Alt</kbd> and an arrow, to change when it starts.</p>`}
  `;
}
