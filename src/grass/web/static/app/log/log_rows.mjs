// The rows of a log that are in the window.

import { html } from "../ui.mjs";
import { pieces } from "./ansi.mjs";

/** @typedef {{first: number, last: number}} Range lines that a link names */

/** The lines that an address names: `#L57` or `#L57-60`. @param {string} hash @returns {Range | null} */
export function rangeOf(hash) {
  const [, from, to] = /^#L(\d{1,12})(?:-L?(\d{1,12}))?$/.exec(hash) ?? [];
  if (!from) return null;
  const [one, other] = [Number(from), Number(to ?? from)];
  return { first: Math.max(1, Math.min(one, other)), last: Math.max(one, other) };
}

/** @param {Range} range */
export function hashOf({ first, last }) {
  return first === last ? `#L${first}` : `#L${first}-${last}`;
}

/**
 * @param {{first: number, last: number, lines: import("./line_store.mjs").LineStore,
 *   numbered: boolean, chosen: Range | null, found: number | null, text: string,
 *   onChoose: (event: MouseEvent, line: number) => void}} props
 */
export function Rows(props) {
  const rows = [];
  for (let line = props.first; line <= props.last; line += 1) rows.push(line);
  const digits = props.numbered ? String(props.lines.total).length : 3;
  const { styles } = props.lines;
  return rows.map((line) => html`<${Row} key=${line} line=${line} digits=${digits} style=${styles.before(line)} ...${props} />`);
}

/** @param {Parameters<typeof Rows>[0] & {line: number, digits: number, style: import("./ansi.mjs").Style}} props */
function Row(props) {
  const { line, lines, chosen, digits } = props;
  const text = lines.texts.get(line);
  const isChosen = chosen !== null && line >= chosen.first && line <= chosen.last;
  const kinds = ["log-row", isChosen && "log-chosen", line === props.found && "log-found"];
  return html`
    <div class=${kinds.filter(Boolean).join(" ")} data-line=${line}>
      ${props.numbered
        ? html`<a class="log-number" href=${`#L${line}`} tabindex="-1" aria-label=${`line ${line}`}
            onClick=${(/** @type {MouseEvent} */ event) => props.onChoose(event, line)}>${String(line).padStart(digits)}</a>`
        : html`<span class="log-number">${" ".repeat(digits)}</span>`}
      <span class="log-text">${text === undefined
        ? html`<span class="log-pending"></span>`
        : html`<${Text} text=${text} before=${props.style} mark=${props.text} />`}${lines.cut.has(line) && html`<span class="log-cut">… cut: the download has all of this line</span>`}</span>
    </div>
  `;
}

/** A line in its colours, with what was searched for marked.
 * @param {{text: string, before: import("./ansi.mjs").Style, mark: string}} props */
function Text({ text, before, mark }) {
  const all = pieces(text, before);
  const spans = mark ? marked(all, mark) : all.map((one) => ({ ...one, isMarked: false }));
  return spans.map((one) => {
    const style = { ...(one.color && { "--exact": one.color }), ...(one.background && { "--exact-back": one.background }) };
    const piece = one.className ? html`<span class=${one.className} style=${style}>${one.text}</span>` : one.text;
    return one.isMarked ? html`<mark>${piece}</mark>` : piece;
  });
}

/**
 * The pieces, cut where a text that was searched for begins and ends.
 * @param {import("./ansi.mjs").Piece[]} all @param {string} mark
 */
function marked(all, mark) {
  const line = all.map((one) => one.text).join("").toLowerCase();
  const wanted = mark.toLowerCase();
  const edges = new Set([0]);
  const inside = new Uint8Array(line.length);
  for (let at = line.indexOf(wanted); at >= 0; at = line.indexOf(wanted, at + wanted.length)) {
    edges.add(at).add(at + wanted.length);
    inside.fill(1, at, at + wanted.length);
  }
  const cuts = [...edges].sort((one, other) => one - other);
  let place = 0;
  return all.flatMap((piece) => {
    const [begin, end] = [place, place + piece.text.length];
    place = end;
    const within = [begin, ...cuts.filter((one) => one > begin && one < end), end];
    return within.slice(0, -1).map((from, at) => ({
      ...piece,
      text: piece.text.slice(from - begin, within[at + 1] - begin),
      isMarked: inside[from] === 1,
    }));
  });
}
