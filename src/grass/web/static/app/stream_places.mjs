// Who of a browser's tabs may have a stream. A browser has six connections to a host
// for all of its tabs, and a stream takes one for as long as it is open: with six of
// them no call would go through, and no other tab would load.

const MOST_STREAMS = 4;

/** What gives this tab's place back; null: it has none.
 * @type {Promise<(() => void) | null> | null} */
let place = null;

/** Take a place among the tabs that have a stream; returns whether this tab has one. */
export async function takePlace() {
  // Only a page that was not loaded safely has no locks; then nobody counts.
  if (!navigator.locks) return true;
  place ??= firstFree();
  const mine = place;
  const found = await mine;
  if (!found && place === mine) place = null;
  return found !== null;
}

/** Leave the place to another tab. One that is closed does so by itself. */
export async function leavePlace() {
  const mine = place;
  place = null;
  (await mine)?.();
}

async function firstFree() {
  for (let number = 0; number < MOST_STREAMS; number += 1) {
    const release = await lock(`grass.stream.${number}`);
    if (release) return release;
  }
  return null;
}

/** @param {string} name @returns {Promise<(() => void) | null>} */
function lock(name) {
  return new Promise((answer) => {
    void navigator.locks.request(name, { ifAvailable: true }, (found) => {
      if (found) return new Promise((release) => answer(() => release(undefined)));
      answer(null);
      return undefined;
    });
  });
}
