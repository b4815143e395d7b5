// What is around every view: the navigation, how the page is connected, the counts of
// jobs, the palette and the help.

import { Help } from "./components/help.mjs";
import { Icon } from "./components/icon.mjs";
import { Palette } from "./components/palette.mjs";
import { Questions } from "./components/dialog.mjs";
import { StateShape } from "./components/state_mark.mjs";
import { Toasts } from "./components/toast.mjs";
import { Announcer } from "./announcer.mjs";
import { useKeys } from "./keys.mjs";
import { navigate } from "./router.mjs";
import { counts, heardAt, may, now, overview, session } from "./state.mjs";
import { connection, reconnectNow, streamedVersion, togglePause } from "./stream.mjs";
import { nextTheme, theme } from "./theme.mjs";
import { html, signal, useEffect } from "./ui.mjs";
import { VIEWS } from "./views.mjs";
import { brief, clock, rough } from "./words.mjs";

const shownHelp = signal(false);
const shownPalette = signal(false);
const COUNTED = ["running", "queued", "failed"];
const STALE_MS = 2000;

/** Whether what is shown may be out of date. */
function isStale() {
  const { state, since } = connection.value;
  const lost = state === "offline" || state === "reconnecting";
  // The signal of each second lets this become true.
  return lost && heardAt.value > 0 && now.value > 0 && Date.now() - since > STALE_MS;
}

