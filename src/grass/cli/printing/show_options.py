"""The options of `show`: which jobs, in which order, in which columns.

A word is a selector or a queue's name, never both. Several selectors mean the union, as
with every verb; options narrow it.
"""

from __future__ import annotations

from grass.cli.parsing.options import Option, at_most, is_selector, names_one
from grass.cli.printing import columns
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from grass.cli.parsing.options import Values
    from grass.client.client import Client
    from grass.client.json_codec import Document

USUAL_LIMIT = 100

FILTERS = (
    Option("--queue", "QUEUE", "only jobs of this queue"),
    Option("--project", "NAME", "only jobs of this project"),
    Option("--state", "STATE", "only jobs in these states: failed,lost; repeatable"),
    Option("--owner", "NAME", "only jobs of this user"),
    Option("--name", "NAME", "only jobs of exactly this name; name~REGEX for more"),
    Option("--all", about="every job, not only active and recent ones"),
    Option("--limit", "N", f"at most N jobs (default: the newest {USUAL_LIMIT})"),
    Option("--sort", "COLUMN", "sort by a column; -COLUMN from the largest down"),
    Option("--columns", "COLUMNS", "which columns: id,state,name; see above for all"),
)
_NARROWING = ("queue", "project", "state", "owner", "name", "limit", "sort")


class ShowOptions:
    """Which jobs, in which order, in which columns."""

    def __init__(self, values: Values, words: Sequence[str]) -> None:
        queues = [word for word in words if not is_selector(word)]
        queues += values.all("queue")[-1:]
        at_most(queues, 1)
        self.queue = queues[0] if queues else None
        self.select = [word for word in words if is_selector(word)]
        self.states = [s for text in values.all("state") for s in text.split(",") if s]
        self.project = values.text("project")
        self.owner = values.text("owner")
        self.name = values.text("name")
        self.every = values.has("all")
        self.limit = _limit(values)
        self.sort = values.text("sort") or ""
        self.put = columns.order(self.sort) if self.sort else None
        self.columns = columns.chosen(values.text("columns"))
        self.has_usual_columns = not values.has("columns")
        self.is_plain = not self.select and not any(map(values.has, _NARROWING))
        """Whether everything is shown, or everything about one queue."""

    def names_one(self, values: Values) -> bool:
        """Tell whether one job was named, and no other option was given."""
        asked = any(map(values.has, (*_NARROWING, "all", "columns", "quiet")))
        return names_one(self.select) and not asked

    def jobs(self, client: Client) -> Iterator[Document]:
        """Read the jobs, as many as are wanted, one by one."""
        if self.put is not None and self.sort.removeprefix("-") != "id":
            sorted_jobs = self.put(self._matching(client, newest_first=False))
            return iter(sorted_jobs[: self.limit])
        if self.sort or self.limit is None:
            found = self._matching(client, newest_first=self.sort == "-id")
            return _first(found, self.limit)
        newest = list(_first(self._matching(client, newest_first=True), self.limit))
        return reversed(newest)

    def _matching(self, client: Client, *, newest_first: bool) -> Iterator[Document]:
        return client.jobs(
            states=self.states,
            queue=self.queue,
            project=self.project,
            name=self.name,
            owner=self.owner,
            select=self.select,
            newest_first=newest_first,
        )

    def explain_nothing(self, client: Client) -> None:
        """Raise if no job was found because a job or queue does not exist."""
        if self.select:
            client.select(self.select)
        if self.queue is not None:
            client.queue(self.queue)


def _limit(values: Values) -> int | None:
    limit = values.whole_number("limit")
    if limit is not None and limit < 1:
        raise UsageError("--limit must be at least 1")
    return limit if limit is not None or values.has("all") else USUAL_LIMIT


def _first(jobs: Iterable[Document], limit: int | None) -> Iterator[Document]:
    for place, job in enumerate(jobs, 1):
        yield job
        if place == limit:
            return
