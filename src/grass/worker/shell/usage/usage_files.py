"""Histories of what attempts and GPUs used: a file of points each, one in a line.

Points are appended. A file that has become long is thinned and replaced. What cannot
be written is dropped: a full disk must not concern a job.
"""

import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from grass.model.usage.attempt_usage import ResourceUse, UsagePoint
from grass.worker.core.usage.history_thinning import MOST_POINTS, peak_of, thinned

_encode = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(UsagePoint).decode
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
MODE = 0o600


class UsageFiles:
    """The files that grow now; only one thread may use it."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}
        """The points in each file, as far as they were counted."""

    def append(self, points: Mapping[str, list[UsagePoint]]) -> None:
        """Write points into their files."""
        for path, new in points.items():
            try:
                self._append(path, new)
            except OSError:
                self._lengths.pop(path, None)

    def forget(self, keep: set[str]) -> None:
        """Keep no note of files that do not grow any more."""
        for path in self._lengths.keys() - keep:
            del self._lengths[path]

    def _append(self, path: str, new: list[UsagePoint]) -> None:
        if path not in self._lengths:
            self._lengths[path] = len(read_points(path))
        if self._lengths[path] + len(new) > MOST_POINTS:
            kept = thinned([*read_points(path), *new])
            _replace(path, kept)
            self._lengths[path] = len(kept)
            return
        descriptor = _open(path)
        try:
            os.write(descriptor, _encode(new))
        finally:
            os.close(descriptor)
        self._lengths[path] += len(new)


def read_points(path: str) -> list[UsagePoint]:
    """Return the points of a file; a line that was not written whole is left out."""
    try:
        with open(path, "rb") as file:
            return parsed(file.read())
    except OSError:
        return []


def parsed(data: bytes) -> list[UsagePoint]:
    """Return the points in the bytes of a history."""
    points = []
    for line in data.split(b"\n"):
        with suppress(ValueError):
            points.append(_decode(line))
    return points


def recorded_peak(path: str) -> ResourceUse | None:
    """Return the most that a history tells of, if there is one."""
    points = read_points(path)
    return peak_of(points) if points else None


def _open(path: str) -> int:
    try:
        return os.open(path, _APPENDING, MODE)
    except FileNotFoundError:
        # Where a job's own output goes elsewhere, nothing has made its folder.
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, _APPENDING, MODE)


def _replace(path: str, points: list[UsagePoint]) -> None:
    aside = f"{path}.new"
    descriptor = os.open(aside, _APPENDING | os.O_TRUNC, MODE)
    try:
        with open(descriptor, "wb") as file:
            file.write(_encode(points))
        os.replace(aside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(aside)
        raise
