// New jobs: one, or many by pasted lines, a CSV or GPUPeasy's form. What would be enqueued is
// shown as the daemon reads it, before anything is; nothing is enqueued unless all of it is
// right.

import { actionOf } from "../actions.mjs";
import { call } from "../api.mjs";
import { copyAndSay } from "../components/command.mjs";
import { Empty } from "../components/empty.mjs";
import { Prose } from "../components/prose.mjs";
import { complain, say } from "../components/toast.mjs";
import { asCommand, checkedRows, EMPTY, enqueueBody, keepDirectory, lastDirectory, newKey, problems } from "../job_form.mjs";
import { formOf, readRows } from "../job_rows.mjs";
import { navigate } from "../router.mjs";
import { may, overview } from "../state.mjs";
import { html, useEffect, useId, useRef, useState } from "../ui.mjs";
import { asked, commandText, plural } from "../words.mjs";

/**
 * @typedef {import("../job_form.mjs").Draft} Draft
 * @typedef {import("../job_rows.mjs").Row} Row
 * @typedef {{count: number, jobs: {name: string, queue: string, command: string[], shell: boolean, request: Record<string, number | string>, cwd: string | null}[], hint: string}} Plan
 */

const CHECK_MS = 350;
const FORMS = { lines: "One command a line", csv: "CSV with a header", gpupeasy: "NAME;;OUTFILE;;COMMAND;;;" };
const EXAMPLE = {
  lines: "python train.py --lr 0.1\npython train.py --lr 0.01",
  csv: "name,command,gpu\nfit-a,python train.py --lr 0.1,0.5",
  gpupeasy: "fit-a;;a.log;;python train.py --lr 0.1;;;\nfit-b;;b.log;;python train.py --lr 0.01;;;",
};

