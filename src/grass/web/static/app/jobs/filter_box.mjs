// The filter: words of the command line, with suggestions for the one that is typed.

import { useKeys } from "../keys.mjs";
import { Icon } from "../components/icon.mjs";
import { html, useEffect, useId, useRef, useState } from "../ui.mjs";
import { completed, isWhole, suggestions, wordsOf } from "./filter_words.mjs";

// Only whole words are looked up, so little is asked for in vain.
const TYPED_MS = 60;

/**
 * @param {{words: string[], known: import("./filter_words.mjs").Known,
 *   onWords: (words: string[]) => void}} props
 */
export function FilterBox({ words, known, onWords }) {
  const [typed, setTyped] = useState(words.join(" "));
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const list = useId();
  const wanted = words.join(" ");
  useEffect(() => {
    if (wordsOf(typed).join(" ") !== wanted) setTyped(wanted);
  }, [wanted]);
  useEffect(() => {
    const ready = wordsOf(typed);
    if (ready.join(" ") === wanted || !ready.every(isWhole)) return undefined;
    const later = setTimeout(() => onWords(ready), TYPED_MS);
    return () => clearTimeout(later);
  }, [typed]);
  useKeys({ "/": () => input.current?.focus() });
  const offers = isOpen ? suggestions(typed, known) : [];
  const change = (/** @type {string} */ text) => {
    setTyped(text);
    setAt(-1);
    setOpen(true);
  };
  const take = (/** @type {string} */ word) => {
    change(completed(typed, word));
    input.current?.focus();
  };
  const finish = () => {
    setOpen(false);
    onWords(wordsOf(typed));
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown") {
      setOpen(true);
      setAt(Math.min(offers.length - 1, at + 1));
    } else if (event.key === "ArrowUp") setAt(Math.max(-1, at - 1));
    else if (event.key === "Enter" && offers[at]) take(offers[at].word);
    else if (event.key === "Enter") finish();
    else if (event.key === "Escape" && isOpen) setOpen(false);
    else if (event.key === "Escape") input.current?.blur();
    else return;
    event.preventDefault();
  };
  return html`
    <div class="filter" role="search">
      <${Icon} name="search" size=${14} />
      <input ref=${input} type="text" role="combobox" aria-label="filter jobs" aria-expanded=${offers.length > 0}
        aria-controls=${list} aria-autocomplete="list" aria-activedescendant=${offers[at] ? `${list}-${at}` : undefined}
        placeholder="state:failed  queue:q1  @project  name~re  3-9" autocomplete="off" spellcheck=${false} value=${typed}
        onInput=${(/** @type {any} */ event) => change(event.currentTarget.value)} onFocus=${() => setOpen(true)}
        onBlur=${finish} onKeyDown=${onKey} />
      ${typed
        ? html`<button type="button" class="quiet" aria-label="clear the filter" onClick=${() => { setTyped(""); onWords([]); }}>
            <${Icon} name="close" size=${14} />
          </button>`
        : html`<kbd>/</kbd>`}
      <ul class="suggestions" role="listbox" id=${list} aria-label="words for the filter" hidden=${offers.length === 0}>
        ${offers.map((one, place) => html`
          <li role="option" id=${`${list}-${place}`} key=${one.word} aria-selected=${place === at}
            onPointerDown=${(/** @type {Event} */ event) => { event.preventDefault(); take(one.word); }}>
            <code>${one.word}</code><span class="muted">${one.about}</span>
          </li>`)}
      </ul>
    </div>
  `;
}
