BEGIN TRANSACTION;
CREATE TABLE arrays (
    first_job INTEGER PRIMARY KEY,
    fails INTEGER NOT NULL
);
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
    after_job INTEGER, stderr_offset INTEGER NOT NULL DEFAULT 0, ran_s REAL,
    PRIMARY KEY (job, number)
) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,1,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1008000000,1009000000,4711,0,NULL,NULL,'"/out"',0,12,NULL,5000000,1.25,NULL,0,1.0);
INSERT INTO "attempts" VALUES(2,1,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1011000000,1012000000,4712,3,NULL,'exit 3','"/out"',0,0,NULL,NULL,NULL,NULL,0,1.0);
INSERT INTO "attempts" VALUES(2,2,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1013000000,1014000000,4713,3,NULL,'exit 3','"/out"',0,0,NULL,NULL,NULL,NULL,0,1.0);
INSERT INTO "attempts" VALUES(3,1,'worker-1','boot-1','lost','{"gpu":{"0":5000}}',1016000000,1017000000,100,NULL,NULL,'the machine was restarted','"/out"',0,0,NULL,NULL,NULL,NULL,0,1.0);
INSERT INTO "attempts" VALUES(4,1,'worker-1','boot-1','exited','{"cpu":{"0":10000}}',1019000000,1020000000,100,NULL,9,NULL,'"/out"',0,0,NULL,NULL,NULL,NULL,0,1.0);
INSERT INTO "attempts" VALUES(7,1,'worker-1','boot-1','running','{"cpu":{"0":10000},"ram":{"0":20000}}',1028000000,NULL,4717,NULL,NULL,NULL,'"/out"',0,0,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "attempts" VALUES(8,1,'worker-1','boot-1','running','{"cpu":{"1":10000}}',1031000000,NULL,4718,NULL,NULL,NULL,'"/out"',0,0,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO "attempts" VALUES(9,1,'worker-1','boot-1','starting','{"cpu":{"2":10000}}',1033000000,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE calls (
    key TEXT PRIMARY KEY,
    actor TEXT NOT NULL,
    first_job INTEGER NOT NULL,
    last_job INTEGER NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "calls" VALUES('a-key','uid:1000',10,12,1034000000);
CREATE TABLE envs (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    body TEXT NOT NULL
);
INSERT INTO "envs" VALUES(1,'uid:1000','{"PATH":"/bin"}');
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    kind TEXT NOT NULL,
    job INTEGER,
    attempt INTEGER,
    data TEXT NOT NULL
);
INSERT INTO "events" VALUES(2,1002000000,'uid:1000','queue-created',NULL,NULL,'{"queue":"q1","worker":"worker-1"}');
INSERT INTO "events" VALUES(3,1003000000,'uid:1000','queue-created',NULL,NULL,'{"queue":"paused","worker":"worker-1"}');
INSERT INTO "events" VALUES(4,1004000000,'uid:1000','paused',NULL,NULL,'{"queue":"paused"}');
INSERT INTO "events" VALUES(5,1005000000,'uid:1000','units-added',NULL,NULL,'{"worker":"worker-1","units":{"printer":{"0":10000}}}');
INSERT INTO "events" VALUES(6,1006000000,'uid:1000','drained',NULL,NULL,'{"worker":"worker-1","unit":"cpu:3"}');
INSERT INTO "events" VALUES(7,1007000000,'uid:1000','enqueued',1,NULL,'{"last":1}');
INSERT INTO "events" VALUES(8,1007000000,'scheduler','started',1,1,'{"worker":"desk","units":{"cpu":{"0":1}}}');
INSERT INTO "events" VALUES(9,1009000000,'scheduler','finished',1,1,'{"state":"succeeded","exit_code":0,"signal":null}');
INSERT INTO "events" VALUES(10,1010000000,'uid:1000','enqueued',2,NULL,'{"last":2}');
INSERT INTO "events" VALUES(11,1010000000,'scheduler','started',2,1,'{"worker":"desk","units":{"cpu":{"0":1}}}');
INSERT INTO "events" VALUES(12,1012000000,'scheduler','finished',2,1,'{"state":"failed","exit_code":3,"signal":null}');
INSERT INTO "events" VALUES(13,1012000000,'scheduler','retried',2,NULL,'{"times":1}');
INSERT INTO "events" VALUES(14,1012000000,'scheduler','started',2,2,'{"worker":"desk","units":{"cpu":{"0":1}}}');
INSERT INTO "events" VALUES(15,1014000000,'scheduler','finished',2,2,'{"state":"failed","exit_code":3,"signal":null}');
INSERT INTO "events" VALUES(16,1015000000,'uid:1000','enqueued',3,NULL,'{"last":3}');
INSERT INTO "events" VALUES(17,1015000000,'scheduler','started',3,1,'{"worker":"desk","units":{"gpu":{"0":0.5}}}');
INSERT INTO "events" VALUES(18,1017000000,'scheduler','finished',3,1,'{"state":"lost","exit_code":null,"signal":null}');
INSERT INTO "events" VALUES(19,1018000000,'uid:1000','enqueued',4,NULL,'{"last":4}');
INSERT INTO "events" VALUES(20,1018000000,'scheduler','started',4,1,'{"worker":"desk","units":{"cpu":{"0":1}}}');
INSERT INTO "events" VALUES(21,1020000000,'scheduler','finished',4,1,'{"state":"failed","exit_code":null,"signal":9}');
INSERT INTO "events" VALUES(22,1021000000,'uid:1000','enqueued',5,NULL,'{"last":5}');
INSERT INTO "events" VALUES(23,1022000000,'uid:1000','cancelled',5,NULL,'{}');
INSERT INTO "events" VALUES(27,1026000000,'uid:1000','pruned',NULL,NULL,'{"jobs":1}');
INSERT INTO "events" VALUES(28,1027000000,'uid:1000','enqueued',7,NULL,'{"last":7}');
INSERT INTO "events" VALUES(29,1027000000,'scheduler','started',7,1,'{"worker":"desk","units":{"cpu":{"0":1},"ram":{"0":2}}}');
INSERT INTO "events" VALUES(30,1029000000,'uid:1000','suspended',7,1,'{}');
INSERT INTO "events" VALUES(31,1030000000,'uid:1000','enqueued',8,NULL,'{"last":8}');
INSERT INTO "events" VALUES(32,1030000000,'scheduler','started',8,1,'{"worker":"desk","units":{"cpu":{"1":1}}}');
INSERT INTO "events" VALUES(33,1032000000,'uid:1000','cancelled',8,1,'{}');
INSERT INTO "events" VALUES(34,1033000000,'uid:1000','enqueued',9,NULL,'{"last":9}');
INSERT INTO "events" VALUES(35,1033000000,'scheduler','started',9,1,'{"worker":"desk","units":{"cpu":{"2":1}}}');
INSERT INTO "events" VALUES(36,1034000000,'uid:1000','enqueued',10,NULL,'{"last":12}');
INSERT INTO "events" VALUES(37,1035000000,'uid:1000','enqueued',13,NULL,'{"last":13}');
INSERT INTO "events" VALUES(38,1036000000,'uid:1000','enqueued',14,NULL,'{"last":14}');
INSERT INTO "events" VALUES(39,1037000000,'uid:1000','enqueued',15,NULL,'{"last":15}');
INSERT INTO "events" VALUES(40,1038000000,'uid:1000','enqueued',16,NULL,'{"last":16}');
INSERT INTO "events" VALUES(41,1039000000,'uid:1000','enqueued',17,NULL,'{"last":19}');
INSERT INTO "events" VALUES(42,1040000000,'uid:1000','token-created',NULL,NULL,'{"name":"code","role":"machine","code":true}');
INSERT INTO "events" VALUES(43,1041000000,'token:laptop','machine-joined',NULL,NULL,'{"name":"laptop","worker":"00000000000000b2","role":"machine","code":"code"}');
INSERT INTO "events" VALUES(44,1042000000,'uid:1000','token-created',NULL,NULL,'{"name":"page","role":"read","code":false}');
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
, array_index INTEGER, array INTEGER, not_before INTEGER, failures INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0, suspended_since INTEGER, met INTEGER NOT NULL DEFAULT 0);
INSERT INTO "jobs" VALUES(1,1,'["python","fit.py"]',0,'fit','thesis','uid:1000','default',3,'succeeded',1007000000,1008000000,1009000000,0,NULL,NULL,1,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(2,2,'["false"]',0,'false','default','uid:1000','default',0,'failed',1010000000,1013000000,1014000000,3,NULL,'exit 3',2,NULL,NULL,NULL,NULL,1,0,NULL,0);
INSERT INTO "jobs" VALUES(3,3,'["sleep 5"]',0,'echo','default','uid:1000','q1',0,'lost',1015000000,1016000000,1017000000,NULL,NULL,'the machine was restarted',1,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(4,4,'["sleep","9"]',0,'sleep','default','uid:1000','default',0,'failed',1018000000,1019000000,1020000000,NULL,9,NULL,1,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(5,5,'["x"]',0,'x','default','uid:1000','paused',0,'cancelled',1021000000,NULL,1022000000,NULL,NULL,'cancelled',0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(7,7,'["long"]',0,'long','default','uid:1000','default',0,'running',1027000000,1028000000,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,0,0,1029000000,0);
INSERT INTO "jobs" VALUES(8,8,'["stopping"]',0,'stopping','default','uid:1000','default',0,'running',1030000000,1031000000,NULL,NULL,NULL,NULL,1,1032000000,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(9,8,'["starting"]',0,'starting','default','uid:1000','default',0,'running',1033000000,1033000000,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(10,9,'["big","0"]',0,'big','p','uid:1000','default',0,'queued',1034000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(11,9,'["big","1"]',0,'big','p','uid:1000','default',0,'queued',1034000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(12,9,'["big","2"]',0,'big','p','uid:1000','default',0,'queued',1034000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(13,8,'["waits"]',0,'waits','default','uid:1000','paused',0,'queued',1035000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(14,8,'["held"]',0,'held','default','uid:1000','default',0,'held',1036000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(15,10,'["after"]',0,'after','default','uid:1000','default',0,'waiting',1037000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(16,11,'["later"]',0,'later','default','uid:1000','default',0,'waiting',1038000000,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(17,12,'["true"]',0,'true','default','uid:1000','default',0,'queued',1039000000,NULL,NULL,NULL,NULL,NULL,0,NULL,1,17,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(18,12,'["true"]',0,'true','default','uid:1000','default',0,'queued',1039000000,NULL,NULL,NULL,NULL,NULL,0,NULL,2,17,NULL,0,0,NULL,0);
INSERT INTO "jobs" VALUES(19,12,'["true"]',0,'true','default','uid:1000','default',0,'queued',1039000000,NULL,NULL,NULL,NULL,NULL,0,NULL,3,17,NULL,0,0,NULL,0);
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
INSERT INTO "meta" VALUES('cluster','218ecc90a97f4c51');
INSERT INTO "meta" VALUES('last_job','19');
INSERT INTO "meta" VALUES('last_removal','1');
INSERT INTO "meta" VALUES('paused','0');
CREATE TABLE queues (
    name TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    default_request TEXT,
    max_running INTEGER
, max_fails INTEGER, fails INTEGER NOT NULL DEFAULT 0, paused_reason TEXT) WITHOUT ROWID;
INSERT INTO "queues" VALUES('default',1000000000,0,NULL,NULL,NULL,0,NULL);
INSERT INTO "queues" VALUES('paused',1003000000,1,NULL,NULL,NULL,0,NULL);
INSERT INTO "queues" VALUES('q1',1002000000,0,'[["gpu",5000]]',2,3,0,NULL);
CREATE TABLE removals (
    id INTEGER PRIMARY KEY,
    worker TEXT NOT NULL,
    paths TEXT NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE TABLE specs (
    id INTEGER PRIMARY KEY,
    base_env INTEGER REFERENCES envs (id),
    body TEXT NOT NULL
);
INSERT INTO "specs" VALUES(1,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(2,NULL,'{"request":[["cpu",10000]],"max_output":1000,"retries":1}');
INSERT INTO "specs" VALUES(3,NULL,'{"request":[["gpu",5000]],"prefix":["echo"],"queue_cwd":"/tmp"}');
INSERT INTO "specs" VALUES(4,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(5,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(7,NULL,'{"request":[["cpu",10000],["ram",20000]],"output":"/tmp/{id}"}');
INSERT INTO "specs" VALUES(8,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(9,1,'{"request":[["cpu",30000]],"base_env":1}');
INSERT INTO "specs" VALUES(10,NULL,'{"request":[["cpu",10000]],"after":[[7,"any"]]}');
INSERT INTO "specs" VALUES(11,NULL,'{"request":[["cpu",10000]],"begin_at":2000000000000000}');
INSERT INTO "specs" VALUES(12,NULL,'{"request":[["cpu",30000]],"at_most":2,"max_fails":1}');
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
, made INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
INSERT INTO "tokens" VALUES('code','machine',X'CA978112CA1BBDCAFAC231B39A23DC4DA786EFF8147C4E72B9807785AFEE48BB',1040000000,'uid:1000',4639000000,1,NULL,1041000000,1);
INSERT INTO "tokens" VALUES('laptop','machine',X'3E23E8160039594A33894F6564E1B1348BBD7A0088D42C4ACB73EEAED59C009D',1041000000,'uid:1000',NULL,0,'00000000000000b2',NULL,0);
INSERT INTO "tokens" VALUES('page','read',X'2E7D2C03A9507AE265ECF5B5356885A53393A2029D241394997265A1A25AEFC6',1042000000,'uid:1000',NULL,0,NULL,NULL,0);
CREATE TABLE views (
    queue TEXT NOT NULL REFERENCES queues (name),
    worker TEXT NOT NULL REFERENCES workers (id),
    body TEXT NOT NULL,
    PRIMARY KEY (queue, worker)
) WITHOUT ROWID;
INSERT INTO "views" VALUES('paused','worker-1','{"capacity":{"licence":{"0":10000,"1":10000}}}');
INSERT INTO "views" VALUES('q1','worker-1','{"capacity":{"gpu":{"0":10000}},"prefix":["echo"],"cwd":"/tmp","env":[["A","b"]]}');
CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    boot TEXT NOT NULL,
    found TEXT NOT NULL,
    added TEXT NOT NULL
, drained TEXT NOT NULL DEFAULT '{}', labels TEXT NOT NULL DEFAULT '[]', lease_s REAL, resting INTEGER NOT NULL DEFAULT 0, address TEXT, heard_at INTEGER, instance TEXT NOT NULL DEFAULT '', apart TEXT NOT NULL DEFAULT '{}', resting_reason TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
INSERT INTO "workers" VALUES('worker-1','desk','boot-1','{"cpu":{"0":{"amount":10000},"1":{"amount":10000},"2":{"amount":10000},"3":{"amount":10000}},"ram":{"0":{"amount":160000}},"gpu":{"0":{"amount":10000},"1":{"amount":10000}}}','{"printer":{"0":10000}}','{"cpu":["3"]}','[]',NULL,0,NULL,1001000000,'','{}','');
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX calls_at ON calls (at);
CREATE INDEX events_job ON events (job) WHERE job IS NOT NULL;
CREATE INDEX jobs_spec ON jobs (spec);
CREATE INDEX specs_env ON specs (base_env) WHERE base_env IS NOT NULL;
CREATE INDEX jobs_state ON jobs (state);
CREATE INDEX jobs_queue ON jobs (queue);
CREATE INDEX jobs_project ON jobs (project);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',44);
COMMIT;
PRAGMA user_version = 7;
