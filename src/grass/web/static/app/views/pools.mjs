// Pools: workers that somebody else's scheduler starts, in the words of that scheduler.

import { Icon } from "../components/icon.mjs";
import { itemsFor, Menu } from "../components/menu.mjs";
import { html } from "../ui.mjs";

/** @typedef {import("../documents.mjs").Pool} Pool */
/** @typedef {import("../documents.mjs").Pilot} Pilot */

/** @param {{pools?: Pool[]}} props a broker of an older version has none */
export function Pools({ pools = [] }) {
  if (pools.length === 0) return null;
  return html`
    <section aria-labelledby="pools-head">
      <div class="section-head"><h2 id="pools-head">Pools</h2></div>
      <div class="worker-list">
        ${pools.map((one) => html`<${PoolCard} key=${one.name} pool=${one} />`)}
      </div>
    </section>
  `;
}

/** @param {{pool: Pool}} props */
function PoolCard({ pool }) {
  const there = pool.pilots.filter((one) => one.connected).length;
  return html`
    <article class="card worker" aria-label=${`pool ${pool.name}`}>
      <header>
        <h3>${pool.name}</h3>
        ${pool.paused && html`<span class="mark-held"><${Icon} name="pause" size=${12} />paused</span>`}
        ${pool.removing && html`<span class="mark-held">leaving</span>`}
        <span class="card-counts"><b>${there}</b> of at most <b>${pool.max_workers}</b> workers</span>
        <${Menu} items=${itemsFor("pool", [pool])} label=${`actions of ${pool.name}`} />
      </header>
      <p class="muted">${pool.engine}, ${pool.mode}: each has ${shape(pool)}</p>
      ${pool.words && html`<p class="problem">${pool.words}</p>`}
      <ul class="units">${pool.pilots.map((one) => html`<${PilotLine} key=${one.mark} pilot=${one} />`)}</ul>
    </article>
  `;
}

/** @param {{pilot: Pilot}} props */
function PilotLine({ pilot }) {
  const name = pilot.worker ?? (pilot.engine_id ? `job ${pilot.engine_id}` : "asked for");
  const place = [pilot.word, pilot.place].filter(Boolean).join(" ");
  return html`
    <li class="unit">
      <span class="unit-name">${name}</span>
      <span class="muted">${pilot.stage}, ${pilot.says || place}${pilot.job !== null && `, for job ${pilot.job}`}</span>
    </li>
  `;
}

/** @param {Pool} pool */
function shape(pool) {
  const parts = [`cpu ${pool.cpus}`];
  if (pool.gpus) parts.push(`gpu ${pool.gpus}`);
  if (pool.memory_mib) parts.push(`ram ${pool.memory_mib}M`);
  return parts.join(", ");
}
