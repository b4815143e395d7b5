// Rows that do not move under the pointer. While the pointer or the keyboard's focus is
// on a list, its rows keep their places: what they say is kept up to date, and those that
// came, went or moved wait. A chip says how many, and shows them when it is pressed.

import { html, useLayoutEffect, useRef, useState } from "../ui.mjs";

/**
 * @template T
 * @param {T[]} rows the newest rows, in their newest order
 * @param {(row: T) => string | number} keyOf
 * @param {(row: T) => T} [latest] a row that went, as it is now
 * @param {unknown} [epoch] another one: the user asked for other rows, which do not wait
 */
export function useSteady(rows, keyOf, latest = (row) => row, epoch = null) {
  const [before, setHeld] = useState(/** @type {T[] | null} */ (null));
  const newest = useRef(rows);
  newest.current = rows;
  const heldIn = useRef(epoch);
  const held = before && (heldIn.current === epoch ? before : rows);
  useLayoutEffect(() => {
    heldIn.current = epoch;
    setHeld((rowsBefore) => rowsBefore && newest.current);
  }, [epoch]);
  const hold = () => setHeld((rowsBefore) => rowsBefore ?? newest.current);
  const letGo = () => setHeld(null);
  const isInside = useRef({ pointer: false, focus: false, drag: false });
  const changed = () => (Object.values(isInside.current).some(Boolean) ? hold() : letGo());
  const set = (/** @type {"pointer" | "focus" | "drag"} */ what, /** @type {boolean} */ on) => {
    isInside.current[what] = on;
    changed();
  };
  const handlers = {
    onPointerEnter: (/** @type {PointerEvent} */ event) =>
      event.pointerType === "mouse" && set("pointer", true),
    onPointerLeave: () => set("pointer", false),
    // A drag takes the pointer away from where it began.
    onDragStart: () => set("drag", true),
    onDragEnd: () => set("drag", false),
    // The focus that a click leaves behind holds nothing.
    onFocusIn: (/** @type {FocusEvent} */ event) =>
      event.target instanceof Element && event.target.matches(":focus-visible") && set("focus", true),
    onFocusOut: (/** @type {FocusEvent} */ event) => {
      const { currentTarget, relatedTarget } = event;
      const stays = currentTarget instanceof Node && relatedTarget instanceof Node && currentTarget.contains(relatedTarget);
      if (!stays) set("focus", false);
    },
  };
  const shown = held ? refreshed(held, rows, keyOf, latest) : rows;
  const waiting = held ? differences(held, rows, keyOf) : 0;
  const showNow = () => setHeld(newest.current);
  return { rows: shown, isHeld: held !== null, waiting, handlers, showNow };
}

/**
 * The held rows, each as it is now.
 * @template T
 * @param {T[]} held @param {T[]} rows @param {(row: T) => string | number} keyOf
 * @param {(row: T) => T} latest
 */
function refreshed(held, rows, keyOf, latest) {
  const now = new Map(rows.map((row) => [keyOf(row), row]));
  return held.map((row) => now.get(keyOf(row)) ?? latest(row));
}

/**
 * How many rows came, went or moved.
 * @template T
 * @param {T[]} held @param {T[]} rows @param {(row: T) => string | number} keyOf
 */
function differences(held, rows, keyOf) {
  const before = held.map(keyOf);
  const after = rows.map(keyOf);
  const wasThere = new Set(before);
  const isThere = new Set(after);
  const came = after.filter((key) => !wasThere.has(key)).length;
  const went = before.filter((key) => !isThere.has(key)).length;
  const order = before.filter((key) => isThere.has(key));
  const moved = after.filter((key) => wasThere.has(key)).filter((key, at) => key !== order[at]);
  return came + went + moved.length;
}

/** @param {{waiting: number, onShow: () => void}} props */
export function WaitingChip({ waiting, onShow }) {
  if (!waiting) return null;
  return html`<button type="button" class="chip" onClick=${onShow}>
    ${waiting} ${waiting === 1 ? "update" : "updates"} waiting
  </button>`;
}
