"""From the start of a task to the runner that it needs, and what is its own."""

from base64 import b64decode
from typing import Any

import pytest

from grass.config import MARKER, OWN_PORT
from grass.keeper.protocol import StartVerb, TaskRun
from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.jobs.task_call import TaskCall
from grass.worker.core.prepare import Surroundings, start_verb

AROUND = Surroundings(
    "/out",
    "/home/me",
    "/bin/bash",
    {"PATH": "/bin"},
    blob_folder="/blobs",
    python="/usr/bin/python3",
)
CALL = TaskCall("ab" * 32, "3.11", name="train")


def verb(around: Surroundings = AROUND, **fields: Any) -> StartVerb:
    start: dict[str, Any] = {
        "attempt": "a" * 16 + ".7.2",
        "job": 7,
        "number": 2,
        "name": "fit",
        "project": "thesis",
        "words": (),
        "shell": False,
        "allocation": {"cpu": {"3": WHOLE}},
        "task": CALL,
        "arguments": b"bytes",
    }
    return start_verb(Start(**{**start, **fields}), around)


def task(**fields: Any) -> TaskRun:
    found = verb(**fields).task
    assert found is not None
    return found


def test_a_task_names_its_blobs_and_the_file_of_its_result() -> None:
    found = task()
    assert found.function == "/blobs/ab/" + "ab" * 32
    assert (found.arguments, b64decode(found.inline)) == ("", b"bytes")
    assert found.result == "/out/thesis/fit/0/7.2.result"
    assert verb().output == "/out/thesis/fit/0/7.2.log"
    assert task(job=4321).result == "/out/thesis/fit/4/4321.2.result"
    assert (found.python, found.name) == ("3.11", "train")
    large = task(arguments=b"", arguments_blob="cd" * 32)
    assert (large.arguments, large.inline) == ("/blobs/cd/" + "cd" * 32, "")


def test_the_callers_interpreter_is_used_where_it_is_told() -> None:
    assert verb().argv == ["/usr/bin/python3", "-P", "-m", "grass.tasks.runner"]
    told = TaskCall("ab" * 32, "3.11", "/venv/bin/python")
    assert verb(task=told).argv[0] == "/venv/bin/python"


def test_what_an_attempt_is_travels_with_it_and_the_rest_is_the_runners() -> None:
    start = verb(env=(("A", "same"), ("B", "job {id}")), params={"lr": "1"}, index=4)
    assert start.task is not None
    own = start.task.env
    assert own[MARKER] == start.id
    assert (own["GRASS_JOB_ID"], own["GRASS_ATTEMPT"], own["GRASS_CPU"]) == (
        "7",
        "2",
        "3",
    )
    assert (own["B"], own["GRASS_ARRAY_INDEX"]) == ("job 7", "4")
    assert not own.keys() & start.env.keys()
    assert (start.env["A"], start.env["PATH"]) == ("same", "/bin")
    assert {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} <= start.env.keys()


@pytest.mark.parametrize(
    "alike",
    [
        {"attempt": "a" * 16 + ".8.1", "job": 8, "number": 1},
        {"allocation": {"cpu": {"5": WHOLE}}},
        {"name": "other", "arguments": b"others", "time_limit_s": 5.0},
        {"env": (("B", "{id}"),)},
    ],
)
def test_attempts_that_need_the_same_process_have_the_same_key(
    alike: dict[str, Any],
) -> None:
    assert task(**alike).key == task().key


@pytest.mark.parametrize(
    "other",
    [
        {"env": (("A", "1"),)},
        {"cwd": "/elsewhere"},
        {"umask": 0o077},
        {"nice": 5},
        {"pin": True},
        {"threads": 2},
        {"owner": "token:bob"},
        {"allocation": {"gpu": {"0": WHOLE}}},
        {"task": TaskCall("ab" * 32, "3.11", "/venv/bin/python")},
    ],
)
def test_attempts_that_need_another_process_have_another_key(
    other: dict[str, Any],
) -> None:
    assert task(**other).key != task().key


def test_a_runner_with_a_gpu_is_not_kept() -> None:
    on_gpu = {"gpu": {"0": WHOLE}}
    assert task().keep
    assert not task(allocation=on_gpu).keep
    with_port = verb(AROUND._replace(port=7000), allocation=on_gpu)
    assert with_port.task is not None
    assert with_port.task.env["MASTER_PORT"] == with_port.task.env[OWN_PORT] == "7000"
    assert OWN_PORT not in with_port.env
