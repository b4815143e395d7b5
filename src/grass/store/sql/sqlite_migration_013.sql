-- Which blobs are named: functions by specs, arguments by jobs. A blob that nobody names
-- is removed.
CREATE TABLE spec_blobs (
    spec INTEGER PRIMARY KEY,
    blob TEXT NOT NULL
);
CREATE INDEX spec_blobs_blob ON spec_blobs (blob);
CREATE TABLE job_blobs (
    job INTEGER PRIMARY KEY,
    blob TEXT NOT NULL
);
CREATE INDEX job_blobs_blob ON job_blobs (blob);
CREATE TRIGGER forget_spec_blob AFTER DELETE ON specs BEGIN
    DELETE FROM spec_blobs WHERE spec = old.id;
END;
CREATE TRIGGER forget_job_blob AFTER DELETE ON jobs BEGIN
    DELETE FROM job_blobs WHERE job = old.id;
END;
