// What is shown to a browser without a valid cookie.

import { Command } from "./components/command.mjs";
import { html } from "./ui.mjs";

export function SignedOut() {
  return html`
    <main class="signed-out">
      <img src="/icons/grass.svg" alt="" width="48" height="48" />
      <h1>You are signed out</h1>
      <p>This command gives you an address that signs you in:</p>
      <${Command} text="grass web" />
      <p class="muted">Or <a href="/login" target="_self">sign in with a token</a>.</p>
    </main>
  `;
}
