-- What attempts of forgotten jobs held: see `model/usage/held_sums.py`.
CREATE TABLE held_sums (
    ended_in BIGINT NOT NULL,
    began_in BIGINT NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    worker TEXT COLLATE "C" NOT NULL,
    allocation TEXT COLLATE "C" NOT NULL,
    began_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    held_us BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    PRIMARY KEY (ended_in, began_in, owner, project, worker, allocation)
);

-- Dependencies are ranges of jobs, `[need, first, last]`; they were single jobs,
-- `[job, need]`. Jobs that follow on each other become one range.
UPDATE specs SET body = jsonb_set(body::jsonb, '{after}', (
    SELECT jsonb_agg(jsonb_build_array(need, first, last) ORDER BY need COLLATE "C", first)
    FROM (
        SELECT need, MIN(job) AS first, MAX(job) AS last FROM (
            SELECT job, need,
                job - ROW_NUMBER() OVER (PARTITION BY need ORDER BY job) AS run
            FROM (
                SELECT DISTINCT (value->>0)::bigint AS job, value->>1 AS need
                FROM jsonb_array_elements(body::jsonb->'after')
            ) AS named
        ) AS numbered
        GROUP BY need, run
    ) AS runs
))::text WHERE jsonb_array_length(body::jsonb->'after') > 0;
