// Who held which unit when: a lane for each GPU, a bar for each attempt, its share as its
// height; what is expected is hatched. Drawn as SVG, with the same as a table behind it.

import { daemonNow, Problem, read } from "../api.mjs";
import { Empty } from "../components/empty.mjs";
import { Bar } from "../components/meter.mjs";
import { useKeys } from "../keys.mjs";
import { changeQuery, navigate, query } from "../router.mjs";
import { connection } from "../stream.mjs";
import { html, useEffect, useRef, useState } from "../ui.mjs";
import { clock, owner, plural, stamp } from "../words.mjs";

/**
 * @typedef {{job: number, name: string, owner: string, state: string, worker: string,
 *   kind: string, unit: string, amount: number, from: string, to: string | null,
 *   predicted: boolean, attempt: number | null}} Span
 * @typedef {{worker: string, kind: string, unit: string, capacity: number | null}} Lane
 * @typedef {{owner: string, kind: string, hours: number, attempts: number}} Total
 * @typedef {{lanes: Lane[], bars: Span[], left_out: number, complete_from: string | null,
 *   totals: Total[]}} Timeline
 */

const HOUR = 3_600_000;
const SPANS = { "1h": HOUR, "6h": 6 * HOUR, "1d": 24 * HOUR, "7d": 168 * HOUR };
const LANE = 44;
const GAP = 10;
const AXIS = 22;
const LABEL = { narrow: 60, wide: 112 };
const NARROW = 520;
const LETTER = 6.4;
const MINUTE = 60_000;
/** How far apart the marks of the axis may be. */
const STEPS = [10 * MINUTE, 20 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 24 * HOUR, 48 * HOUR];
/** Room for a time of day, and for one with its date. */
const TICK = { short: 60, long: 104 };
const AHEAD = 0.15;
const READ_MS = 5000;
/** @type {Record<string, string>} */
const HOURS = { gpu: "GPU hours", cpu: "Core hours" };

/** Where the page looks: how long, and until when; null: until now. */
function where() {
  const asked = query.value.get("span") ?? "";
  const named = /** @type {keyof typeof SPANS} */ (Object.hasOwn(SPANS, asked) ? asked : "6h");
  const span = SPANS[named];
  const until = Number(query.value.get("until")) || null;
  return { named, span, until };
}

/** Whether updates are wanted: the page is in sight, and not paused. */
function isLive() {
  return !document.hidden && connection.value.state === "live";
}

/** @param {number} span @param {number | null} until */
function useTimeline(span, until) {
  const [found, setFound] = useState(/** @type {{told: Timeline, from: number, to: number} | null} */ (null));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const reading = new AbortController();
    let timer = 0;
    /** @type {Total[]} */
    let totals = [];
    let summedAt = Number.NEGATIVE_INFINITY;
    const again = async () => {
      const to = until ?? daemonNow() + span * AHEAD;
      const from = to - span;
      // All attempts of the span are summed for them.
      const sums = performance.now() - summedAt > MINUTE;
      const wanted = { from: new Date(from).toISOString(), to: new Date(to).toISOString(), totals: sums ? 1 : null };
      try {
        const told = await read("/timeline", wanted, reading.signal);
        if (reading.signal.aborted) return;
        if (sums) [totals, summedAt] = [told.totals, performance.now()];
        setFound({ told: { ...told, totals }, from, to });
        setProblem("");
      } catch (error) {
        if (error instanceof Problem) setProblem(error.message);
      }
      if (until === null) wait();
    };
    const wait = () => {
      if (!reading.signal.aborted) timer = setTimeout(() => void (isLive() ? again() : wait()), READ_MS);
    };
    void again();
    return () => { clearTimeout(timer); reading.abort(); };
  }, [span, until]);
  return { found, problem };
}

export default function TimelineView() {
  const { named, span, until } = where();
  const { found, problem } = useTimeline(span, until);
  const move = (/** @type {number} */ parts) => {
    const to = (until ?? daemonNow() + span * AHEAD) + parts * span;
    changeQuery({ until: to > daemonNow() ? null : String(Math.round(to)) });
  };
  const zoom = (/** @type {number} */ step) => {
    const all = Object.keys(SPANS);
    const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(named) + step))];
    changeQuery({ span: next });
  };
  useKeys({ "+": () => zoom(-1), "-": () => zoom(1), ArrowLeft: () => move(-0.5), ArrowRight: () => move(0.5) });
  return html`
    <div class="timeline">
      <div class="timeline-tools">
        <div class="tabs" role="group" aria-label="how long">
          ${Object.keys(SPANS).map((one) => html`<button type="button" key=${one} aria-pressed=${one === named} onClick=${() => changeQuery({ span: one })}>${one}</button>`)}
        </div>
        <button type="button" aria-label="earlier" onClick=${() => move(-0.5)}>←</button>
        <button type="button" aria-label="later" disabled=${until === null} onClick=${() => move(0.5)}>→</button>
        ${until !== null && html`<button type="button" onClick=${() => changeQuery({ until: null })}>Now</button>`}
      </div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${found && (found.told.lanes.length === 0
        ? html`<${Empty} title="There is no unit to show" />`
        : html`<${Lanes} ...${found} onZoom=${zoom} /><${Notes} told=${found.told} /><${Owners} totals=${found.told.totals} /><${AsTable} bars=${found.told.bars} />`)}
    </div>
  `;
}

