-- Named statements that every database takes. Each has one purpose; parameters are
-- positional. `array` is a word of SQL, so it stands in quotes or behind its table.

-- name: save_meta
INSERT INTO meta (key, value) VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: load_meta
SELECT key, value FROM meta;

-- name: add_env
INSERT INTO envs (id, owner, body) VALUES (?, ?, ?);

-- name: add_spec
INSERT INTO specs (id, base_env, body) VALUES (?, ?, ?);

-- name: name_function
INSERT INTO spec_blobs (spec, blob) VALUES (?, ?) ON CONFLICT (spec) DO NOTHING;

-- name: name_arguments
INSERT INTO job_blobs (job, blob) VALUES (?, ?) ON CONFLICT (job) DO NOTHING;

-- name: unnamed_blobs
SELECT value FROM @list AS e
WHERE NOT EXISTS (SELECT 1 FROM spec_blobs AS s WHERE s.blob = e.value)
AND NOT EXISTS (SELECT 1 FROM job_blobs AS j WHERE j.blob = e.value);

-- name: save_queue
INSERT INTO queues (name, body) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: remove_queue
DELETE FROM queues WHERE name = ?;

-- name: save_view
INSERT INTO views (queue, worker, body) VALUES (?, ?, ?)
ON CONFLICT (queue, worker) DO UPDATE SET body = excluded.body;

-- name: remove_view
DELETE FROM views WHERE queue = ? AND worker = ?;

-- name: save_worker
INSERT INTO workers (id, body) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET body = excluded.body;

-- name: remove_worker
DELETE FROM workers WHERE id = ?;

-- name: save_job
INSERT INTO jobs (
    id, spec, words, shell, name, project, owner, queue, priority, created_at, "array",
    state, array_index, finished_at, attempts, body
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    spec = excluded.spec,
    words = excluded.words,
    shell = excluded.shell,
    name = excluded.name,
    queue = excluded.queue,
    priority = excluded.priority,
    state = excluded.state,
    finished_at = excluded.finished_at,
    attempts = excluded.attempts,
    body = excluded.body;

-- Most jobs are saved again because they start or end. A column that is set is written
-- to every index that has it, also if it has its value already.

-- name: move_job
INSERT INTO jobs (
    id, spec, words, shell, name, project, owner, queue, priority, created_at, "array",
    state, array_index, finished_at, attempts, body
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    state = excluded.state,
    finished_at = excluded.finished_at,
    attempts = excluded.attempts,
    body = excluded.body;

-- name: save_attempt
INSERT INTO attempts (job, number, state, output_bytes, ran_s, body)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (job, number) DO UPDATE SET
    state = excluded.state,
    output_bytes = excluded.output_bytes,
    ran_s = excluded.ran_s,
    body = excluded.body;

-- name: remove_attempt
DELETE FROM attempts WHERE job = ? AND number = ?;

-- name: add_arrival
INSERT INTO arrivals (first_job, last_job) VALUES (?, ?);

-- name: remove_arrival
DELETE FROM arrivals WHERE first_job = ?;

-- name: drop_arriving_jobs
DELETE FROM jobs WHERE id IN (
    SELECT j.id FROM arrivals AS a
    INNER JOIN jobs AS j ON j.id BETWEEN a.first_job AND a.last_job
);

-- name: drop_arrivals
DELETE FROM arrivals;

-- name: add_call
INSERT INTO calls (key, actor, first_job, last_job, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    actor = excluded.actor,
    first_job = excluded.first_job,
    last_job = excluded.last_job,
    at = excluded.at;

-- name: expire_calls
DELETE FROM calls WHERE at < ?;

-- name: find_call
SELECT key, actor, first_job, last_job, at FROM calls WHERE key = ?;

-- name: load_calls
SELECT key, actor, first_job, last_job, at FROM calls WHERE at >= ? ORDER BY at;

-- name: load_queues
SELECT name, body FROM queues ORDER BY name;

-- name: load_views
SELECT queue, worker, body FROM views;

-- name: load_workers
SELECT id, body FROM workers ORDER BY id;

-- Most of a long queue has only ever waited: such jobs have no body.

-- name: load_untouched_jobs
SELECT
    id, spec, words, shell, name, project, owner, queue, priority, created_at, "array",
    state, array_index, finished_at, attempts, body
FROM jobs AS j WHERE state = ? AND id > ?
AND body IS NULL AND attempts = 0 AND finished_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) ORDER BY id;

-- name: load_alike_jobs
SELECT id, array_index FROM jobs AS j
WHERE state = ? AND id > ? AND id < ? AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) ORDER BY id;

-- name: load_touched_jobs
SELECT
    id, spec, words, shell, name, project, owner, queue, priority, created_at, "array",
    state, array_index, finished_at, attempts, body
FROM jobs AS j WHERE state = ?
AND (body IS NOT NULL OR attempts > 0 OR finished_at IS NOT NULL) AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) ORDER BY id;

