// A command to type, with a button that copies it.

import { Icon } from "./icon.mjs";
import { say } from "./toast.mjs";
import { html, useState } from "../ui.mjs";

const SAID_MS = 1500;

/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS only loopback has a clipboard: the text can still be selected.
    return false;
  }
}

/** Copy a text, and say whether that worked. @param {string} text */
export async function copyAndSay(text) {
  say((await copy(text)) ? "copied" : "the browser does not let the page copy", text);
}

/** @param {{text: string, about?: string}} props */
export function Command({ text, about }) {
  const [said, setSaid] = useState("");
  const take = async () => {
    setSaid((await copy(text)) ? "copied" : "select and copy it");
    setTimeout(() => setSaid(""), SAID_MS);
  };
  return html`
    <div class="command">
      ${about && html`<span class="command-about">${about}</span>`}
      <code>${text}</code>
      <button type="button" class="quiet" aria-label=${`copy ${text}`} onClick=${take}>
        <${Icon} name=${said === "copied" ? "check" : "copy"} size=${14} />
      </button>
      <span class="unseen" role="status">${said}</span>
    </div>
  `;
}
