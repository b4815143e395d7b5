// The window of a log, what stands there while there are no lines, and what is below it.

import { copy } from "../components/command.mjs";
import { Empty } from "../components/empty.mjs";
import { complain, say } from "../components/toast.mjs";
import { html } from "../ui.mjs";
import { plural } from "../words.mjs";
import { plain } from "./ansi.mjs";
import { hashOf, Rows } from "./log_rows.mjs";

/** Of so many lines at most the text is copied. */
const MOST_COPIED = 5000;

/**
 * @typedef {object} BodyProps
 * @property {import("../documents.mjs").Job} job
 * @property {import("./log_source.mjs").LogSource | null} source
 * @property {import("./scrolling.mjs").Scrolled} scrolled
 * @property {ReturnType<typeof import("./log_search.mjs").useSearch>} search
 * @property {import("./log_rows.mjs").Range | null} chosen
 * @property {number} fresh lines that came while the reader was elsewhere
 * @property {boolean} follows
 * @property {(event: KeyboardEvent) => void} onMove
 * @property {(event: MouseEvent, line: number) => void} onChoose
 * @property {(range: import("./log_rows.mjs").Range | null) => void} choose
 */

/** @param {BodyProps} props */
export function LogBody(props) {
  const { job, source, scrolled, search, follows } = props;
  const isShown = source?.state === "shown" && source.lines.total > 0;
  const height = { height: `${scrolled.height}px` };
  const mark = search.found && !search.found.sought.isPattern ? search.found.sought.text : "";
  return html`
    <div class="log-body">
      ${source?.state === "shown" && source.problem && html`<p class="log-notice" role="status">No new lines: ${source.problem}</p>`}
      <div class="log-scroll" ref=${scrolled.box} tabindex="0" role="log" aria-live="off" aria-label=${`output of job ${job.id}`}
        onScroll=${scrolled.onScroll} onKeyDown=${props.onMove}>
        ${isShown ? html`
          <div class="log-height" style=${height}>
            <div class=${`log-window ${scrolled.atEnd && !scrolled.fits ? "log-at-end" : ""}`} style=${{ height: `${scrolled.view}px` }}>
              <div class="log-rows" ref=${scrolled.rows}>
                <${Rows} first=${scrolled.first} last=${scrolled.last} lines=${source.lines} numbered=${source.numbered}
                  chosen=${props.chosen} found=${search.line} text=${mark} onChoose=${props.onChoose} />
              </div>
            </div>
          </div>` : html`<${Nothing} job=${job} source=${source} />`}
      </div>
      ${isShown && !follows && !scrolled.atEnd && html`
        <button type="button" class="chip log-jump" onClick=${scrolled.goToEnd}>
          Jump to newest${props.fresh ? ` (${props.fresh.toLocaleString("en")})` : ""}
        </button>`}
    </div>
    <${Foot} ...${props} isShown=${isShown} />
  `;
}

/** @param {{job: import("../documents.mjs").Job, source: import("./log_source.mjs").LogSource | null}} props */
function Nothing({ job, source }) {
  if (!source || source.state === "loading") return html`<p class="log-loading muted">Reading the output…</p>`;
  const { state, problem } = source;
  if (state === "shown") {
    return source.ended
      ? html`<${Empty} title="It wrote nothing" text="The attempt has ended without output." />`
      : html`<${Empty} title="No output yet" text="Lines show here as the job writes them. Many programs keep theirs back until they have a block: python -u does not." />`;
  }
  if (state === "none" && job.attempts.length === 0) return html`<${Empty} title="No output yet" text="It shows here once the job has started." />`;
  if (state === "none") return html`<${Empty} title="There is no output to show" text=${problem} />`;
  if (state === "unreachable") return html`<${Empty} title="The worker cannot be reached" text=${`${problem}. Its output is on its own disk, and shows once it is back.`} />`;
  if (state === "offline") return html`<${Empty} title="The daemon does not answer" text="The output shows once it does." />`;
  return html`<${Empty} title="The output cannot be read" text=${problem} />`;
}

/** @param {BodyProps & {isShown: boolean}} props */
function Foot({ source, chosen, choose, isShown }) {
  if (!isShown || !source) return null;
  const { lines, numbered, ended } = source;
  return html`
    <div class="log-foot">
      ${chosen ? html`
        <span>${chosen.first === chosen.last ? `Line ${chosen.first}` : `Lines ${chosen.first}–${chosen.last}`}</span>
        <button type="button" onClick=${() => void copyLines(source, chosen)}>Copy text</button>
        <button type="button" onClick=${() => void copyAs(window.location.href.split("#")[0] + hashOf(chosen), "link")}>Copy link</button>
        <button type="button" onClick=${() => choose(null)}>Clear</button>`
      : html`<span>${numbered ? plural(lines.total, "line") : "counting lines…"}</span>`}
      <span class="log-end">${ended ? "ended" : "live"}</span>
    </div>
  `;
}

/** @param {string} text @param {string} what */
async function copyAs(text, what) {
  if (await copy(text)) say(`${what} copied`);
  else complain("the browser does not let this page copy");
}

/** @param {import("./log_source.mjs").LogSource} source @param {import("./log_rows.mjs").Range} range */
async function copyLines(source, { first, last }) {
  const count = Math.min(last - first + 1, MOST_COPIED);
  try {
    const reply = await source.read({ from: first, count });
    await copyAs(reply.lines.map(plain).join("\n"), plural(reply.lines.length, "line"));
  } catch (error) {
    complain(error);
  }
}
