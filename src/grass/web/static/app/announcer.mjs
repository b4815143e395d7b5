// One polite line for screen readers, which speaks only of jobs that ended.

import { overview } from "./state.mjs";
import { html, useEffect, useRef, useState } from "./ui.mjs";
import { ENDED } from "./words.mjs";

const MOST = 3;

export function Announcer() {
  const [text, setText] = useState("");
  const seen = useRef(/** @type {Map<number, string> | null} */ (null));
  const jobs = overview.value?.jobs;
  useEffect(() => {
    if (!jobs) return;
    const before = seen.current;
    seen.current = new Map(jobs.map((job) => [job.id, job.state]));
    if (!before) return;
    const ended = jobs.filter(
      (job) => ENDED.includes(job.state) && before.has(job.id) && before.get(job.id) !== job.state,
    );
    if (ended.length > MOST) setText(`${ended.length} jobs ended`);
    else if (ended.length) setText(ended.map((job) => `job ${job.id} ${job.name} ${job.state}`).join(", "));
  }, [jobs]);
  return html`<p class="unseen" role="status">${text}</p>`;
}
