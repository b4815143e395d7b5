BEGIN TRANSACTION;
CREATE TABLE array_spans (
    first_job INTEGER PRIMARY KEY,
    last_job INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER
);
INSERT INTO "array_spans" VALUES(17,19,NULL,NULL);
CREATE TABLE arrays (
    first_job INTEGER PRIMARY KEY,
    fails INTEGER NOT NULL
);
CREATE TABLE arrivals (
    first_job INTEGER PRIMARY KEY,
    last_job INTEGER NOT NULL
);
CREATE TABLE "attempts" (
    job INTEGER NOT NULL REFERENCES jobs (id),
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    output_bytes INTEGER NOT NULL,
    ran_s REAL,
    body TEXT NOT NULL,
    PRIMARY KEY (job, number)
) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,1,'exited',12,1.0,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"0":10000}},"started_at":1008000000,"finished_at":1009000000,"pid":4711,"exit_code":0,"output":"/out","max_rss":5000000,"cpu_s":1.25}');
INSERT INTO "attempts" VALUES(2,1,'exited',0,1.0,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"0":10000}},"started_at":1011000000,"finished_at":1012000000,"pid":4712,"exit_code":3,"reason":"exit 3","output":"/out"}');
INSERT INTO "attempts" VALUES(2,2,'exited',0,1.0,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"0":10000}},"started_at":1013000000,"finished_at":1014000000,"pid":4713,"exit_code":3,"reason":"exit 3","output":"/out"}');
INSERT INTO "attempts" VALUES(3,1,'lost',0,1.0,'{"worker":"worker-1","boot":"boot-1","allocation":{"gpu":{"0":5000}},"started_at":1016000000,"finished_at":1017000000,"pid":100,"reason":"the machine was restarted","output":"/out"}');
INSERT INTO "attempts" VALUES(4,1,'exited',0,1.0,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"0":10000}},"started_at":1019000000,"finished_at":1020000000,"pid":100,"signal":9,"output":"/out"}');
INSERT INTO "attempts" VALUES(7,1,'running',0,NULL,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"0":10000},"ram":{"0":20000}},"started_at":1028000000,"pid":4717,"output":"/out"}');
INSERT INTO "attempts" VALUES(8,1,'running',0,NULL,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"1":10000}},"started_at":1031000000,"pid":4718,"output":"/out"}');
INSERT INTO "attempts" VALUES(9,1,'starting',0,NULL,'{"worker":"worker-1","boot":"boot-1","allocation":{"cpu":{"2":10000}},"started_at":1033000000}');
INSERT INTO "attempts" VALUES(20,1,'exited',0,1.0,'{"worker":"learner","boot":"boot-1","allocation":{"vram":{"0":10000}},"started_at":1045000000,"finished_at":1046000000,"pid":5,"exit_code":0,"peak":{"memory":5,"gpus":{"0":{"memory":1073741824}}}}');
INSERT INTO "attempts" VALUES(21,1,'exited',0,1.0,'{"worker":"learner","boot":"boot-1","allocation":{"vram":{"0":10000}},"started_at":1048000000,"finished_at":1049000000,"pid":5,"exit_code":1,"peak":{"memory":5,"gpus":{"0":{"memory":1073741824}}}}');
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
INSERT INTO "events" VALUES(27,1026000000,'uid:1000','pruned',NULL,NULL,'{"jobs":1,"ids":[[6,6]]}');
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
INSERT INTO "events" VALUES(45,1043000000,'scheduler','worker-connected',NULL,NULL,'{"worker":"learner","name":"learner"}');
INSERT INTO "events" VALUES(46,1044000000,'uid:1000','enqueued',20,NULL,'{"last":20}');
INSERT INTO "events" VALUES(47,1044000000,'scheduler','started',20,1,'{"worker":"learner","units":{"vram":{"0":1}}}');
INSERT INTO "events" VALUES(48,1046000000,'scheduler','finished',20,1,'{"state":"succeeded","exit_code":0,"signal":null}');
INSERT INTO "events" VALUES(49,1047000000,'uid:1000','enqueued',21,NULL,'{"last":21}');
INSERT INTO "events" VALUES(50,1047000000,'scheduler','started',21,1,'{"worker":"learner","units":{"vram":{"0":1}}}');
INSERT INTO "events" VALUES(51,1049000000,'scheduler','finished',21,1,'{"state":"failed","exit_code":1,"signal":null}');
INSERT INTO "events" VALUES(52,1050000000,'scheduler','worker-disconnected',NULL,NULL,'{"worker":"learner","name":"learner"}');
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
INSERT INTO "held_sums" VALUES(0,0,'uid:1000','default','worker-1','{"cpu":{"":10000}}',1024000000,1025000000,1000000,1);
CREATE TABLE job_blobs (
    job INTEGER PRIMARY KEY,
    blob TEXT NOT NULL
);
CREATE TABLE job_counts (
    state TEXT NOT NULL,
    array INTEGER NOT NULL,
    queue TEXT NOT NULL,
    project TEXT NOT NULL,
    owner TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    PRIMARY KEY (state, array, queue, project, owner)
) WITHOUT ROWID;
INSERT INTO "job_counts" VALUES('cancelled',0,'paused','default','uid:1000',1);
INSERT INTO "job_counts" VALUES('failed',0,'default','default','uid:1000',3);
INSERT INTO "job_counts" VALUES('held',0,'default','default','uid:1000',1);
INSERT INTO "job_counts" VALUES('lost',0,'q1','default','uid:1000',1);
INSERT INTO "job_counts" VALUES('queued',0,'default','p','uid:1000',3);
INSERT INTO "job_counts" VALUES('queued',0,'paused','default','uid:1000',1);
INSERT INTO "job_counts" VALUES('queued',17,'default','default','uid:1000',3);
INSERT INTO "job_counts" VALUES('running',0,'default','default','uid:1000',3);
INSERT INTO "job_counts" VALUES('succeeded',0,'default','default','uid:1000',1);
INSERT INTO "job_counts" VALUES('succeeded',0,'default','thesis','uid:1000',1);
INSERT INTO "job_counts" VALUES('waiting',0,'default','default','uid:1000',2);
CREATE TABLE "jobs" (
    id INTEGER PRIMARY KEY,
    spec INTEGER NOT NULL REFERENCES specs (id),
    words TEXT NOT NULL,
    shell INTEGER NOT NULL,
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    owner TEXT NOT NULL,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    array INTEGER,
    state TEXT NOT NULL,
    array_index INTEGER,
    finished_at INTEGER,
    attempts INTEGER NOT NULL,
    body TEXT
);
INSERT INTO "jobs" VALUES(1,1,'["python","fit.py"]',0,'fit','thesis','uid:1000','default',3,1007000000,NULL,'succeeded',NULL,1009000000,1,'{"started_at":1008000000,"exit_code":0}');
INSERT INTO "jobs" VALUES(2,2,'["false"]',0,'false','default','uid:1000','default',0,1010000000,NULL,'failed',NULL,1014000000,2,'{"started_at":1013000000,"exit_code":3,"reason":"exit 3","failures":1}');
INSERT INTO "jobs" VALUES(3,3,'["sleep 5"]',0,'echo','default','uid:1000','q1',0,1015000000,NULL,'lost',NULL,1017000000,1,'{"started_at":1016000000,"reason":"the machine was restarted"}');
INSERT INTO "jobs" VALUES(4,4,'["sleep","9"]',0,'sleep','default','uid:1000','default',0,1018000000,NULL,'failed',NULL,1020000000,1,'{"started_at":1019000000,"signal":9}');
INSERT INTO "jobs" VALUES(5,5,'["x"]',0,'x','default','uid:1000','paused',0,1021000000,NULL,'cancelled',NULL,1022000000,0,'{"reason":"cancelled"}');
INSERT INTO "jobs" VALUES(7,7,'["long"]',0,'long','default','uid:1000','default',0,1027000000,NULL,'running',NULL,NULL,1,'{"started_at":1028000000,"suspended_since":1029000000}');
INSERT INTO "jobs" VALUES(8,8,'["stopping"]',0,'stopping','default','uid:1000','default',0,1030000000,NULL,'running',NULL,NULL,1,'{"started_at":1031000000,"stopping_since":1032000000}');
INSERT INTO "jobs" VALUES(9,8,'["starting"]',0,'starting','default','uid:1000','default',0,1033000000,NULL,'running',NULL,NULL,1,'{"started_at":1033000000}');
INSERT INTO "jobs" VALUES(10,9,'["big","0"]',0,'big','p','uid:1000','default',0,1034000000,NULL,'queued',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(11,9,'["big","1"]',0,'big','p','uid:1000','default',0,1034000000,NULL,'queued',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(12,9,'["big","2"]',0,'big','p','uid:1000','default',0,1034000000,NULL,'queued',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(13,8,'["waits"]',0,'waits','default','uid:1000','paused',0,1035000000,NULL,'queued',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(14,8,'["held"]',0,'held','default','uid:1000','default',0,1036000000,NULL,'held',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(15,10,'["after"]',0,'after','default','uid:1000','default',0,1037000000,NULL,'waiting',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(16,11,'["later"]',0,'later','default','uid:1000','default',0,1038000000,NULL,'waiting',NULL,NULL,0,NULL);
INSERT INTO "jobs" VALUES(17,12,'["true"]',0,'true','default','uid:1000','default',0,1039000000,17,'queued',1,NULL,0,NULL);
INSERT INTO "jobs" VALUES(18,12,'["true"]',0,'true','default','uid:1000','default',0,1039000000,17,'queued',2,NULL,0,NULL);
INSERT INTO "jobs" VALUES(19,12,'["true"]',0,'true','default','uid:1000','default',0,1039000000,17,'queued',3,NULL,0,NULL);
INSERT INTO "jobs" VALUES(20,13,'["python","fit.py"]',0,'fit.py','default','uid:1000','default',0,1044000000,NULL,'succeeded',NULL,1046000000,1,'{"started_at":1045000000,"exit_code":0}');
INSERT INTO "jobs" VALUES(21,14,'["python","fit.py"]',0,'fit.py','default','uid:1000','default',0,1047000000,NULL,'failed',NULL,1049000000,1,'{"started_at":1048000000,"exit_code":1}');
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
INSERT INTO "meta" VALUES('cluster','101e442405879952');
INSERT INTO "meta" VALUES('last_job','21');
INSERT INTO "meta" VALUES('last_removal','1');
INSERT INTO "meta" VALUES('paused','0');
CREATE TABLE pilots (
    mark TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TABLE pools (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TABLE profiles (
    job_type TEXT NOT NULL,
    model TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job_type, model)
) WITHOUT ROWID;
INSERT INTO "profiles" VALUES('fit.py','','{"job_type":"fit.py","model":"","samples":[{"job":20,"at":1046000000,"peak":1073741824,"ran_s":1.0},{"job":21,"at":1049000000,"peak":1073741824,"ran_s":0.0,"end":"failed"}],"runs":2,"failures":1}');
CREATE TABLE "queues" (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "queues" VALUES('default','{"name":"default","created_at":1000000000,"paused":false,"default_request":null,"max_running":null,"views":{},"max_fails":null,"fails":0,"paused_reason":null,"enforce":null}');
INSERT INTO "queues" VALUES('paused','{"name":"paused","created_at":1003000000,"paused":true,"default_request":null,"max_running":null,"views":{},"max_fails":null,"fails":0,"paused_reason":null,"enforce":null}');
INSERT INTO "queues" VALUES('q1','{"name":"q1","created_at":1002000000,"paused":false,"default_request":[["gpu",5000]],"max_running":2,"views":{},"max_fails":3,"fails":0,"paused_reason":null,"enforce":null}');
CREATE TABLE removals (
    id INTEGER PRIMARY KEY,
    worker TEXT NOT NULL,
    paths TEXT NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE TABLE spec_blobs (
    spec INTEGER PRIMARY KEY,
    blob TEXT NOT NULL
);
CREATE TABLE specs (
    id INTEGER PRIMARY KEY,
    base_env INTEGER REFERENCES envs (id),
    body TEXT NOT NULL
);
INSERT INTO "specs" VALUES(1,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(2,NULL,'{"max_output":1000,"request":[["cpu",10000]],"retries":1}');
INSERT INTO "specs" VALUES(3,NULL,'{"request":[["gpu",5000]],"prefix":["echo"],"queue_cwd":"/tmp"}');
INSERT INTO "specs" VALUES(4,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(5,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(7,NULL,'{"output":"/tmp/{id}","request":[["cpu",10000],["ram",20000]]}');
INSERT INTO "specs" VALUES(8,NULL,'{"request":[["cpu",10000]]}');
INSERT INTO "specs" VALUES(9,1,'{"request":[["cpu",30000]],"base_env":1}');
INSERT INTO "specs" VALUES(10,NULL,'{"request":[["cpu",10000]],"after":[["any",7,7]]}');
INSERT INTO "specs" VALUES(11,NULL,'{"request":[["cpu",10000]],"begin_at":2000000000000000}');
INSERT INTO "specs" VALUES(12,NULL,'{"request":[["cpu",30000]],"at_most":2,"max_fails":1}');
INSERT INTO "specs" VALUES(13,NULL,'{"request":[["vram",10000]],"worker":"learner","job_type":"fit.py"}');
INSERT INTO "specs" VALUES(14,NULL,'{"request":[["vram",10000]],"worker":"learner","job_type":"fit.py"}');
CREATE TABLE "tokens" (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "tokens" VALUES('code','{"name":"code","role":"machine","hash":"ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=","created_at":1040000000,"created_by":"uid:1000","expires_at":4639000000,"is_code":true,"worker":null,"used_at":1041000000,"made":1}');
INSERT INTO "tokens" VALUES('laptop','{"name":"laptop","role":"machine","hash":"PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0=","created_at":1041000000,"created_by":"uid:1000","expires_at":null,"is_code":false,"worker":"00000000000000b2","used_at":null,"made":0}');
INSERT INTO "tokens" VALUES('learner-token','{"name":"learner-token","role":"worker","hash":"AxohqaxDZPTleyh0198J0YrrX95o1ibXSPDYGGFcoHI=","created_at":1042000000,"created_by":"me","expires_at":null,"is_code":false,"worker":"learner","used_at":null,"made":0}');
INSERT INTO "tokens" VALUES('page','{"name":"page","role":"read","hash":"Ln0sA6lQeuJl7PW1NWiFpTOTogKdJBOUmXJloaJa78Y=","created_at":1042000000,"created_by":"uid:1000","expires_at":null,"is_code":false,"worker":null,"used_at":null,"made":0}');
CREATE TABLE views (
    queue TEXT NOT NULL REFERENCES queues (name),
    worker TEXT NOT NULL REFERENCES workers (id),
    body TEXT NOT NULL,
    PRIMARY KEY (queue, worker)
) WITHOUT ROWID;
INSERT INTO "views" VALUES('paused','worker-1','{"capacity":{"licence":{"0":10000,"1":10000}}}');
INSERT INTO "views" VALUES('q1','worker-1','{"capacity":{"gpu":{"0":10000}},"prefix":["echo"],"cwd":"/tmp","env":[["A","b"]]}');
CREATE TABLE "workers" (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO "workers" VALUES('learner','{"id":"learner","name":"learner","boot":"boot-1","found":{"cpu":{"0":{"amount":10000}},"gpu":{"0":{"amount":10000}},"vram":{"0":{"amount":800000}}},"address":"10.0.0.7","heard_at":1043000000}');
INSERT INTO "workers" VALUES('worker-1','{"id":"worker-1","name":"desk","boot":"boot-1","found":{"cpu":{"0":{"amount":10000},"1":{"amount":10000},"2":{"amount":10000},"3":{"amount":10000}},"ram":{"0":{"amount":160000}},"gpu":{"0":{"amount":10000},"1":{"amount":10000}}},"added":{"printer":{"0":10000}},"drained":{"cpu":["3"]},"heard_at":1001000000}');
CREATE INDEX calls_at ON calls (at);
CREATE INDEX events_job ON events (job) WHERE job IS NOT NULL;
CREATE INDEX specs_env ON specs (base_env) WHERE base_env IS NOT NULL;
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_spec ON jobs (spec);
CREATE INDEX jobs_state ON jobs (state);
CREATE INDEX jobs_queue ON jobs (queue);
CREATE INDEX jobs_project ON jobs (project);
CREATE INDEX array_spans_finished ON array_spans (finished_at)
WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_next ON jobs (array, state, priority DESC)
WHERE state IN ('held', 'waiting', 'queued');
CREATE INDEX jobs_ended ON jobs (array, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX events_enqueued ON events (job) WHERE kind = 'enqueued';
CREATE INDEX jobs_name ON jobs (name);
CREATE INDEX jobs_owner ON jobs (owner);
CREATE INDEX jobs_priority ON jobs (priority);
CREATE INDEX jobs_started ON jobs (
    CASE WHEN JSON_VALID(body) THEN JSON_EXTRACT(body, '$.started_at') END
);
CREATE INDEX jobs_duration ON jobs (
    finished_at
    - CASE WHEN JSON_VALID(body) THEN JSON_EXTRACT(body, '$.started_at') END
);
CREATE INDEX events_kind ON events (kind);
CREATE INDEX spec_blobs_blob ON spec_blobs (blob);
CREATE INDEX job_blobs_blob ON job_blobs (blob);
CREATE TRIGGER forget_spec_blob AFTER DELETE ON specs BEGIN
    DELETE FROM spec_blobs WHERE spec = old.id;
END;
CREATE TRIGGER forget_job_blob AFTER DELETE ON jobs BEGIN
    DELETE FROM job_blobs WHERE job = old.id;
END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',52);
COMMIT;
PRAGMA user_version = 15;
