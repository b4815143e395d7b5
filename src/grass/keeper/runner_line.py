"""The line between a keeper and a runner: tasks one way, answers the other.

Each is a JSON object on one line. With a task come the descriptors of its output, but
for the first: a new runner has those as its own. The runner's Python may have another
version of Grass, so fields are only added, each with a default.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from grass.keeper.json_text import to_json

if TYPE_CHECKING:
    from grass.keeper.protocol import StartVerb

DESCRIPTOR = 3
"""Where a runner has its end of the line."""
MOST_OUTPUTS = 2
_from_json = json.JSONDecoder().raw_decode
TAKEN = b"\n"
"""Sent before a line ends in place of a task: the last answer was taken."""


class LineTask(NamedTuple):
    """A task as it is sent; the fields are those of `TaskRun`."""

    id: str
    cwd: str
    umask: int
    function: str
    arguments: str = ""
    inline: str = ""
    result: str = ""
    env: dict[str, str] = {}  # noqa: RUF012 -- never changed
    python: str = ""
    name: str = ""
    most_told: int = 0
    units: dict[str, dict[str, int]] | None = None
    """None: its keeper is older, and does not tell."""


class Answer(NamedTuple):
    """How a task has ended."""

    id: str
    code: int
    user_s: float = 0.0
    system_s: float = 0.0
    max_rss: int | None = None
    reason: str | None = None
    """Why it could not be called."""
    result: str = ""
    """In base64, where it is small; otherwise it is in its file."""


def task_of(start: StartVerb) -> LineTask:
    """Return the task of a start."""
    task = start.task
    assert task is not None
    return LineTask(
        start.id,
        start.cwd,
        start.umask,
        task.function,
        task.arguments,
        task.inline,
        task.result,
        task.env,
        task.python,
        task.name,
        task.most_told,
        task.units,
    )


def encoded(message: LineTask | Answer) -> bytes:
    """Write a message as one line."""
    return to_json(dict(zip(message._fields, message, strict=True))).encode() + b"\n"


def read_task(line: bytes) -> LineTask:
    """Read a task; raises ValueError or TypeError."""
    return LineTask(**_known(LineTask._fields, line))


def read_answer(line: bytes) -> Answer:
    """Read an answer; raises ValueError or TypeError."""
    answer = Answer(**_known(Answer._fields, line))
    if not 0 <= answer.code <= 255:
        raise ValueError(f"no exit code {answer.code}")
    return answer


def _known(fields: tuple[str, ...], line: bytes) -> dict[str, Any]:
    text = line.decode()
    document, end = _from_json(text)
    if text[end:].strip():
        raise ValueError("more than an object")
    if not isinstance(document, dict):
        raise TypeError("not an object")
    return {name: document[name] for name in fields if name in document}
