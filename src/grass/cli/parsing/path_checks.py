"""Paths that a job names, looked at before it is sent.

A path is a name on the disk of whoever runs the job. Only where that can be nobody but
the worker beside the caller does it have to be right here; the broker is asked who
could run it only if it is not.
"""

from __future__ import annotations

import os

from grass.cli.parsing.job_options import check_directory
from grass.errors import NoAnswer, NoDaemon, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.client import Client
    from grass.client.json_codec import Document


class Ground:
    """The disk on which the caller stands."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._overviews: dict[str | None, Document] = {}

    def check(self, fields: Document) -> None:
        """Refuse paths that would fail a job when it starts, if it runs here alone."""
        if self._client.remote:
            return
        try:
            check_directory(_text(fields, "cwd"))
            for name in ("output", "stderr"):
                _check_file(name, _text(fields, name))
        except UsageError:
            if self._runs_here_alone(fields):
                raise

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
    if not set(fields.get("labels") or ()) <= set(worker.get("labels") or ()):
        return False
    return fields.get("worker") in (None, *names)


def _check_file(name: str, path: str | None) -> None:
    if path is not None and os.path.isdir(path):
        raise UsageError(f"--{name} {path} is a folder", "name a file in it")


def _text(fields: Document, name: str) -> str | None:
    """Return a field if it is text: what it is else is for the daemon to refuse."""
    value = fields.get(name)
    return value if isinstance(value, str) else None
