// The workers: whether they are there, their units, and what is taken out of service.

import { actionOf, offered, perform } from "../actions.mjs";
import { Form } from "../components/form.mjs";
import { Icon } from "../components/icon.mjs";
import { itemsFor, Menu } from "../components/menu.mjs";
import { Prose } from "../components/prose.mjs";
import { now } from "../state.mjs";
import { html, useState } from "../ui.mjs";
import { age, amount, brief, inLocalTime } from "../words.mjs";

/** @typedef {import("../documents.mjs").Worker} Worker */

/** @param {{workers: Worker[]}} props */
export function Workers({ workers }) {
  return html`
    <section aria-labelledby="workers-head">
      <div class="section-head"><h2 id="workers-head">Workers</h2></div>
      <div class="worker-list">
        ${workers.map((one) => html`<${WorkerCard} key=${one.id} worker=${one} />`)}
      </div>
    </section>
  `;
}

/** @param {{worker: Worker}} props */
function WorkerCard({ worker }) {
  const [adding, setAdding] = useState(false);
  const items = itemsFor("worker", [worker]);
  const all = unitsOf(worker);
  if (offered(actionOf("add-unit"), { worker: worker.name })) {
    items.push({ label: "Add units", key: "a", run: () => setAdding(true) });
  }
  return html`
    <article class="card worker" aria-label=${`worker ${worker.name}`}>
      <header>
        <h3>${worker.name}</h3>
        <${Presence} worker=${worker} />
        <span class="card-counts"><b>${worker.running}</b> running</span>
        <${Menu} items=${items} label=${`actions of ${worker.name}`} />
      </header>
      ${worker.unable && html`<p class="problem">${worker.unable}</p>`}
      ${(worker.held_back ?? []).map((one) => html`<p class="problem">gets no ${one.jobs}: ${one.reason}</p>`)}
      ${worker.draining_reason && html`<p class="muted">${worker.draining_reason}</p>`}
      <ul class="units">${all.map((one) => html`<${Unit} key=${one.unit} unit=${one} />`)}</ul>
      ${adding && html`<${UnitsForm} worker=${worker} onClose=${() => setAdding(false)} />`}
    </article>
  `;
}

/** @param {{worker: Worker}} props */
function Presence({ worker }) {
  if (!worker.connected) {
    const word = worker.address === null ? "off" : "unreachable";
    const since = worker.unreachable_since;
    return html`<span class="mark-wrong"><${Icon} name="warning" size=${12} />${word}${since && ` for ${brief(age(since, now.value))}`}</span>`;
  }
  if (worker.draining) return html`<span class="mark-held"><${Icon} name="pause" size=${12} />draining</span>`;
  return html`<span class="mark-live">connected</span>`;
}

/**
 * The units of a worker one by one; of cores and memory, which are many or one, the sum.
 * @param {Worker} worker
 */
function unitsOf(worker) {
  const shown = [];
  for (const [kind, named] of Object.entries(worker.capacity)) {
    if (kind === "cpu" || kind === "ram" || kind === "vram") {
      const sum = (/** @type {Record<string, number>} */ of) => Object.values(of).reduce((one, other) => one + other, 0);
      shown.push({ kind, unit: kind, name: kind, of: sum(named), free: sum(worker.free[kind] ?? {}), drained: false, declared: false, faulty: false, why: "", worker: worker.name, summed: true });
      continue;
    }
    for (const [name, of] of Object.entries(named)) {
      const drained = worker.drained[kind]?.includes(name) ?? false;
      const declared = worker.origin?.[kind]?.[name] === "added";
      const fault = kind === "gpu" ? worker.faults?.[name] : undefined;
      const faulty = fault !== undefined && !fault.acknowledged;
      shown.push({ kind, unit: `${kind}:${name}`, name: `${kind} ${name}`, of, free: worker.free[kind]?.[name] ?? 0, drained, declared, faulty, why: fault?.why ?? "", worker: worker.name, summed: false });
    }
  }
  // What is summed has no menu: such ones stand together.
  return shown.sort((one, other) => Number(other.summed) - Number(one.summed));
}

/** @param {{unit: ReturnType<typeof unitsOf>[number]}} props */
function Unit({ unit }) {
  const free = amount(unit.free, unit.kind);
  const of = amount(unit.of, unit.kind);
  return html`
    <li class=${unit.drained || unit.why ? "unit unit-drained" : "unit"}>
      <span class="unit-name">${unit.name}</span>
      <span class="muted">${free} of ${of} free${unit.drained ? ", drained" : ""}${unit.declared ? ", added" : ""}</span>
      ${unit.why && html`<span class="problem"><${Prose} text=${inLocalTime(unit.why, now.value)} /></span>`}
      ${!unit.summed && html`<${Menu} items=${itemsFor("unit", [unit])} label=${`actions of ${unit.name}`} />`}
    </li>
  `;
}

/** @param {{worker: Worker, onClose: () => void}} props */
function UnitsForm({ worker, onClose }) {
  const fields = [{ name: "capacity", label: "Units", hint: "as JSON5: {gpu:{'4':1}} or {license:2}", code: true }];
  const send = async (/** @type {Record<string, string>} */ given) => {
    await perform(actionOf("add-unit"), [{ worker: worker.name }], given);
    return { text: `units added to ${worker.name}` };
  };
  return html`<${Form} title=${`Add units to ${worker.name}`} confirm="Add" fields=${fields} send=${send} onClose=${onClose} />`;
}
