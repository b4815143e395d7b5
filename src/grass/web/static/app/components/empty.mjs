// What a place without content says: why, and the next step.

import { Command } from "./command.mjs";
import { html } from "../ui.mjs";

/**
 * @param {{title: string, text?: string, commands?: string[], link?: string,
 *   linkText?: string, children?: any}} props
 */
export function Empty({ title, text, commands = [], link, linkText, children }) {
  return html`
    <div class="empty">
      <p class="empty-title">${title}</p>
      ${text && html`<p class="muted">${text}</p>`}
      ${commands.map((one) => html`<${Command} key=${one} text=${one} />`)}
      ${children} ${link && html`<p><a href=${link}>${linkText}</a></p>`}
    </div>
  `;
}
