-- Columns for what statements look at, and one body for the rest: a JSON object of
-- fields by name, without those that have no value. `base64` is grass's own.

CREATE TABLE new_queues (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO new_queues SELECT name, JSON_OBJECT(
    'name', name,
    'created_at', created_at,
    'paused', JSON(CASE paused WHEN 0 THEN 'false' ELSE 'true' END),
    'default_request', JSON(default_request),
    'max_running', max_running,
    'max_fails', max_fails,
    'fails', fails,
    'paused_reason', paused_reason
) FROM queues;

DROP TABLE queues;
ALTER TABLE new_queues RENAME TO queues;

CREATE TABLE new_workers (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO new_workers SELECT id, JSON_OBJECT(
    'id', id,
    'name', name,
    'boot', boot,
    'found', JSON(found),
    'added', JSON(added),
    'drained', JSON(drained),
    'labels', JSON(labels),
    'lease_s', lease_s,
    'draining', JSON(CASE resting WHEN 0 THEN 'false' ELSE 'true' END),
    'draining_reason', resting_reason,
    'address', address,
    'heard_at', heard_at,
    'instance', instance
) FROM workers;

DROP TABLE workers;
ALTER TABLE new_workers RENAME TO workers;

CREATE TABLE new_tokens (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO new_tokens SELECT name, JSON_OBJECT(
    'name', name,
    'role', role,
    'hash', BASE64(hash),
    'created_at', created_at,
    'created_by', created_by,
    'expires_at', expires_at,
    'is_code', JSON(CASE is_code WHEN 0 THEN 'false' ELSE 'true' END),
    'worker', worker,
    'used_at', used_at,
    'made', made
) FROM tokens;

DROP TABLE tokens;
ALTER TABLE new_tokens RENAME TO tokens;

CREATE TABLE new_attempts (
    job INTEGER NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    output_bytes INTEGER NOT NULL,
    ran_s REAL,
    body TEXT NOT NULL,
    PRIMARY KEY (job, number)
) WITHOUT ROWID;

INSERT INTO new_attempts SELECT job, number, state, output_bytes, ran_s, JSON_PATCH(
    '{}', JSON_OBJECT(
        'worker', worker,
        'boot', boot,
        'allocation', JSON(allocation),
        'started_at', started_at,
        'finished_at', finished_at,
        'pid', pid,
        'exit_code', exit_code,
        'signal', signal,
        'reason', reason,
        'output', JSON(output),
        'output_offset', output_offset,
        'stderr', JSON(stderr),
        'stderr_offset', stderr_offset,
        'max_rss', max_rss,
        'cpu_s', cpu_s,
        'after', after_job
    )
) FROM attempts;

DROP TABLE attempts;
ALTER TABLE new_attempts RENAME TO attempts;

-- Of a job that has only ever waited there is nothing to say: its body is NULL.
CREATE TABLE new_jobs (
    id INTEGER PRIMARY KEY,
    spec INTEGER NOT NULL REFERENCES specs (id),
    words TEXT NOT NULL,
    shell INTEGER NOT NULL,
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    owner TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    array INTEGER,
    state TEXT NOT NULL,
    array_index INTEGER,
    finished_at INTEGER,
    attempts INTEGER NOT NULL,
    body TEXT
);

INSERT INTO new_jobs SELECT
    id, spec, words, shell, name, project, owner, queue, priority, created_at, array,
    state, array_index, finished_at, attempts, CASE WHEN COALESCE(
        started_at, exit_code, signal, reason, stopping_since, not_before,
        NULLIF(failures, 0), NULLIF(losses, 0), suspended_since, NULLIF(met, 0)
    ) IS NOT NULL THEN JSON_PATCH('{}', JSON_OBJECT(
        'started_at', started_at,
        'exit_code', exit_code,
        'signal', signal,
        'reason', reason,
        'stopping_since', stopping_since,
        'not_before', not_before,
        'failures', NULLIF(failures, 0),
        'losses', NULLIF(losses, 0),
        'suspended_since', suspended_since,
        'met', JSON(CASE met WHEN 0 THEN NULL ELSE 'true' END)
    )) END
FROM jobs;

DROP TABLE jobs;
ALTER TABLE new_jobs RENAME TO jobs;

CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_spec ON jobs (spec);
CREATE INDEX jobs_state ON jobs (state);
CREATE INDEX jobs_queue ON jobs (queue);
CREATE INDEX jobs_project ON jobs (project);
