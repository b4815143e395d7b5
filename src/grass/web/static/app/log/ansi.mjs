// A line of output as pieces of text: colours become classes, anything else that a
// terminal would obey is left out or shown. Nothing of a line is ever read as HTML.

/** @typedef {{text: string, className: string, color?: string, background?: string}} Piece */

/** A sequence that a terminal obeys: SGR (colours) in the first group; others are dropped. */
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[PX^_][^\x1b]*(?:\x1b\\|$)|\x1b[ -/]*[0-~]?/g;
/** What cannot be seen, or changes the direction of the text around it. */
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
const CUBE = [0, 95, 135, 175, 215, 255];
const FLAGS = /** @type {Record<number, string>} */ ({ 1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "inverse", 9: "struck" });
const ENDS = /** @type {Record<number, string[]>} */ ({ 22: ["bold", "dim"], 23: ["italic"], 24: ["under"], 27: ["inverse"], 29: ["struck"] });

/** The pieces of a line that begins in a style. @param {string} line @param {Style} [before] @returns {Piece[]} */
export function pieces(line, before = new Style()) {
  /** @type {Piece[]} */
  const found = [];
  const style = before.copy();
  let place = 0;
  for (const escape of line.matchAll(ESCAPE)) {
    add(found, line.slice(place, escape.index), style);
    place = escape.index + escape[0].length;
    if (escape[1] !== undefined) style.change(escape[1]);
  }
  add(found, line.slice(place), style);
  return found;
}

/** The text of a line, as it is shown. @param {string} line */
export function plain(line) {
  return pieces(line).map((one) => one.text).join("");
}

/** @param {Piece[]} found @param {string} text @param {Style} style */
function add(found, text, style) {
  if (text) found.push({ text: seen(text), ...style.look() });
}

/** @param {string} text */
function seen(text) {
  return text.replace(UNSEEN, (one) => {
    const code = one.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `⟨${code.toString(16).padStart(4, "0")}⟩`;
  });
}

/** What the sequences so far have asked for. A colour is a number of the 16, or CSS. */
export class Style {
  constructor() {
    this.flags = new Set();
    /** @type {number | string | null} */
    this.front = null;
    /** @type {number | string | null} */
    this.back = null;
  }

  copy() {
    return Object.assign(new Style(), this, { flags: new Set(this.flags) });
  }

  /** The style at the end of a line that begins in this one. @param {string} line */
  after(line) {
    if (!line.includes("\x1b")) return this;
    const style = this.copy();
    for (const escape of line.matchAll(ESCAPE)) if (escape[1] !== undefined) style.change(escape[1]);
    return style;
  }

  look() {
    const names = [...this.flags].map((flag) => `ansi-${flag}`);
    if (typeof this.front === "number") names.push(`ansi-front ansi-${this.front}`);
    else if (this.front) names.push("ansi-exact");
    if (typeof this.back === "number") names.push(`ansi-back ansi-on-${this.back}`);
    else if (this.back) names.push("ansi-exact-back");
    const color = typeof this.front === "string" ? this.front : undefined;
    const background = typeof this.back === "string" ? this.back : undefined;
    return { className: names.join(" "), color, background };
  }

  /** @param {string} parameters of one sequence */
  change(parameters) {
    const codes = parameters.split(/[;:]/).map(Number);
    for (let at = 0; at < codes.length; at += 1) {
      const code = codes[at];
      if (code === 38 || code === 48) {
        const [color, used] = extended(codes.slice(at + 1));
        if (color !== null) this.paint(code === 38, color);
        at += used;
      } else this.apply(code);
    }
  }

  /** @param {boolean} front @param {number | string | null} color */
  paint(front, color) {
    if (front) this.front = color;
    else this.back = color;
  }

  /** @param {number} code */
  apply(code) {
    if (code === 0) {
      this.flags.clear();
      this.front = this.back = null;
    } else if (FLAGS[code]) this.flags.add(FLAGS[code]);
    else if (ENDS[code]) for (const flag of ENDS[code]) this.flags.delete(flag);
    else if (code === 39 || code === 49) this.paint(code === 39, null);
    else if (code >= 30 && code <= 47) this.paint(code < 40, code % 10);
    else if (code >= 90 && code <= 107) this.paint(code < 100, (code % 10) + 8);
  }
}

/** The colour after 38 or 48, and how many numbers tell it.
 * @param {number[]} codes @returns {[number | string | null, number]} */
function extended(codes) {
  const [kind, ...rest] = codes;
  if (kind === 5) return [ofPalette(rest[0]), 2];
  if (kind === 2) return [exact(rest.slice(0, 3)), 4];
  return [null, codes.length];
}

/** @param {number} index */
function ofPalette(index) {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return index;
  if (index >= 232) return exact(Array(3).fill(8 + (index - 232) * 10));
  const cube = index - 16;
  return exact([CUBE[Math.floor(cube / 36)], CUBE[Math.floor(cube / 6) % 6], CUBE[cube % 6]]);
}

/** @param {number[]} parts */
function exact(parts) {
  const isColor = parts.length === 3 && parts.every((one) => one >= 0 && one <= 255);
  return isColor ? `rgb(${parts.join(" ")})` : null;
}
