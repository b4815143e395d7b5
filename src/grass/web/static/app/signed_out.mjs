// Signing out, and what is shown to a browser without a valid cookie.

import { Command } from "./components/command.mjs";
import { html } from "./ui.mjs";

/** End the session. The daemon ends the streams of all its tabs, which show it then. */
export function signOut() {
  return fetch("/logout", { method: "POST", redirect: "manual" });
}

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
