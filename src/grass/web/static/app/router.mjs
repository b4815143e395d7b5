// Where the page is: the path and the query, as signals. Links are plain `<a href>`.

import { computed, signal } from "./ui.mjs";

const here = () => window.location.pathname + window.location.search;
const address = signal(here());

export const path = computed(() => address.value.split("?")[0]);
export const query = computed(
  () => new URLSearchParams(address.value.split("?")[1] ?? ""),
);

/** @param {string} to @param {{replace?: boolean}} [how] */
export function navigate(to, how = {}) {
  const url = new URL(to, window.location.href);
  if (url.href !== window.location.href) {
    history[how.replace ? "replaceState" : "pushState"](null, "", url.href);
  }
  const moved = url.pathname !== path.value;
  address.value = here();
  if (moved) window.scrollTo(0, 0);
}

/**
 * Change parameters of the query and stay on the page; null takes one away.
 * @param {Record<string, string | null>} changes
 */
export function changeQuery(changes) {
  const next = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  navigate(path.value + (text ? `?${text}` : "") + window.location.hash, {
    replace: true,
  });
}

/** Follow links inside the page without loading it again. */
export function startRouter() {
  window.addEventListener("popstate", () => {
    address.value = here();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download")) return;
    if (link.origin !== window.location.origin) return;
    if (link.pathname.startsWith("/api/")) return;
    const onlyHash = link.hash && link.pathname + link.search === here();
    if (onlyHash) return;
    event.preventDefault();
    navigate(link.href);
  });
}

/**
 * Compare a path with a pattern: `/jobs/:id` gives `{id: "7"}`; null: it is another.
 * @param {string} pattern
 * @param {string} actual
 * @returns {Record<string, string> | null}
 */
export function matches(pattern, actual) {
  const wanted = pattern.split("/");
  const given = actual.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  /** @type {Record<string, string>} */
  const found = {};
  for (const [place, word] of wanted.entries()) {
    if (!word.startsWith(":")) {
      if (word !== given[place]) return null;
      continue;
    }
    const text = decoded(given[place]);
    if (text === null) return null;
    found[word.slice(1)] = text;
  }
  return found;
}

/** A part of a path as text; null: it is no UTF-8. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
