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
