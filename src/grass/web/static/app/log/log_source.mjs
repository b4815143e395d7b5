// Reads one stream of one attempt: the last lines at first, then what is added, and any
// others when they are looked at. Frames that follow each other are added as they come;
// where some were left out, the lines are read from the last one on.

import { Problem, read, Unreachable } from "../api.mjs";
import { follow } from "../stream.mjs";
import { LineStore } from "./line_store.mjs";

const FIRST = 1000;
const AT_ONCE = 5000;
/** Lines are read in blocks of so many, so that the same ones are not read twice. */
const BLOCK = 500;
/** Further behind than so many bytes, only the last lines are read. */
const TOO_FAR = 4 * 2 ** 20;

/**
 * @typedef {{job: number, attempt: number | null, stream: string, isLast: boolean}} Wanted
 * @typedef {"loading" | "shown" | "none" | "unreachable" | "offline" | "wrong"} State
 * @typedef {{attempt: number, offset: number, end: number, text: string, ended: boolean,
 *   problem?: string}} Frame
 */

export class LogSource {
  /**
   * @param {Wanted} wanted an attempt, or the last one
   * @param {() => void} changed
   * @param {(attempt: number) => void} onNext another attempt has begun
   */
  constructor(wanted, changed, onNext) {
    this.wanted = wanted;
    this.changed = changed;
    this.onNext = onNext;
    this.lines = new LineStore();
    this.state = /** @type {State} */ ("loading");
    /** What the daemon says where there is nothing to show, or nothing new. */
    this.problem = "";
    this.attempt = wanted.attempt;
    /** Whether the numbers of the lines are known. */
    this.numbered = false;
    this.ended = false;
    /** The byte up to which there is output, as far as frames tell. */
    this.told = 0;
    this.busy = false;
    this.fetching = false;
    this.closing = new AbortController();
  }

  open() {
    void this.load();
    if (!this.wanted.isLast) return;
    const topic = `log:${this.wanted.job}${this.wanted.stream === "stderr" ? ":stderr" : ""}`;
    const stop = follow(topic, {
      data: (frame) => this.take(frame),
      resync: () => void (this.state === "shown" ? this.catchUp() : this.load()),
    });
    this.closing.signal.addEventListener("abort", stop);
  }

  close() {
    this.closing.abort();
  }

  /** @param {Record<string, unknown>} query @returns {Promise<import("../documents.mjs").Lines>} */
  read(query) {
    const { job, stream } = this.wanted;
    const which = { attempt: this.attempt, stream: stream === "stderr" ? stream : undefined };
    return read(`/jobs/${job}/lines`, { ...which, ...query }, this.closing.signal);
  }

  /** Do one reading at a time. @param {() => Promise<void>} reading */
  async once(reading) {
    if (this.busy) return;
    this.busy = true;
    try {
      await reading();
      this.problem = "";
    } catch (error) {
      this.fail(error);
    }
    this.busy = false;
    if (this.closing.signal.aborted) return;
    this.changed();
    if (this.state === "shown" && !this.problem && this.told > this.lines.end) void this.catchUp();
  }

  /** @param {unknown} error */
  fail(error) {
    if (error instanceof DOMException) return;
    if (!(error instanceof Problem || error instanceof Unreachable)) throw error;
    this.problem = error.message;
    if (this.state === "shown") return;
    const code = error instanceof Problem ? error.code : "offline";
    const states = /** @type {Record<string, State>} */ ({ "not-found": "none", unreachable: "unreachable", offline: "offline" });
    this.state = states[code] ?? "wrong";
  }

  /** Read the last lines; their numbers may come later than they do. */
  load() {
    if (this.attempt === null) {
      // It has not started: there is nothing to ask for.
      this.state = "none";
      this.changed();
      return undefined;
    }
    return this.once(async () => {
      let reply = await this.read({ from: "end", count: FIRST });
      if (reply.first === null) {
        this.show(reply, 1);
        this.changed();
        reply = await this.read({ from: "end", count: FIRST, numbered: 1 });
      }
      this.numbered = true;
      this.show(reply, reply.first ?? 1);
    });
  }

  /** @param {import("../documents.mjs").Lines} reply @param {number} first */
  show(reply, first) {
    this.lines = new LineStore();
    this.lines.putLast(first, reply);
    this.attempt = reply.attempt;
    this.ended = reply.ended;
    this.told = Math.max(this.told, reply.end);
    this.state = "shown";
  }

  /** Read what comes after the lines that are there. */
  async catchUp() {
    if (this.told - this.lines.end > TOO_FAR) return this.load();
    return this.once(async () => {
      const { lines, told } = this;
      const from = Math.max(1, lines.total + (lines.open ? 0 : 1));
      const reply = await this.read({ from, count: AT_ONCE });
      if (reply.lines.length) lines.putLast(from, reply);
      // Nothing is left of what frames had told of: the file was made shorter.
      const isAll = reply.lines.length < AT_ONCE && reply.end <= told;
      if (isAll && this.told === told) this.told = lines.end;
      this.ended = reply.ended;
    });
  }

  /** @param {Frame} frame */
  take(frame) {
    if (frame.problem) {
      this.problem = frame.problem;
      if (this.state !== "shown") this.state = "unreachable";
      return this.changed();
    }
    if (this.attempt === null) this.attempt = frame.attempt;
    if (frame.attempt > this.attempt) return this.onNext(frame.attempt);
    if (frame.attempt < this.attempt) return undefined;
    this.told = Math.max(this.told, frame.end);
    if (frame.ended) this.ended = true;
    if (this.state !== "shown") return void this.load();
    if (this.problem) {
      // It can be read again: also lines that were asked for in the meantime.
      this.problem = "";
      void this.catchUp();
    } else if (!this.busy && frame.end > this.lines.end) this.extend(frame);
    return this.changed();
  }

  /** @param {Frame} frame */
  extend(frame) {
    if (frame.offset === this.lines.end) this.lines.append(frame.text, frame.end);
    else void this.catchUp();
  }

  /** Have these lines read, if they are not there. @param {number} first @param {number} last */
  async need(first, last) {
    this.lines.trim((first + last) / 2);
    const missing = this.missing(first, last);
    if (missing === null || this.fetching || this.problem || !this.numbered) return;
    this.fetching = true;
    try {
      await this.fill(missing - ((missing - 1) % BLOCK));
      // Long lines come in smaller blocks, and of a file that was made shorter none.
      if (!this.lines.has(missing)) await this.fill(missing);
      if (!this.lines.has(missing)) this.lines.put(missing, [""]);
    } catch (error) {
      this.fail(error);
    }
    this.fetching = false;
    if (!this.closing.signal.aborted) this.changed();
  }

  /** @param {number} from */
  async fill(from) {
    const reply = await this.read({ from, count: BLOCK });
    const { lines } = this;
    // The last line may have grown since: what frames told of it is newer.
    const known = Math.max(0, lines.total - from + (lines.has(lines.total) ? 0 : 1));
    lines.put(from, reply.lines.slice(0, known), reply.cut.filter((place) => place < known));
  }

  /** @param {number} first @param {number} last */
  missing(first, last) {
    for (let line = first; line <= last; line += 1) if (!this.lines.has(line)) return line;
    return null;
  }
}
