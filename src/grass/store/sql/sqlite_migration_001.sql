-- The first schema. Times are microseconds UTC, amounts ten-thousandths of a unit.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Environments and specs are stored once each and shared by many jobs.
CREATE TABLE envs (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE TABLE specs (
    id INTEGER PRIMARY KEY,
    base_env INTEGER REFERENCES envs (id),
    body TEXT NOT NULL
);

CREATE TABLE queues (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    default_request TEXT,
    max_running INTEGER
) WITHOUT ROWID;

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    boot TEXT NOT NULL,
    found TEXT NOT NULL,
    added TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE views (
    queue TEXT NOT NULL REFERENCES queues (name),
    worker TEXT NOT NULL REFERENCES workers (id),
    body TEXT NOT NULL,
    PRIMARY KEY (queue, worker)
) WITHOUT ROWID;

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    spec INTEGER NOT NULL REFERENCES specs (id),
    words TEXT NOT NULL,
    shell INTEGER NOT NULL,
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    owner TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    exit_code INTEGER,
    signal INTEGER,
    reason TEXT,
    attempts INTEGER NOT NULL,
    stopping_since INTEGER
);

CREATE INDEX jobs_unfinished ON jobs (state, priority DESC, id)
WHERE state IN ('held', 'waiting', 'queued', 'running');

CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- Jobs that are being written in slices: until the range is gone, they do not exist.
CREATE TABLE arrivals (
    first_job INTEGER PRIMARY KEY,
    last_job INTEGER NOT NULL
);

CREATE TABLE attempts (
    job INTEGER NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    boot TEXT NOT NULL,
    state TEXT NOT NULL,
    allocation TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    pid INTEGER,
    exit_code INTEGER,
    signal INTEGER,
    reason TEXT,
    output TEXT,
    output_offset INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL,
    stderr TEXT,
    max_rss INTEGER,
    cpu_s REAL,
    after_job INTEGER,
    PRIMARY KEY (job, number)
) WITHOUT ROWID;

-- Allocations held by processes that grass did not start.
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    owner TEXT NOT NULL,
    allocation TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;

-- What an idempotency key was answered with.
CREATE TABLE calls (
    key TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    first_job INTEGER NOT NULL,
    last_job INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX calls_at ON calls (at);

-- The journal: every change, with who made it. Only ever appended to.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    job INTEGER,
    attempt INTEGER,
    data TEXT NOT NULL
);

CREATE INDEX events_job ON events (job) WHERE job IS NOT NULL;
