"""A valid body for every route, as a place to start from."""

from typing import Any

JOB: dict[str, Any] = {
    "command": ["python", "{index}"],
    "queue": "default",
    "require": {"cpu": 1, "ram": "1G"},
    "priority": 3,
    "name": "fit",
    "project": "p",
    "env": {"A": "b"},
    "cwd": "/",
    "output": "/tmp/{id}",
    "stderr": "/tmp/{id}.err",
    "max_output": "10M",
    "raw": False,
    "pin": True,
    "after": ["1:any"],
    "begin_at": "2030-01-31T08:00:00+01:00",
    "hold": True,
    "time_limit_s": 60,
    "limit_signal": "USR1@5",
    "stdin": "null",
    "window": [24, 80],
    "grace_s": 1.5,
    "retries": 2,
    "backoff_s": 1,
    "retry_on": [3, "signal"],
    "retry_lost": 1,
    "nice": 5,
    "policy": "spread",
    "job_type": "fit",
}
ARRAY = {"command": "echo {index}", "array": "1-9%2", "max_fails": 1, "hold": True}
CHANGES: dict[str, Any] = {
    "select": ["1", "state:failed"],
    "command": "echo",
    "require": "{cpu:1}",
    "require_also": {"ram": "1G"},
    "priority": 1,
    "queue": "default",
    "time_limit_s": None,
    "env": {"A": "c"},
    "cwd": None,
    "name": "n",
}
BODIES: dict[str, list[Any]] = {
    "POST /jobs": [
        {
            "jobs": [JOB],
            "environment": {"PATH": "/bin"},
            "directory": "/",
            "umask": 18,
        },
        {"jobs": [ARRAY], "defaults": {"hold": True, "priority": 1}},
        {"jobs": [{"command": "x", "hold": True}] * 3, "key": "k"},
        {
            "jobs": [{"command": "x {1}", "hold": True}],
            "params": {"names": ["1"], "rows": [["a b"], [""]]},
        },
    ],
    "POST /jobs/plan": [
        {"jobs": [JOB]},
        {
            "jobs": [{"command": ["x", "{a}"], "at_most": 2}],
            "params": {"names": ["a", "b"], "rows": [["1", "2"], ["3", "4"]]},
        },
    ],
    "POST /jobs/select": [{"select": ["1-3", "all", "name~f"]}],
    "POST /jobs/cancel": [{"select": ["@p"], "grace_s": 1, "signal": 15}],
    "POST /jobs/hold": [{"select": ["all"]}],
    "POST /jobs/release": [{"select": ["last"]}],
    "POST /jobs/rerun": [{**CHANGES, "hold": True}, {"select": ["all"]}],
    "POST /jobs/edit": [
        {**CHANGES, "after": None, "begin_at": "2031-01-01T00:00Z", "retries": 1},
        {"select": ["last"], "after": ["1:any"]},
    ],
    "POST /jobs/estimate": [{"select": ["all"]}, {"select": ["1"]}],
    "POST /jobs/suspend": [{"select": ["1"]}],
    "POST /jobs/continue": [{"select": ["queue:default"]}],
    "POST /jobs/signal": [{"select": ["1"], "signal": 10}],
    "POST /jobs/remove": [{"select": ["state:cancelled"]}],
    "POST /jobs/1/input": [
        {"sender": "me", "offset": 0, "data": "aGk=", "end": True, "window": [24, 80]}
    ],
    "POST /guests": [{"ticks": 1, "pid": 2, "name": "f", "require": {"cpu": 1}}],
    "POST /guests/1/wait": [{"timeout_s": 0.01, "pid": 2}],
    "POST /guests/1/measured": [{"pid": 2}],
    "POST /guests/1/end": [{"exit_code": 1, "pid": 2}],
    "POST /jobs/1/inner-type": [{"job_type": "a.py::fit"}],
    "POST /profiles/forget": [{"types": ["train.py"]}],
    "POST /profiles/import": [{"text": '{"job_type":"a","model":"b","samples":[]}'}],
    "POST /jobs/prune": [{"older_s": 5, "dry_run": True}],
    "POST /jobs/wait": [{"select": ["1"], "timeout_s": 0.01}],
    "POST /jobs/wait-all": [{"up_to": 3, "after": 0, "timeout_s": 0.01}],
    "PUT /queues/q": [
        {
            "capacity": {"gpu": {"0": 1}},
            "command": ["echo"],
            "directory": "/",
            "env": {"A": "b"},
            "default_require": "{gpu:1}",
            "max_running": 2,
            "max_fails": 3,
            "enforce": "stop",
        }
    ],
    "PATCH /queues/q": [{"capacity": "{gpu:2}", "max_running": None, "command": []}],
    "POST /capacity/add": [{"capacity": "{gpu:4}"}, {"capacity": {"lic": [2.5]}}],
    "POST /capacity/remove": [{"unit": "gpu:0"}],
    "POST /blobs/missing": [{"names": ["ab" * 32]}],
    "POST /jobs/results": [{"jobs": [1, 2]}],
    "POST /pools": [
        {
            "name": "gpus",
            "engine": "slurm",
            "max_workers": 2,
            "idle_s": 60.0,
            "time_limit_s": 600.0,
            "options": ["--partition=gpu"],
        }
    ],
    "POST /pools/script": [
        {
            "name": "gpus",
            "engine": "slurm",
            "max_workers": 2,
            "idle_s": 60.0,
            "time_limit_s": 600.0,
            "options": ["--partition=gpu"],
        }
    ],
    "POST /pools/w/pilots": [{"count": 2}],
    "POST /drain": [{"unit": "cpu:0", "worker": None}],
    "POST /pause": [{"queue": "default"}, {}],
    "POST /resume": [{"queue": None}, {"unit": "cpu:0"}],
    "POST /workers/w/drain": [{"on": True}],
    "POST /workers/w/foreign/end": [{"attempts": ["1.1"]}, {"attempts": ["all"]}],
    "POST /workers/w/foreign/keep": [{"attempts": ["1.1"]}, {"attempts": ["all"]}],
    "POST /tokens": [{"name": "t", "role": "read", "code": False, "hours": 2}],
    "POST /join": [{"code": "c", "name": "lab", "worker": "w"}],
    "POST /web": [{"host": "127.0.0.1", "port": 0, "role": "read"}],
    "POST /daemon/stop": [{"jobs": False}],
}
"""By method and path below the prefix."""

PATHS = (
    "GET /overview?queue=default&limit=2",
    "GET /jobs?state=failed&queue=q&project=p&name=n&owner=o&limit=3",
    "GET /jobs?select=1-9&before=7&after=2&order=oldest",
    "GET /jobs/1",
    "GET /jobs/last/explain",
    "GET /jobs/1/output?attempt=1&stream=stderr&offset=3&tail=2",
    "GET /queues/default",
    "DELETE /queues/q",
    "GET /events?after=1&limit=2&job=1&kind=enqueued",
    "GET /config",
    "GET /openapi.json",
)
"""Requests without a body."""
