-- Why a worker was drained where no person did it, and how many tokens a code made.

ALTER TABLE workers ADD COLUMN resting_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
