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
