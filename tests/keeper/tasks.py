"""Tasks for a real keeper: functions by value, results from their files."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

from grass.tasks.children.packed_frames import RAISED, pack, unpack_result
from grass.worker.core.task_starts import RUNNER

from .conversation import Daemon, Entry

RUNNER_COMMAND = (sys.executable, *RUNNER)
NAMES = ("PATH", "PYTHONPATH")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def task_of(
    daemon: Daemon,
    id: str,
    function: Callable[..., Any],
    *args: Any,
    key: str = "key",
    **fields: Any,
) -> dict[str, Any]:
    """Return the part of a start that names the task; the function is a file."""
    if function.__module__.startswith("tests."):
        # A runner has no such module.
        cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    data = cloudpickle.dumps(function, 5)
    path = daemon.directory / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    frame = b"".join(pack((args, {})))
    return {
        "key": key,
        "function": str(path),
        "arguments": "",
        "inline": base64.b64encode(frame).decode() if args else "",
        "result": str(daemon.directory / "output" / f"{id}.result"),
        "env": {"GRASS_ATTEMPT_ID": daemon.full_id(id), "GRASS_ATTEMPT": id},
        "python": HERE,
        "name": function.__name__,
        **fields,
    }


def begin(
    daemon: Daemon, id: str, function: Callable[..., Any], *args: Any, **fields: Any
) -> None:
    """Start a task; `key` and `of_task` are for the task, the rest for the start."""
    of_task = {"key": fields.pop("key", "key"), **fields.pop("of_task", {})}
    task = task_of(daemon, id, function, *args, **of_task)
    environment = {name: os.environ[name] for name in NAMES if name in os.environ}
    environment["PYTHONUNBUFFERED"] = "1"
    daemon.start(id, *RUNNER_COMMAND, env=environment, task=task, **fields)


def run(
    daemon: Daemon, id: str, function: Callable[..., Any], *args: Any, **fields: Any
) -> Entry:
    """Run a task to its end."""
    begin(daemon, id, function, *args, **fields)
    return daemon.expect("exited", id)


def result(daemon: Daemon, id: str) -> Any:
    """Return the value of a task."""
    status, value = _read(daemon, id)
    assert status != RAISED, value[1]
    return value


def error(daemon: Daemon, id: str) -> tuple[BaseException, str]:
    """Return the exception of a task, and its traceback."""
    status, value = _read(daemon, id)
    assert status == RAISED
    return value  # type: ignore[no-any-return]


def _read(daemon: Daemon, id: str) -> tuple[int, Any]:
    content = (daemon.directory / "output" / f"{id}.result").read_bytes()
    return unpack_result(content)
