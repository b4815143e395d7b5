// One stream of server-sent events per tab, whatever its components follow.
//
// A follower of a topic is given each frame's document, and is told to read anew when it
// begins, on `resync`, and where there is no stream for this tab: then every few seconds.
// Frames carry the journal's number, from which a stream goes on after a disconnect;
// what is not of the journal is read anew. A hidden tab follows nothing. A tab that finds
// its session over tells the others, which ask then: one that is paused has no stream. It
// asks by itself when somebody comes back to it.

import { LOGGED_OUT, PREFIX, problemOf } from "./api.mjs";
import { leavePlace, takePlace } from "./stream_places.mjs";
import { signal } from "./ui.mjs";

/**
 * @typedef {{data?: (document: any) => void, resync?: () => void}} Follower
 * @typedef {{state: "live" | "paused" | "reconnecting" | "offline" | "logged out",
 *   since: number, retryAt: number | null, polling: boolean}} Connection
 */

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 3000;
const POLL_MS = 3000;
/** The daemon sends a comment every 15 s: silence of this length is a dead connection. */
const SILENCE_MS = 40_000;
const OFFLINE_AFTER = 2;

/** @type {import("../vendor/signals.mjs").Signal<Connection>} */
export const connection = signal({
  state: "reconnecting",
  since: Date.now(),
  retryAt: null,
  polling: false,
});
/** The daemon's version, as the stream tells it: another one means an upgrade. */
export const streamedVersion = signal("");

const tabs = new BroadcastChannel("grass.session");

/** @type {Map<string, Set<Follower>>} */
const followers = new Map();
/** Those that have read once, and are told of all that came after. */
const synced = new WeakSet();
let paused = false;
let started = false;
let lastSeq = "";
let failures = 0;
/** @type {AbortController | null} */
let open = null;
let timer = 0;
let silence = 0;

/**
 * Follow a topic until the returned function is called.
 * @param {string} topic `overview`, `jobs`, `devices`, `events`, `log:ID`, `usage:ID`
 * @param {Follower} follower
 */
export function follow(topic, follower) {
  const known = followers.get(topic);
  if (known) known.add(follower);
  else {
    followers.set(topic, new Set([follower]));
    changeTopics();
  }
  return () => {
    const left = followers.get(topic);
    left?.delete(follower);
    if (left?.size === 0) {
      followers.delete(topic);
      changeTopics();
    }
  };
}

/** Begin; called once the page is up. */
export function startStream() {
  started = true;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) rest();
    else if (paused) void askSession();
    else connect();
  });
  // One that is paused has no stream that tells of it.
  window.addEventListener("focus", () => { if (paused) void askSession(); });
  window.addEventListener("online", () => reconnectNow());
  document.addEventListener(LOGGED_OUT, endStream);
  tabs.addEventListener("message", () => void askSession());
  changeTopics();
}

/** Stop the updates, or let them go on. */
export function togglePause() {
  paused = !paused;
  if (paused) {
    rest();
    tell("paused");
  } else connect();
}

/** Follow nothing any more: the session of all tabs has ended. */
export function endStream() {
  tabs.postMessage("over");
  showLoggedOut();
}

function showLoggedOut() {
  paused = false;
  rest();
  tell("logged out");
}

/** Ask whether the session is over; where the daemon does not answer, the next connection tells. */
export async function askSession() {
  if (connection.value.state === "logged out") return;
  const response = await fetch(`${PREFIX}/session`, { cache: "no-store" }).catch(() => null);
  if (response?.status === 401) showLoggedOut();
}

export function reconnectNow() {
  if (!paused && connection.value.state !== "live") connect();
}

function changeTopics() {
  if (!started || paused || document.hidden || connection.value.state === "logged out") return;
  // Components come and go together: one connection for all of them.
  clearTimeout(timer);
  timer = setTimeout(connect, 0);
}

function close() {
  clearTimeout(timer);
  clearTimeout(silence);
  open?.abort();
  open = null;
}

