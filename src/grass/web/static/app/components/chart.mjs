// Time series with axes: uPlot, behind one component, loaded when it is first shown.
// Its colours are the theme's, and a table of the newest values is there in words.

import { theme } from "../theme.mjs";
import { html, useEffect, useRef } from "../ui.mjs";
import { clock } from "../words.mjs";

/**
 * @typedef {{label: string, values: (number | null)[], tone?: string}} Series
 * @typedef {{times: number[], series: Series[], height?: number, most?: number,
 *   format?: (value: number) => string, steps?: number[],
 *   limit?: {label: string, value: number} | null, label: string}} ChartProps
 * `times` in seconds; `steps`: how far apart the lines of the scale may be; `tone` names a
 * colour of tokens.css: `--accent`
 */

const HALF_A_DAY_S = 43_200;
let styled = false;

function style() {
  if (styled) return;
  styled = true;
  const sheet = document.createElement("link");
  sheet.rel = "stylesheet";
  sheet.href = "/vendor/uplot.css";
  document.head.append(sheet);
}

/** The colour that a variable stands for in this theme: a canvas knows no `light-dark()`.
 * @param {string} name */
function colour(name) {
  const probe = document.createElement("span");
  probe.style.setProperty("color", `var(${name})`);
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** @param {ChartProps} props */
function dataOf({ times, series, limit }) {
  const line = limit ? [times.map(() => limit.value)] : [];
  return /** @type {any} */ ([times, ...series.map((one) => one.values), ...line]);
}

/** A time on the axis or below it. @param {any} _ @param {number | null} at in seconds */
function time(_, at) {
  return at === null ? "" : clock(at * 1000, Date.now());
}

/** Away from the pointer, the newest values are told. @param {any} chart */
function tellNewest(chart) {
  if (chart.cursor.idx === null || chart.cursor.idx === undefined) chart.setLegend({ idx: chart.data[0].length - 1 }, false);
}

/** @param {ChartProps} props @param {number} width */
function options(props, width) {
  const format = props.format ?? ((/** @type {number} */ value) => String(value));
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const lines = props.series.map((one) => ({
    label: one.label,
    stroke: colour(one.tone ?? "--accent"),
    width: 1.5,
    points: { show: false },
    value: (/** @type {any} */ _, /** @type {number | null} */ value) => (value === null ? "–" : format(value)),
  }));
  const limit = { label: props.limit?.label, stroke: colour("--held"), dash: [4, 4], width: 1, points: { show: false }, value: (/** @type {any} */ _, /** @type {number | null} */ value) => (value === null ? "–" : format(value)) };
  // Times of other days have their dates before them.
  const label = (props.times.at(-1) ?? 0) - (props.times[0] ?? 0) > HALF_A_DAY_S ? 92 : 40;
  return {
    width,
    height: props.height ?? 160,
    series: [{ label: "at", value: time }, ...lines, ...(props.limit ? [limit] : [])],
    scales: { y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ high) => /** @type {[number, number]} */ ([0, Math.max(props.most ?? 0, high || 1, props.limit?.value ?? 0) * 1.05]) } },
    axes: [
      { ...axis, size: 28, space: label + 32, values: (/** @type {any} */ chart, /** @type {number[]} */ all) => all.map((one) => time(chart, one)) },
      { ...axis, size: 52, space: 28, ...(props.steps && { incrs: props.steps }), values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(format) },
    ],
    padding: /** @type {[number, number, number, number]} */ ([8, label / 2 + 2, 0, 0]),
    cursor: { points: { size: 6 } },
    hooks: { ready: [tellNewest], setData: [tellNewest], setCursor: [tellNewest] },
  };
}

/** @param {ChartProps} props */
export function Chart(props) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const newest = useRef(props);
  newest.current = props;
  const shape = props.series.map((one) => one.label).join() + JSON.stringify(props.limit) + theme.value;
  useEffect(() => {
    style();
    let gone = false;
    const resize = new ResizeObserver(() => {
      const element = box.current;
      if (element) plot.current?.setSize({ width: element.clientWidth, height: props.height ?? 160 });
    });
    import("../../vendor/uplot.mjs").then(({ default: UPlot }) => {
      const element = box.current;
      if (gone || !element) return;
      plot.current = new UPlot(options(newest.current, element.clientWidth), dataOf(newest.current), element);
      resize.observe(element);
    });
    return () => {
      gone = true;
      resize.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(dataOf(props)), [props.times, props.series]);
  return html`<div class="chart" ref=${box} role="img" aria-label=${props.label}></div>`;
}
