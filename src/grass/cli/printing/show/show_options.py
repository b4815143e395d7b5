"""The options of `show`: which jobs, in which order, in which columns.

A word is a selector or a queue's name, never both. Selectors combine as with every
verb; options narrow that down.
"""

from __future__ import annotations

from itertools import islice

from grass.cli.parsing.options import (
    ANY,
    Option,
    at_most,
    chosen,
    is_selector,
    names_one,
)
from grass.cli.printing.show import columns
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from grass.cli.parsing.options import Values
    from grass.client.client import Client
    from grass.client.json_codec import Document

USUAL_LIMIT = 100

FILTERS = (
    ANY,
    Option("--queue", "QUEUE", "only jobs of this queue"),
    Option("--project", "NAME", "only jobs of this project"),
    Option("--state", "STATE", "only jobs in these states: failed,lost; repeatable"),
    Option("--owner", "NAME", "only jobs of this user"),
    Option("--name", "NAME", "only jobs of exactly this name; name~REGEX for more"),
    Option("--all", about="every job, not only active and recent ones"),
    Option("--members", about="every member of an array as a row of its own"),
    Option("--limit", "N", f"at most N rows (default: {USUAL_LIMIT})"),
    Option("--sort", "COLUMN", "sort by a column; -COLUMN from the largest down"),
    Option("--columns", "COLUMNS", "which columns: id,state,name; see above for all"),
)
_WHOLE = {"arrays": [], "more": 0, "more_by_state": {}}
_NARROWING = ("queue", "project", "state", "owner", "name", "limit", "sort")


class ShowOptions:
    """Which jobs, in which order, in which columns."""

    def __init__(self, values: Values, words: Sequence[str]) -> None:
        named = [word for word in words if not is_selector(word)]
        queues = named + values.all("queue")[-1:]
        at_most(queues, 1)
        select = [word for word in words if is_selector(word)]
        if select and named:
            # Beside selectors it is one of them: `last` is the newest of the queue.
            select.append(f"queue:{queues.pop()}")
        self.queue = queues[0] if queues else None
        self.select = chosen(values, select)
        self.states = [s for text in values.all("state") for s in text.split(",") if s]
        self.project = values.text("project")
        self.owner = values.text("owner")
        self.name = values.text("name")
        self.every = values.has("all")
        self.members = values.has("members") or values.has("quiet") or self._opens()
        """Whether members of arrays are rows; a script wants every id."""
        self.limit = _limit(values)
        self.is_whole = self.every and self.limit is None
        """Whether no job is left out; meanwhile the totals may have changed."""
        self.sort = values.text("sort") or ""
        self.put = columns.order(self.sort) if self.sort else None
        self.columns = columns.chosen(values.text("columns"))
        self.usage = any(one.tells_usage for one in self.columns)
        """Whether workers are asked what jobs use now."""
        self.has_usual_columns = not values.has("columns")
        self.is_plain = not self.select and not any(map(values.has, _NARROWING))
        """Whether everything is shown, or everything about one queue."""

    def names_one(self, values: Values) -> bool:
        """Tell whether one job was named, and no other option was given."""
        asked = any(map(values.has, (*_NARROWING, "all", "columns", "quiet")))
        return names_one(self.select) and not asked

    def _opens(self) -> bool:
        """Tell whether jobs were chosen that are but a part of their array."""
        parts = (word[:1].isdigit() or word[:6] == "state:" for word in self.select)
        return bool(self.states) or any(parts)

    def read(self, client: Client) -> Document:
        """Read the jobs, with their arrays, totals, and how many are left out.

        All jobs are read one by one, as they are shown.
        """
        if self.is_whole and not self.sort:
            document = self._view(client, limit=1)
            return {**document, **_WHOLE, "jobs": self.every_job(client)}
        if not self.sort:
            return self._view(client, limit=self.limit)
        document = self._view(client, limit=1)
        jobs = self._sorted(client)
        return {**document, "arrays": [], "jobs": jobs, **_left_out(document, jobs)}

    def every_job(self, client: Client) -> Iterator[Document]:
        """Read all jobs that match, one by one, the oldest first."""
        return client.jobs(**self.wanted())

    def _sorted(self, client: Client) -> list[Document]:
        """Read jobs in the order of a column."""
        if self.put is not None and self.sort.removeprefix("-") != "id":
            return self.put(client.jobs(**self.wanted()))[: self.limit]
        newest_first = self.sort == "-id"
        found = client.jobs(**self.wanted(), newest_first=newest_first)
        return list(islice(found, self.limit))

    def _view(self, client: Client, limit: int | None) -> Document:
        members = self.members or self.every
        document = client.listing(**self.wanted(), limit=limit, members=members)
        if self._is_by_name and any("{" in one["name"] for one in document["arrays"]):
            # Their members have names of their own, and perhaps only some match.
            document = client.listing(**self.wanted(), limit=limit, members=True)
        del document["next"]
        return document

    @property
    def _is_by_name(self) -> bool:
        return self.name is not None or any(w.startswith("name~") for w in self.select)

    def wanted(self) -> dict[str, Any]:
        """Return which jobs, as methods of the client take it."""
        return {
            "states": self.states,
            "queue": self.queue,
            "project": self.project,
            "name": self.name,
            "owner": self.owner,
            "select": self.select,
            "usage": self.usage,
        }

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


def _left_out(document: Document, jobs: Sequence[Document]) -> Document:
    """Count the jobs that match and are not among these, by state."""
    left = dict(document["totals"])
    for job in jobs:
        left[job["state"]] = left.get(job["state"], 0) - 1
    left = {state: count for state, count in left.items() if count > 0}
    return {"more": sum(left.values()), "more_by_state": left}
