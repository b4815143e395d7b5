-- Named statements that only SQLite takes in this form.

-- name: add_event
INSERT INTO events (at, actor, kind, job, attempt, data) VALUES (?, ?, ?, ?, ?, ?);

-- name: end_of_alike
SELECT MIN(id) FROM (
    SELECT id FROM jobs WHERE state = ? AND id > ? AND NOT (
        spec = ? AND words = ? AND shell = ? AND name = ? AND project = ?
        AND owner = ? AND queue = ? AND priority = ? AND created_at = ? AND array IS ?
        AND body IS NULL AND attempts = 0 AND finished_at IS NULL
    ) ORDER BY id LIMIT 1
);

-- name: add_held_sum
INSERT INTO held_sums (
    ended_in, began_in, owner, project, worker, allocation,
    began_at, ended_at, held_us, attempts
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (ended_in, began_in, owner, project, worker, allocation) DO UPDATE SET
    began_at = MIN(held_sums.began_at, excluded.began_at),
    ended_at = MAX(held_sums.ended_at, excluded.ended_at),
    held_us = held_sums.held_us + excluded.held_us,
    attempts = held_sums.attempts + excluded.attempts;

-- name: extend_span
INSERT INTO array_spans (first_job, last_job, started_at, finished_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (first_job) DO UPDATE SET
    last_job = MAX(last_job, excluded.last_job),
    started_at = COALESCE(
        MIN(started_at, excluded.started_at), started_at, excluded.started_at
    ),
    finished_at = COALESCE(
        MAX(finished_at, excluded.finished_at), finished_at, excluded.finished_at
    );

-- SUM fails where a wrong number makes it too large; TOTAL never does.

-- name: output_usage
SELECT CAST(
    (SELECT TOTAL(output_bytes) FROM attempts)
    + (SELECT TOTAL(bytes) FROM removals) AS INTEGER
);

-- name: usage_before
SELECT COUNT(DISTINCT j.id), CAST(TOTAL(a.output_bytes) AS INTEGER)
FROM jobs AS j LEFT JOIN attempts AS a ON a.job = j.id
WHERE j.finished_at < ? AND j.state NOT IN ('held', 'waiting', 'queued', 'running');

-- What ended after a line of the journal was written. A plus keeps SQLite from looking
-- at all jobs up to the id.

-- name: ends_after
SELECT state, COUNT(*) FROM jobs
WHERE finished_at > COALESCE(
    (SELECT at FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1), 0
) AND +id <= ? AND +state NOT IN ('held', 'waiting', 'queued', 'running')
GROUP BY +state;

-- A worker may connect and disconnect for ever. Those events are removed that are older
-- than all jobs; what users did stays.

-- name: remove_old_worker_events
DELETE FROM events WHERE kind IN
    ('worker-connected', 'worker-disconnected', 'worker-able', 'worker-unable',
     'worker-held-back')
AND seq < (
    SELECT e.seq FROM events AS e NOT INDEXED
    WHERE e.job IS NOT NULL ORDER BY e.seq LIMIT 1
);
