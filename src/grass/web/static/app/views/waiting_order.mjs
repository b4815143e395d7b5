// The order in which the jobs of a queue start, changed by dragging or by Alt and an
// arrow.

import { actionOf, offered, perform } from "../actions.mjs";
import { Problem, read } from "../api.mjs";
import { Icon } from "../components/icon.mjs";
import { complain, say } from "../components/toast.mjs";
import { now } from "../state.mjs";
import { follow } from "../stream.mjs";
import { html, useEffect, useRef, useState } from "../ui.mjs";
import { label, reason } from "../words.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

const SHOWN = 50;

/** @param {string} queue */
function useWaiting(queue) {
  const [jobs, setJobs] = useState(/** @type {Job[]} */ ([]));
  const again = useRef(() => {});
  useEffect(() => {
    let current = true;
    let asked = 0;
    again.current = async () => {
      const mine = ++asked;
      const wanted = { queue, state: ["queued", "waiting", "held"], order: "display", members: 1, limit: SHOWN };
      try {
        const page = await read("/jobs", wanted);
        if (current && mine === asked) setJobs(page.jobs.filter((/** @type {Job} */ job) => job.state === "queued"));
      } catch (error) {
        if (error instanceof Problem) complain(error);
      }
    };
    const changed = () => void again.current();
    changed();
    const stop = follow("jobs", { data: changed, resync: changed });
    return () => { current = false; stop(); };
  }, [queue]);
  return { jobs, again: () => again.current() };
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

/** @param {{queue: string}} props */
export function WaitingOrder({ queue }) {
  const { jobs, again } = useWaiting(queue);
  const [dragged, setDragged] = useState(-1);
  const [over, setOver] = useState(-1);
  const list = useRef(/** @type {HTMLOListElement | null} */ (null));
  const move = async (/** @type {number} */ from, /** @type {number} */ to) => {
    if (from === to || to < 0 || to >= jobs.length) return;
    try {
      await apply(jobs, from, to);
      say(`job ${jobs[from].id} is number ${to + 1} in ${queue}`);
    } catch (error) {
      complain(error);
    }
    await again();
    requestAnimationFrame(() => /** @type {HTMLElement | undefined} */ (list.current?.children[to])?.focus());
  };
  const onKey = (/** @type {number} */ at) => (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!event.altKey || step === undefined) return;
    event.preventDefault();
    void move(at, at + step);
  };
  const drop = (/** @type {number} */ at) => (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    void move(dragged, at);
    setDragged(-1);
    setOver(-1);
  };
  const movable = (/** @type {Job} */ job) => offered(actionOf("move"), job);
  return html`
    <ol class="order" ref=${list} aria-label=${`order of ${queue}`}>
      ${jobs.map((job, at) => html`
        <li key=${job.id} tabindex="0" draggable=${movable(job)} class=${at === over && over !== dragged ? "order-target" : ""}
          aria-label=${`job ${job.id} ${job.name}, number ${at + 1}`}
          onKeyDown=${movable(job) ? onKey(at) : undefined} onDragStart=${() => setDragged(at)} onDragEnd=${() => { setDragged(-1); setOver(-1); }}
          onDragOver=${(/** @type {DragEvent} */ event) => { event.preventDefault(); setOver(at); }} onDrop=${drop(at)}>
          <span class="muted number">${at + 1}</span>
          <a href=${`/jobs/${job.id}`}>${label(job)}</a>
          <span class="cut">${job.name}</span>
          <span class="muted cut order-why">${reason(job, now.value)}</span>
          ${movable(job) && html`<span class="order-moves">
            <button type="button" class="quiet" aria-label=${`move job ${job.id} up`} disabled=${at === 0} onClick=${() => move(at, at - 1)}><${Icon} name="up" size=${14} /></button>
            <button type="button" class="quiet" aria-label=${`move job ${job.id} down`} disabled=${at === jobs.length - 1} onClick=${() => move(at, at + 1)}><${Icon} name="down" size=${14} /></button>
          </span>`}
        </li>
      `)}
    </ol>
    ${jobs.length > 1 && html`<p class="muted order-hint">Drag a job, or press <kbd>Alt</kbd> and an arrow, to change when it starts.</p>`}
  `;
}
