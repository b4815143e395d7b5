BEGIN TRANSACTION;
CREATE TABLE arrivals (
    first_job INTEGER PRIMARY KEY,
    last_job INTEGER NOT NULL
);
CREATE TABLE attempts (
    job INTEGER NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    boot TEXT NOT NULL,
    state TEXT NOT NULL,
    allocation TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    pid INTEGER,
    exit_code INTEGER,
    signal INTEGER,
    reason TEXT,
    output TEXT,
    output_offset INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL,
    stderr TEXT,
    max_rss INTEGER,
    cpu_s REAL,
    after_job INTEGER,
    PRIMARY KEY (job, number)
) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,1,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1005000000,1006000000,4711,0,NULL,NULL,'"/out"',0,12,NULL,5000000,1.25,NULL);
INSERT INTO "attempts" VALUES(2,1,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1008000000,1009000000,4712,3,NULL,'exit 3','"/out"',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(3,1,'worker-1','boot-1','lost','{"gpu":{"0":5000}}',1011000000,1012000000,100,NULL,NULL,'the machine was restarted','"/out"',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(4,1,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1014000000,1015000000,100,NULL,9,NULL,'"/out"',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(7,1,'worker-1','boot-1','running','{"cpu":{"0":10000},"ram":{"0":20000}}',1023000000,NULL,4717,NULL,NULL,NULL,'"/out"',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(8,1,'worker-1','boot-1','running','{"cpu":{"1":10000}}',1025000000,NULL,4718,NULL,NULL,NULL,'"/out"',0,0,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(9,1,'worker-1','boot-1','starting','{"cpu":{"2":10000}}',1028000000,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL);
CREATE TABLE calls (
    key TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    first_job INTEGER NOT NULL,
    last_job INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "calls" VALUES('a-key','uid:1000',10,12,1029000000);
CREATE TABLE envs (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    body TEXT NOT NULL
);
INSERT INTO "envs" VALUES(1,'uid:1000','{"HOME":"/root","PATH":"/bin"}');
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    job INTEGER,
    attempt INTEGER,
    data TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,1001000000,'scheduler','worker-connected',NULL,NULL,'{"worker":"worker-1","name":"desk"}');
INSERT INTO "events" VALUES(2,1002000000,'uid:1000','queue-created',NULL,NULL,'{"queue":"q1","worker":"worker-1"}');
INSERT INTO "events" VALUES(3,1003000000,'uid:1000','queue-created',NULL,NULL,'{"queue":"paused","worker":"worker-1"}');
INSERT INTO "events" VALUES(4,1004000000,'uid:1000','paused',NULL,NULL,'{"queue":"paused"}');
INSERT INTO "events" VALUES(5,1005000000,'uid:1000','enqueued',1,NULL,'{"last":1}');
INSERT INTO "events" VALUES(6,1005000000,'scheduler','started',1,1,'{"worker":"worker-1","units":{"cpu":{"0":10000}}}');
INSERT INTO "events" VALUES(7,1007000000,'scheduler','finished',1,1,'{"exit_code":0,"signal":null}');
INSERT INTO "events" VALUES(8,1008000000,'uid:1000','enqueued',2,NULL,'{"last":2}');
INSERT INTO "events" VALUES(9,1008000000,'scheduler','started',2,1,'{"worker":"worker-1","units":{"cpu":{"0":10000}}}');
INSERT INTO "events" VALUES(10,1010000000,'scheduler','finished',2,1,'{"exit_code":3,"signal":null}');
INSERT INTO "events" VALUES(11,1011000000,'uid:1000','enqueued',3,NULL,'{"last":3}');
INSERT INTO "events" VALUES(12,1011000000,'scheduler','started',3,1,'{"worker":"worker-1","units":{"gpu":{"0":5000}}}');
INSERT INTO "events" VALUES(13,1013000000,'scheduler','finished',3,1,'{"exit_code":null,"signal":null}');
INSERT INTO "events" VALUES(14,1014000000,'uid:1000','enqueued',4,NULL,'{"last":4}');
INSERT INTO "events" VALUES(15,1014000000,'scheduler','started',4,1,'{"worker":"worker-1","units":{"cpu":{"0":10000}}}');
INSERT INTO "events" VALUES(16,1016000000,'scheduler','finished',4,1,'{"exit_code":null,"signal":9}');
INSERT INTO "events" VALUES(17,1017000000,'uid:1000','enqueued',5,NULL,'{"last":5}');
INSERT INTO "events" VALUES(18,1018000000,'uid:1000','cancelled',5,NULL,'{}');
INSERT INTO "events" VALUES(22,1022000000,'uid:1000','pruned',NULL,NULL,'{"jobs":1}');
INSERT INTO "events" VALUES(23,1023000000,'uid:1000','enqueued',7,NULL,'{"last":7}');
INSERT INTO "events" VALUES(24,1023000000,'scheduler','started',7,1,'{"worker":"worker-1","units":{"cpu":{"0":10000},"ram":{"0":20000}}}');
INSERT INTO "events" VALUES(25,1025000000,'uid:1000','enqueued',8,NULL,'{"last":8}');
INSERT INTO "events" VALUES(26,1025000000,'scheduler','started',8,1,'{"worker":"worker-1","units":{"cpu":{"1":10000}}}');
INSERT INTO "events" VALUES(27,1027000000,'uid:1000','cancelled',8,1,'{}');
INSERT INTO "events" VALUES(28,1028000000,'uid:1000','enqueued',9,NULL,'{"last":9}');
INSERT INTO "events" VALUES(29,1028000000,'scheduler','started',9,1,'{"worker":"worker-1","units":{"cpu":{"2":10000}}}');
INSERT INTO "events" VALUES(30,1029000000,'uid:1000','enqueued',10,NULL,'{"last":12}');
INSERT INTO "events" VALUES(31,1030000000,'uid:1000','enqueued',13,NULL,'{"last":13}');
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    spec INTEGER NOT NULL REFERENCES specs (id),
    words TEXT NOT NULL,
    shell INTEGER NOT NULL,
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    owner TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    exit_code INTEGER,
    signal INTEGER,
    reason TEXT,
    attempts INTEGER NOT NULL,
    stopping_since INTEGER
);
INSERT INTO "jobs" VALUES(1,1,'["python","fit.py"]',0,'fit','thesis','uid:1000','default',3,'succeeded',1005000000,1005000000,1006000000,0,NULL,NULL,1,NULL);
INSERT INTO "jobs" VALUES(2,2,'["false"]',0,'false','default','uid:1000','default',0,'failed',1008000000,1008000000,1009000000,3,NULL,'exit 3',1,NULL);
INSERT INTO "jobs" VALUES(3,3,'["sleep 5"]',0,'echo','default','uid:1000','q1',0,'lost',1011000000,1011000000,1012000000,NULL,NULL,'the machine was restarted',1,NULL);
INSERT INTO "jobs" VALUES(4,4,'["sleep","9"]',0,'sleep','default','uid:1000','default',0,'failed',1014000000,1014000000,1015000000,NULL,9,NULL,1,NULL);
INSERT INTO "jobs" VALUES(5,5,'["x"]',0,'x','default','uid:1000','paused',0,'cancelled',1017000000,NULL,1018000000,NULL,NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(7,7,'["long"]',0,'long','default','uid:1000','default',0,'running',1023000000,1023000000,NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO "jobs" VALUES(8,8,'["stopping"]',0,'stopping','default','uid:1000','default',0,'running',1025000000,1025000000,NULL,NULL,NULL,NULL,1,1027000000);
INSERT INTO "jobs" VALUES(9,8,'["starting"]',0,'starting','default','uid:1000','default',0,'running',1028000000,1028000000,NULL,NULL,NULL,NULL,1,NULL);
INSERT INTO "jobs" VALUES(10,9,'["big","0"]',0,'big','p','uid:1000','default',0,'queued',1029000000,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(11,9,'["big","1"]',0,'big','p','uid:1000','default',0,'queued',1029000000,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(12,9,'["big","2"]',0,'big','p','uid:1000','default',0,'queued',1029000000,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(13,8,'["waits"]',0,'waits','default','uid:1000','paused',0,'queued',1030000000,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE leases (
    id TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    owner TEXT NOT NULL,
    allocation TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "meta" VALUES('cluster','170d32b81c031851');
INSERT INTO "meta" VALUES('last_job','13');
INSERT INTO "meta" VALUES('paused','0');
CREATE TABLE queues (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    default_request TEXT,
    max_running INTEGER
) WITHOUT ROWID;
INSERT INTO "queues" VALUES('default',1000000000,0,NULL,NULL);
INSERT INTO "queues" VALUES('paused',1003000000,1,NULL,NULL);
INSERT INTO "queues" VALUES('q1',1002000000,0,'[["gpu",5000]]',2);
CREATE TABLE specs (
    id INTEGER PRIMARY KEY,
    base_env INTEGER REFERENCES envs (id),
    body TEXT NOT NULL
);
INSERT INTO "specs" VALUES(1,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(2,NULL,'{"request":[["cpu",10000]],"env":[["X","caf"]],"max_output":1000}');
INSERT INTO "specs" VALUES(3,NULL,'{"request":[["gpu",5000]]}');
INSERT INTO "specs" VALUES(4,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(5,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(7,NULL,'{"request":[["cpu",10000],["ram",20000]],"output":"/tmp/{id}.log","pin":true}');
INSERT INTO "specs" VALUES(8,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(9,1,'{"request":[["cpu",40000]],"base_env":1}');
CREATE TABLE views (
    queue TEXT NOT NULL REFERENCES queues (name),
    worker TEXT NOT NULL REFERENCES workers (id),
    body TEXT NOT NULL,
    PRIMARY KEY (queue, worker)
) WITHOUT ROWID;
INSERT INTO "views" VALUES('paused','worker-1','{"capacity":{"licence":{"0":10000,"1":10000}}}');
INSERT INTO "views" VALUES('q1','worker-1','{"capacity":{"gpu":{"0":10000}},"prefix":["echo","--"],"cwd":"/tmp","env":[["A","b"]]}');
CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    boot TEXT NOT NULL,
    found TEXT NOT NULL,
    added TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('worker-1','desk','boot-1','{"cpu":{"0":{"amount":10000},"1":{"amount":10000},"2":{"amount":10000},"3":{"amount":10000}},"ram":{"0":{"amount":160000}},"gpu":{"0":{"amount":10000},"1":{"amount":10000}}}','{}');
CREATE INDEX jobs_unfinished ON jobs (state, priority DESC, id)
WHERE state IN ('held', 'waiting', 'queued', 'running');
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX calls_at ON calls (at);
CREATE INDEX events_job ON events (job) WHERE job IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',31);
COMMIT;
PRAGMA user_version = 1;
