import { Empty } from "../components/empty.mjs";
import { html } from "../ui.mjs";

export default function Overview() {
  return html`<${Empty} title="This view is being built" />`;
}
