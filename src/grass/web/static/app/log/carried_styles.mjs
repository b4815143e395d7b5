// Colours that a line leaves open go on in the next one, as on a terminal. They are known
// as far back as lines are there: after a jump into the middle a line begins plain.

import { Style } from "./ansi.mjs";

export class CarriedStyles {
  /** @param {Map<number, string>} texts lines by their numbers */
  constructor(texts) {
    this.texts = texts;
    /** @type {Map<number, Style>} by line: the style where it begins */
    this.known = new Map();
  }

  /** Lines have come before others that were there. */
  forget() {
    this.known.clear();
  }

  /** The style where a line begins; not to be changed. @param {number} line */
  before(line) {
    let from = line;
    while (!this.known.has(from) && this.texts.has(from - 1)) from -= 1;
    let style = this.known.get(from) ?? new Style();
    for (let at = from; at < line; at += 1) {
      style = style.after(this.texts.get(at) ?? "");
      this.known.set(at + 1, style);
    }
    return style;
  }
}
