// A dialog with a few fields.

import { Dialog } from "./dialog.mjs";
import { complain, say } from "./toast.mjs";
import { html, useId, useState } from "../ui.mjs";

/**
 * What the daemon refuses is said inside it.
 * @typedef {{name: string, label: string, hint: string, number?: boolean, code?: boolean, value?: any}} Field
 * @param {{title: string, confirm: string, fields: Field[], onClose: () => void,
 *   send: (given: Record<string, string>) => Promise<{text: string}>}} props
 */
export function Form({ title, confirm, fields, send, onClose }) {
  const [problem, setProblem] = useState("");
  const id = useId();
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const given = Object.fromEntries(fields.map((one) => [one.name, String(data.get(one.name) ?? "").trim()]));
    try {
      const { text } = await send(given);
      say(text);
      onClose();
    } catch (error) {
      if (!(error instanceof Error)) complain(error);
      else setProblem([error.message, "hint" in error ? error.hint : ""].filter(Boolean).join(": "));
    }
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <form class="form" onSubmit=${submit}>
        ${fields.map((one) => html`
          <div class="form-field" key=${one.name}>
            <label for=${id + one.name}>${one.label}</label>
            <input id=${id + one.name} name=${one.name} type="text" inputmode=${one.number ? "numeric" : undefined} pattern=${one.number ? "[0-9]*" : undefined}
              class=${one.code ? "mono" : ""} autocomplete="off" defaultValue=${one.value ?? ""} aria-describedby=${`${id}${one.name}-hint`} />
            <span class="muted" id=${`${id}${one.name}-hint`}>${one.hint}</span>
          </div>
        `)}
        ${problem && html`<p class="problem" role="alert">${problem}</p>`}
        <footer class="buttons">
          <button type="button" onClick=${onClose}>Close</button>
          <button type="submit" class="primary">${confirm}</button>
        </footer>
      </form>
    <//>
  `;
}
