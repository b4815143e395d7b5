-- Jobs in every order in which people look at a history of them, and by owner. A body
-- that is no JSON must not fail whatever else is done to its job.
CREATE INDEX jobs_name ON jobs (name);
CREATE INDEX jobs_owner ON jobs (owner);
CREATE INDEX jobs_priority ON jobs (priority);
CREATE INDEX jobs_started ON jobs (
    CASE WHEN JSON_VALID(body) THEN JSON_EXTRACT(body, '$.started_at') END
);
CREATE INDEX jobs_duration ON jobs (
    finished_at
    - CASE WHEN JSON_VALID(body) THEN JSON_EXTRACT(body, '$.started_at') END
);
