"""The three views of `show`: everything, a list of jobs, one job.

A view reads its document and writes it as text, or as JSON, or as names alone. Reading
and writing are apart, so that `--watch` can redraw without another request. The jobs of
a document may be an iterator, so that they need not all be in memory.
"""

from __future__ import annotations

import sys

from grass.cli.printing.page import Page
from grass.cli.printing.show import job_details
from grass.cli.printing.show.overview_page import listing_page, overview_page
from grass.cli.printing.streams import printable
from grass.client.json_codec import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    from grass.cli.printing.show.show_options import ShowOptions
    from grass.cli.printing.table import Screen
    from grass.client.client import Client
    from grass.client.json_codec import Document

    class ShowView(Protocol):
        """A document that is read from the daemon and shown."""

        def read(self, client: Client) -> Document:
            """Read the document."""

        def page(self, document: Document, screen: Screen) -> Page:
            """Write it as tables; the last line is the summary."""

        def names(self, document: Document) -> Iterable[object]:
            """Return ids or names alone."""

    class Form(Protocol):
        """How a view is written to stdout."""

        def write(self, view: ShowView, document: Document, screen: Screen) -> None:
            """Write the document of a view."""


class Overview:
    """Workers, queues and jobs, or only some of these."""

    def __init__(self, wanted: ShowOptions, parts: tuple[str, ...]) -> None:
        """Choose among `workers`, `queues` and `jobs`."""
        self._wanted = wanted
        self._parts = parts

    def read(self, client: Client) -> Document:
        """Read the overview, and every job if all are to be shown."""
        wanted = self._wanted
        document = client.overview(
            wanted.queue, members=wanted.members, usage=wanted.usage
        )
        if wanted.every:
            document |= wanted.read(client)
        for part in {"workers", "queues", "jobs"} - {*self._parts}:
            del document[part]
        if "jobs" not in self._parts:
            for part in ("arrays", "totals", "more", "more_by_state"):
                del document[part]
        return document

    def page(self, document: Document, screen: Screen) -> Page:
        """Write the tables, and the summary below."""
        return overview_page(self._wanted, document, screen)

    def names(self, document: Document) -> Iterator[object]:
        """Return the names of what is shown; of everything, the jobs' ids."""
        part = "jobs" if "jobs" in document else self._parts[0]
        for one in document[part]:
            yield one["id" if part == "jobs" else "name"]


class JobsView:
    """Some jobs."""

    def __init__(self, wanted: ShowOptions) -> None:
        self._wanted = wanted

    def read(self, client: Client) -> Document:
        """Read the jobs; a name that does not exist is an error, no match is not."""
        document = self._wanted.read(client)
        if not document["totals"]:
            self._wanted.explain_nothing(client)
        return document

    def page(self, document: Document, screen: Screen) -> Page:
        """Write the table, and below it the number of jobs."""
        return listing_page(self._wanted, document, screen)

    def names(self, document: Document) -> Iterator[object]:
        """Return the ids."""
        for job in document["jobs"]:
            yield job["id"]


class JobView:
    """All details of one job."""

    def __init__(self, selector: str) -> None:
        """`selector` is the job's id, or `last`."""
        self._selector = selector

    def read(self, client: Client) -> Document:
        """Read the job."""
        return client.job(self._selector, usage=True)

    def page(self, document: Document, screen: Screen) -> Page:
        """Write the details."""
        return Page(body=job_details.text(document, screen).splitlines())

    def names(self, document: Document) -> list[object]:
        """Return the id."""
        return [document["id"]]


class AsText:
    """Tables, for people."""

    def write(self, view: ShowView, document: Document, screen: Screen) -> None:
        """Write tables."""
        sys.stdout.write(printable(view.page(document, screen).text()))


class AsNames:
    """Ids or names, a line each, for scripts."""

    def write(self, view: ShowView, document: Document, _screen: Screen) -> None:
        """Write the names."""
        for name in view.names(document):
            sys.stdout.write(printable(f"{name}\n"))


class AsJson:
    """One document on one line."""

    def write(self, _view: ShowView, document: Document, _screen: Screen) -> None:
        """Write the jobs one by one as they are read."""
        rest = dict(document)
        jobs = rest.pop("jobs", None)
        head = encoded(rest).decode("ascii")
        if jobs is None:
            sys.stdout.write(head + "\n")
            return
        sys.stdout.write(head[:-1] + ("," if rest else "") + '"jobs":[')
        separator = ""
        for job in jobs:
            sys.stdout.write(separator + encoded(job).decode("ascii"))
            separator = ","
        sys.stdout.write("]}\n")
