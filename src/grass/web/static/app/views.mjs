// The views: where each one is, what it is called, and the letter after `g`. A view's
// module and its style are loaded when it is first shown.

/**
 * @typedef {object} View
 * @property {string} id the module in `views/`, and the sheet in `style/`
 * @property {string} path
 * @property {string} title
 * @property {string} [icon] views without one are not in the navigation
 * @property {string} [letter]
 * @property {boolean} [phone] whether it has a place at the bottom of a phone
 * @property {() => Promise<{default: any}>} load
 */

/** @type {View[]} */
export const VIEWS = [
  { id: "overview", path: "/", title: "Overview", icon: "overview", letter: "o", phone: true, load: () => import("./views/overview.mjs") },
  { id: "jobs", path: "/jobs", title: "Jobs", icon: "jobs", letter: "j", phone: true, load: () => import("./views/jobs.mjs") },
  { id: "job", path: "/jobs/:id", title: "Job", load: () => import("./views/job.mjs") },
  { id: "timeline", path: "/timeline", title: "Timeline", icon: "timeline", letter: "t", load: () => import("./views/timeline.mjs") },
  { id: "queues", path: "/queues", title: "Queues", icon: "queues", letter: "q", phone: true, load: () => import("./views/queues.mjs") },
  { id: "new", path: "/new", title: "New job", icon: "new", letter: "n", phone: true, load: () => import("./views/new.mjs") },
  { id: "events", path: "/events", title: "Events", icon: "events", letter: "e", load: () => import("./views/events.mjs") },
  { id: "doctor", path: "/doctor", title: "Doctor", icon: "doctor", letter: "d", load: () => import("./views/doctor.mjs") },
];
