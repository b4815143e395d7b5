// The output of a job: the last lines at once and then live, back to the first line,
// searched where it is. Only the rows in the window are in the page.

import { PREFIX, queryText } from "../api.mjs";
import { useKeys } from "../keys.mjs";
import { LogBar } from "../log/log_bar.mjs";
import { LogBody } from "../log/log_body.mjs";
import { hashOf, rangeOf } from "../log/log_rows.mjs";
import { useSearch } from "../log/log_search.mjs";
import { LogSource } from "../log/log_source.mjs";
import { ROW, useScrolling } from "../log/scrolling.mjs";
import { connection } from "../stream.mjs";
import { loadStyle } from "../style_sheets.mjs";
import { html, useEffect, useRef, useState } from "../ui.mjs";

await loadStyle("log");

const KEPT = "grass.log.wrap";
const NARROW = "(max-width: 640px)";

/** Redraw at most once a frame, however often something changes. */
function useRedraw() {
  const [, setCount] = useState(0);
  const asked = useRef(0);
  return useRef(() => {
    if (asked.current) return;
    asked.current = requestAnimationFrame(() => {
      asked.current = 0;
      setCount((count) => count + 1);
    });
  }).current;
}

/**
 * The source of what is shown; another one when another attempt or stream is.
 * @param {number} job @param {number | null} attempt @param {string} stream @param {boolean} isLast
 * @param {(attempt: number) => void} onNext
 */
function useSource(job, attempt, stream, isLast, onNext) {
  const redraw = useRedraw();
  const make = () => new LogSource({ job, attempt, stream, isLast }, redraw, onNext);
  const source = useRef(/** @type {LogSource | null} */ (null));
  const key = `${job} ${attempt} ${stream}`;
  const [shown, setShown] = useState("");
  useEffect(() => {
    const own = make();
    source.current = own;
    own.open();
    setShown(key);
    return () => own.close();
  }, [key]);
  const current = shown === key ? source.current : null;
  const isLive = connection.value.state === "live";
  useEffect(() => {
    // What failed because nobody answered is tried again.
    if (isLive && current?.problem) void (current.state === "shown" ? current.catchUp() : current.load());
  }, [isLive, current]);
  return current;
}

function useWrap() {
  const kept = localStorage.getItem(KEPT);
  const [wraps, setWraps] = useState(kept ? kept === "on" : matchMedia(NARROW).matches);
  const toggle = () => {
    localStorage.setItem(KEPT, wraps ? "off" : "on");
    setWraps(!wraps);
  };
  return { wraps, toggle };
}

/** The lines that the address names. @param {(line: number) => void} goTo */
function useChosenLines(goTo) {
  const [chosen, setChosen] = useState(() => rangeOf(window.location.hash));
  useEffect(() => {
    const onHash = () => {
      const range = rangeOf(window.location.hash);
      setChosen(range);
      if (range) goTo(range.first);
    };
    window.addEventListener("hashchange", onHash);
    return () => window.removeEventListener("hashchange", onHash);
  });
  const choose = (/** @type {import("../log/log_rows.mjs").Range | null} */ range) => {
    const { pathname, search } = window.location;
    history.replaceState(null, "", range ? hashOf(range) : pathname + search);
    setChosen(range);
  };
  return { chosen, choose };
}

/**
 * @param {{job: import("../documents.mjs").Job, attempt?: number | null,
 *   stream?: "output" | "stderr"}} props what is shown at first: the last attempt's output
 */
export function LogView({ job, attempt: given = null, stream: begun = "output" }) {
  const [picked, setPicked] = useState(given);
  const [stream, setStream] = useState(/** @type {string} */ (begun));
  const [told, setTold] = useState(0);
  const latest = Math.max(told, ...job.attempts.map((one) => one.number), 0) || null;
  const attempt = picked ?? latest;
  const source = useSource(job.id, attempt, stream, attempt === latest, setTold);
  useEffect(() => setPicked(given), [given]);
  const [follows, setFollows] = useState(() => rangeOf(window.location.hash) === null);
  const [seenTotal, setSeenTotal] = useState(0);
  const { wraps, toggle } = useWrap();
  const total = source?.lines.total ?? 0;
  const stopFollowing = () => {
    if (follows) setSeenTotal(total);
    setFollows(false);
  };
  const scrolled = useScrolling(total, { wraps, follows, onLeave: stopFollowing, onEnd: () => setFollows(true) });
  const search = useSearch({ job: job.id, attempt, stream }, scrolled.goTo);
  const { chosen, choose } = useChosenLines(scrolled.goTo);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));

  const isNumbered = source?.numbered ?? false;
  useEffect(() => {
    if (chosen && isNumbered && !follows) scrolled.goTo(chosen.first);
  }, [isNumbered, source]);
  useEffect(() => {
    if (source?.state === "shown") void source.need(scrolled.first, scrolled.last);
  });

  const focusSearch = () => {
    field.current?.focus();
    field.current?.select();
  };
  const page = Math.max(1, Math.floor(scrolled.view / ROW) - 1);
  useKeys({
    f: () => (follows ? stopFollowing() : setFollows(true)),
    w: toggle,
    "/": focusSearch,
    g: () => scrolled.goTo(1),
    "g g": () => scrolled.goTo(1),
    G: () => setFollows(true),
    ...(search.found && { n: () => void search.step(1), N: () => void search.step(-1) }),
  });
  const moves = /** @type {Record<string, () => void>} */ ({
    ArrowDown: () => scrolled.move(1), ArrowUp: () => scrolled.move(-1),
    PageDown: () => scrolled.move(page), PageUp: () => scrolled.move(-page), " ": () => scrolled.move(page),
    Home: () => scrolled.goTo(1), End: () => setFollows(true),
  });
  const onMove = (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== event.currentTarget || !moves[event.key] || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  };
  const onChoose = (/** @type {MouseEvent} */ event, /** @type {number} */ line) => {
    event.preventDefault();
    const from = event.shiftKey && chosen ? chosen : { first: line, last: line };
    choose({ first: Math.min(from.first, line), last: Math.max(from.last, line) });
    stopFollowing();
  };
  const raw = PREFIX + `/jobs/${job.id}/output` + queryText({ attempt, stream: stream === "stderr" ? stream : null });
  return html`
    <section class=${`log ${wraps ? "log-wraps" : ""}`} aria-label="output">
      <${LogBar} job=${job} attempt=${attempt} latest=${latest} stream=${stream} search=${search} field=${field}
        follows=${follows} wraps=${wraps} raw=${raw} isShown=${source?.state === "shown"}
        onAttempt=${(/** @type {number} */ one) => { setPicked(one === latest ? null : one); setFollows(true); }}
        onStream=${(/** @type {string} */ one) => { setStream(one); setFollows(true); }}
        onFollow=${() => (follows ? stopFollowing() : setFollows(true))} onWrap=${toggle} />
      <${LogBody} job=${job} source=${source} scrolled=${scrolled} search=${search} chosen=${chosen}
        fresh=${follows ? 0 : Math.max(0, total - Math.max(seenTotal, 0))} follows=${follows}
        onMove=${onMove} onChoose=${onChoose} choose=${choose} />
    </section>
  `;
}
