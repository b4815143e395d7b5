// Run an ended job again, with what is to be different.

import { actionOf, perform } from "../actions.mjs";
import { ownWords } from "../job_form.mjs";
import { navigate } from "../router.mjs";
import { html } from "../ui.mjs";
import { asked, commandText } from "../words.mjs";
import { Form } from "../views/queues.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

/** @param {{job: Job, onClose: () => void}} props */
export function RerunForm({ job, onClose }) {
  const before = commandText({ command: ownWords(job), shell: job.shell });
  const fields = [
    { name: "command", label: "Command", hint: "a line for the shell, where it is changed", code: true, value: before },
    { name: "name", label: "Name", hint: "", value: job.name },
    { name: "require", label: "Needs", hint: `JSON5, such as {gpu:1}; empty: as before (${asked(job.request) || "nothing"})`, code: true },
    { name: "priority", label: "Priority", hint: "higher first", value: String(job.priority) },
  ];
  const send = async (/** @type {Record<string, string>} */ given) => {
    const changes = {
      ...(given.command !== before && { command: given.command }),
      ...(given.name !== job.name && { name: given.name }),
      ...(given.require && { require: given.require }),
      ...(given.priority !== String(job.priority) && { priority: Number(given.priority) }),
    };
    const done = await perform(actionOf("rerun"), [job], changes);
    navigate(`/jobs/${job.id}`);
    return done;
  };
  return html`<${Form} title=${`Run job ${job.id} again`} confirm="Run again" fields=${fields} send=${send} onClose=${onClose} />`;
}