/** @param {{view?: import("./views.mjs").View, children?: any}} props */
export function Shell({ view, children }) {
  const goes = VIEWS.filter((one) => one.letter).map((one) => [`g ${one.letter}`, () => navigate(one.path)]);
  useKeys({
    ...Object.fromEntries(goes),
    "?": () => { shownHelp.value = true; },
    "Ctrl-k": () => { shownPalette.value = true; },
    n: () => navigate("/new"),
    p: togglePause,
  });
  useEffect(() => {
    document.documentElement.toggleAttribute("data-stale", isStale());
  });
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <div class="shell">
      <${Side} view=${view} />
      <header class="top">
        <a class="brand" href="/"><img src="/icons/grass.svg" alt="" width="20" height="20" />grass</a>
        <h1>${view?.title ?? "Not found"}</h1>
        <${Counts} />
        <button type="button" class="find" onClick=${() => { shownPalette.value = true; }}>
          <${Icon} name="search" size=${14} /><span class="word">Find</span><kbd>Ctrl K</kbd>
        </button>
        <${Badge} />
      </header>
      <main id="main" tabindex="-1">
        <${Notices} />
        ${children}
      </main>
      <${Bottom} view=${view} />
    </div>
    ${shownHelp.value && html`<${Help} onClose=${() => { shownHelp.value = false; }} />`}
    ${shownPalette.value && html`<${Palette} onClose=${() => { shownPalette.value = false; }} />`}
    <${Questions} />
    <${Toasts} />
    <${Announcer} />
  `;
}

/** @param {{view?: import("./views.mjs").View}} props */
function Side({ view }) {
  const who = session.value;
  return html`
    <nav class="side" aria-label="views">
      <a class="brand" href="/"><img src="/icons/grass.svg" alt="" width="24" height="24" />grass</a>
      <ul>
        ${offeredViews().map(
          (one) => html`<li key=${one.id}>
            <a href=${one.path} aria-current=${isCurrent(one, view) ? "page" : undefined}>
              <${Icon} name=${one.icon ?? ""} /><span>${one.title}</span><kbd>g ${one.letter}</kbd>
            </a>
          </li>`,
        )}
      </ul>
      <div class="side-foot">
        ${who && html`<p class="muted host" title=${`${who.actor}, ${who.role}`}>${who.host}<span>${who.role}</span></p>`}
        <div class="side-buttons">
          <${ThemeButton} />
          <button type="button" class="quiet" aria-label="keys and help" onClick=${() => { shownHelp.value = true; }}>
            <${Icon} name="help" />
          </button>
        </div>
      </div>
    </nav>
  `;
}

/** @param {{view?: import("./views.mjs").View}} props */
function Bottom({ view }) {
  return html`
    <nav class="bottom" aria-label="views on a phone">
      ${offeredViews().filter((one) => one.phone).map(
        (one) => html`<a key=${one.id} href=${one.path} aria-current=${isCurrent(one, view) ? "page" : undefined}>
          <${Icon} name=${one.icon ?? ""} size=${20} /><span>${one.title.split(" ")[0]}</span>
        </a>`,
      )}
      <button type="button" onClick=${() => { shownPalette.value = true; }}>
        <${Icon} name="more" size=${20} /><span>More</span>
      </button>
    </nav>
  `;
}

function offeredViews() {
  return VIEWS.filter((one) => one.icon && (one.id !== "new" || !session.value || may("submit")));
}

/** @param {import("./views.mjs").View} one @param {import("./views.mjs").View} [shown] */
function isCurrent(one, shown) {
  return one.id === shown?.id || (shown?.id === "job" && one.id === "jobs");
}

function ThemeButton() {
  return html`<button type="button" class="quiet" aria-label=${`theme: ${theme.value}`} title=${`theme: ${theme.value}`} onClick=${nextTheme}>
    <${Icon} name=${theme.value} />
  </button>`;
}

function Counts() {
  const jobs = /** @type {Record<string, number> | null} */ (counts.value);
  if (!jobs) return html`<div class="counts"></div>`;
  return html`
    <div class="counts" aria-label="jobs" role="group">
      ${COUNTED.map((state) => {
        const count = state === "queued" ? jobs.queued + jobs.waiting : jobs[state];
        return html`<a key=${state} href=${`/jobs?select=state:${state}${state === "queued" ? "+state:waiting" : ""}`} class=${count ? "" : "none"}>
          <${StateShape} state=${state} /><b>${count.toLocaleString("en")}</b> <span class="word">${state}</span>
        </a>`;
      })}
    </div>
  `;
}

/** What the badge says: a word, and what it means in full. */
function badgeText() {
  const { state, since, retryAt, polling } = connection.value;
  void now.value;
  if (state === "live") return { word: "Live", more: polling ? "asked every few seconds" : "updated as it happens" };
  if (state === "paused") return { word: "Paused", more: `since ${clock(since, Date.now())}; press to go on` };
  const wait = retryAt ? Math.max(0, Math.ceil((retryAt - Date.now()) / 1000)) : 0;
  const again = wait ? `again in ${wait} s` : "connecting";
  if (state === "offline") return { word: `Offline since ${clock(since, Date.now())}`, more: again };
  return { word: heardAt.value ? "Reconnecting" : "Connecting", more: again };
}

function Badge() {
  const { state } = connection.value;
  const { word, more } = badgeText();
  const press = state === "offline" || state === "reconnecting" ? reconnectNow : togglePause;
  return html`
    <button type="button" class=${`badge badge-${state}`} title=${more} aria-label=${`${word}: ${more}`} onClick=${press}>
      <span class="dot" aria-hidden="true"></span><span>${word}</span>
    </button>
  `;
}

/** Lines above every view: what holds for all of it. */
function Notices() {
  const daemon = overview.value?.daemon;
  const upgraded = session.value && streamedVersion.value && streamedVersion.value !== session.value.version;
  return html`
    ${isStale() && html`<p class="notice notice-wrong notice-gone" role="status">
      The daemon does not answer. This is how it was ${brief((Date.now() - heardAt.value) / 1000)} ago;
      running jobs run on. <code>grass start</code> brings it back.
    </p>`}
    ${upgraded && html`<p class="notice">grass was upgraded to ${streamedVersion.value}.
      <a href="" target="_self">Load the page again</a></p>`}
    ${daemon?.paused && html`<p class="notice">All queues are paused: nothing starts.</p>`}
    ${daemon?.full && html`<p class="notice notice-wrong">The disk of the daemon is full: nothing is enqueued or started.</p>`}
    ${daemon && skewOf() > 60 && html`<p class="notice">This browser's clock is ${rough(skewOf())} off the daemon's.</p>`}
  `;
}

function skewOf() {
  return Math.abs(now.value - Date.now()) / 1000;
}