/** @param {{told: Timeline, from: number, to: number, onZoom: (step: number) => void}} props */
function Lanes({ told, from, to, onZoom }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const watch = new ResizeObserver(([one]) => setWidth(Math.max(280, one.contentRect.width)));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const label = width < NARROW ? LABEL.narrow : LABEL.wide;
  const x = (/** @type {number} */ at) => label + ((at - from) / (to - from)) * (width - label);
  const height = AXIS + told.lanes.length * (LANE + GAP);
  const ticks = ticksOf(from, to, (width - label) / (to - from > 12 * HOUR ? TICK.long : TICK.short));
  const now = daemonNow();
  const onWheel = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    onZoom(event.deltaY > 0 ? 1 : -1);
  };
  return html`
    <div class="card lanes" ref=${box} onWheel=${onWheel}>
      <svg width=${width} height=${height} role="group" aria-label="lanes of units">
        <defs><pattern id="expected" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" class="hatch" /></pattern></defs>
        ${ticks.map((at) => html`<g key=${at}><line x1=${x(at)} x2=${x(at)} y1=${AXIS - 6} y2=${height} class="tick-line" /><text x=${x(at)} y="12" class="tick-text">${clock(at, now)}</text></g>`)}
        ${told.lanes.map((lane, at) => html`<${LaneRow} key=${`${lane.worker} ${lane.kind} ${lane.unit}`} lane=${lane} bars=${barsOf(told, lane)} y=${AXIS + at * (LANE + GAP)} x=${x} from=${from} to=${to} />`)}
        ${now >= from && now <= to && html`<line x1=${x(now)} x2=${x(now)} y1=${AXIS - 6} y2=${height} class="now-line" />`}
      </svg>
    </div>
  `;
}

/** The full hours, or tens of minutes, of a span: so many at most, in the local zone.
 * @param {number} from @param {number} to @param {number} most */
function ticksOf(from, to, most) {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? STEPS[STEPS.length - 1];
  const shift = new Date(to).getTimezoneOffset() * MINUTE;
  const first = Math.ceil((from - shift) / step) * step + shift;
  return Array.from({ length: Math.max(0, Math.ceil((to - first) / step)) }, (_, at) => first + at * step);
}

/** @param {Timeline} told @param {Lane} lane */
function barsOf(told, lane) {
  return told.bars.filter((one) => one.worker === lane.worker && one.kind === lane.kind && one.unit === lane.unit);
}

/**
 * Which bars lie above each other: each has a place that is free when it begins.
 * @param {Span[]} bars @param {number} capacity
 */
function stacked(bars, capacity) {
  /** @type {{bar: Span, base: number, end: number}[]} */
  const placed = [];
  for (const bar of [...bars].sort((one, other) => Date.parse(one.from) - Date.parse(other.from))) {
    const begin = Date.parse(bar.from);
    const beside = placed.filter((one) => one.end > begin).sort((one, other) => one.base - other.base);
    let base = 0;
    for (const one of beside) {
      if (one.base >= base + bar.amount - 1e-6) break;
      base = Math.max(base, one.base + one.bar.amount);
    }
    // What is expected of a job that runs lies behind it.
    const before = bar.predicted ? placed.find((one) => one.bar.job === bar.job) : undefined;
    const fits = before?.base ?? Math.max(0, Math.min(base, capacity - bar.amount));
    placed.push({ bar, base: fits, end: bar.to === null ? Number.POSITIVE_INFINITY : Date.parse(bar.to) });
  }
  return placed;
}

