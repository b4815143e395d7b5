// Calls to the daemon: `/api/v1` and nothing else. An error has the daemon's own words.

export const PREFIX = "/api/v1";
/** What the document is told when the daemon does not know this browser. */
export const LOGGED_OUT = "grass:logged-out";

/** What the daemon refused, in its words: a message, a stable code and a next step. */
export class Problem extends Error {
  /** @param {{detail?: string, code?: string, hint?: string, status?: number}} told */
  constructor(told) {
    super(told.detail ?? "the daemon gave no reason");
    this.code = told.code ?? "";
    this.hint = told.hint ?? "";
    this.status = told.status ?? 0;
  }
}

/** The daemon could not be reached at all. */
export class Unreachable extends Error {
  constructor() {
    super("the daemon does not answer");
  }
}

const CLOSE_MS = 2000;
let clockAhead = 0;

/** The daemon's clock now, in milliseconds: ages are counted on one clock. */
export function daemonNow() {
  return Date.now() + clockAhead;
}

/** @param {Response} response @param {number} tookMs */
function readClock(response, tookMs) {
  const told = Date.parse(response.headers.get("Date") ?? "");
  // The header has whole seconds: below that, the clocks agree. A slow reply tells nothing.
  if (Number.isNaN(told) || tookMs > CLOSE_MS) return;
  const ahead = told - Date.now();
  clockAhead = Math.abs(ahead) > CLOSE_MS ? ahead : 0;
}

/**
 * Send a request and return the response, also one that reports an error.
 * @param {string} method
 * @param {string} path below the prefix
 * @param {unknown} [body]
 * @param {RequestInit} [options]
 */
export async function send(method, path, body, options = {}) {
  const headers = new Headers(options.headers);
  if (body !== undefined) headers.set("Content-Type", "application/json");
  const begun = performance.now();
  let response;
  try {
    response = await fetch(PREFIX + path, {
      ...options,
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  readClock(response, performance.now() - begun);
  if (response.status === 401) document.dispatchEvent(new Event(LOGGED_OUT));
  return response;
}

/** @param {Response} response */
export async function problemOf(response) {
  try {
    return new Problem({ status: response.status, ...(await response.json()) });
  } catch {
    return new Problem({ status: response.status, detail: response.statusText });
  }
}

/**
 * Send a request and return the document of the reply.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
export async function call(method, path, body, options) {
  const response = await send(method, path, body, options);
  if (!response.ok) throw await problemOf(response);
  return response.json();
}

/**
 * Read a document. Lists in `query` become repeated parameters.
 * @param {string} path
 * @param {Record<string, unknown>} [query]
 * @param {AbortSignal} [signal]
 */
export function read(path, query, signal) {
  return call("GET", path + queryText(query), undefined, { signal });
}

/** @param {Record<string, unknown>} [query] */
export function queryText(query = {}) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") words.append(name, String(one));
    }
  }
  const text = words.toString();
  return text ? `?${text}` : "";
}
