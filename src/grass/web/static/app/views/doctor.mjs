// What works on the daemon's machine, and what to do about the rest.

import { Problem, read } from "../api.mjs";
import { Command } from "../components/command.mjs";
import { Icon } from "../components/icon.mjs";
import { Prose } from "../components/prose.mjs";
import { now } from "../state.mjs";
import { html, useEffect, useState } from "../ui.mjs";
import { inLocalTime, plural } from "../words.mjs";

/**
 * @typedef {{check: string, status: "ok" | "note" | "wrong", finding: string, fix: string}} Finding
 * @typedef {{ok: boolean, findings: Finding[]}} Diagnosis
 */

const ICONS = { ok: "check", wrong: "close" };

function useDiagnosis() {
  const [found, setFound] = useState(/** @type {Diagnosis | null} */ (null));
  const [problem, setProblem] = useState("");
  const [round, setRound] = useState(0);
  const [busy, setBusy] = useState(true);
  useEffect(() => {
    const reading = new AbortController();
    setBusy(true);
    read("/doctor", {}, reading.signal)
      .then((told) => { setFound(told); setProblem(""); })
      .catch((error) => {
        if (error instanceof Problem) setProblem(error.message);
        else if (error.name !== "AbortError") setProblem("the daemon does not answer");
      })
      .finally(() => setBusy(false));
    return () => reading.abort();
  }, [round]);
  return { found, problem, busy, again: () => setRound(round + 1) };
}

export default function Doctor() {
  const { found, problem, busy, again } = useDiagnosis();
  return html`
    <div class="doctor">
      <div class="doctor-head">
        <p role="status">${busy ? "Checking…" : found && summary(found)}</p>
        <button type="button" disabled=${busy} onClick=${again}>Check again</button>
      </div>
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${found && html`<ul class="findings card">${found.findings.map((one) => html`<${Line} key=${one.check + one.finding} finding=${one} />`)}</ul>`}
      <p class="muted">The same in a terminal: <code>grass doctor</code></p>
    </div>
  `;
}

/** @param {Diagnosis} found */
function summary(found) {
  const wrong = found.findings.filter((one) => one.status === "wrong").length;
  const notes = found.findings.filter((one) => one.status === "note").length;
  const rest = notes ? `, ${plural(notes, "note")}` : "";
  return `${wrong ? `${plural(wrong, "thing")} wrong` : "Nothing is wrong"}${rest}`;
}

/** @param {{finding: Finding}} props */
function Line({ finding }) {
  const icon = /** @type {Record<string, string>} */ (ICONS)[finding.status] ?? "warning";
  // A command at the end stands below, to be copied.
  const [, before, command] = /^([^`]*)`([^`]+)`$/.exec(finding.fix) ?? [];
  return html`
    <li class=${`finding finding-${finding.status}`}>
      <${Icon} name=${icon} />
      <span class="unseen">${finding.status}</span>
      <span class="finding-check">${finding.check}</span>
      <div>
        <p><${Prose} text=${inLocalTime(finding.finding, now.value)} /></p>
        ${finding.fix && html`<p class="muted"><${Prose} text=${before ?? finding.fix} /></p>`}
        ${command && html`<${Command} text=${command} />`}
      </div>
    </li>
  `;
}
