-- The tables of SQLite's schema 14. Text is compared by its bytes, as SQLite does.

CREATE TABLE meta (
    key TEXT COLLATE "C" PRIMARY KEY,
    value TEXT NOT NULL
);

-- Who leads. A change of the epoch, which has a key of its own, waits for commits that
-- share the key; a change of the other columns waits for none.

CREATE TABLE lead (
    only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    epoch BIGINT NOT NULL UNIQUE,
    holder TEXT NOT NULL,
    address TEXT NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL,
    ends_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 20);

INSERT INTO lead (epoch, holder, address, taken_at, ends_at)
VALUES (0, '', '', to_timestamp(0), to_timestamp(0));

CREATE TABLE brokers (
    id TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL
);

-- The number of the journal's last line. Every commit locks the row, so numbers follow
-- the order of commits, and none is missing when one fails.

CREATE TABLE journal (
    only_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (only_row),
    last BIGINT NOT NULL
) WITH (fillfactor = 20);

INSERT INTO journal (last) VALUES (0);

CREATE TABLE envs (
    id BIGINT PRIMARY KEY,
    owner TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE TABLE specs (
    id BIGINT PRIMARY KEY,
    base_env BIGINT,
    body TEXT NOT NULL
);
CREATE INDEX specs_env ON specs (base_env) WHERE base_env IS NOT NULL;

CREATE TABLE queues (
    name TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE workers (
    id TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE views (
    queue TEXT COLLATE "C" NOT NULL,
    worker TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (queue, worker)
);

CREATE TABLE jobs (
    id BIGINT PRIMARY KEY,
    spec BIGINT NOT NULL,
    words TEXT NOT NULL,
    shell BOOLEAN NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    queue TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    "array" BIGINT,
    state TEXT COLLATE "C" NOT NULL,
    array_index BIGINT,
    finished_at BIGINT,
    attempts BIGINT NOT NULL,
    body TEXT,
    -- PostgreSQL takes no JSON with bytes that are not UTF-8, which a body may have.
    started_at BIGINT GENERATED ALWAYS AS (
        CAST(substring(body FROM '"started_at":(-?[0-9]+)') AS BIGINT)
    ) STORED
) WITH (fillfactor = 80);
CREATE INDEX jobs_state ON jobs (state, id);
CREATE INDEX jobs_spec ON jobs (spec);
CREATE INDEX jobs_queue ON jobs (queue, id);
CREATE INDEX jobs_project ON jobs (project, id);
CREATE INDEX jobs_owner ON jobs (owner, id);
-- An entry of an index has a limit, which a name does not have.
CREATE INDEX jobs_name ON jobs (left(name, 500), id);
CREATE INDEX jobs_priority ON jobs (priority, id);
CREATE INDEX jobs_finished ON jobs (finished_at, id) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_started ON jobs (started_at, id) WHERE started_at IS NOT NULL;
CREATE INDEX jobs_duration ON jobs ((finished_at - started_at), id)
WHERE finished_at - started_at IS NOT NULL;
CREATE INDEX jobs_next ON jobs ("array", state, priority DESC, id)
WHERE state IN ('held', 'waiting', 'queued');
CREATE INDEX jobs_ended ON jobs ("array", finished_at, id)
WHERE finished_at IS NOT NULL;

CREATE TABLE attempts (
    job BIGINT NOT NULL,
    number BIGINT NOT NULL,
    state TEXT NOT NULL,
    output_bytes BIGINT NOT NULL,
    ran_s DOUBLE PRECISION,
    body TEXT NOT NULL,
    PRIMARY KEY (job, number)
) WITH (fillfactor = 70);

CREATE TABLE arrivals (
    first_job BIGINT PRIMARY KEY,
    last_job BIGINT NOT NULL
);

CREATE TABLE arrays (
    first_job BIGINT PRIMARY KEY,
    fails BIGINT NOT NULL
);

CREATE TABLE array_spans (
    first_job BIGINT PRIMARY KEY,
    last_job BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE INDEX array_spans_finished ON array_spans (finished_at)
WHERE finished_at IS NOT NULL;

CREATE TABLE job_counts (
    state TEXT COLLATE "C" NOT NULL,
    "array" BIGINT NOT NULL,
    queue TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    jobs BIGINT NOT NULL,
    PRIMARY KEY ("array", state, queue, project, owner)
) WITH (fillfactor = 50);

CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    job BIGINT,
    attempt BIGINT,
    data TEXT NOT NULL
);
CREATE INDEX events_job ON events (job, seq) WHERE job IS NOT NULL;
CREATE INDEX events_enqueued ON events (job) WHERE kind = 'enqueued';
CREATE INDEX events_kind ON events (kind, seq);

-- A key of a caller may be long.
CREATE TABLE calls (
    key TEXT COLLATE "C" NOT NULL,
    actor TEXT NOT NULL,
    first_job BIGINT NOT NULL,
    last_job BIGINT NOT NULL,
    at BIGINT NOT NULL
);
CREATE UNIQUE INDEX calls_key ON calls (md5(key));
CREATE INDEX calls_at ON calls (at);

CREATE TABLE tokens (
    name TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE pools (
    name TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

CREATE TABLE pilots (
    mark TEXT COLLATE "C" PRIMARY KEY,
    body TEXT NOT NULL
);

-- A type may be longer than an entry of an index.
CREATE TABLE profiles (
    job_type TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX profiles_type ON profiles (md5(job_type), md5(model));

CREATE TABLE removals (
    id BIGINT PRIMARY KEY,
    worker TEXT NOT NULL,
    paths TEXT NOT NULL,
    bytes BIGINT NOT NULL
);

CREATE TABLE spec_blobs (
    spec BIGINT PRIMARY KEY REFERENCES specs (id) ON DELETE CASCADE,
    blob TEXT COLLATE "C" NOT NULL
);
CREATE INDEX spec_blobs_blob ON spec_blobs (blob);

CREATE TABLE job_blobs (
    job BIGINT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    blob TEXT COLLATE "C" NOT NULL
);
CREATE INDEX job_blobs_blob ON job_blobs (blob);

-- The bytes of a blob lie under the number of the draft that wrote them, so a blob that
-- is whole gets its name by one row.

CREATE TABLE blob_drafts (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    begun_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE blobs (
    name TEXT COLLATE "C" PRIMARY KEY,
    draft BIGINT NOT NULL,
    size BIGINT NOT NULL
);

CREATE TABLE blob_pieces (
    draft BIGINT NOT NULL,
    begins_at BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (draft, begins_at)
);
ALTER TABLE blob_pieces ALTER COLUMN data SET STORAGE EXTERNAL;
