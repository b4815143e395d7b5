// The lines of an output that the page has: some of all, by number, the first is 1.
// It keeps a bounded number of them; the daemon has the rest.

import { CarriedStyles } from "./carried_styles.mjs";

/** More than so many are not kept. */
const KEPT = 20_000;
/** As the daemon cuts lines. */
const LONGEST = 8 * 1024;

export class LineStore {
  constructor() {
    /** @type {Map<number, string>} */
    this.texts = new Map();
    this.styles = new CarriedStyles(this.texts);
    /** @type {Set<number>} lines that were too long */
    this.cut = new Set();
    /** How many lines there are. */
    this.total = 0;
    /** The byte after the last line. */
    this.end = 0;
    /** Whether the last line has no newline yet. */
    this.open = false;
    /** The open line, with what a progress bar has overwritten; null: the daemon told it. */
    this.raw = /** @type {string | null} */ (null);
  }

  /** @param {number} line */
  has(line) {
    return this.texts.has(line);
  }

  /**
   * Put lines where they belong.
   * @param {number} first @param {string[]} lines @param {number[]} [cut] places of long ones
   */
  put(first, lines, cut = []) {
    this.styles.forget();
    lines.forEach((text, place) => this.texts.set(first + place, text));
    for (const place of cut) this.cut.add(first + place);
  }

  /**
   * Put the last lines: nothing comes after them yet.
   * @param {number} first
   * @param {import("../documents.mjs").Lines} reply
   */
  putLast(first, reply) {
    for (let line = first + reply.lines.length; line <= this.total; line += 1) this.texts.delete(line);
    this.put(first, reply.lines, reply.cut);
    this.total = first - 1 + reply.lines.length;
    this.end = reply.end;
    this.open = reply.open;
    this.raw = null;
  }

  /** Add what was written after the last byte. @param {string} text @param {number} end */
  append(text, end) {
    const parts = text.split("\n");
    const last = /** @type {string} */ (parts.pop());
    for (const part of parts) {
      this.write(part);
      this.open = false;
      this.raw = null;
    }
    if (last) this.write(last);
    this.end = end;
  }

  /** Write on in the last line. @param {string} part */
  write(part) {
    if (!this.open) {
      this.total += 1;
      this.open = true;
      this.raw = "";
    }
    // Of a line that the daemon told only what is seen is known: a bar begins anew.
    const isBar = this.raw === null && part.includes("\r");
    const before = this.raw ?? (isBar ? "" : (this.texts.get(this.total) ?? ""));
    const all = before + part;
    const shown = folded(all);
    this.raw = all.endsWith("\r") ? `${shown.slice(0, LONGEST)}\r` : shown.slice(0, LONGEST + 1);
    this.texts.set(this.total, shown.slice(0, LONGEST));
    if (shown.length > LONGEST) this.cut.add(this.total);
  }

  /** Forget lines far from those that are looked at. @param {number} center */
  trim(center) {
    if (this.texts.size <= KEPT * 1.25) return;
    for (const line of this.texts.keys()) {
      if (Math.abs(line - center) <= KEPT / 2) continue;
      this.texts.delete(line);
      this.cut.delete(line);
      this.styles.known.delete(line);
    }
  }
}

/** What a progress bar wrote last; any other line as it is. @param {string} line */
function folded(line) {
  const text = line.replace(/\r+$/, "");
  return text.slice(text.lastIndexOf("\r") + 1);
}
