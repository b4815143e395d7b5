// The order in which the jobs of a queue start, changed by dragging or by Alt and an
// arrow. There is one order, priority and then arrival: a move changes priorities.

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
 * The priorities that put jobs into an order, of those jobs that need another one.
 * @param {Job[]} order
 * @returns {Map<number, number>} by job
 */
export function priorities(order) {
  const changed = new Map();
  let below = order.at(-1);
  let least = below?.priority ?? 0;
  for (const job of order.slice(0, -1).reverse()) {
    const needed = least + (below && job.id > below.id ? 1 : 0);
    least = Math.max(job.priority, needed);
    if (least !== job.priority) changed.set(job.id, least);
    below = job;
  }
  return changed;
}

/** @param {Job[]} jobs @param {number} from @param {number} to */
function moved(jobs, from, to) {
  const order = [...jobs];
  order.splice(to, 0, ...order.splice(from, 1));
  return order;
}

/** @param {Job[]} jobs @param {Map<number, number>} changes */
async function apply(jobs, changes) {
  /** @type {Map<number, Job[]>} */
  const groups = new Map();
  for (const [id, priority] of changes) {
    const job = jobs.find((one) => one.id === id);
    if (job) groups.set(priority, [...(groups.get(priority) ?? []), job]);
  }
  // The highest first, so that no job starts before one that is to be ahead of it.
  for (const [priority, group] of [...groups].sort(([one], [other]) => other - one)) {
    await perform(actionOf("prioritize"), group, { priority });
  }
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
      await apply(jobs, priorities(moved(jobs, from, to)));
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
  const movable = (/** @type {Job} */ job) => offered(actionOf("prioritize"), job);
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
