// A job: what it writes.

import { Problem, read } from "../api.mjs";
import { Empty } from "../components/empty.mjs";
import { LogView } from "../components/log_view.mjs";
import { html, useEffect, useState } from "../ui.mjs";

/** @param {{params: Record<string, string>}} props */
export default function Job({ params }) {
  const [job, setJob] = useState(/** @type {import("../documents.mjs").Job | null} */ (null));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    read(`/jobs/${params.id}`).then(setJob, (error) => error instanceof Problem && setProblem(error.message));
  }, [params.id]);
  if (problem) return html`<${Empty} title="There is no such job" text=${problem} link="/jobs" linkText="Jobs" />`;
  return job && html`<${LogView} job=${job} />`;
}