export default function New() {
  const [many, setMany] = useState(false);
  const [draft, setDraft] = useState(/** @returns {Draft} */ () => ({ ...EMPTY, cwd: lastDirectory() }));
  const [command, setCommand] = useState("");
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(/** @type {"" | keyof typeof FORMS} */ (""));
  if (!may("submit")) return html`<${Empty} title="This role may not enqueue jobs" text="Ask for a token of a role that has the right to submit." />`;
  const form = chosen || formOf(text);
  // What only one job can have is not shown for many, and does not count.
  const used = many ? { ...draft, name: "", output: "" } : draft;
  const one = command.trim() ? [{ line: 1, command: command.trim() }] : [];
  const rows = checkedRows(used, many ? readRows(text, form) : one, queuesWithDirectory());
  const set = (/** @type {Partial<Draft>} */ change) => setDraft({ ...draft, ...change });
  return html`
    <div class="new">
      <div class="new-form">
        <div class="tabs" role="tablist" aria-label="how many jobs">
          <button type="button" role="tab" aria-selected=${!many} onClick=${() => setMany(false)}>One job</button>
          <button type="button" role="tab" aria-selected=${many} onClick=${() => setMany(true)}>Many jobs</button>
        </div>
        ${many
          ? html`<${ManyField} text=${text} form=${form} onText=${setText} onForm=${setChosen} />`
          : html`<${Field} label="Command" hint="a line for the shell; {gpu}, {id} and {name} are filled in" wide>
              ${(/** @type {object} */ tied) => html`<textarea ...${tied} class="mono" rows="3" placeholder="python train.py" value=${command}
                onInput=${(/** @type {any} */ event) => setCommand(event.currentTarget.value)} />`}
            <//>`}
        <${Options} draft=${used} set=${set} many=${many} />
      </div>
      <${Preview} draft=${used} rows=${rows} many=${many}
        onDone=${() => { setCommand(""); setText(""); }} />
    </div>
  `;
}

/** The names of queues whose jobs run in a directory of the queue. */
function queuesWithDirectory() {
  const queues = overview.value?.queues ?? [];
  return new Set(queues.filter((one) => Object.values(one.views).some((view) => view.cwd)).map((one) => one.name));
}

/**
 * @param {{label: string, hint?: string, problem?: string, wide?: boolean,
 *   children?: any}} props the child is a function of the attributes that tie it to its label
 */
function Field({ label, hint, problem, wide, children }) {
  const id = useId();
  const note = `${id}-note`;
  return html`
    <div class=${`field ${wide ? "field-wide" : ""}`}>
      <label for=${id}>${label}</label>
      ${children({ id, "aria-describedby": note, "aria-invalid": problem ? "true" : undefined })}
      <span id=${note} class=${problem ? "problem-text" : "muted"}>${problem ?? hint}</span>
    </div>
  `;
}

/** @param {{text: string, form: keyof typeof FORMS, onText: (text: string) => void, onForm: (form: any) => void}} props */
function ManyField({ text, form, onText, onForm }) {
  return html`
    <${Field} label="Jobs" wide>
      ${(/** @type {object} */ tied) => html`<textarea ...${tied} class="mono" rows="9" spellcheck=${false} placeholder=${EXAMPLE[form]} value=${text}
        onInput=${(/** @type {any} */ event) => onText(event.currentTarget.value)} />`}
    <//>
    <${Field} label="Form" hint="found by what the text looks like">
      ${(/** @type {object} */ tied) => html`<select ...${tied} value=${form} onChange=${(/** @type {any} */ event) => onForm(event.currentTarget.value)}>
        ${Object.entries(FORMS).map(([id, about]) => html`<option key=${id} value=${id}>${about}</option>`)}
      </select>`}
    <//>
  `;
}

/** @param {{draft: Draft, set: (change: Partial<Draft>) => void, many: boolean}} props */
function Options({ draft, set, many }) {
  const wrong = problems(draft);
  const queues = overview.value?.queues.map((one) => one.name) ?? ["default"];
  const pools = overview.value?.pools.map((one) => one.name) ?? [];
  const own = Boolean(draft.require.trim());
  const input = (/** @type {keyof Draft} */ name, placeholder = "", disabled = false) => (/** @type {object} */ tied) => html`
    <input ...${tied} type="text" value=${draft[name]} placeholder=${placeholder} disabled=${disabled} autocomplete="off"
      onInput=${(/** @type {any} */ event) => set({ [name]: event.currentTarget.value })} />`;
  return html`
    <fieldset class="fields">
      <legend>Request</legend>
      <${Field} label="GPUs" hint="1, 0.5" problem=${wrong.gpu}>${input("gpu", "", own)}<//>
      <${Field} label="GPU memory" hint="10G, auto" problem=${wrong.vram}>${input("vram", "", own)}<//>
      <${Field} label="Cores" hint="4" problem=${wrong.cpu}>${input("cpu", "", own)}<//>
      <${Field} label="Memory" hint="8G" problem=${wrong.ram}>${input("ram", "", own)}<//>
      <${Field} label="Or all of it" hint="JSON5, in place of the four" wide>${input("require", "{gpu:0.5, vram:'8G', license:1}")}<//>
    </fieldset>
    <fieldset class="fields">
      <legend>Where and when</legend>
      <${Field} label="Queue">
        ${(/** @type {object} */ tied) => html`<select ...${tied} value=${draft.queue || "default"} onChange=${(/** @type {any} */ event) => set({ queue: event.currentTarget.value })}>
          ${queues.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
        </select>`}
      <//>
      <${Field} label="Priority" hint="higher first; 0" problem=${wrong.priority}>${input("priority")}<//>
      <${Field} label="Time limit" hint="90s, 30m, 2h" problem=${wrong.limit}>${input("limit")}<//>
      ${pools.length > 0 && html`<${Field} label="Pool" hint="else where there is room">
        ${(/** @type {object} */ tied) => html`<select ...${tied} value=${draft.pool} onChange=${(/** @type {any} */ event) => set({ pool: event.currentTarget.value })}>
          <option value="">any worker</option>
          ${pools.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
        </select>`}
      <//>`}
      <${Field} label="After" hint="ids of jobs">${input("after")}<//>
    </fieldset>
    <fieldset class="fields">
      <legend>Names and files</legend>
      ${!many && html`<${Field} label="Name" hint="else the script's">${input("name")}<//>`}
      <${Field} label="Project">${input("project", "default")}<//>
      ${!many && html`<${Field} label="Output file" hint="else kept by grass" problem=${wrong.output}>${input("output")}<//>`}
      <${Field} label="Directory" hint="where it runs: a full path, kept for the next time">${input("cwd")}<//>
      <label class="switch"><input type="checkbox" checked=${draft.hold} onChange=${(/** @type {any} */ event) => set({ hold: event.currentTarget.checked })} /> Hold until released</label>
    </fieldset>
  `;
}

/**
 * What the daemon would make of it, asked a moment after the last change.
 * @param {Draft} draft @param {Row[]} rows
 */
function usePlan(draft, rows) {
  const [plan, setPlan] = useState(/** @type {Plan | null} */ (null));
  const [problem, setProblem] = useState(/** @type {Error & {hint?: string} | null} */ (null));
  const body = JSON.stringify(enqueueBody(draft, rows));
  const isReady = rows.length > 0 && !rows.some((row) => row.problem) && Object.keys(problems(draft)).length === 0;
  useEffect(() => {
    setProblem(null);
    if (!isReady) {
      setPlan(null);
      return undefined;
    }
    const asking = new AbortController();
    const [method, path] = actionOf("plan").endpoint.split(" ");
    const timer = setTimeout(() => {
      call(method, path, JSON.parse(body), { signal: asking.signal }).then(setPlan, (error) => {
        if (error.name === "AbortError") return;
        setPlan(null);
        setProblem(error);
      });
    }, CHECK_MS);
    return () => { clearTimeout(timer); asking.abort(); };
  }, [body, isReady]);
  return { plan: isReady ? plan : null, problem };
}

/** @param {{draft: Draft, rows: Row[], many: boolean, onDone: () => void}} props */
function Preview({ draft, rows, many, onDone }) {
  const { plan, problem } = usePlan(draft, rows);
  const [sending, setSending] = useState(false);
  // The same until it was answered: a second press enqueues nothing a second time.
  const key = useRef(newKey());
  const send = async () => {
    const [method, path] = actionOf("enqueue").endpoint.split(" ");
    setSending(true);
    try {
      const done = await call(method, path, enqueueBody(draft, rows, key.current));
      key.current = newKey();
      keepDirectory(draft.cwd);
      const ids = done.first === done.last ? `job ${done.first}` : `jobs ${done.first} to ${done.last}`;
      say(`${ids} enqueued`, done.hint);
      onDone();
      navigate(done.first === done.last ? `/jobs/${done.first}` : "/jobs");
    } catch (error) {
      complain(error);
    } finally {
      setSending(false);
    }
  };
  const broken = rows.filter((row) => row.problem);
  return html`
    <section class="card preview" aria-label="what would be enqueued">
      <h2>${plan ? `${plural(plan.count, "job")} would be enqueued` : "What would be enqueued"}</h2>
      ${rows.length === 0 && html`<p class="muted">Write a command, and see here how it is read before anything runs.</p>`}
      ${broken.length > 0 && html`
        ${many && html`<p class="problem" role="alert">${plural(broken.length, "row")} of ${rows.length} cannot be read; nothing is enqueued until all are right.</p>`}
        ${many
          ? html`<ul class="broken">${broken.slice(0, 20).map((row) => html`<li key=${row.line}><b>Line ${row.line}</b>: <${Prose} text=${row.problem ?? ""} /></li>`)}</ul>`
          : html`<p class="problem" role="alert"><${Prose} text=${broken[0].problem ?? ""} /></p>`}`}
      ${problem && html`<p class="problem" role="alert">${problem.message}${problem.hint && html`<span class="muted">${problem.hint}</span>`}</p>`}
      ${plan && html`<${Planned} plan=${plan} />`}
      <footer class="buttons">
        ${!many && rows.length === 1 && html`<button type="button" onClick=${() => void copyAndSay(asCommand(draft, [rows[0].command]))}>Copy as command line</button>`}
        <button type="button" class="primary" disabled=${!plan || sending} onClick=${send}>
          ${plan && plan.count > 1 ? `Enqueue ${plan.count.toLocaleString("en")} jobs` : "Enqueue"}
        </button>
      </footer>
    </section>
  `;
}

/** @param {{plan: Plan}} props */
function Planned({ plan }) {
  return html`
    <ol class="planned">
      ${plan.jobs.slice(0, 20).map((job, at) => html`
        <li key=${at}>
          <p><b>${job.name}</b> <span class="muted">in ${job.queue}, needs ${asked(job.request) || "nothing"}</span></p>
          <code>${commandText(job)}</code>
        </li>`)}
    </ol>
    ${plan.count > plan.jobs.slice(0, 20).length && html`<p class="muted">… and ${(plan.count - 20).toLocaleString("en")} more</p>`}
    ${plan.hint && html`<p class="muted">${plan.hint}</p>`}
  `;
}