-- name: load_live_attempts
SELECT a.job, a.number, a.state, a.output_bytes, a.ran_s, a.body
FROM attempts AS a
INNER JOIN jobs AS j ON a.job = j.id AND a.number = j.attempts
WHERE j.state = 'running' AND a.state IN ('starting', 'running');

-- name: save_array
INSERT INTO arrays (first_job, fails) VALUES (?, ?)
ON CONFLICT (first_job) DO UPDATE SET fails = excluded.fails;

-- name: remove_array
DELETE FROM arrays WHERE first_job = ?;

-- name: load_arrays
SELECT first_job, fails FROM arrays;

-- name: save_token
INSERT INTO tokens (name, body) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: remove_token
DELETE FROM tokens WHERE name = ?;

-- name: load_tokens
SELECT name, body FROM tokens ORDER BY name;

-- name: save_pool
INSERT INTO pools (name, body) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET body = excluded.body;

-- name: remove_pool
DELETE FROM pools WHERE name = ?;

-- name: load_pools
SELECT name, body FROM pools ORDER BY name;

-- name: save_pilot
INSERT INTO pilots (mark, body) VALUES (?, ?)
ON CONFLICT (mark) DO UPDATE SET body = excluded.body;

-- name: remove_pilot
DELETE FROM pilots WHERE mark = ?;

-- name: load_pilots
SELECT mark, body FROM pilots ORDER BY mark;

-- name: save_profile
INSERT INTO profiles (job_type, model, body) VALUES (?, ?, ?)
ON CONFLICT (job_type, model) DO UPDATE SET body = excluded.body;

-- name: remove_profile
DELETE FROM profiles WHERE job_type = ? AND model = ?;

-- name: load_profiles
SELECT job_type, body FROM profiles ORDER BY job_type, model;

-- name: states_of
SELECT id, state FROM jobs WHERE id IN (SELECT CAST(value AS BIGINT) FROM @list);

-- name: states_between
SELECT id, state FROM jobs WHERE id BETWEEN ? AND ?;

-- name: read_envs
SELECT id, owner, body FROM envs WHERE id IN (SELECT CAST(value AS BIGINT) FROM @list);

-- name: read_events
SELECT seq, at, actor, kind, job, attempt, data FROM events
WHERE {where} ORDER BY seq LIMIT ?;

-- name: last_event
SELECT COALESCE(MAX(seq), 0) FROM events;

-- Only the recent past is looked through, so that a rare name costs no more.

-- name: runtimes
SELECT a.ran_s FROM (
    SELECT id, name, state, attempts FROM jobs
    WHERE finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 5000
) AS j INNER JOIN attempts AS a ON a.job = j.id AND a.number = j.attempts
WHERE j.name = ? AND j.state = 'succeeded' AND a.ran_s IS NOT NULL LIMIT ?;

-- name: largest_ids
SELECT
    (SELECT COALESCE(MAX(id), 0) FROM specs),
    (SELECT COALESCE(MAX(id), 0) FROM envs);

-- name: count_by_state
SELECT state, CAST(SUM(jobs) AS BIGINT) FROM job_counts
GROUP BY state HAVING SUM(jobs) > 0;

-- name: load_arrivals
SELECT first_job, last_job FROM arrivals;

-- name: read_counted
SELECT id, state, COALESCE("array", 0), queue, project, owner
FROM jobs WHERE id IN (SELECT CAST(value AS BIGINT) FROM @list);

-- name: add_to_count
INSERT INTO job_counts (state, "array", queue, project, owner, jobs)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (state, "array", queue, project, owner) DO UPDATE SET
    jobs = job_counts.jobs + excluded.jobs;

-- name: remove_count
DELETE FROM job_counts
WHERE state = ? AND "array" = ? AND queue = ? AND project = ? AND owner = ?
AND jobs <= 0;

-- name: remove_span
DELETE FROM array_spans WHERE first_job = ? AND NOT EXISTS (
    SELECT 1 FROM job_counts AS c WHERE c.array = array_spans.first_job AND c.state IN (
        'held', 'waiting', 'queued', 'running',
        'succeeded', 'failed', 'cancelled', 'lost'
    )
);

-- name: read_jobs
SELECT
    j.id, j.spec, j.words, j.shell, j.name, j.project, j.owner, j.queue, j.priority,
    j.created_at, j.array, j.state, j.array_index, j.finished_at, j.attempts, j.body
FROM jobs AS j {index} WHERE {where} AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) ORDER BY {order} LIMIT ?;

-- name: matching_states
SELECT j.id, j.state FROM jobs AS j WHERE {where} AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
);

-- name: count_jobs
SELECT j.state, COUNT(*) FROM jobs AS j WHERE {where} AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) GROUP BY j.state;

-- name: count_by_queue
SELECT queue, state, CAST(SUM(jobs) AS BIGINT) FROM job_counts
GROUP BY queue, state;

