-- Output of forgotten jobs that workers are to remove; `paths` is a JSON array.

CREATE TABLE removals (
    id INTEGER PRIMARY KEY,
    worker TEXT NOT NULL,
    paths TEXT NOT NULL,
    bytes INTEGER NOT NULL
);

-- Which jobs share a spec, and which specs an environment: whether one is in use is
-- asked for every job that is forgotten.
CREATE INDEX jobs_spec ON jobs (spec);
CREATE INDEX specs_env ON specs (base_env) WHERE base_env IS NOT NULL;
