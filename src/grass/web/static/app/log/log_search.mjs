// Searching an output where it is: the daemon counts and finds, the page goes from one
// line to the next.

import { Problem, read } from "../api.mjs";
import { useEffect, useRef, useState } from "../ui.mjs";

const PAGE = 1000;

/**
 * @typedef {{text: string, isPattern: boolean}} Sought
 * @typedef {{sought: Sought, count: number, complete: boolean, lines: number[], all: boolean}} Found
 * @typedef {{job: number, attempt: number | null, stream: string}} Where
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
  useEffect(clear, [where.job, where.attempt, where.stream]);

  const ask = async (/** @type {Record<string, unknown>} */ query) => {
    asking.current.abort();
    asking.current = new AbortController();
    setSays("Searching…");
    const which = { attempt: where.attempt, stream: where.stream === "stderr" ? "stderr" : undefined };
    try {
      const reply = await read(`/jobs/${where.job}/search`, { ...which, ...query }, asking.current.signal);
      setSays("");
      return reply;
    } catch (error) {
      if (error instanceof DOMException) return null;
      setSays(error instanceof Problem ? error.message : "the daemon does not answer");
      return null;
    }
  };
  const arrive = (/** @type {number} */ to) => {
    setLine(to);
    goTo(to);
  };

  const begin = async (/** @type {Sought} */ sought) => {
    clear();
    if (!sought.text) return;
    const reply = await ask({ ...wordsOf(sought), limit: PAGE });
    if (!reply) return;
    const lines = reply.matches.map((/** @type {{line: number}} */ one) => one.line);
    setFound({ sought, count: reply.count, complete: reply.complete, lines, all: reply.complete && lines.length === reply.count });
    if (lines.length) arrive(lines[0]);
  };
  /** @param {1 | -1} way */
  const step = async (way) => {
    if (!found || !found.count) return;
    const to = near(found, line ?? 0, way) ?? (await far(found.sought, line ?? 0, way));
    if (to) arrive(to);
    else setSays(way > 0 ? "No more matches below" : "No more matches above");
  };
  /** @param {Sought} sought @param {number} from @param {1 | -1} way */
  const far = async (sought, from, way) => {
    const words = wordsOf(sought);
    const how = way > 0 ? { from: from + 1, count: 0 } : { from, back: 1 };
    const reply = await ask({ ...words, ...how, limit: 1 });
    return reply?.matches.at(-1)?.line ?? null;
  };
  const firstTraceback = async () => {
    const reply = await ask({ traceback: "first" });
    if (!reply) return;
    if (reply.matches.length) arrive(reply.matches[0].line);
    else setSays("There is no traceback");
  };
  return { found, line, says, begin, step, clear, firstTraceback };
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
