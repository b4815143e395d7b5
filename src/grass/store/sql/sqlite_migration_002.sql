-- Arrays, retries, suspended jobs, queues that pause by themselves, drained units.

ALTER TABLE jobs ADD COLUMN array_index INTEGER;
ALTER TABLE jobs ADD COLUMN array INTEGER;
ALTER TABLE jobs ADD COLUMN not_before INTEGER;
ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN suspended_since INTEGER;
ALTER TABLE jobs ADD COLUMN met INTEGER NOT NULL DEFAULT 0;

ALTER TABLE attempts ADD COLUMN stderr_offset INTEGER NOT NULL DEFAULT 0;

ALTER TABLE queues ADD COLUMN max_fails INTEGER;
ALTER TABLE queues ADD COLUMN fails INTEGER NOT NULL DEFAULT 0;
ALTER TABLE queues ADD COLUMN paused_reason TEXT;

ALTER TABLE workers ADD COLUMN drained TEXT NOT NULL DEFAULT '{}';

-- How many members of an array have failed since its queue was last resumed.
CREATE TABLE arrays (
    first_job INTEGER PRIMARY KEY,
    fails INTEGER NOT NULL
);