/** Follow nothing, and let another tab have a stream. */
function rest() {
  close();
  void leavePlace();
}

async function connect() {
  close();
  if (followers.size === 0) return;
  const mine = new AbortController();
  open = mine;
  try {
    if (!(await takePlace())) return await poll(mine);
    const response = await request(mine);
    if (response.status === 401) return endStream();
    if (response.status === 404 || response.status === 405) return await poll(mine);
    if (!response.ok || !response.body) throw await problemOf(response);
    await readFrames(response.body, mine);
    throw new Error("the stream ended");
  } catch {
    if (!mine.signal.aborted || silent(mine)) retry();
  }
}

/** @param {AbortController} mine */
function request(mine) {
  const topics = [...followers.keys()].sort().join(",");
  /** @type {Record<string, string>} */
  const headers = { Accept: "text/event-stream" };
  if (lastSeq) headers["Last-Event-ID"] = lastSeq;
  return fetch(`${PREFIX}/stream?topics=${encodeURIComponent(topics)}`, {
    headers,
    signal: mine.signal,
    credentials: "same-origin",
    cache: "no-store",
  });
}

/** @param {AbortController} mine */
function silent(mine) {
  return mine.signal.reason === "silence";
}

/** @param {ReadableStream<Uint8Array>} body @param {AbortController} mine */
async function readFrames(body, mine) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    listen(mine);
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) takeFrame(frame);
  }
}

/** @param {AbortController} mine */
function listen(mine) {
  clearTimeout(silence);
  silence = setTimeout(() => mine.abort("silence"), SILENCE_MS);
}

/** @param {string} frame */
function takeFrame(frame) {
  let topic = "message";
  let data = "";
  let seq = "";
  for (const line of frame.split("\n")) {
    const [, field, text] = /^(\w*): ?(.*)$/.exec(line) ?? [];
    if (field === "event") topic = text;
    else if (field === "id") seq = text;
    else if (field === "data") data += data ? `\n${text}` : text;
  }
  if (!data) return;
  // What was missed comes after the greeting: until then the former number counts.
  if (seq && (topic !== "hello" || !lastSeq)) lastSeq = seq;
  const document = JSON.parse(data);
  if (topic === "hello") welcome(document);
  else if (topic === "resync") resync();
  else for (const one of followers.get(topic) ?? []) one.data?.(document);
}

/** @param {{seq: number, version: string}} hello */
function welcome(hello) {
  streamedVersion.value = hello.version;
  failures = 0;
  tell("live");
  resync((topic, follower) => !synced.has(follower) || topic.includes(":"));
}

/** Have everything read once, and try for a stream again. @param {AbortController} mine */
async function poll(mine) {
  const response = await fetch(`${PREFIX}/session`, { signal: mine.signal, cache: "no-store" });
  if (response.status === 401) return endStream();
  if (!response.ok) throw await problemOf(response);
  failures = 0;
  tell("live", { polling: true });
  resync();
  timer = setTimeout(connect, POLL_MS);
}

/** Have followers read anew. @param {(topic: string, follower: Follower) => boolean} which */
function resync(which = () => true) {
  for (const [topic, all] of [...followers]) {
    for (const one of [...all].filter((each) => which(topic, each))) {
      synced.add(one);
      one.resync?.();
    }
  }
}

function retry() {
  if (paused || document.hidden) return;
  failures += 1;
  const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  tell(failures > OFFLINE_AFTER ? "offline" : "reconnecting", {
    retryAt: Date.now() + wait,
  });
  clearTimeout(timer);
  timer = setTimeout(connect, wait);
}

/** @param {Connection["state"]} state @param {Partial<Connection>} [more] */
function tell(state, more) {
  const before = connection.value;
  // What is shown stems from the moment at which the connection was lost.
  const sameOutage = isLost(state) && isLost(before.state);
  const since = state === before.state || sameOutage ? before.since : Date.now();
  connection.value = { state, since, retryAt: null, polling: false, ...more };
}

/** @param {string} state */
function isLost(state) {
  return state === "reconnecting" || state === "offline";
}
