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
-- `[job, need]`. Jobs that follow on each other become one range. Only this part of a
-- body is read as JSON: bytes that are not UTF-8 are lone surrogates, which `jsonb` refuses.
UPDATE specs SET body = replace(body, '"after":' || named.old, '"after":' || (
    SELECT json_agg(json_build_array(need, first, last) ORDER BY need COLLATE "C", first)::text
    FROM (
        SELECT need, MIN(job) AS first, MAX(job) AS last FROM (
            SELECT job, need,
                job - ROW_NUMBER() OVER (PARTITION BY need ORDER BY job) AS run
            FROM (
                SELECT DISTINCT (value->>0)::bigint AS job, value->>1 AS need
                FROM jsonb_array_elements(named.old::jsonb)
            ) AS singles
        ) AS numbered
        GROUP BY need, run
    ) AS runs
)) FROM (
    SELECT id, substring(body FROM '"after":(\[\[[^]]*\](?:,\[[^]]*\])*\])') AS old FROM specs
) AS named WHERE named.id = specs.id AND named.old IS NOT NULL;
