-- How many jobs there are in each state, by what they are looked for; array 0 has those
-- of no array. A view of a million jobs counts none of them.
CREATE TABLE job_counts (
    state TEXT NOT NULL,
    array INTEGER NOT NULL,
    queue TEXT NOT NULL,
    project TEXT NOT NULL,
    owner TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    PRIMARY KEY (state, array, queue, project, owner)
) WITHOUT ROWID;

INSERT INTO job_counts
SELECT j.state, COALESCE(j.array, 0), j.queue, j.project, j.owner, COUNT(*)
FROM jobs AS j WHERE NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) GROUP BY 1, 2, 3, 4, 5;

-- The last job of an array, its first start, and its last end so far.
CREATE TABLE array_spans (
    first_job INTEGER PRIMARY KEY,
    last_job INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER
);

INSERT INTO array_spans
SELECT
    j.array, MAX(j.id), MIN(JSON_EXTRACT(j.body, '$.started_at')), MAX(j.finished_at)
FROM jobs AS j WHERE j.array IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) GROUP BY j.array;

CREATE INDEX array_spans_finished ON array_spans (finished_at)
WHERE finished_at IS NOT NULL;

-- Members of each array, and jobs of none, in the order of starting and of ending.
CREATE INDEX jobs_next ON jobs (array, state, priority DESC)
WHERE state IN ('held', 'waiting', 'queued');
CREATE INDEX jobs_ended ON jobs (array, finished_at) WHERE finished_at IS NOT NULL;

-- One event tells of all jobs of a call, by the first of them.
CREATE INDEX events_enqueued ON events (job) WHERE kind = 'enqueued';
