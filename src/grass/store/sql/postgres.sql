-- Named statements that only PostgreSQL takes in this form.

-- Both rows stay locked until the transaction ends: nobody takes the lead meanwhile, and
-- no other commit gets a line of the journal.

-- name: begin_writing
SELECT l.epoch, l.holder, j.last FROM lead AS l CROSS JOIN journal AS j
FOR KEY SHARE OF l FOR UPDATE OF j;

-- name: advance_journal
UPDATE journal SET last = last + ?;

-- name: add_event
INSERT INTO events (seq, at, actor, kind, job, attempt, data)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: last_event
SELECT last FROM journal;

-- name: add_call
INSERT INTO calls (key, actor, first_job, last_job, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (md5(key)) DO UPDATE SET
    actor = excluded.actor,
    first_job = excluded.first_job,
    last_job = excluded.last_job,
    at = excluded.at;

-- name: find_call
SELECT key, actor, first_job, last_job, at FROM calls WHERE md5(key) = md5(?);

-- name: save_profile
INSERT INTO profiles (job_type, model, body) VALUES (?, ?, ?)
ON CONFLICT (md5(job_type), md5(model)) DO UPDATE SET body = excluded.body;

-- name: remove_profile
DELETE FROM profiles WHERE md5(job_type) = md5(?) AND md5(model) = md5(?);

-- name: end_of_alike
SELECT MIN(id) FROM (
    SELECT id FROM jobs WHERE state = ? AND id > ? AND NOT (
        spec = ? AND words = ? AND shell = ? AND name = ? AND project = ?
        AND owner = ? AND queue = ? AND priority = ? AND created_at = ?
        AND "array" IS NOT DISTINCT FROM ?
        AND body IS NULL AND attempts = 0 AND finished_at IS NULL
    ) ORDER BY id LIMIT 1
) AS other;

-- name: add_held_sum
INSERT INTO held_sums (
    ended_in, began_in, owner, project, worker, allocation,
    began_at, ended_at, held_us, attempts
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (ended_in, began_in, owner, project, worker, allocation) DO UPDATE SET
    began_at = LEAST(held_sums.began_at, excluded.began_at),
    ended_at = GREATEST(held_sums.ended_at, excluded.ended_at),
    held_us = held_sums.held_us + excluded.held_us,
    attempts = held_sums.attempts + excluded.attempts;

-- name: extend_span
INSERT INTO array_spans (first_job, last_job, started_at, finished_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (first_job) DO UPDATE SET
    last_job = GREATEST(array_spans.last_job, excluded.last_job),
    started_at = LEAST(array_spans.started_at, excluded.started_at),
    finished_at = GREATEST(array_spans.finished_at, excluded.finished_at);

-- A wrong number may make a sum larger than a column holds.

-- name: output_usage
SELECT CAST(LEAST(
    COALESCE((SELECT SUM(output_bytes) FROM attempts), 0)
    + COALESCE((SELECT SUM(bytes) FROM removals), 0), 9223372036854775807
) AS BIGINT);

-- name: usage_before
SELECT
    COUNT(DISTINCT j.id),
    CAST(LEAST(COALESCE(SUM(a.output_bytes), 0), 9223372036854775807) AS BIGINT)
FROM jobs AS j LEFT JOIN attempts AS a ON a.job = j.id
WHERE j.finished_at < ? AND j.state NOT IN ('held', 'waiting', 'queued', 'running');

-- name: ends_after
SELECT state, COUNT(*) FROM jobs
WHERE finished_at > COALESCE(
    (SELECT at FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1), 0
) AND id <= ? AND state NOT IN ('held', 'waiting', 'queued', 'running')
GROUP BY state;

-- name: remove_old_worker_events
DELETE FROM events WHERE kind IN
    ('worker-connected', 'worker-disconnected', 'worker-able', 'worker-unable',
     'worker-held-back')
AND seq < (
    SELECT e.seq FROM events AS e
    WHERE e.job IS NOT NULL ORDER BY e.seq LIMIT 1
);

-- Names with placeholders are filled outside of the database.

-- name: distinct_names
SELECT DISTINCT name FROM jobs;

-- name: names_to_fill
SELECT DISTINCT name FROM jobs WHERE strpos(name, '{') > 0;

-- name: jobs_with_name
SELECT id, name, array_index, body FROM jobs
WHERE left(name, 500) = left(?, 500) AND name = ?;

-- Taking changes the key, and so waits for commits under way; renewing does not.

-- name: renew_lead
UPDATE lead SET
    address = ?, ends_at = clock_timestamp() + ? * INTERVAL '1 second'
WHERE epoch = ? AND holder = ?;

-- name: take_lead
UPDATE lead SET
    epoch = epoch + 1, holder = ?, address = ?, taken_at = clock_timestamp(),
    ends_at = clock_timestamp() + ? * INTERVAL '1 second'
WHERE (holder = ? OR ends_at <= clock_timestamp())
AND NOT EXISTS (
    SELECT 1 FROM meta
    WHERE CASE key WHEN 'schema' THEN CAST(value AS BIGINT) > ? ELSE key = 'moved' END
)
AND NOT EXISTS (
    SELECT 1 FROM brokers
    WHERE id = ? AND CAST(body AS JSON) ->> 'process' NOT IN ('', ?)
    AND seen_at > clock_timestamp() - ? * INTERVAL '1 second'
    AND seen_at <= clock_timestamp()
);

-- name: is_claimed
SELECT 1 FROM brokers
WHERE id = ? AND CAST(body AS JSON) ->> 'process' NOT IN ('', ?)
AND seen_at > clock_timestamp() - ? * INTERVAL '1 second'
AND seen_at <= clock_timestamp();

-- The clock of another server, which has taken over, may be behind.

-- name: cut_term
UPDATE lead SET ends_at = clock_timestamp() + $1 * INTERVAL '1 second'
WHERE ends_at > clock_timestamp() + $1 * INTERVAL '1 second';

-- A broker that hangs in the middle of a commit keeps its locks: its pipeline is not idle,
-- and its kernel acknowledges. Only what has waited for such a client is ended.

-- name: end_left_commits
SELECT pg_terminate_backend(a.pid)
FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
WHERE a.datname = current_database() AND a.usename = current_user
    AND a.pid <> pg_backend_pid() AND a.wait_event = 'ClientRead'
    AND a.state_change < clock_timestamp() - INTERVAL '2 seconds'
    AND l.relation = CAST('lead' AS regclass) AND l.mode = 'RowShareLock' AND l.granted
    AND EXISTS (
        SELECT 1 FROM lead WHERE holder = ? OR ends_at <= clock_timestamp()
    );

-- name: read_lead
SELECT
    holder, address, epoch,
    CAST(EXTRACT(EPOCH FROM ends_at - clock_timestamp()) AS DOUBLE PRECISION),
    CAST(EXTRACT(EPOCH FROM clock_timestamp() - taken_at) AS DOUBLE PRECISION)
FROM lead;

-- Another process of the same broker keeps its row as long as it is announced. A row of
-- the future is of a clock that has gone back since: nobody has announced it lately.

-- name: save_broker
INSERT INTO brokers (id, body, seen_at) VALUES (?, ?, clock_timestamp())
ON CONFLICT (id) DO UPDATE SET body = excluded.body, seen_at = excluded.seen_at
WHERE COALESCE(CAST(brokers.body AS JSON) ->> 'process', '') IN ('', ?)
OR CAST(brokers.body AS JSON) ->> 'lock' = ?
OR brokers.seen_at <= clock_timestamp() - ? * INTERVAL '1 second'
OR brokers.seen_at > clock_timestamp();

-- name: load_brokers
SELECT
    body, CAST(EXTRACT(EPOCH FROM clock_timestamp() - seen_at) AS DOUBLE PRECISION)
FROM brokers WHERE seen_at > clock_timestamp() - INTERVAL '7 days' ORDER BY id;

-- name: begin_draft
INSERT INTO blob_drafts DEFAULT VALUES RETURNING number;

-- name: add_piece
INSERT INTO blob_pieces (draft, begins_at, data) VALUES (?, ?, ?)
ON CONFLICT (draft, begins_at) DO NOTHING;

-- name: name_blob
WITH named AS (DELETE FROM blob_drafts WHERE number = ? RETURNING number)
INSERT INTO blobs (name, draft, size) SELECT ?, number, ? FROM named
ON CONFLICT (name) DO NOTHING;

-- name: discard_draft
WITH discarded AS (DELETE FROM blob_drafts WHERE number = ? RETURNING number)
DELETE FROM blob_pieces WHERE draft IN (SELECT number FROM discarded);

-- name: discard_pieces
DELETE FROM blob_pieces AS p
WHERE p.draft = ? AND NOT EXISTS (SELECT 1 FROM blobs AS b WHERE b.draft = p.draft);

-- name: discard_old_drafts
WITH discarded AS (
    DELETE FROM blob_drafts WHERE begun_at < now() - INTERVAL '1 day' RETURNING number
)
DELETE FROM blob_pieces WHERE draft IN (SELECT number FROM discarded);

-- name: blob_size
SELECT size FROM blobs WHERE name = ?;

-- name: missing_blobs
SELECT value FROM @list AS e
WHERE NOT EXISTS (SELECT 1 FROM blobs AS b WHERE b.name = e.value);

-- name: read_pieces
SELECT substr(
    data,
    CAST(GREATEST($2 - begins_at, 0) + 1 AS INTEGER),
    CAST($2 + $3 - GREATEST(begins_at, $2) AS INTEGER)
) FROM blob_pieces
WHERE draft = (SELECT draft FROM blobs WHERE name = $1)
AND begins_at < $2 + $3 AND begins_at + octet_length(data) > $2 ORDER BY begins_at;

-- name: remove_blobs
WITH removed AS (
    DELETE FROM blobs AS b WHERE b.name IN (SELECT value FROM @list)
    AND NOT EXISTS (SELECT 1 FROM spec_blobs AS s WHERE s.blob = b.name)
    AND NOT EXISTS (SELECT 1 FROM job_blobs AS j WHERE j.blob = b.name)
    RETURNING b.draft
)
DELETE FROM blob_pieces WHERE draft IN (SELECT draft FROM removed);

-- name: blob_names
SELECT name FROM blobs;
