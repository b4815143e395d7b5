// One job as it is now: read with what it uses, and anew when the stream tells of it.

import { Problem, read } from "../api.mjs";
import { soon } from "../soon.mjs";
import { follow } from "../stream.mjs";
import { useEffect, useState } from "../ui.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

/** @param {string} id */
export function useJob(id) {
  const [job, setJob] = useState(/** @type {Job | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Problem | null} */ (null));
  useEffect(() => {
    const reading = new AbortController();
    const again = async () => {
      try {
        const found = await read(`/jobs/${id}`, { usage: 1 }, reading.signal);
        setJob(found);
        setProblem(null);
      } catch (error) {
        // Without the daemon the page keeps what it had, and says how old that is.
        if (error instanceof Problem) setProblem(error);
      }
    };
    const data = (/** @type {{jobs: Job[], removed: number[], more: number}} */ changed) => {
      const isMeant = changed.jobs.some((one) => String(one.id) === id) || changed.removed.some((one) => String(one) === id);
      if (isMeant || changed.more > 0) ask();
    };
    const { ask, stop: stopAsking } = soon(again);
    ask();
    const stop = follow("jobs", { data, resync: ask });
    return () => { stop(); stopAsking(); reading.abort(); };
  }, [id]);
  return { job, problem };
}

/**
 * Something about a job that is read once, and anew when `version` changes.
 * @template T
 * @param {string} path @param {unknown} version @param {Record<string, unknown>} [query]
 * @returns {{found: T | null, problem: string}}
 */
export function useAbout(path, version, query) {
  const [found, setFound] = useState(/** @type {T | null} */ (null));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const reading = new AbortController();
    read(path, query, reading.signal).then(
      (told) => { setFound(told); setProblem(""); },
      (error) => error instanceof Problem && setProblem(error.message),
    );
    return () => reading.abort();
  }, [path, version]);
  return { found, problem };
}
