// What every component is made with: templates, hooks and signals, by one import.

import { h, render } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";

/** A template: html`<p class=${name}>${text}</p>`. What is put in is always text. */
export const html = htm.bind(h);
export { h, render };
export {
  useCallback,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/hooks.mjs";
export {
  batch,
  computed,
  effect,
  signal,
  useComputed,
  useSignal,
} from "../vendor/signals.mjs";
