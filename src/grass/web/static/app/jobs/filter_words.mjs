// The words that a filter is made of: the selectors of the command line. Words of one kind
// add up, words of different kinds narrow.

import { ENDED, UNFINISHED } from "../words.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {{word: string, about: string}} Suggestion
 * @typedef {{queues: string[], projects: string[]}} Known
 */

const STATES = [...UNFINISHED, ...ENDED];
const MOST = 10;
const ABOUT = {
  held: "kept from starting",
  waiting: "for a time or another job",
  queued: "in line for units",
  running: "has started",
  succeeded: "exit 0",
  failed: "any other exit",
  cancelled: "ended by somebody",
  lost: "nobody knows how it ended",
};

/** @param {string} text */
export function wordsOf(text) {
  return text.trim().split(/\s+/).filter(Boolean);
}

/** Whether a word says all that it is going to. @param {string} word */
export function isWhole(word) {
  const state = /^state:(.*)$/.exec(word);
  return state ? STATES.includes(state[1]) : /^(\d+(-\d+)?|last|all|@.+|name~.+|queue:.+)$/.test(word);
}

/**
 * Whether a filter may mean a job; the daemon decides, where this cannot.
 * @param {string[]} words
 * @param {Job} job
 */
export function mayMean(words, job) {
  const kinds = new Set(words.map(kindOf));
  return [...kinds].every((kind) => words.some((word) => kindOf(word) === kind && means(word, job)));
}

/** @param {string} word */
function kindOf(word) {
  if (/^\d/.test(word)) return "ids";
  return word === "all" ? "state:" : (/^(@|name~|state:|queue:)/.exec(word)?.[0] ?? word);
}

/** @param {string} word @param {Job} job */
function means(word, job) {
  const ids = /^(\d+)(?:-(\d+))?$/.exec(word);
  if (ids) return job.id >= Number(ids[1]) && job.id <= Number(ids[2] ?? ids[1]);
  if (word.startsWith("@")) return job.project === word.slice(1);
  if (word.startsWith("queue:")) return job.queue === word.slice(6);
  // A job that is in another state now may have been in this one before.
  return true;
}

/**
 * Jobs by the fewest words: `3-9`, `12-12`.
 * @param {number[]} ids in order
 */
export function rangesOf(ids) {
  const ends = ids.filter((id, place) => ids[place + 1] !== id + 1);
  const begins = ids.filter((id, place) => ids[place - 1] !== id - 1);
  return begins.map((begin, place) => `${begin}-${ends[place]}`);
}

/**
 * What the word that is typed may become.
 * @param {string} typed
 * @param {Known} known
 * @returns {Suggestion[]}
 */
export function suggestions(typed, known) {
  const last = /\S*$/.exec(typed)?.[0].toLowerCase() ?? "";
  const used = new Set(wordsOf(typed).slice(0, last ? -1 : undefined));
  const fits = vocabulary(known).filter(
    ({ word }) => !used.has(word) && word !== last && word.toLowerCase().includes(last),
  );
  const starts = (/** @type {Suggestion} */ one) => Number(one.word.toLowerCase().startsWith(last));
  return fits.sort((one, other) => starts(other) - starts(one)).slice(0, MOST);
}

/** @param {Known} known @returns {Suggestion[]} */
function vocabulary({ queues, projects }) {
  const states = ["running", "failed", ...STATES.filter((one) => one !== "running" && one !== "failed")];
  return [
    { word: "all", about: "every unfinished job" },
    ...states.map((one) => ({ word: `state:${one}`, about: ABOUT[/** @type {keyof typeof ABOUT} */ (one)] })),
    ...queues.map((one) => ({ word: `queue:${one}`, about: "a queue" })),
    ...projects.map((one) => ({ word: `@${one}`, about: "a project" })),
    { word: "name~", about: "a pattern in the name" },
    { word: "last", about: "the newest job" },
  ];
}

/**
 * A text after a suggestion was taken: in place of the word that was typed.
 * @param {string} typed
 * @param {string} word
 */
export function completed(typed, word) {
  return typed.replace(/\S*$/, word) + (word.endsWith("~") ? "" : " ");
}
