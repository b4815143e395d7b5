// What can be done to the jobs that are selected: some rows, or all that a filter means,
// also those that are not on the page.

import { ACTIONS, actionsFor, offered } from "../actions.mjs";
import { call } from "../api.mjs";
import { ask } from "../components/dialog.mjs";
import { Icon } from "../components/icon.mjs";
import { act, Menu } from "../components/menu.mjs";
import { complain, say } from "../components/toast.mjs";
import { session } from "../state.mjs";
import { html } from "../ui.mjs";
import { plural, runningOf } from "../words.mjs";
import { rangesOf } from "./filter_words.mjs";

/**
 * @typedef {import("../documents.mjs").Job} Job
 * @typedef {import("../actions.mjs").Action} Action
 * @typedef {{label: string, danger?: boolean, key?: string, run: () => void}} Item
 */

const SHOWN = 3;

/**
 * @param {{jobs: Job[], total: number, totals: Record<string, number>, words: string[],
 *   isAll: boolean, onAll: () => void, onClear: () => void}} props
 */
export function BulkBar({ jobs, total, totals, words, isAll, onAll, onClear }) {
  if (jobs.length === 0) return null;
  const items = isAll ? matchingItems(words, totals) : chosenItems(jobs);
  return html`
    <div class="bulk" role="toolbar" aria-label="selected jobs">
      <span class="bulk-count"><b>${(isAll ? total : jobs.length).toLocaleString("en")}</b> selected</span>
      ${!isAll && total > jobs.length && html`<button type="button" class="link" onClick=${onAll}>
        Select all ${total.toLocaleString("en")} matching</button>`}
      <span class="bulk-verbs">
        ${items.slice(0, SHOWN).map((one) => html`<button type="button" key=${one.label} class=${one.danger ? "danger-text" : ""} onClick=${one.run}>${one.label}</button>`)}
      </span>
      <${Menu} label="more actions on the selected jobs" items=${items.slice(SHOWN)} />
      <button type="button" class="quiet" aria-label="clear the selection" onClick=${onClear}><${Icon} name="close" size=${14} /></button>
    </div>
  `;
}

/** @param {Job[]} jobs @returns {Item[]} */
function chosenItems(jobs) {
  return actionsFor("job", jobs).map((action) => ({
    label: action.label,
    key: action.key,
    danger: action.danger,
    run: () => void act({ ...action, asks: action.asks || jobs.length > 1 }, jobs),
  }));
}

/**
 * The states of jobs that an action is for.
 * @param {Action} action @param {Record<string, number>} totals
 */
function statesFor(action, totals) {
  const owner = session.value?.actor;
  return Object.keys(totals).filter((state) => [[], ["suspended"]].some((flags) => offered(action, { state, flags, owner })));
}

/** @param {string[]} words @param {Record<string, number>} totals @returns {Item[]} */
function matchingItems(words, totals) {
  const all = Object.keys(totals).filter((state) => totals[state]);
  return ACTIONS.filter((one) => one.target === "job" && !one.form).flatMap((action) => {
    const states = statesFor(action, totals).filter((state) => totals[state]);
    // An edit is refused as a whole if one of the jobs has started.
    if (!states.length || (action.command === "edit" && states.length < all.length)) return [];
    const run = () => void actOnMatching(action, words, states);
    return [{ label: action.label, key: action.key, danger: action.danger, run }];
  });
}

/**
 * Do an action to exactly the jobs that were counted, whatever the words mean by then.
 * @param {Action} action @param {string[]} words @param {string[]} states
 */
async function actOnMatching(action, words, states) {
  try {
    const { jobs, count, running } = await call("POST", "/jobs/select", { select: words, states });
    // The states do not tell which of the jobs are one's own.
    const about = `${session.value?.rights.includes(action.right) ? "" : "up to "}${plural(count, "job")}`;
    if (!count) return void say(`nothing to ${action.command}`);
    const yes = await ask({
      title: `${action.label}?`,
      text: `${about}, ${runningOf(running, count)}. All that match ${words.join(" ")} count, also those that are not on this page.`,
      confirm: `${action.label} ${about}`,
      danger: Boolean(action.danger),
    });
    if (!yes) return;
    const [method, path] = action.endpoint.split(" ");
    const reply = await call(method, path, { ...action.body([]), select: rangesOf(jobs) });
    const [first = ""] = reply.warnings ?? [];
    say(`${plural(reply.jobs?.length ?? count, "job")} ${action.past}`, first);
  } catch (error) {
    complain(error);
  }
}