/** @param {{lane: Lane, bars: Span[], y: number, x: (at: number) => number, from: number, to: number}} props */
function LaneRow({ lane, bars, y, x, from, to }) {
  const capacity = lane.capacity || Math.max(1, ...bars.map((one) => one.amount));
  const now = daemonNow();
  return html`
    <g>
      <text x="0" y=${y + LANE / 2 - 3} class="lane-text">${lane.kind} ${lane.unit}</text>
      <text x="0" y=${y + LANE / 2 + 11} class="lane-worker">${cut(lane.worker, x(from))}</text>
      <rect x=${x(from)} y=${y} width=${Math.max(0, x(to) - x(from))} height=${LANE} class="lane" />
      ${stacked(bars, capacity).map(({ bar, base }) => {
        const begin = Math.max(from, Date.parse(bar.from));
        const end = Math.min(to, bar.to === null ? now : Date.parse(bar.to));
        const height = Math.max(3, (bar.amount / capacity) * LANE - 1);
        const wide = Math.max(2, x(end) - x(begin) - 1);
        const label = `job ${bar.job} ${bar.name}, ${owner(bar.owner)}, ${bar.predicted ? "expected" : bar.state}, ${stamp(bar.from)}`;
        const open = () => navigate(`/jobs/${bar.job}`);
        return html`<a key=${`${bar.job} ${bar.attempt} ${bar.predicted}`} href=${`/jobs/${bar.job}`} aria-label=${label} onClick=${(/** @type {MouseEvent} */ event) => { event.preventDefault(); open(); }}>
          <title>${label}</title>
          <rect x=${x(begin)} y=${y + LANE - (base / capacity) * LANE - height} width=${wide} height=${height} rx="2" class=${`bar-${bar.predicted ? "expected" : bar.state}`} />
          ${height > 14 && html`<text x=${x(begin) + 5} y=${y + LANE - (base / capacity) * LANE - height / 2 + 4} class="bar-text">${cut(bar.name, wide - 8)}</text>`}
        </a>`;
      })}
    </g>
  `;
}

/** As much of a text as has room; nothing where that would tell nothing.
 * @param {string} text @param {number} room */
function cut(text, room) {
  const letters = Math.floor(room / LETTER);
  if (text.length <= letters) return text;
  return letters < 5 ? "" : `${text.slice(0, letters - 1)}…`;
}

/** @param {{told: Timeline}} props */
function Notes({ told }) {
  return html`
    ${told.left_out > 0 && html`<p class="muted">${plural(told.left_out, "shorter attempt")} left out; zoom in to see them.</p>`}
    ${told.complete_from && html`<p class="muted">Attempts before ${stamp(told.complete_from)} were too many to read.</p>`}
  `;
}

/** The hours of each owner, by kind; who held most of the first kind comes first.
 * @param {Total[]} totals */
function hoursOf(totals) {
  const kinds = ["gpu", "cpu"].filter((kind) => totals.some((one) => one.kind === kind && one.hours > 0));
  const held = new Map(totals.map((one) => [one.owner, kinds.map(() => 0)]));
  for (const { owner: who, kind, hours } of totals) {
    const at = kinds.indexOf(kind);
    if (at >= 0) /** @type {number[]} */ (held.get(who))[at] += hours;
  }
  return { kinds, rows: [...held].sort(([, one], [, other]) => (other[0] ?? 0) - (one[0] ?? 0)) };
}

/** @param {{totals: Total[]}} props */
function Owners({ totals }) {
  const { kinds, rows } = hoursOf(totals);
  if (kinds.length === 0) return null;
  const most = rows[0][1][0] || 1;
  return html`
    <section class="card owners" aria-labelledby="owners-head">
      <h2 id="owners-head">Who used it</h2>
      <table class="plain">
        <thead><tr><th scope="col">Owner</th><td></td>${kinds.map((kind) => html`<th scope="col" key=${kind} class="number">${HOURS[kind]}</th>`)}</tr></thead>
        <tbody>${rows.map(([who, held]) => html`<tr key=${who}><th scope="row">${owner(who)}</th>
          <td class="owner-bar"><${Bar} share=${held[0] / most} label=${`share of ${owner(who)}`} /></td>
          ${held.map((one, at) => html`<td key=${kinds[at]} class="number">${one.toFixed(1)}</td>`)}</tr>`)}</tbody>
      </table>
      <p class="muted">In a terminal: <code>grass timeline --by owner</code></p>
    </section>
  `;
}

/** @param {{bars: Span[]}} props */
function AsTable({ bars }) {
  return html`
    <details><summary>As a table</summary>
      <div class="scrolls" tabindex="0" role="group" aria-label="attempts as a table">
        <table class="plain">
          <thead><tr><th scope="col">Job</th><th scope="col">Name</th><th scope="col">Unit</th><th scope="col">Share</th><th scope="col">From</th><th scope="col">To</th><th scope="col">State</th></tr></thead>
          <tbody>${bars.slice(0, 200).map((one) => html`<tr key=${`${one.job} ${one.attempt} ${one.kind} ${one.unit} ${one.predicted}`}>
            <th scope="row"><a href=${`/jobs/${one.job}`}>${one.job}</a></th><td>${one.name}</td><td>${one.worker} ${one.kind} ${one.unit}</td><td>${one.amount}</td>
            <td>${stamp(one.from)}</td><td>${one.to ? stamp(one.to) : "runs"}</td><td>${one.predicted ? "expected" : one.state}</td></tr>`)}</tbody>
        </table>
      </div>
    </details>
  `;
}
