// Which lines of a long list are in the window. The list scrolls by lines, not by pixels:
// wrapped lines may have any height, and no browser has elements of a million rows.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "../ui.mjs";

/** The height of a row in pixels, as in the sheet. */
export const ROW = 18;
/** Browsers limit the height of an element: above this, a pixel is more than a pixel. */
const MOST_PX = 12_000_000;

/**
 * @typedef {object} Scrolled
 * @property {(element: HTMLElement | null) => void} box the element that scrolls
 * @property {{current: HTMLElement | null}} rows
 * @property {number} height of what scrolls, in pixels
 * @property {number} view the height of the window
 * @property {number} first the first line in the window, from 1
 * @property {number} last
 * @property {boolean} atEnd
 * @property {boolean} fits whether all lines are in the window
 * @property {() => void} onScroll
 * @property {(line: number) => void} goTo
 * @property {() => void} goToEnd
 * @property {(lines: number) => void} move
 */

/**
 * @param {number} total lines
 * @param {{wraps: boolean, follows: boolean, onLeave: () => void, onEnd: () => void}} how
 * @returns {Scrolled}
 */
export function useScrolling(total, how) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const rows = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState(0);
  const [place, setPlace] = useState(0);
  const [tail, setTail] = useState(0);
  /** Where a script has scrolled to: that is no wish of the reader. */
  const placed = useRef(-1);
  const wanted = useRef(/** @type {number | null} */ (null));

  const fits = view / ROW;
  const ends = how.wraps && tail ? Math.min(tail, fits) : fits;
  const most = Math.max(0, total - ends);
  const range = Math.min(most * ROW, MOST_PX);
  const top = how.follows ? most : Math.min(place, most);
  const atEnd = most - top < 0.5;
  const shown = Math.ceil(fits) + 1;
  /** So many lines are shown above one that is gone to. */
  const above = how.wraps ? 1 : fits / 3;
  const first = atEnd ? Math.max(1, total - shown + 1) : Math.floor(top) + 1;
  const last = Math.min(total, atEnd ? total : first + shown);

  const box = useCallback((/** @type {HTMLElement | null} */ found) => {
    element.current = found;
    if (found) setView(found.clientHeight);
  }, []);
  useEffect(() => {
    const found = element.current;
    if (!found) return undefined;
    const watch = new ResizeObserver(() => setView(found.clientHeight));
    watch.observe(found);
    return () => watch.disconnect();
  }, [element.current]);

  const scrollTo = (/** @type {number} */ line) => {
    const to = Math.max(0, Math.min(most, line));
    setPlace(to);
    const found = element.current;
    if (!found || !most) return;
    found.scrollTop = (to / most) * range;
    placed.current = found.scrollTop;
  };

  useLayoutEffect(() => {
    const found = element.current;
    if (!found) return;
    if (wanted.current !== null && view && total) {
      scrollTo(wanted.current - 1 - above);
      wanted.current = null;
    } else if (Math.abs(found.scrollTop - (most ? (top / most) * range : 0)) > 1) {
      found.scrollTop = most ? (top / most) * range : 0;
      placed.current = found.scrollTop;
    }
    shift(rows.current, atEnd ? 0 : top - Math.floor(top));
    if (how.wraps && atEnd && rows.current) setTail(lastThatFit(rows.current, view));
  });

  const onScroll = () => {
    const found = element.current;
    if (!found) return;
    if (Math.abs(found.scrollTop - placed.current) < 1) return;
    placed.current = -1;
    const to = range ? Math.min(1, found.scrollTop / range) * most : 0;
    setPlace(to);
    if (most - to < 0.5) how.onEnd();
    else if (to < top) how.onLeave();
  };

  const goTo = (/** @type {number} */ line) => {
    how.onLeave();
    if (view && total) scrollTo(line - 1 - above);
    else wanted.current = line;
  };
  return {
    box, rows, view, first, last, atEnd, fits: most === 0, onScroll, goTo,
    height: view + range,
    goToEnd: how.onEnd,
    move: (lines) => {
      if (top + lines >= most) return how.onEnd();
      how.onLeave();
      return scrollTo(top + lines);
    },
  };
}

/** Move the rows up by a part of the first one. @param {HTMLElement | null} rows @param {number} part */
function shift(rows, part) {
  const one = rows?.firstElementChild;
  const by = one instanceof HTMLElement ? one.offsetHeight * part : 0;
  rows?.style.setProperty("transform", by ? `translateY(${-by}px)` : "none");
}

/** How many of the last rows fill the window. @param {HTMLElement} rows @param {number} view */
function lastThatFit(rows, view) {
  let [count, left] = [0, view];
  for (const row of [...rows.children].reverse()) {
    const height = /** @type {HTMLElement} */ (row).offsetHeight;
    if (height > left) return Math.max(1, count + left / height);
    left -= height;
    count += 1;
  }
  return Math.max(1, count);
}
