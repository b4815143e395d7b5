// What the list shows and how: groups, columns, saved views, exports.

import { PREFIX, queryText } from "../api.mjs";
import { Dialog } from "../components/dialog.mjs";
import { Icon } from "../components/icon.mjs";
import { Menu } from "../components/menu.mjs";
import { changeQuery, navigate, query } from "../router.mjs";
import { html, useState } from "../ui.mjs";
import { COLUMNS, columnsOf, GROUPS, USUAL } from "./columns.mjs";
import { forgetView, saveView, savedViews } from "./saved_views.mjs";

/**
 * @typedef {{words: string[], order: string, columns: string[], group: string}} View
 * @param {{view: View, params: string[]}} props `params`: names of parameters of jobs
 */
export function ViewTools({ view, params }) {
  const [open, setOpen] = useState(/** @type {"" | "columns" | "save"} */ (""));
  return html`
    <div class="view-tools">
      <label class="group-by">Group
        <select value=${view.group} onChange=${(/** @type {any} */ event) => changeQuery({ group: event.currentTarget.value })}>
          <option value="">no</option>
          ${[...GROUPS, ...params.map((one) => `params.${one}`)].map((one) => html`<option key=${one} value=${one}>by ${one.replace("params.", "")}</option>`)}
        </select>
      </label>
      <button type="button" onClick=${() => setOpen("columns")}><${Icon} name="columns" size=${14} />Columns</button>
      <${Menu} label="views" items=${viewItems(() => setOpen("save"))}><${Icon} name="saved" size=${14} />Views<//>
      <${Menu} label="export" items=${exportItems(view)}><${Icon} name="download" size=${14} />Export<//>
    </div>
    ${open === "columns" && html`<${ColumnsDialog} chosen=${view.columns} params=${params} onClose=${() => setOpen("")} />`}
    ${open === "save" && html`<${SaveDialog} onClose=${() => setOpen("")} />`}
  `;
}

/** @param {() => void} onSave */
function viewItems(onSave) {
  const ready = [
    { label: "All jobs", run: () => navigate("/jobs") },
    { label: "Unfinished", run: () => navigate("/jobs?select=all") },
    { label: "Failed", run: () => navigate("/jobs?select=state:failed&order=-ended") },
  ];
  const own = savedViews.value.map((one) => ({ label: one.name, run: () => navigate(`/jobs?${one.query}`) }));
  return [...ready, ...own, { label: "Save this view…", key: "s", run: onSave }];
}

/** @param {View} view */
function exportItems({ words, order, columns }) {
  const fields = ["id", ...columnsOf(columns).flatMap((one) => (one.field && one.field !== "id" ? [one.field] : []))];
  const run = (/** @type {string} */ format, /** @type {string} */ more) => () => {
    const link = document.createElement("a");
    link.href = `${PREFIX}/jobs/export${queryText({ format, select: words, order, columns: more })}`;
    link.download = `jobs.${format}`;
    link.click();
  };
  return [
    { label: "CSV of these columns", key: "c", run: run("csv", fields.join()) },
    { label: "JSON of these columns", key: "j", run: run("json", fields.join()) },
  ];
}

/** @param {{chosen: string[], params: string[], onClose: () => void}} props */
function ColumnsDialog({ chosen, params, onClose }) {
  const offered = [...COLUMNS.map(({ id, label }) => ({ id, label })), ...params.map((one) => ({ id: `params.${one}`, label: one }))];
  const set = (/** @type {string} */ id, /** @type {boolean} */ on) => {
    const next = on ? [...chosen, id] : chosen.filter((one) => one !== id);
    const ordered = [...offered.map((one) => one.id).filter((one) => next.includes(one)), ...next.filter((one) => !offered.some((each) => each.id === one))];
    changeQuery({ columns: ordered.join() === USUAL.join() ? null : ordered.join() });
  };
  return html`
    <${Dialog} title="Columns" onClose=${onClose}>
      <div class="column-choice">
        ${offered.map(({ id, label }) => html`
          <label class="switch" key=${id}>
            <input type="checkbox" checked=${chosen.includes(id)} disabled=${id === "id"}
              onChange=${(/** @type {any} */ event) => set(id, event.currentTarget.checked)} />
            ${id.startsWith("params.") ? html`<code>${label}</code>` : label}
          </label>`)}
      </div>
      <footer class="buttons">
        <button type="button" onClick=${() => changeQuery({ columns: null })}>The usual ones</button>
        <button type="button" class="primary" onClick=${onClose}>Done</button>
      </footer>
    <//>
  `;
}

/** @param {{onClose: () => void}} props */
function SaveDialog({ onClose }) {
  const [name, setName] = useState("");
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!name.trim()) return;
    saveView(name.trim(), query.value.toString());
    onClose();
  };
  return html`
    <${Dialog} title="Save this view" onClose=${onClose}>
      <p class="muted">Its filter, order, columns and groups, under a name, in this browser. The address alone says the same.</p>
      <form class="save-view" onSubmit=${save}>
        <input type="text" aria-label="name of the view" placeholder="failed last night" value=${name} autofocus
          onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
        <button type="submit" class="primary" disabled=${!name.trim()}>Save</button>
      </form>
      ${savedViews.value.length > 0 && html`<ul class="saved-views">
        ${savedViews.value.map((one) => html`<li key=${one.name}>
          <span class="cut">${one.name}</span>
          <button type="button" class="quiet" aria-label=${`forget the view ${one.name}`} onClick=${() => forgetView(one.name)}>
            <${Icon} name="close" size=${14} />
          </button>
        </li>`)}
      </ul>`}
    <//>
  `;
}
