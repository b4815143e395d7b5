// Searching an output where it is: the daemon counts and finds, the page goes from one
// line to the next.

import { Problem, read } from "../api.mjs";
import { useEffect, useRef, useState } from "../ui.mjs";

const PAGE = 1000;

/**
 * @typedef {{text: string, isPattern: boolean}} Sought
 * @typedef {{sought: Sought, count: number, complete: boolean, lines: number[], all: boolean}} Found
 * @typedef {{job: number, attempt: number | null, stream: string}} Where
 * @typedef {{count: number, matches: {line: number}[], complete: boolean, next: number | null}} Reply
 */

/** @param {Where} where @param {(line: number) => void} goTo */
export function useSearch(where, goTo) {
  const [found, setFound] = useState(/** @type {Found | null} */ (null));
  const [line, setLine] = useState(/** @type {number | null} */ (null));
  const [says, setSays] = useState("");
  const asking = useRef(new AbortController());
  const clear = () => {
    asking.current.abort();
    setFound(null);
    setLine(null);
    setSays("");
  };
  useEffect(() => {
    clear();
    return () => asking.current.abort();
  }, [where.job, where.attempt, where.stream]);

  /** End the search that goes on, if one does, for another one. */
  const fresh = () => {
    asking.current.abort();
    asking.current = new AbortController();
    return asking.current.signal;
  };
  /** @param {Record<string, unknown>} query @param {AbortSignal} signal
   * @returns {Promise<Reply | null>} null: another search began, or the reason is told */
  const ask = async (query, signal) => {
    const which = { attempt: where.attempt, stream: where.stream === "stderr" ? "stderr" : undefined };
    try {
      const reply = await read(`/jobs/${where.job}/search`, { ...which, ...query }, signal);
      return signal.aborted ? null : reply;
    } catch (error) {
      if (signal.aborted) return null;
      setSays(error instanceof Problem ? error.message : "the daemon does not answer");
      return null;
    }
  };
  /** Find one line, however many calls that takes, and go there; else say that there is none.
   * @param {Record<string, unknown>} query @param {string} none */
  const seek = async (query, none) => {
    const signal = fresh();
    setSays("Searching…");
    for (let from = query.from; ; ) {
      const reply = await ask({ ...query, from }, signal);
      if (!reply) return;
      const found = reply.matches.at(-1);
      if (found) {
        setSays("");
        return arrive(found.line);
      }
      if (!goesOn(reply, from)) return setSays(reply.complete ? none : `${none}, as far as line ${reply.next}`);
      from = reply.next;
    }
  };
  const arrive = (/** @type {number} */ to) => {
    setLine(to);
    goTo(to);
  };

  const begin = async (/** @type {Sought} */ sought) => {
    clear();
    if (!sought.text) return;
    const signal = fresh();
    setSays("Searching…");
    /** @type {number[]} */
    const lines = [];
    let count = 0;
    for (let from = /** @type {number | null} */ (1); ; ) {
      const reply = await ask({ ...wordsOf(sought), from, limit: PAGE - lines.length }, signal);
      if (!reply) return;
      const { complete } = reply;
      const isFirst = lines.length === 0;
      lines.push(...reply.matches.map((one) => one.line));
      count += reply.count;
      setFound({ sought, count, complete, lines: [...lines], all: complete && lines.length === count });
      setSays("");
      if (isFirst && lines.length) arrive(lines[0]);
      if (!goesOn(reply, from)) return;
      from = reply.next;
    }
  };
  /** @param {1 | -1} way */
  const step = async (way) => {
    if (!found || (found.complete && !found.count)) return;
    const at = line ?? 0;
    const to = near(found, at, way);
    if (to !== null) return arrive(to);
    const how = way > 0 ? { from: at + 1, count: 0 } : { from: Math.max(1, at), back: 1 };
    await seek({ ...wordsOf(found.sought), ...how, limit: 1 }, `No more matches ${way > 0 ? "below" : "above"}`);
  };
  const firstTraceback = () => seek({ traceback: "first", from: 1 }, "There is no traceback");
  return { found, line, says, begin, step, clear, firstTraceback };
}

/** Whether there is more to search: a call ends after some seconds, and not always further
 * than it began.
 * @param {Reply} reply @param {unknown} from */
function goesOn(reply, from) {
  return !reply.complete && reply.next !== null && reply.next !== from;
}

/** @param {Sought} sought */
function wordsOf({ text, isPattern }) {
  return isPattern ? { pattern: text } : { text };
}

/** The next match of those that are known; null: the daemon has to be asked.
 * @param {Found} found @param {number} line @param {1 | -1} way */
function near({ lines, all }, line, way) {
  const next = way > 0 ? lines.find((one) => one > line) : lines.findLast((one) => one < line);
  if (next !== undefined && (all || line <= lines[lines.length - 1])) return next;
  if (!all) return null;
  // Past the last one the first comes again.
  return way > 0 ? lines[0] : lines[lines.length - 1];
}

/** `3 of 57 lines`. @param {Found} found @param {number | null} line */
export function countText(found, line) {
  const many = `${found.count.toLocaleString("en")}${found.complete ? "" : "+"}`;
  if (!found.count) return found.complete ? "no match" : "no match so far";
  const at = line === null ? -1 : found.lines.indexOf(line);
  return at >= 0 ? `${(at + 1).toLocaleString("en")} of ${many}` : many;
}
