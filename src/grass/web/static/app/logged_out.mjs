// Logging out, and what is shown to a browser without a valid cookie.

import { problemOf, Unreachable } from "./api.mjs";
import { Command } from "./components/command.mjs";
import { complain } from "./components/toast.mjs";
import { endStream } from "./stream.mjs";
import { html } from "./ui.mjs";

/** End the session. The daemon ends the streams of all its tabs, which show it then. */
export async function logOut() {
  try {
    const response = await fetch("/logout", { method: "POST", redirect: "manual" });
    // What goes on to the login is not shown to scripts.
    if (response.type !== "opaqueredirect") throw await problemOf(response);
    endStream();
  } catch (error) {
    complain(error instanceof TypeError ? new Unreachable() : error);
  }
}

export function LoggedOut() {
  return html`
    <main class="logged-out">
      <img src="/icons/grass.svg" alt="" width="48" height="48" />
      <h1>You are logged out</h1>
      <p>This command gives you an address that logs you in:</p>
      <${Command} text="grass web" />
      ${window.location.protocol === "https:" && html`<p class="muted">Or <a href="/login" target="_self">log in with a token</a>.</p>`}
    </main>
  `;
}
