-- Times are the broker's, durations are measured where a job ran.

ALTER TABLE attempts ADD COLUMN ran_s REAL;

UPDATE attempts SET ran_s = MAX(0, finished_at - started_at) / 1e6
WHERE finished_at IS NOT NULL;

-- When a job ended was told by its worker's clock, which may have been wrong. The
-- journal knows when the broker heard of it, or cancelled it before it started.

UPDATE jobs SET finished_at = (
    SELECT MAX(at) FROM events WHERE job = jobs.id AND kind IN ('finished', 'cancelled')
) WHERE ABS(finished_at - (
    SELECT MAX(at) FROM events WHERE job = jobs.id AND kind IN ('finished', 'cancelled')
)) > 60000000;
