// Ctrl-K: go to a view or a job, or do something, by typing a few letters of it.

import { actionsFor } from "../actions.mjs";
import { read } from "../api.mjs";
import { act } from "./menu.mjs";
import { Dialog } from "./dialog.mjs";
import { StateMark } from "./state_mark.mjs";
import { navigate } from "../router.mjs";
import { overview } from "../state.mjs";
import { logOut } from "../logged_out.mjs";
import { nextTheme } from "../theme.mjs";
import { html, useEffect, useId, useState } from "../ui.mjs";
import { VIEWS } from "../views.mjs";
import { label, stateOf } from "../words.mjs";

const MOST = 12;
const TYPED_MS = 300;
/** A shorter text is in too many names. */
const SHORTEST = 2;
/** @typedef {{key: string, text: string, kind: string, state?: string, run: () => void}} Offer */

/** @returns {Offer[]} */
function offers() {
  const views = VIEWS.filter((one) => one.icon).map((one) => ({
    key: one.path,
    text: one.title,
    kind: "view",
    run: () => navigate(one.path),
  }));
  const daemon = overview.value?.daemon;
  const queues = overview.value?.queues ?? [];
  const actions = [...(daemon ? actionOffers("daemon", daemon, "") : []),
    ...queues.flatMap((queue) => actionOffers("queue", queue, ` queue ${queue.name}`))];
  const own = [
    { key: "theme", text: "Change the theme", kind: "action", run: nextTheme },
    { key: "log out", text: "Log out of this page", kind: "action", run: logOut },
  ];
  return [...views, ...(overview.value?.jobs ?? []).map(jobOffer), ...actions, ...own];
}

/** @param {import("../actions.mjs").Action["target"]} target @param {any} thing @param {string} name
 * @returns {Offer[]} */
function actionOffers(target, thing, name) {
  return actionsFor(target, [thing]).map((one) => ({
    key: one.id + name,
    text: one.label + name,
    kind: "action",
    run: () => void act(one, [thing]),
  }));
}

/** @param {import("../documents.mjs").Job} job @returns {Offer} */
function jobOffer(job) {
  const run = () => navigate(`/jobs/${job.id}`);
  return { key: `job ${job.id}`, text: `${label(job)} ${job.name}`, kind: "job", state: stateOf(job), run };
}

/** @param {string} text @param {AbortSignal} signal */
async function findJobs(text, signal) {
  const number = /^\d+$/.test(text);
  try {
    if (number) return [jobOffer(await read(`/jobs/${text}`, {}, signal))];
    if (text.length < SHORTEST) return [];
    const found = await read("/jobs", { select: `name~${text.replace(/[^\w-]/g, ".")}`, limit: MOST }, signal);
    return found.jobs.map(jobOffer);
  } catch {
    return [];
  }
}

/** @param {Offer} offer @param {string} typed */
function fits(offer, typed) {
  const text = offer.text.toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** @param {{onClose: () => void}} props */
export function Palette({ onClose }) {
  const [typed, setTyped] = useState("");
  const [found, setFound] = useState(/** @type {Offer[]} */ ([]));
  const [at, setAt] = useState(0);
  const list = useId();
  useEffect(() => {
    setAt(0);
    setFound([]);
    if (!typed.trim()) return undefined;
    const finding = new AbortController();
    const later = setTimeout(async () => {
      const jobs = await findJobs(typed.trim(), finding.signal);
      if (!finding.signal.aborted) setFound(jobs);
    }, TYPED_MS);
    return () => {
      finding.abort();
      clearTimeout(later);
    };
  }, [typed]);
  const near = offers().filter((one) => fits(one, typed));
  const known = new Set(near.map((one) => one.key));
  const shown = [...near, ...found.filter((one) => !known.has(one.key))].slice(0, MOST);
  const choose = (/** @type {Offer | undefined} */ offer) => {
    if (!offer) return;
    onClose();
    offer.run();
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown") setAt(Math.min(shown.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") choose(shown[at]);
    else return;
    event.preventDefault();
  };
  return html`
    <${Dialog} title="Go to" onClose=${onClose}>
      <input class="palette-input" type="text" role="combobox" aria-expanded="true" aria-controls=${list}
        aria-activedescendant=${shown[at] ? `${list}-${at}` : undefined} aria-label="find a job, a view or an action"
        placeholder="A job, a view or an action" autocomplete="off" spellcheck=${false} autofocus value=${typed}
        onInput=${(/** @type {InputEvent} */ event) => setTyped(/** @type {HTMLInputElement} */ (event.target).value)} onKeyDown=${onKey} />
      <div class="palette-list" role="listbox" id=${list} aria-label="results">
        ${shown.map(
          (one, place) => html`<div role="option" id=${`${list}-${place}`} key=${one.key} aria-selected=${place === at}
            onClick=${() => choose(one)} onPointerMove=${() => setAt(place)}>
            ${one.state && html`<${StateMark} state=${one.state} words=${false} />`}
            <span>${one.text}</span><span class="muted">${one.kind}</span>
          </div>`,
        )}
        ${shown.length === 0 && html`<p class="muted">Nothing fits.</p>`}
      </div>
    <//>
  `;
}
