-- What is learned of each type of job on each model of GPU.
CREATE TABLE profiles (
    job_type TEXT NOT NULL,
    model TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job_type, model)
) WITHOUT ROWID;
