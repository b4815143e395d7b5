-- Pools, and the pilots that their engines were asked for.
CREATE TABLE pools (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TABLE pilots (
    mark TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
