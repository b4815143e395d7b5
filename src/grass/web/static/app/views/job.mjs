// A job: its log first, then what it used and what it is.

import { Empty } from "../components/empty.mjs";
import { itemsFor, Menu, pressMenu } from "../components/menu.mjs";
import { LogView } from "../components/log_view.mjs";
import { StateMark } from "../components/state_mark.mjs";
import { actionOf, offered } from "../actions.mjs";
import { ChangeForm } from "../job/change_form.mjs";
import { Details, Explain } from "../job/details.mjs";
import { useJob } from "../job/job_document.mjs";
import { UsageCharts } from "../job/usage_charts.mjs";
import { useKeys } from "../keys.mjs";
import { changeQuery, query } from "../router.mjs";
import { now } from "../state.mjs";
import { html, useState } from "../ui.mjs";
import { brief, ending, label, ran, reason, stateOf, units, UNSTARTED } from "../words.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

const TABS = { log: "Log", usage: "Usage", details: "Details" };

/** @param {{params: Record<string, string>}} props */
export default function JobView({ params }) {
  const { job, problem } = useJob(params.id);
  const chosen = query.value.get("tab") ?? "log";
  const [changing, setChanging] = useState(/** @type {"edit" | "rerun" | null} */ (null));
  const show = (/** @type {string} */ tab) => changeQuery({ tab: tab === "log" ? null : tab });
  useKeys({ l: () => show("log"), ".": () => pressMenu(".job-head") });
  if (problem && !job) return html`<${Empty} title="There is no such job" text=${problem.message} link="/jobs" linkText="All jobs" />`;
  if (!job) return html`<p class="muted">Reading job ${params.id}…</p>`;
  return html`
    <div class="job">
      <${Head} job=${job} onChange=${setChanging} />
      ${problem && html`<p class="problem" role="alert">${problem.message}</p>`}
      ${UNSTARTED.includes(job.state) && html`<${Explain} job=${job} />`}
      <div class="tabs" role="tablist" aria-label="about this job">
        ${Object.entries(TABS).map(([id, title]) => html`<button type="button" role="tab" key=${id} aria-selected=${chosen === id}
          onClick=${() => show(id)}>${title}</button>`)}
      </div>
      <div role="tabpanel" aria-label=${TABS[/** @type {keyof typeof TABS} */ (chosen)] ?? "Log"}>
        ${chosen === "usage" ? html`<${UsageCharts} job=${job} />` : chosen === "details" ? html`<${Details} job=${job} />` : html`<${LogView} job=${job} />`}
      </div>
      ${changing && html`<${ChangeForm} job=${job} verb=${changing} onClose=${() => setChanging(null)} />`}
    </div>
  `;
}

/** @param {{job: Job, onChange: (verb: "edit" | "rerun") => void}} props */
function Head({ job, onChange }) {
  const took = ran(job, now.value);
  const told = reason(job, now.value) || ending(job);
  const items = itemsFor("job", [job]);
  if (offered(actionOf("rerun"), job)) items.splice(1, 0, { label: "Rerun with changes", key: "w", run: () => onChange("rerun") });
  if (offered(actionOf("edit"), job)) items.splice(1, 0, { label: "Edit", key: "m", run: () => onChange("edit") });
  return html`
    <header class="job-head">
      <div>
        <h2>${job.name} <span class="muted">${label(job)}</span></h2>
        <p class="job-line">
          <${StateMark} state=${stateOf(job)} />
          <span class="muted">in ${job.queue}${job.worker ? ` on ${job.worker}` : ""}</span>
          ${took !== null && html`<span class="muted">${brief(took)}</span>`}
          ${units(job.allocation) && html`<span class="mono muted">${units(job.allocation)}</span>`}
          ${told && !UNSTARTED.includes(job.state) && html`<span>${told}</span>`}
        </p>
      </div>
      <${Menu} items=${items} label=${`actions on job ${job.id}`}>Actions<//>
    </header>
  `;
}
