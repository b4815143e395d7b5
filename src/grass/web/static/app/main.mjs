// The page: the shell around the view that the address names.

import { Problem, Unreachable } from "./api.mjs";
import { Empty } from "./components/empty.mjs";
import { matches, path, startRouter } from "./router.mjs";
import { Shell } from "./shell.mjs";
import { LoggedOut } from "./logged_out.mjs";
import { followOverview, readSession } from "./state.mjs";
import { askSession, connection, startStream } from "./stream.mjs";
import { loadStyle } from "./style_sheets.mjs";
import "./theme.mjs";
import { html, render, signal, useEffect } from "./ui.mjs";
import { VIEWS } from "./views.mjs";

/** @type {import("../vendor/signals.mjs").Signal<Record<string, any>>} */
const loaded = signal({});

function current() {
  for (const view of VIEWS) {
    const params = matches(view.path, path.value);
    if (params) return { view, params };
  }
  return null;
}

/** @type {Set<string>} */
const asked = new Set();

/** @param {import("./views.mjs").View} view */
async function load(view) {
  if (asked.has(view.id)) return;
  asked.add(view.id);
  try {
    const [module] = await Promise.all([view.load(), loadStyle(view.id)]);
    loaded.value = { ...loaded.value, [view.id]: module.default };
  } catch {
    // The daemon is gone, or the browser was logged out meanwhile.
    loaded.value = { ...loaded.value, [view.id]: NotLoaded };
    await askSession();
  }
}

function NotLoaded() {
  return html`<${Empty} title="This view could not be loaded">
    <button type="button" onClick=${() => window.location.reload()}>Load the page again</button>
  <//>`;
}

function Page() {
  const found = current();
  const View = found && loaded.value[found.view.id];
  useEffect(() => {
    if (found) load(found.view);
    document.title = found ? `${found.view.title} · grass` : "grass";
  }, [found?.view.id]);
  if (connection.value.state === "logged out") return html`<${LoggedOut} />`;
  return html`
    <${Shell} view=${found?.view}>
      ${!found && html`<${Empty} title="There is no such page" link="/" linkText="Overview" />`}
      ${View && html`<${View} key=${path.value} params=${found.params} />`}
    <//>
  `;
}

async function identify() {
  try {
    await readSession();
  } catch (error) {
    const known = error instanceof Problem || error instanceof Unreachable;
    if (!known) throw error;
    if (error instanceof Unreachable) setTimeout(identify, 2000);
  }
}

const first = current();
if (first) load(first.view);
startRouter();
followOverview();
render(html`<${Page} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
identify();
startStream();
