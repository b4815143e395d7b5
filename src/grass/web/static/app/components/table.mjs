// A table of things: sorted by its headers, chosen by clicks and keys, opened by Enter.
// Rows keep their places while somebody is on them. On a phone each row is a card.

import { useKeys } from "../keys.mjs";
import { Icon } from "./icon.mjs";
import { useSteady, WaitingChip } from "./steady.mjs";
import { html, useRef, useState } from "../ui.mjs";

/** With more columns than these a table scrolls sideways, and its head does not stay. */
const WIDE = 12;

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
 * @property {boolean} [silent] its label is for screen readers alone
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
 * @property {unknown} [epoch] another one: the user asked for other rows
 * @property {(row: T) => string} [groupOf] rows of a group stand together, under its name
 */

/** @template T @param {TableProps<T>} props */
export function Table(props) {
  const { caption, columns, keyOf, selected, onSelect } = props;
  const { rows: all, isHeld, waiting, handlers, showNow } = useSteady(props.rows, keyOf, undefined, props.epoch);
  const groups = useGroups(all, props, isHeld);
  const rows = groups.flatMap((one) => (one.isFolded ? [] : one.rows));
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
    const line = body.current?.querySelectorAll("tr[data-key]")[at];
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
  const line = (/** @type {T} */ row) => {
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
  };
  const isWide = columns.length > WIDE;
  return html`
    <div class=${`table-box ${isWide ? "table-wide" : ""}`} tabindex=${isWide ? 0 : undefined} role=${isWide ? "group" : undefined}
      aria-label=${isWide ? caption : undefined} ...${handlers}>
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
          ${groups.map((group) => html`
            ${props.groupOf && html`<${GroupRow} key=${`group ${group.name}`} group=${group} span=${columns.length + (onSelect ? 1 : 0)} />`}
            ${!group.isFolded && group.rows.map(line)}
          `)}
        </tbody>
      </table>
    </div>
  `;
}

/** @typedef {{name: string, rows: any[], isFolded: boolean, fold: () => void}} Group */

/**
 * The rows by their groups; while rows are held each stays in the group that it was in.
 * @param {any[]} rows
 * @param {TableProps<any>} props
 * @param {boolean} isHeld
 * @returns {Group[]}
 */
function useGroups(rows, { groupOf, keyOf }, isHeld) {
  const [folded, setFolded] = useState(/** @type {Set<string>} */ (new Set()));
  const before = useRef(/** @type {Map<string | number, string>} */ (new Map()));
  if (!groupOf) return [{ name: "", rows, isFolded: false, fold: () => {} }];
  const nameOf = (/** @type {any} */ row) => (isHeld ? before.current.get(keyOf(row)) : null) ?? groupOf(row);
  const names = new Map(rows.map((row) => [keyOf(row), nameOf(row)]));
  before.current = names;
  return [...new Set(names.values())].map((name) => ({
    name,
    rows: rows.filter((row) => names.get(keyOf(row)) === name),
    isFolded: folded.has(name),
    fold: () => setFolded(chosen([name], folded, name, null)),
  }));
}

/** @param {{group: Group, span: number}} props */
function GroupRow({ group, span }) {
  return html`<tr class="group-row"><th scope="rowgroup" colspan=${span}>
    <button type="button" class="sort" aria-expanded=${!group.isFolded} onClick=${group.fold}>
      <${Icon} name=${group.isFolded ? "right" : "down"} size=${12} />${group.name || "none"} <span class="muted">${group.rows.length}</span>
    </button>
  </th></tr>`;
}

/** @param {Column<any>} column */
function cellClass(column) {
  const kinds = [column.number && "number", column.wide && "wide", column.className];
  return kinds.filter(Boolean).join(" ");
}

/**
 * The selection after a row was chosen; with an anchor, all from there to the row.
 * @template {string | number} K
 * @param {K[]} keys @param {Set<K>} before @param {K} key @param {K | null} anchor
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
  if (!name || !onOrder) {
    return html`<th scope="col" class=${kind}><span class=${column.silent ? "unseen" : ""}>${column.label}</span></th>`;
  }
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
