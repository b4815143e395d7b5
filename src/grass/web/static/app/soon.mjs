// Something that is read anew whenever a frame tells that it changed: one reading at a
// time, at most one a second, and a slow one so many times less often than it takes.

import { useEffect, useRef } from "./ui.mjs";

const PAUSE_MS = 1000;
const SLOWER = 10;

/** @param {() => Promise<void>} read */
export function soon(read) {
  let timer = 0;
  let readyAt = 0;
  let isReading = false;
  let isOld = false;
  let isStopped = false;
  const ask = () => {
    isOld = true;
    if (isReading || isStopped || timer) return;
    timer = setTimeout(() => void run(), Math.max(0, readyAt - performance.now()));
  };
  const run = async () => {
    const begun = performance.now();
    timer = 0;
    isReading = true;
    isOld = false;
    try {
      await read();
    } finally {
      isReading = false;
      readyAt = performance.now() + Math.max(PAUSE_MS, SLOWER * (performance.now() - begun));
      if (isOld) ask();
    }
  };
  const stop = () => {
    isStopped = true;
    clearTimeout(timer);
  };
  return { ask, stop };
}

/** Read soon after `key` changed. @param {string} key @param {() => Promise<void>} reading */
export function useSoon(key, reading) {
  const latest = useRef(reading);
  latest.current = reading;
  const asking = useRef(/** @type {ReturnType<typeof soon> | null} */ (null));
  useEffect(() => {
    const mine = soon(() => latest.current());
    asking.current = mine;
    return mine.stop;
  }, []);
  useEffect(() => asking.current?.ask(), [key]);
}
