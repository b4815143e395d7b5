"""Jobs from a file: a shell line each, or JSON Lines with the fields of a job.

Empty lines and those that begin with `#` are skipped. The file is JSON Lines when its
first line that counts begins with `{`. A shell line that ends with a backslash goes on
in the next one. An error names the line it is on, and the field.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from grass.cli.parsing.path_checks import PathChecks
from grass.client.client import Client
from grass.errors import GrassError, UsageError

_WHERE = ("queue", "worker", "labels", "pool")
"""The fields that decide which workers may run a job."""
_MISFIT = re.compile(r"(?:.*understood: )?(.*) - at `\$\.jobs\[(\d+)\](?:\.(\w+))?")
"""What of a body is not of its type, in the words of the daemon."""
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_NUMBERED = re.compile(r"job \d+ of \d+: ")


class JobsFile:
    """The jobs of a file, and the line of each."""

    def __init__(self, source: str) -> None:
        """Read the whole file; `-` is stdin."""
        self._label = label(source)
        lines = list(enumerate(text_of(source).split("\n"), 1))
        first = next((line.lstrip() for _, line in lines if _counts(line)), None)
        if first is None:
            raise UsageError(f"{self._label} holds no jobs")
        self._has_fields = first.startswith("{")
        if self._has_fields:
            found = [(at, self._job(at, line)) for at, line in lines if _counts(line)]
        else:
            found = [(at, {"command": line.strip()}) for at, line in _joined(lines)]
        self._numbers = [number for number, _ in found]
        self.jobs = [job for _, job in found]

    def check(self, client: Client, defaults: dict[str, Any]) -> None:
        """Refuse a directory that does not exist, for jobs that can only run here."""
        checks = PathChecks(client)
        for number, job in zip(self._numbers, self.jobs, strict=True):
            asked = {name: job.get(name) or defaults.get(name) for name in _WHERE}
            try:
                checks.check({**asked, "cwd": job.get("cwd")})
            except UsageError as error:
                raise error.reworded(self._at(number, "cwd") + error.message) from None

    @contextlib.contextmanager
    def errors_by_line(self) -> Iterator[None]:
        """Name line and field in the daemon's errors about one of the jobs."""
        try:
            yield
        except GrassError as error:
            error = _read_misfit(error)
            if error.job is None:
                raise
            # What a job does not give itself is of the options of the command.
            field = error.field if error.field in self.jobs[error.job - 1] else ""
            text = _NUMBERED.sub("", error.message, count=1)
            where = self._at(self._numbers[error.job - 1], field)
            raise error.reworded(where + text) from None

    def _at(self, number: int, field: str) -> str:
        where = f"{self._label}, line {number}: "
        return f'{where}field "{field}": ' if field and self._has_fields else where

    def _job(self, number: int, line: str) -> dict[str, Any]:
        where = self._at(number, "")
        try:
            job = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{where}{error}") from None
        if not isinstance(job, dict):
            raise UsageError(f"{where}a job is an object", 'write {"command": "..."}')
        for field in ("cwd", "output", "stderr"):
            if isinstance(job.get(field), str):
                job[field] = os.path.abspath(os.path.expanduser(job[field]))
        return job


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


def _counts(line: str) -> bool:
    text = line.strip()
    return text != "" and not text.startswith("#")


def _joined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join the lines that count with those that they go on in, as a shell does."""
    parts: list[str] = []
    number = 0
    for at, line in lines:
        if not parts and not _counts(line):
            continue
        number = number if parts else at
        # Of two backslashes the first keeps the second from meaning anything.
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if goes_on else line)
        if not goes_on:
            yield number, "".join(parts)
            parts = []
    if "".join(parts).strip():
        yield number, "".join(parts)


def _read_misfit(error: GrassError) -> GrassError:
    """Note job and field of an error about the form of a body."""
    found = _MISFIT.match(error.message)
    if found is None:
        return error
    unknown = _UNKNOWN.match(found[1])
    field = unknown[1] if unknown else found[3] or ""
    told = type(error)(*_unknown(field)) if unknown else error.reworded(found[1])
    told.job, told.field = int(found[2]) + 1, field
    return told


def _unknown(field: str) -> tuple[str, str]:
    from difflib import get_close_matches

    from grass.model.field_readers import request_forms
    from grass.model.jobs.spec import JOB_READERS, NOT_IN_A_REQUEST, JobPatch

    known = {"command", *request_forms(JobPatch, JOB_READERS)} - {*NOT_IN_A_REQUEST}
    near = get_close_matches(field, sorted(known), 1)
    if near:
        return "there is no such field", f'did you mean "{near[0]}"?'
    return "there is no such field", f"known: {', '.join(sorted(known))}"
