// A dialog over the page. The browser's own `<dialog>` keeps the focus inside, closes on
// Escape and gives the focus back.

import { Icon } from "./icon.mjs";
import { html, signal, useId, useLayoutEffect, useRef } from "../ui.mjs";

/** @param {{title: string, onClose: () => void, children?: any, wide?: boolean}} props */
export function Dialog({ title, onClose, children, wide = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const heading = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    // The browser itself begins with the button that closes it.
    if (!element.current?.querySelector("[autofocus]")) firstField(element.current)?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const onClick = (/** @type {MouseEvent} */ event) => {
    if (event.target === element.current) onClose();
  };
  return html`
    <dialog ref=${element} class=${wide ? "dialog wide" : "dialog"} aria-labelledby=${heading}
      onClose=${onClose} onClick=${onClick}>
      <div class="dialog-body">
        <header>
          <h2 id=${heading}>${title}</h2>
          <button type="button" class="quiet" aria-label="close" onClick=${onClose}>
            <${Icon} name="close" />
          </button>
        </header>
        ${children}
      </div>
    </dialog>
  `;
}

/** The first field that is to be filled in. @param {Element | null} dialog @returns {HTMLElement | null} */
function firstField(dialog) {
  return dialog?.querySelector("input:not([type=checkbox]), textarea, select") ?? null;
}

/**
 * @typedef {{title: string, text: string, confirm: string, danger: boolean,
 *   answer: (yes: boolean) => void}} Question
 */
/** @type {import("../../vendor/signals.mjs").Signal<Question | null>} */
const question = signal(null);

/**
 * Ask before something is done; gives whether the user agreed.
 * @param {Omit<Question, "answer">} asked
 * @returns {Promise<boolean>}
 */
export function ask(asked) {
  return new Promise((resolve) => {
    const answer = (/** @type {boolean} */ yes) => {
      question.value = null;
      resolve(yes);
    };
    question.value = { ...asked, answer };
  });
}

/** The place where questions are asked; the shell has one. A key pressed by mistake changes nothing. */
export function Questions() {
  const asked = question.value;
  if (!asked) return null;
  return html`
    <${Dialog} title=${asked.title} onClose=${() => asked.answer(false)}>
      <p>${asked.text}</p>
      <footer class="buttons">
        <button type="button" autofocus onClick=${() => asked.answer(false)}>Keep</button>
        <button type="button" class=${asked.danger ? "danger" : "primary"}
          onClick=${() => asked.answer(true)}>${asked.confirm}</button>
      </footer>
    <//>
  `;
}
