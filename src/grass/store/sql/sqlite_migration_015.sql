-- What attempts of forgotten jobs held: see `model/usage/held_sums.py`.
CREATE TABLE held_sums (
    ended_in INTEGER NOT NULL,
    began_in INTEGER NOT NULL,
    owner TEXT NOT NULL,
    project TEXT NOT NULL,
    worker TEXT NOT NULL,
    allocation TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    held_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (ended_in, began_in, owner, project, worker, allocation)
) WITHOUT ROWID;

-- Dependencies are ranges of jobs, `[need, first, last]`; they were single jobs,
-- `[job, need]`. Jobs that follow on each other become one range.
UPDATE specs SET body = json_set(body, '$.after', (
    SELECT json_group_array(json_array(need, first, last)) FROM (
        SELECT need, MIN(job) AS first, MAX(job) AS last FROM (
            SELECT job, need,
                job - ROW_NUMBER() OVER (PARTITION BY need ORDER BY job) AS run
            FROM (
                SELECT DISTINCT
                    json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS need
                FROM json_each(specs.body, '$.after')
            )
        )
        GROUP BY need, run ORDER BY need, first
    )
)) WHERE json_array_length(body, '$.after') > 0;
