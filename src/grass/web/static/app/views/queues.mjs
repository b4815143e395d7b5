// Queues with their limits and the order of what waits in them, and the workers with
// their units.

import { actionOf, offered, perform } from "../actions.mjs";
import { Form } from "../components/form.mjs";
import { Icon } from "../components/icon.mjs";
import { itemsFor, Menu } from "../components/menu.mjs";
import { may, overview } from "../state.mjs";
import { html, useState } from "../ui.mjs";
import { units } from "../words.mjs";
import { Pools } from "./pools.mjs";
import { WaitingOrder } from "./waiting_order.mjs";
import { Workers } from "./workers.mjs";

/** @typedef {import("../documents.mjs").Queue} Queue */

export default function Queues() {
  const known = overview.value;
  const [making, setMaking] = useState(false);
  if (!known) return html`<p class="muted">Reading the queues…</p>`;
  return html`
    <div class="queues">
      <section aria-labelledby="queues-head">
        <div class="section-head">
          <h2 id="queues-head">Queues</h2>
          ${may("operate") && html`<button type="button" onClick=${() => setMaking(true)}><${Icon} name="new" size=${14} />New queue</button>`}
        </div>
        <div class="queue-list">
          ${known.queues.map((one) => html`<${QueueCard} key=${one.name} queue=${one} />`)}
        </div>
      </section>
      <${Workers} workers=${known.workers} />
      <${Pools} pools=${known.pools} />
      ${making && html`<${QueueForm} onClose=${() => setMaking(false)} />`}
    </div>
  `;
}

/** @param {{queue: Queue}} props */
function QueueCard({ queue }) {
  const [open, setOpen] = useState(false);
  const [editing, setEditing] = useState(false);
  const items = itemsFor("queue", [queue]);
  if (offered(actionOf("limit-queue"), queue)) {
    items.unshift({ label: "Change its limits", key: "l", run: () => setEditing(true) });
  }
  return html`
    <article class="card queue" aria-label=${`queue ${queue.name}`}>
      <header>
        <h3>${queue.name}</h3>
        ${queue.paused && html`<span class="mark-held"><${Icon} name="pause" size=${12} />paused</span>`}
        <span class="card-counts">
          <b>${queue.running}</b> running${queue.max_running !== null && html` of at most <b>${queue.max_running}</b>`},
          ${" "}<b>${queue.waiting}</b> waiting
        </span>
        <${Menu} items=${items} label=${`actions of ${queue.name}`} />
      </header>
      ${queue.paused_reason && html`<p class="muted">${queue.paused_reason}</p>`}
      <${Views} queue=${queue} />
      ${queue.waiting > 0 && html`
        <button type="button" class="quiet unfold" aria-expanded=${open} onClick=${() => setOpen(!open)}>
          <${Icon} name=${open ? "up" : "down"} size=${14} />${open ? "Hide" : "Show"} the order
        </button>
        ${open && html`<${WaitingOrder} queue=${queue.name} />`}
      `}
      ${editing && html`<${LimitForm} queue=${queue} onClose=${() => setEditing(false)} />`}
    </article>
  `;
}

/** What a queue sees of each worker. @param {{queue: Queue}} props */
function Views({ queue }) {
  const names = new Map(overview.value?.workers.map((one) => [one.id, one.name]));
  const shown = Object.entries(queue.views).filter(([, view]) => Object.keys(view.capacity).length || view.command.length);
  if (shown.length === 0) return html`<p class="muted">Sees every unit of every worker.</p>`;
  return shown.map(([worker, view]) => html`
    <p class="muted" key=${worker}>
      ${names.get(worker) ?? worker}: <span class="mono">${units(view.capacity) || "all units"}</span>
      ${view.command.length > 0 && html`, runs <span class="mono">${view.command.join(" ")} …</span>`}
    </p>
  `);
}

/** @param {{onClose: () => void}} props */
function QueueForm({ onClose }) {
  const fields = [
    { name: "name", label: "Name", hint: "letters, digits, `_`, `-`, `.`" },
    { name: "capacity", label: "Units of this machine", hint: "as JSON5: {gpu:{'0':1,'1':1}}; empty: all of them", code: true },
    { name: "max_running", label: "Running at most", hint: "empty: no limit", number: true },
  ];
  const send = (/** @type {Record<string, string>} */ given) => {
    const { name, ...rest } = given;
    return perform(actionOf("add-queue"), [{ name }], filled(rest));
  };
  return html`<${Form} title="New queue" confirm="Create" fields=${fields} send=${send} onClose=${onClose} />`;
}

/** @param {{queue: Queue, onClose: () => void}} props */
function LimitForm({ queue, onClose }) {
  const fields = [
    { name: "max_running", label: "Running at most", hint: "empty: no limit", number: true, value: queue.max_running },
    { name: "max_fails", label: "Pause after failures", hint: "empty: never", number: true, value: queue.max_fails },
  ];
  const send = (/** @type {Record<string, string>} */ given) => {
    const limits = Object.fromEntries(Object.entries(given).map(([name, text]) => [name, text ? Number(text) : null]));
    return perform(actionOf("limit-queue"), [queue], limits);
  };
  return html`<${Form} title=${`Limits of ${queue.name}`} confirm="Change" fields=${fields} send=${send} onClose=${onClose} />`;
}

/** What was filled in, numbers as numbers. @param {Record<string, string>} given */
function filled(given) {
  const kept = Object.entries(given).filter(([, text]) => text !== "");
  return Object.fromEntries(kept.map(([name, text]) => [name, name.startsWith("max_") ? Number(text) : text]));
}
