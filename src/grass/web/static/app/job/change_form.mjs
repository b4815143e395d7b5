// Change a job that waits, or run an ended one again, with what is to be different.

import { actionOf, perform } from "../actions.mjs";
import { Form } from "../components/form.mjs";
import { ownWords, requestText } from "../job_form.mjs";
import { navigate } from "../router.mjs";
import { html } from "../ui.mjs";
import { commandText } from "../words.mjs";

/** @typedef {import("../documents.mjs").Job} Job */

const WORDS = {
  edit: { title: (/** @type {Job} */ job) => `Edit job ${job.id}`, confirm: "Change" },
  rerun: { title: (/** @type {Job} */ job) => `Run job ${job.id} again`, confirm: "Run again" },
};

/** @param {{job: Job, verb: keyof typeof WORDS, onClose: () => void}} props */
export function ChangeForm({ job, verb, onClose }) {
  const before = commandText({ command: ownWords(job), shell: job.shell });
  const request = requestText(job.request);
  const command = { name: "command", label: "Command", hint: "a line for the shell, where it is changed", code: true, value: before };
  const fields = [
    // A function and its arguments stay as they were enqueued.
    ...(job.task ? [] : [command]),
    { name: "name", label: "Name", hint: "", value: job.name },
    { name: "require", label: "Request", hint: "JSON5, such as {gpu:1}", code: true, value: request },
    { name: "queue", label: "Queue", hint: "", value: job.queue },
    { name: "priority", label: "Priority", hint: "higher first", value: String(job.priority) },
  ];
  const send = async (/** @type {Record<string, string>} */ given) => {
    const changes = {
      ...(!job.task && given.command !== before && { command: given.command }),
      ...(given.name !== job.name && { name: given.name }),
      ...(given.require && given.require !== request && { require: given.require }),
      ...(given.queue !== job.queue && { queue: given.queue }),
      ...(given.priority !== String(job.priority) && { priority: Number(given.priority) }),
    };
    const done = await perform(actionOf(verb), [job], changes);
    navigate(`/jobs/${job.id}`);
    return done;
  };
  const { title, confirm } = WORDS[verb];
  return html`<${Form} title=${title(job)} confirm=${confirm} fields=${fields} send=${send} onClose=${onClose} />`;
}
