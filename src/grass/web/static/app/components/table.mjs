// A table of things: sorted by its headers, chosen by clicks and keys, opened by Enter.
// Rows keep their places while somebody is on them. On a phone each row is a card.

import { useKeys } from "../keys.mjs";
import { Icon } from "./icon.mjs";
import { useSteady, WaitingChip } from "./steady.mjs";
import { html, useRef, useState } from "../ui.mjs";

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id
 * @property {string} label
 * @property {(row: T) => any} cell
 * @property {string} [order] the API's name of this order; without it, no sorting
 * @property {boolean} [number] numbers are right-aligned
 * @property {string} [className]
 * @property {boolean} [wide] takes the room that is left
 */
/**
 * @template T
 * @typedef {object} TableProps
 * @property {string} caption for screen readers
 * @property {Column<T>[]} columns
 * @property {T[]} rows
 * @property {(row: T) => string | number} keyOf
 * @property {string} [order] the order now, `-id` for descending
 * @property {(order: string) => void} [onOrder]
 * @property {Set<string | number>} [selected]
 * @property {(keys: Set<string | number>) => void} [onSelect]
 * @property {(row: T) => void} [onOpen]
 * @property {Record<string, (row: T) => void>} [keys] what keys do to the row with the cursor
 * @property {(row: T) => string} [rowClass]
 */

/** @template T @param {TableProps<T>} props */
export function Table(props) {
  const { caption, columns, keyOf, selected, onSelect } = props;
  const { rows, waiting, handlers, showNow } = useSteady(props.rows, keyOf);
  const [cursor, setCursor] = useState(/** @type {string | number | null} */ (null));
  const anchor = useRef(/** @type {string | number | null} */ (null));
  const body = useRef(/** @type {HTMLTableSectionElement | null} */ (null));
  const place = rows.findIndex((row) => keyOf(row) === cursor);
  const choose = (/** @type {T} */ row, /** @type {boolean} */ range = false) =>
    onSelect?.(chosen(rows.map(keyOf), selected ?? new Set(), keyOf(row), range ? anchor.current : null));
  const move = (/** @type {number} */ to) => {
    const at = Math.min(rows.length - 1, Math.max(0, to));
    if (at < 0) return;
    setCursor(keyOf(rows[at]));
    const line = body.current?.children[at];
    line?.scrollIntoView({ block: "nearest" });
    if (line instanceof HTMLElement) line.focus({ preventScroll: true });
  };
  const withRow = (/** @type {(row: T) => void} */ doing) => () => {
    if (place >= 0) doing(rows[place]);
  };
  const own = Object.entries(props.keys ?? {}).map(([key, doing]) => [key, withRow(doing)]);
  const select = onSelect ? { x: withRow((row) => choose(row)), X: withRow((row) => choose(row, true)) } : {};
  const open = props.onOpen ? { Enter: withRow(props.onOpen) } : {};
  const down = () => move(place + 1);
  const up = () => move(place < 0 ? 0 : place - 1);
  useKeys({ j: down, k: up, ArrowDown: down, ArrowUp: up, ...select, ...open, ...Object.fromEntries(own) });
  const onBox = (/** @type {T} */ row) => (/** @type {MouseEvent} */ event) => {
    choose(row, event.shiftKey);
    anchor.current = keyOf(row);
  };
  return html`
    <div class="table-box" ...${handlers}>
      <${WaitingChip} waiting=${waiting} onShow=${showNow} />
      <table class="table">
        <caption class="unseen">${caption}</caption>
        <thead>
          <tr>
            ${onSelect && html`<th class="tick">
              <${AllBox} keys=${rows.map(keyOf)} selected=${selected} onSelect=${onSelect} />
            </th>`}
            ${columns.map((one) => html`<${Heading} key=${one.id} column=${one} order=${props.order} onOrder=${props.onOrder} />`)}
          </tr>
        </thead>
        <tbody ref=${body}>
          ${rows.map((row) => {
            const key = keyOf(row);
            const isChosen = selected?.has(key) ?? false;
            return html`
              <tr key=${key} tabindex="-1" class=${props.rowClass?.(row) ?? ""} data-key=${key}
                data-cursor=${key === cursor ? "" : undefined} aria-selected=${onSelect ? isChosen : undefined}
                onFocusIn=${() => setCursor(key)}>
                ${onSelect && html`<td class="tick">
                  <input type="checkbox" checked=${isChosen} aria-label=${`select ${key}`} onClick=${onBox(row)} />
                </td>`}
                ${columns.map((one) => html`<td key=${one.id} class=${cellClass(one)} data-label=${one.label}>${one.cell(row)}</td>`)}
              </tr>
            `;
          })}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {Column<any>} column */
function cellClass(column) {
  const kinds = [column.number && "number", column.wide && "wide", column.className];
  return kinds.filter(Boolean).join(" ");
}

/**
 * The selection after a row was chosen; with an anchor, all from there to the row.
 * @param {(string | number)[]} keys @param {Set<string | number>} before
 * @param {string | number} key @param {string | number | null} anchor
 */
function chosen(keys, before, key, anchor) {
  const after = new Set(before);
  const from = anchor === null ? -1 : keys.indexOf(anchor);
  if (from >= 0) {
    const to = keys.indexOf(key);
    for (const one of keys.slice(Math.min(from, to), Math.max(from, to) + 1)) after.add(one);
  } else if (!after.delete(key)) after.add(key);
  return after;
}

/**
 * @param {{keys: (string | number)[], selected?: Set<string | number>,
 *   onSelect: (keys: Set<string | number>) => void}} props
 */
function AllBox({ keys, selected, onSelect }) {
  const all = keys.length > 0 && keys.every((key) => selected?.has(key));
  const some = !all && keys.some((key) => selected?.has(key));
  return html`<input type="checkbox" aria-label="select all shown" checked=${all} indeterminate=${some}
    onClick=${() => onSelect(new Set(all ? [] : keys))} />`;
}

/** @param {{column: Column<any>, order?: string, onOrder?: (order: string) => void}} props */
function Heading({ column, order, onOrder }) {
  const name = column.order;
  const kind = cellClass(column);
  if (!name || !onOrder) return html`<th scope="col" class=${kind}>${column.label}</th>`;
  const rises = order === name;
  const falls = order === `-${name}`;
  return html`
    <th scope="col" class=${kind} aria-sort=${rises ? "ascending" : falls ? "descending" : "none"}>
      <button type="button" class="sort" onClick=${() => onOrder(rises ? `-${name}` : name)}>
        ${column.label}${(rises || falls) && html`<${Icon} name=${rises ? "up" : "down"} size=${12} />`}
      </button>
    </th>
  `;
}
