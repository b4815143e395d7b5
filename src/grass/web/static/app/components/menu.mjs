// A menu of actions at a button: arrows move, a letter chooses, Escape closes. On a
// phone it is a sheet at the bottom.

import { actionsFor, perform, subject, offered } from "../actions.mjs";
import { ask } from "./dialog.mjs";
import { Icon } from "./icon.mjs";
import { complain, say } from "./toast.mjs";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../ui.mjs";
import { runningOf } from "../words.mjs";

/** The height of the head of the page, under which nothing is seen. */
const HEAD_PX = 48;

/** @typedef {{label: string, key?: string, danger?: boolean, run: () => void}} Item */

/**
 * @param {{items: Item[], label: string, icon?: string, children?: any,
 *   className?: string}} props
 */
export function Menu({ items, label, icon = "more", children, className = "" }) {
  const [open, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLSpanElement | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return undefined;
    const away = (/** @type {Event} */ event) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  if (items.length === 0) return null;
  return html`
    <span class=${`menu ${open ? "open" : ""} ${className}`} ref=${box}>
      <button type="button" class=${children ? "" : "quiet"} ref=${button} aria-haspopup="menu"
        aria-expanded=${open} aria-label=${children ? undefined : label} onClick=${() => setOpen(!open)}>
        ${children ?? html`<${Icon} name=${icon} />`}
      </button>
      ${open && html`<${Items} items=${items} label=${label} close=${close} />`}
    </span>
  `;
}

/** Open the menu in what a selector of CSS names, by a key. @param {string} place */
export function pressMenu(place) {
  const button = document.querySelector(`${place} .menu > button`);
  if (button instanceof HTMLElement) button.click();
}

/** @param {{items: Item[], label: string, close: () => void}} props */
function Items({ items, label, close }) {
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const buttons = () => [...(list.current?.querySelectorAll("button") ?? [])];
  // Before the next key can come.
  useLayoutEffect(() => {
    if (list.current && !fitsBelow(list.current)) list.current.classList.add("menu-above");
    buttons()[0]?.focus();
  }, []);
  const choose = (/** @type {Item} */ item) => {
    close();
    item.run();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const all = buttons();
    const at = all.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
    const to = /** @type {Record<string, number>} */ (moves)[event.key];
    const letter = items.find((one) => one.key === event.key);
    if (to !== undefined) all[(to + all.length) % all.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else if (letter) choose(letter);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <div class="menu-items" role="menu" aria-label=${label} ref=${list} onKeyDown=${onKey}>
      ${items.map(
        (one) => html`
          <button type="button" role="menuitem" tabindex="-1" key=${one.label}
            class=${one.danger ? "danger-text" : ""} onClick=${() => choose(one)}>
            <span>${one.label}</span>${one.key && html`<kbd>${one.key}</kbd>`}
          </button>
        `,
      )}
    </div>
  `;
}

/** Whether there is room below the button, or none above it either. @param {HTMLElement} list */
function fitsBelow(list) {
  const { top, bottom, height } = list.getBoundingClientRect();
  const box = list.closest(".table-wide")?.getBoundingClientRect().bottom ?? Infinity;
  return bottom <= Math.min(window.innerHeight, box) || top - height < 2 * HEAD_PX;
}

/**
 * What is said of things beside how many they are: the name of one, how many jobs run.
 * @param {import("../actions.mjs").Action} action @param {any[]} things
 */
function aboutThem(action, things) {
  if (things.length === 1) return things[0].name ? ` · ${things[0].name}` : "";
  const running = things.filter((thing) => thing.state === "running").length;
  return action.target === "job" ? `, ${runningOf(running, things.length)}` : "";
}

/**
 * Do an action, after a question where it needs one, and say what came of it.
 * @param {import("../actions.mjs").Action} action
 * @param {any[]} things
 * @param {object} [more]
 */
export async function act(action, things, more) {
  const meant = things.filter((thing) => offered(action, thing));
  const about = subject(action, meant);
  if (action.asks) {
    const yes = await ask({
      title: `${action.label}?`,
      text: about + aboutThem(action, meant),
      confirm: `${action.label} ${about}`,
      danger: Boolean(action.danger),
    });
    if (!yes) return false;
  }
  try {
    const { text, warnings } = await perform(action, meant, more);
    say(text, warnings.join("; "));
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

/**
 * The actions that things offer, as items of a menu.
 * @param {import("../actions.mjs").Action["target"]} target
 * @param {any[]} things
 * @returns {Item[]}
 */
export function itemsFor(target, things) {
  return actionsFor(target, things).map((action) => ({
    label: action.label,
    key: action.key,
    danger: action.danger,
    run: () => void act(action, things),
  }));
}
