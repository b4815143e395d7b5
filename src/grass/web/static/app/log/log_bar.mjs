// What is above a log: which attempt and stream, the search, and how it is shown.

import { Icon } from "../components/icon.mjs";
import { html, useState } from "../ui.mjs";
import { countText } from "./log_search.mjs";

/**
 * @param {{job: import("../documents.mjs").Job, attempt: number | null, latest: number | null,
 *   stream: string, search: ReturnType<typeof import("./log_search.mjs").useSearch>, field: any,
 *   follows: boolean, wraps: boolean, raw: string, isShown: boolean,
 *   onAttempt: (attempt: number) => void, onStream: (stream: string) => void,
 *   onFollow: () => void, onWrap: () => void}} props
 */
export function LogBar(props) {
  const { job, attempt, latest, stream, follows, wraps } = props;
  const one = job.attempts.find((each) => each.number === attempt);
  const name = `job-${job.id}${attempt && latest && latest > 1 ? `-${attempt}` : ""}${stream === "stderr" ? "-stderr" : ""}.log`;
  return html`
    <div class="log-bar">
      ${latest !== null && latest > 1 && html`<${Attempts} ...${props} />`}
      ${one?.stderr && html`
        <div class="log-streams" role="group" aria-label="stream">
          ${[["output", "stdout"], ["stderr", "stderr"]].map(([id, label]) => html`
            <button type="button" key=${id} aria-pressed=${stream === id} onClick=${() => props.onStream(id)}>${label}</button>`)}
        </div>`}
      <${Search} search=${props.search} field=${props.field} />
      <div class="log-tools">
        <button type="button" class="quiet log-tool" disabled=${!props.isShown} title="Go to the first traceback"
          onClick=${() => void props.search.firstTraceback()}><${Icon} name="warning" /><span>First traceback</span></button>
        <${Switch} icon="follow" label="Follow" letter="f" on=${follows} onClick=${props.onFollow} />
        <${Switch} icon="wrap" label="Wrap" letter="w" on=${wraps} onClick=${props.onWrap} />
        <a class="log-tool" href=${props.raw} download=${name} title="Download all of it"><${Icon} name="download" /><span>Download</span></a>
      </div>
    </div>
  `;
}

/** @param {Parameters<typeof LogBar>[0]} props */
function Attempts({ job, attempt, latest, onAttempt }) {
  const numbers = new Set([...job.attempts.map((one) => one.number), latest ?? 1]);
  const onChange = (/** @type {Event} */ event) => onAttempt(Number(/** @type {HTMLSelectElement} */ (event.target).value));
  return html`
    <select aria-label="attempt" value=${String(attempt)} onChange=${onChange}>
      ${[...numbers].sort((one, other) => other - one).map((number) => html`
        <option key=${number} value=${String(number)} selected=${number === attempt}>attempt ${number}${number === latest ? " (last)" : ""}</option>`)}
    </select>
  `;
}

/** @param {{icon: string, label: string, letter: string, on: boolean, onClick: () => void}} props */
function Switch({ icon, label, letter, on, onClick }) {
  return html`<button type="button" class="quiet log-tool" aria-pressed=${on} title=${`${label} (${letter})`} onClick=${onClick}>
    <${Icon} name=${icon} /><span>${label}</span>
  </button>`;
}

/** @param {{search: ReturnType<typeof import("./log_search.mjs").useSearch>, field: any}} props */
function Search({ search, field }) {
  const [isPattern, setPattern] = useState(false);
  const { found } = search;
  const hasNone = !found || (found.complete && !found.count);
  const go = (/** @type {boolean} */ pattern, /** @type {1 | -1} */ way) => {
    const text = field.current?.value ?? "";
    const isSame = found !== null && found.sought.text === text && found.sought.isPattern === pattern;
    if (isSame) void search.step(way);
    else void search.begin({ text, isPattern: pattern });
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(isPattern, event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      search.clear();
      field.current?.blur();
    }
  };
  const onPattern = () => {
    setPattern(!isPattern);
    if (found) go(!isPattern, 1);
  };
  return html`
    <form class="log-search" role="search" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <input type="search" ref=${field} placeholder="Search all lines" aria-label="search the output" enterkeyhint="search"
        autocomplete="off" spellcheck=${false} onKeyDown=${onKey}
        onInput=${(/** @type {Event} */ event) => !(/** @type {HTMLInputElement} */ (event.target).value) && search.clear()} />
      <button type="button" class="quiet mono" aria-pressed=${isPattern} aria-label="search for a pattern"
        title="A regular expression (RE2)" onClick=${onPattern}>.*</button>
      <span class="log-count" role="status">${search.says || (found ? countText(found, search.line) : "")}</span>
      <button type="button" class="quiet" aria-label="previous match" title="Previous (N)" disabled=${hasNone} onClick=${() => void search.step(-1)}><${Icon} name="up" /></button>
      <button type="button" class="quiet" aria-label="next match" title="Next (n)" disabled=${hasNone} onClick=${() => void search.step(1)}><${Icon} name="down" /></button>
    </form>
  `;
}
