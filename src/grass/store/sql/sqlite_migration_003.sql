-- Many machines: what is known of a worker that comes and goes, and who may call.

ALTER TABLE workers ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE workers ADD COLUMN lease_s REAL;
ALTER TABLE workers ADD COLUMN resting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN address TEXT;
ALTER TABLE workers ADD COLUMN heard_at INTEGER;
ALTER TABLE workers ADD COLUMN instance TEXT NOT NULL DEFAULT '';
ALTER TABLE workers ADD COLUMN apart TEXT NOT NULL DEFAULT '{}';

-- Tokens, and codes that are exchanged for one. The secret itself is nowhere.
CREATE TABLE tokens (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    is_code INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    used_at INTEGER
) WITHOUT ROWID;
