// Keys. A letter alone works unless something is typed into, a dialog is open, or the
// user has switched such keys off. `g` and a letter goes to a view: what `g` alone does
// waits until no letter follows.

import { signal, useLayoutEffect, useRef } from "./ui.mjs";

const KEPT = "grass.keys";
const CHORD_MS = 1200;
const ALONE_MS = 500;

/** Whether single letters are shortcuts. */
export const lettersOn = signal(localStorage.getItem(KEPT) !== "off");

/** @param {boolean} on */
export function switchLetters(on) {
  lettersOn.value = on;
  localStorage.setItem(KEPT, on ? "on" : "off");
}

/** @typedef {Record<string, (event: KeyboardEvent) => void>} Bindings */

/** What was shown last comes first, so that a table's keys are before the page's.
 * @type {{current: Bindings}[]} */
const bound = [];
let chordUntil = 0;
let alone = 0;

/** @param {KeyboardEvent} event */
function nameOf(event) {
  if (event.ctrlKey || event.metaKey) return `Ctrl-${event.key}`;
  const chord = Date.now() < chordUntil && event.key.length === 1 ? "g " : "";
  return chord + event.key;
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, textarea, select");
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const name = nameOf(event);
  const isControl = name.startsWith("Ctrl-");
  if (!isControl && (isTyping(event.target) || document.querySelector("dialog[open]"))) return;
  if (!isControl && event.key.length === 1 && event.key !== "?" && !lettersOn.value) return;
  // Enter and space belong to the button or link that has the focus.
  const onControl = event.target instanceof HTMLElement && event.target.closest("a, button, summary");
  if (onControl && (event.key === "Enter" || event.key === " ")) return;
  clearTimeout(alone);
  chordUntil = name === "g" ? Date.now() + CHORD_MS : 0;
  const found = bound.findLast((one) => one.current[name]);
  if (!found) return;
  event.preventDefault();
  if (name === "g") alone = setTimeout(() => playAlone(found, event), ALONE_MS);
  else found.current[name](event);
}

/** No letter has followed. @param {{current: Bindings}} found @param {KeyboardEvent} event */
function playAlone(found, event) {
  chordUntil = 0;
  found.current[event.key]?.(event);
}

document.addEventListener("keydown", onKey);

/**
 * Bind keys while a component is shown: `{"/": focusFilter, "g j": goToJobs}`.
 * @param {Bindings} bindings
 */
export function useKeys(bindings) {
  const own = useRef(bindings);
  own.current = bindings;
  useLayoutEffect(() => {
    bound.push(own);
    return () => {
      bound.splice(bound.indexOf(own), 1);
      own.current = {};
    };
  }, []);
}
