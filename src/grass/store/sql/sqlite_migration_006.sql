-- Jobs are looked at by state, queue and project, in the order of their ids, of which
-- every index has them. In the order of starting they are looked at in memory.

DROP INDEX jobs_unfinished;

CREATE INDEX jobs_state ON jobs (state);
CREATE INDEX jobs_queue ON jobs (queue);
CREATE INDEX jobs_project ON jobs (project);