-- name: sum_counts
SELECT j.state, CAST(SUM(j.jobs) AS BIGINT) FROM job_counts AS j
WHERE {where} GROUP BY j.state;

-- Arrays by the first of their members that match, as the index of members has them.

-- name: next_arrays
SELECT j.array FROM (
    SELECT (
        SELECT j.id FROM jobs AS j @by_index(jobs_next)
        WHERE j.array = c.array AND {where}
        AND j.state IN ('held', 'waiting', 'queued')
        ORDER BY j.priority DESC, j.id LIMIT 1
    ) AS head FROM (
        SELECT DISTINCT j.array FROM job_counts AS j WHERE j.array > 0 AND {counted}
    ) AS c
) AS h INNER JOIN jobs AS j ON j.id = h.head ORDER BY j.priority DESC, j.id LIMIT ?;

-- name: ended_arrays
SELECT s.first_job FROM array_spans AS s
WHERE s.finished_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM job_counts AS j WHERE j.array = s.first_job AND {counted}
) AND EXISTS (
    SELECT 1 FROM jobs AS j @by_index(jobs_ended)
    WHERE j.array = s.first_job AND j.finished_at IS NOT NULL AND {where}
) ORDER BY s.finished_at DESC, s.first_job DESC LIMIT ?;

-- name: count_members
SELECT
    j.array, s.last_job, j.state, CAST(SUM(j.jobs) AS BIGINT), s.started_at,
    (SELECT MAX(k.finished_at) FROM jobs AS k @by_index(jobs_ended)
    WHERE k.array = j.array AND k.finished_at IS NOT NULL)
FROM @list AS e
INNER JOIN array_spans AS s ON s.first_job = CAST(e.value AS BIGINT)
INNER JOIN job_counts AS j ON j.array = s.first_job AND j.state IN (
    'held', 'waiting', 'queued', 'running', 'succeeded', 'failed', 'cancelled', 'lost'
) AND {counted} GROUP BY j.array, s.first_job, j.state;

-- name: read_attempts
SELECT job, number, state, output_bytes, ran_s, body
FROM attempts WHERE job IN (SELECT CAST(value AS BIGINT) FROM @list)
ORDER BY job, number;

-- An attempt ended no later than its job, so the order of jobs finds all of a span.

-- name: attempts_since
SELECT a.job, a.number, a.state, a.body, j.owner, j.state, j.attempts, j.finished_at
FROM jobs AS j INNER JOIN attempts AS a ON a.job = j.id
WHERE j.finished_at BETWEEN ? AND ? AND (j.finished_at, a.job, a.number) < (?, ?, ?)
ORDER BY j.finished_at DESC, a.job DESC, a.number DESC LIMIT ?;

-- Sums are by the hour or the day in which attempts ended.

-- name: held_since
SELECT ended_in, began_in, owner, project, worker, allocation,
    began_at, ended_at, held_us, attempts
FROM held_sums WHERE ended_in > ? AND ended_at >= ?;

-- name: remove_old_held_sums
DELETE FROM held_sums WHERE ended_in < ?;

-- name: read_specs
SELECT id, body FROM specs WHERE id IN (SELECT CAST(value AS BIGINT) FROM @list);

-- name: select_ids
SELECT j.id FROM jobs AS j WHERE ({where}) AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) ORDER BY j.id;

-- Jobs that were cancelled because another one ended in another way.

-- name: cancelled_dependents
SELECT id, spec FROM jobs
WHERE state = 'cancelled' AND body LIKE '%"reason":"waited for job %';

-- name: finished_before
SELECT id FROM jobs
WHERE finished_at < ? AND state NOT IN ('held', 'waiting', 'queued', 'running')
ORDER BY finished_at LIMIT ? OFFSET ?;

-- name: owned_by
SELECT id FROM jobs
WHERE id IN (SELECT CAST(value AS BIGINT) FROM @list) AND owner = ? ORDER BY id;

-- name: add_removal
INSERT INTO removals (id, worker, paths, bytes) VALUES (?, ?, ?, ?);

-- name: remove_removal
DELETE FROM removals WHERE id = ?;

-- name: load_removals
SELECT id, worker, bytes FROM removals ORDER BY id;

-- name: read_removal
SELECT paths FROM removals WHERE id = ?;

-- name: remove_events_of
DELETE FROM events WHERE job = ?;

-- name: remove_attempts_of
DELETE FROM attempts WHERE job = ?;

-- name: remove_job
DELETE FROM jobs WHERE id = ?;

-- name: remove_unused_spec
DELETE FROM specs
WHERE id = ? AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.spec = specs.id);

-- name: remove_unused_env
DELETE FROM envs
WHERE id = ? AND NOT EXISTS (SELECT 1 FROM specs AS s WHERE s.base_env = envs.id);

-- name: remove_unused_specs
DELETE FROM specs
WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.spec = specs.id);

-- name: remove_unused_envs
DELETE FROM envs
WHERE NOT EXISTS (SELECT 1 FROM specs AS s WHERE s.base_env = envs.id);
