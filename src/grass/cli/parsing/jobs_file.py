"""Jobs from a file: a shell line each, or JSON Lines with the fields of a job.

Empty lines and those that begin with `#` are skipped. The file is JSON Lines when its
first line that counts begins with `{`. An error names the line it is on.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grass.cli.parsing.path_checks import PathChecks
from grass.client.client import Client
from grass.errors import GrassError, UsageError

Lines = list[tuple[int, dict[str, Any]]]
"""Each job with the number of its line."""

_WHERE = ("queue", "worker", "labels")
"""The fields that decide which workers may run a job."""
_PLACE = re.compile(r"\$\.jobs\[(\d+)\]|job (\d+) of \d+: ")


def read(source: str) -> Lines:
    """Read all jobs of a file; `-` is stdin."""
    where = label(source)
    lines = [
        (number, line.strip())
        for number, line in enumerate(text_of(source).split("\n"), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise UsageError(f"{where} holds no jobs")
    if not lines[0][1].startswith("{"):
        return [(number, {"command": line}) for number, line in lines]
    return [(number, _job(f"{where}, line {number}", line)) for number, line in lines]


def check(client: Client, source: str, lines: Lines, defaults: dict[str, Any]) -> None:
    """Refuse a directory that does not exist, for jobs that can only run here."""
    checks = PathChecks(client)
    for number, job in lines:
        asked = {name: job.get(name) or defaults.get(name) for name in _WHERE}
        try:
            checks.check({**asked, "cwd": job.get("cwd")})
        except UsageError as error:
            where = f"{label(source)}, line {number}"
            raise UsageError(f"{where}: {error.message}") from None


@contextlib.contextmanager
def errors_by_line(source: str, lines: Lines) -> Iterator[None]:
    """Name the line in the daemon's errors about the n-th job."""
    try:
        yield
    except GrassError as error:
        place = _PLACE.search(error.message)
        if place is None:
            raise
        index = int(place[1]) if place[1] else int(place[2]) - 1
        rest = error.message if place[1] else _PLACE.sub("", error.message, count=1)
        raise type(error)(
            f"{label(source)}, line {lines[index][0]}: {rest}", error.hint
        ) from None


def label(source: str) -> str:
    """Return what errors call a file."""
    return "stdin" if source == "-" else source


def text_of(source: str) -> str:
    """Read a whole file; `-` is stdin. Bytes that are not UTF-8 are kept."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise UsageError(f"--from {label(source)}: {error.strerror}") from None
    return os.fsdecode(data)


def _job(where: str, line: str) -> dict[str, Any]:
    try:
        job = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    if not isinstance(job, dict):
        raise UsageError(f"{where}: a job is an object", 'write {"command": "..."}')
    for field in ("cwd", "output", "stderr"):
        if isinstance(job.get(field), str):
            job[field] = os.path.abspath(os.path.expanduser(job[field]))
    return job
