// The jobs of a filter, in the daemon's order: some at first, and more as one scrolls,
// up to a number that a browser draws and a daemon reads anew with ease. From there on
// one turns to the rows after them, or back. What changed is put in its row at once; who
// came, went or moved is read anew, soon and not too often.

import { Problem, read } from "../api.mjs";
import { follow } from "../stream.mjs";
import { useEffect, useRef, useState } from "../ui.mjs";
import { mayMean } from "./filter_words.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {{words: string[], order: string, usage: boolean}} Wanted
 * @typedef {object} Shown
 * @property {Job[] | null} jobs null: not yet read
 * @property {Record<string, number>} totals all that match, by state
 * @property {string | null} next where the rows after these begin
 * @property {number} before how many rows are before these
 * @property {Problem | null} problem
 * @property {number} epoch another one: the user asked for other rows
 */

const PAGE = 100;
/** So many rows are shown together at most: all are drawn again each second. */
export const MOST_ROWS = 200;
const PAUSE_MS = 700;
/** Where more jobs change at once than a frame tells of, nobody can read each of them. */
const FLOOD_MS = 2500;
/** A slow filter is read so many times less often than it takes. */
const SLOWER = 10;

/** @type {Shown} */
const NOTHING = { jobs: null, totals: {}, next: null, before: 0, problem: null, epoch: 0 };
let epochs = 0;

class Pages {
  /** @param {Wanted} wanted @param {(shown: Shown) => void} tell */
  constructor(wanted, tell) {
    this.wanted = wanted;
    this.tell = tell;
    this.shown = NOTHING;
    this.ending = new AbortController();
    this.isReading = false;
    this.isOld = false;
    /** Whether more rows came into sight while others were read. */
    this.wantsMore = false;
    /** Where the rows that are shown begin, after all at which one turned to others.
     * @type {{cursor: string | null, before: number}[]} */
    this.begins = [{ cursor: null, before: 0 }];
    this.pause = PAUSE_MS;
    this.readAt = 0;
    this.tookMs = 0;
    this.timer = 0;
  }

  stop() {
    this.ending.abort();
    clearTimeout(this.timer);
  }

  /** @param {Partial<Shown>} change */
  show(change) {
    if (this.ending.signal.aborted) return;
    this.shown = { ...this.shown, ...change };
    this.tell(this.shown);
  }

  get begin() {
    return this.begins[this.begins.length - 1];
  }

  /** Read as many rows as are shown, from the first on. */
  async first() {
    this.isOld = false;
    await this.reading(async () => {
      const { begin } = this;
      const { jobs } = this.shown;
      const isNew = jobs === null || begin.before !== this.shown.before;
      const page = await this.page(begin.cursor, isNew ? PAGE : Math.max(PAGE, jobs.length));
      if (begin !== this.begin) return;
      // All rows of this place are gone, or moved to an earlier one.
      if (page.jobs.length === 0 && begin.before > 0) return this.turn(-1);
      const { jobs: come, total: totals, next } = page;
      this.show({ jobs: come, totals, next, before: begin.before, problem: null, ...(isNew && { epoch: ++epochs }) });
    });
  }

  async more() {
    const { next, jobs } = this.shown;
    this.wantsMore = this.isReading;
    if (!next || this.isReading || (jobs?.length ?? 0) >= MOST_ROWS) return;
    await this.reading(async () => {
      const { begin } = this;
      const page = await this.page(next, PAGE);
      if (begin !== this.begin) return;
      const known = new Set(jobs?.map((job) => job.id));
      const come = page.jobs.filter((/** @type {Job} */ job) => !known.has(job.id));
      this.show({ jobs: [...(jobs ?? []), ...come], totals: page.total, next: page.next, epoch: ++epochs });
    });
  }

  /** Show the rows after those that are shown, or before them. @param {1 | -1} way */
  turn(way) {
    const { next, jobs, before } = this.shown;
    if (way > 0 && next) this.begins.push({ cursor: next, before: before + (jobs?.length ?? 0) });
    else if (way < 0 && this.begins.length > 1) this.begins.pop();
    if (!this.isReading) void this.first();
  }

  /** @param {string | null} cursor @param {number} limit */
  page(cursor, limit) {
    const { words, order, usage } = this.wanted;
    const query = { select: words, order, limit, cursor, usage: usage ? 1 : null };
    return read("/jobs", query, this.ending.signal);
  }

  /** @param {() => Promise<void>} doing */
  async reading(doing) {
    const begun = Date.now();
    const { begin } = this;
    this.isReading = true;
    try {
      await doing();
    } catch (error) {
      // The shell tells that the daemon is away.
      if (error instanceof Problem) this.show({ problem: error, jobs: [], totals: {}, next: null });
    } finally {
      this.isReading = false;
      this.readAt = Date.now();
      this.tookMs = this.readAt - begun;
    }
    if (begin !== this.begin) return void this.first();
    if (this.wantsMore) void this.more();
    if (this.isOld) this.soon(this.pause);
    return undefined;
  }

  /** Read anew: now, or when enough time has passed since the last reading.
   * @param {number} [pause] */
  soon(pause = PAUSE_MS) {
    this.isOld = true;
    this.pause = pause;
    if (this.isReading || this.ending.signal.aborted) return;
    clearTimeout(this.timer);
    const read = () => void (this.isReading || this.first());
    const readyAt = this.readAt + Math.max(pause, SLOWER * this.tookMs);
    this.timer = setTimeout(read, Math.max(0, readyAt - Date.now()));
  }

  /** @param {{jobs: Job[], removed: number[], more: number}} frame */
  take({ jobs: come, removed, more }) {
    const jobs = this.shown.jobs ?? [];
    const changed = new Map(come.map((job) => [job.id, job]));
    if (jobs.some((job) => changed.has(job.id))) {
      // What a job uses is not told with its changes: the last reading stays.
      this.show({ jobs: jobs.map((job) => (changed.has(job.id) ? { ...job, ...changed.get(job.id) } : job)) });
    }
    const touches = more > 0 || removed.length > 0 || come.some((job) => mayMean(this.wanted.words, job));
    if (touches) this.soon(more > 0 ? FLOOD_MS : PAUSE_MS);
  }
}

/** @param {Wanted} wanted */
export function useJobs(wanted) {
  const [shown, setShown] = useState(NOTHING);
  const pages = useRef(/** @type {Pages | null} */ (null));
  const key = JSON.stringify(wanted);
  useEffect(() => {
    const mine = new Pages(JSON.parse(key), setShown);
    pages.current = mine;
    void mine.first();
    return () => mine.stop();
  }, [key]);
  useEffect(() => {
    const data = (/** @type {any} */ frame) => pages.current?.take(frame);
    return follow("jobs", { data, resync: () => pages.current?.soon() });
  }, []);
  return {
    ...shown,
    more: () => void pages.current?.more(),
    turn: (/** @type {1 | -1} */ way) => pages.current?.turn(way),
  };
}
