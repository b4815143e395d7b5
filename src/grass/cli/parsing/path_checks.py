"""Checks of the paths that a job names, before it is sent.

A path is a name on the disk of the worker that runs the job. It is checked here only if
no other worker than this machine's can run the job; the broker is asked about that only
if the path is wrong here.
"""

from __future__ import annotations

import os

from grass.cli.parsing.job_options import check_directory
from grass.errors import NoAnswer, NoDaemon, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.client import Client
    from grass.client.json_codec import Document


class PathChecks:
    """Checks of paths on this machine's disk, for one command."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._overviews: dict[str | None, Document] = {}

    def check(self, fields: Document) -> None:
        """Refuse paths that would fail a job that can only run on this machine."""
        if self._client.remote:
            return
        try:
            check_directory(_text(fields, "cwd"))
            for name in ("output", "stderr"):
                _check_file(name, _text(fields, name))
        except UsageError:
            if self._runs_here_alone(fields):
                raise

    def check_script(self, words: list[str], fields: Document) -> None:
        """Refuse a script without its execute bit that can only run here."""
        if self._client.remote:
            return
        from grass.cli.parsing.scripts import check_executable

        try:
            check_executable(words, _text(fields, "cwd") or "")
        except UsageError:
            if self._runs_here_alone(fields) and not self._has_prefix(fields):
                raise

    def _has_prefix(self, fields: Document) -> bool:
        """Tell whether words are arguments of the queue's own command."""
        queue = _text(fields, "queue")
        return queue is not None and bool(self._client.queue(queue)["prefix"])

    def _runs_here_alone(self, fields: Document) -> bool:
        queue = _text(fields, "queue")
        try:
            if queue not in self._overviews:
                self._overviews[queue] = self._client.overview(queue)
        except NoAnswer:
            raise
        except NoDaemon:
            return True
        overview = self._overviews[queue]
        views = [] if queue is None else overview["queues"][0]["views"]
        places = [
            worker.get("address")
            for worker in overview["workers"]
            if _may_run(worker, fields, views)
        ]
        # Only the worker of the daemon itself has none.
        return places == [None]


def _may_run(worker: Document, fields: Document, views: list[str]) -> bool:
    names = (worker["name"], worker["id"])
    if views and worker["name"] not in views:
        return False
    wanted = {*(fields.get("labels") or ())}
    if isinstance(fields.get("pool"), str):
        from grass.model.pools import pool_label

        wanted.add(pool_label(fields["pool"]))
    if not wanted <= set(worker.get("labels") or ()):
        return False
    return fields.get("worker") in (None, *names)


def _check_file(name: str, path: str | None) -> None:
    if path is not None and os.path.isdir(path):
        raise UsageError(f"--{name} {path} is a folder", "name a file in it")


def _text(fields: Document, name: str) -> str | None:
    """Return a field if it is text: what it is else is for the daemon to refuse."""
    value = fields.get(name)
    return value if isinstance(value, str) else None
