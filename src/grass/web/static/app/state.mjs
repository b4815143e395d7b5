// What the whole page knows: who looks, the overview, the devices, and the time.

import { daemonNow, Problem, read } from "./api.mjs";
import { follow } from "./stream.mjs";
import { computed, signal, useEffect } from "./ui.mjs";

/** @typedef {import("./documents.mjs").Session} Session */

/** @type {import("../vendor/signals.mjs").Signal<Session | null>} */
export const session = signal(null);
/** @type {import("../vendor/signals.mjs").Signal<import("./documents.mjs").Overview | null>} */
export const overview = signal(null);
/** @type {import("../vendor/signals.mjs").Signal<import("./documents.mjs").Devices | null>} */
export const devices = signal(null);
/** When the daemon was last heard of, on the browser's clock. */
export const heardAt = signal(0);
/** The daemon's time, once a second: ages on the page are counted from it. */
export const now = signal(daemonNow());

export const counts = computed(() => overview.value?.daemon.jobs ?? null);

setInterval(() => {
  if (!document.hidden) now.value = daemonNow();
}, 1000);

/** Ask who this page's user is, and what they may do. */
export async function readSession() {
  session.value = await read("/session");
}

/** @param {string} right */
export function may(right) {
  return session.value?.rights.some((one) => one === right) ?? false;
}

/**
 * Keep a signal at a topic's newest document.
 * @param {string} topic
 * @param {string} path what is read anew
 * @param {{value: any}} target
 * @param {Record<string, unknown>} [query]
 */
function keep(topic, path, target, query) {
  const take = (/** @type {any} */ document) => {
    target.value = document;
    heardAt.value = Date.now();
  };
  let asked = 0;
  const resync = async () => {
    const mine = ++asked;
    try {
      const document = await read(path, query);
      if (mine === asked) take(document);
    } catch (error) {
      // The stream itself tells that the daemon is gone.
      if (error instanceof Problem) console.warn(`${path}: ${error.message}`);
    }
  };
  const data = (/** @type {any} */ document) => {
    asked += 1;
    take(document);
  };
  return follow(topic, { data, resync });
}

/** Follow the overview, which the shell's counts are from. */
export function followOverview() {
  return keep("overview", "/overview", overview);
}

/** Follow the devices while a component is shown. */
export function useDevices() {
  useEffect(() => keep("devices", "/devices", devices), []);
  return devices.value;
}

/**
 * Read something now, and again when `again` changes; keeps the last answer.
 * @template T
 * @param {() => Promise<T>} reader
 * @param {(value: T) => void} take
 * @param {unknown[]} again
 */
export function useReading(reader, take, again) {
  useEffect(() => {
    let current = true;
    reader().then(
      (value) => current && take(value),
      () => {},
    );
    return () => {
      current = false;
    };
  }, again);
}
