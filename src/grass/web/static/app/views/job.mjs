import { Empty } from "../components/empty.mjs";
import { html } from "../ui.mjs";

/** @param {{params: Record<string, string>}} props */
export default function Job(props) {
  void props;
  return html`<${Empty} title="This view is being built" />`;
}
