"""Documents as the API gives them, for tests of what is made of them."""

from typing import Any

Document = dict[str, Any]


def job(**fields: Any) -> Document:
    """Return a job that has succeeded, changed where `fields` says so."""
    return {
        "id": 7,
        "name": "train",
        "project": "default",
        "owner": "ada",
        "queue": "q1",
        "state": "succeeded",
        "flags": [],
        "command": ["python", "train.py"],
        "shell": False,
        "request": {"gpu": 0.5, "cpu": 4},
        "allocation": {},
        "worker": "here",
        "pid": None,
        "exit_code": 0,
        "signal": None,
        "reason": None,
        "priority": 0,
        "cwd": "/data",
        "created_at": "2026-01-02T03:00:00Z",
        "started_at": "2026-01-02T03:01:00Z",
        "finished_at": "2026-01-02T03:03:05Z",
        "stopping_since": None,
        "attempts": [attempt()],
        "output": "/data/7.log",
        **fields,
    }


def attempt(**fields: Any) -> Document:
    """Return an attempt that has succeeded."""
    return {
        "number": 1,
        "state": "exited",
        "worker": "here",
        "allocation": {"gpu": {"0": 0.5}, "cpu": {"0": 1, "1": 1}},
        "pid": 4711,
        "started_at": "2026-01-02T03:01:00Z",
        "finished_at": "2026-01-02T03:03:05Z",
        "exit_code": 0,
        "signal": None,
        "reason": None,
        "output": "/data/7.log",
        "output_offset": 0,
        "output_bytes": 12,
        "stderr": None,
        "max_rss": 3 * 2**20,
        "cpu_s": 61.0,
        **fields,
    }
