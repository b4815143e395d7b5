// The workers, each with its cores, its memory and a card for every GPU.

import { Bar } from "../components/meter.mjs";
import { Icon } from "../components/icon.mjs";
import { Menu, itemsFor } from "../components/menu.mjs";
import { Prose } from "../components/prose.mjs";
import { now } from "../state.mjs";
import { html } from "../ui.mjs";
import { age, amount, brief, inLocalTime, plural } from "../words.mjs";
import { GpuCard } from "./gpu_card.mjs";
import { useDriver } from "./readings.mjs";

/**
 * @typedef {import("../documents.mjs").Worker} Worker
 * @typedef {import("../documents.mjs").DeviceWorker} DeviceWorker
 */

/** @param {{workers: Worker[], devices: import("../documents.mjs").Devices | null}} props */
export function Machines({ workers, devices }) {
  const found = new Map((devices?.workers ?? []).map((one) => [one.id, one]));
  const hasNone = devices !== null && devices.workers.every((one) => one.gpus.length === 0);
  const driver = useDriver(hasNone);
  return html`
    ${workers.map((worker) => html`<${Machine} key=${worker.id} worker=${worker} device=${found.get(worker.id)} />`)}
    ${workers.length === 0 && html`<p class="card note muted">No worker has come yet.</p>`}
    ${hasNone && html`<p class="card note no-gpu"><${Icon} name="gpu" />
      <span><${Prose} text=${noGpu(driver)} />
        <a href="/doctor">What doctor says</a></span></p>`}
  `;
}

/** @param {import("./readings.mjs").Finding | null} driver */
function noGpu(driver) {
  const none = "No GPU is managed here";
  if (!driver || driver.status === "ok") return `${none}. `;
  return `${none}: ${[driver.finding, driver.fix].filter(Boolean).join("; ")}. `;
}

/** What keeps a worker from starting jobs, in a word and in full. @param {Worker} worker */
function condition(worker) {
  if (!worker.connected) {
    const word = worker.address === null ? "off" : "unreachable";
    const since = worker.unreachable_since;
    return { word, more: since ? `for ${brief(age(since, now.value))}` : "", tone: "wrong" };
  }
  if (worker.unable) return { word: "cannot start jobs", more: worker.unable, tone: "wrong" };
  if (worker.draining) {
    return { word: "draining", more: worker.draining_reason ?? "starts nothing new", tone: "note" };
  }
  return null;
}

/** @param {{worker: Worker, device?: DeviceWorker}} props */
function Machine({ worker, device }) {
  const told = condition(worker);
  const gpus = device?.gpus ?? [];
  return html`
    <section class="machine" aria-label=${`worker ${worker.name}`}>
      <header>
        <${Icon} name="worker" />
        <h2>${worker.name}</h2>
        ${told && html`<span class=${`tag tag-${told.tone}`} title=${told.more}>${told.word}</span>
          <span class="muted cut">${told.more}</span>`}
        ${!told && worker.labels.length > 0 && html`<span class="muted cut">${worker.labels.join(", ")}</span>`}
        <div class="loads">
          <${Load} worker=${worker} kind="cpu" word="cores" />
          <${Load} worker=${worker} kind="ram" word="memory" />
          <span class="muted">${plural(worker.running, "job")}</span>
        </div>
        <${Menu} items=${itemsFor("worker", [worker])} label=${`actions on ${worker.name}`} />
      </header>
      ${device?.problem && worker.connected && html`<p class="fault">
        <${Prose} text=${inLocalTime(device.problem, now.value)} /></p>`}
      ${device?.stale && !device.problem && html`<p class="muted">The worker is late to answer: its GPUs are shown as they were.</p>`}
      ${gpus.length > 0 && html`<div class="gpus">
        ${gpus.map((gpu) => html`<${GpuCard} key=${gpu.unit} worker=${worker.name} gpu=${gpu} />`)}
      </div>`}
    </section>
  `;
}

/** How much of a kind jobs hold. @param {{worker: Worker, kind: string, word: string}} props */
function Load({ worker, kind, word }) {
  const total = sum(worker.capacity[kind]);
  if (!total) return null;
  const held = Math.max(0, total - sum(worker.free[kind]));
  return html`
    <span class="load" title=${`${word}: jobs hold ${amount(held, kind)} of ${amount(total, kind)}`}>
      <span class="muted">${word}</span>
      <${Bar} share=${held / total} label=${`${word} held by jobs`} />
      <span>${amount(held, kind)} <span class="muted">of ${amount(total, kind)}</span></span>
    </span>
  `;
}

/** @param {Record<string, number> | undefined} named */
function sum(named) {
  return Object.values(named ?? {}).reduce((all, one) => all + one, 0);
}
