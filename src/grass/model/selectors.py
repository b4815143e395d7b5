"""Selectors: how people name jobs, and how several of them combine.

`7`, `3-9`, `last`, `all` (unfinished), `@project`, `name~re`, `state:failed`,
`queue:q1`. Selectors of one kind add up, selectors of different kinds narrow: `@grid
state:failed state:lost` are the jobs of the project that failed or got lost. Ids and
ranges are one kind, and so are states and `all`. `last` is the newest of the jobs that
the others leave. In a union a job matches if any of the selectors does.

Regular expressions that people type are matched by RE2, in linear time: Python's own
engine may take years for a short pattern and would block the daemon. RE2 has no back
references and no lookaround. It is loaded with the first pattern.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from grass.errors import UsageError
from grass.model.jobs.lifecycle import UNFINISHED, JobState

if TYPE_CHECKING:
    from grass.model.jobs.job import Job

LARGEST_ID = 2**53


class Kind(StrEnum):
    """The property of a job that a selector is about."""

    IDS = "ids"
    STATE = "state"
    PROJECT = "project"
    QUEUE = "queue"
    NAME = "name"
    LAST = "last"


class Selector(msgspec.Struct, frozen=True):
    """One word that selects jobs. Exactly one field is set."""

    ids: tuple[int, int] | None = None
    last: bool = False
    unfinished: bool = False
    project: str | None = None
    name: str | None = None
    state: JobState | None = None
    queue: str | None = None

    @property
    def kind(self) -> Kind:
        """Its kind: selectors of the same one add up."""
        if self.last:
            return Kind.LAST
        if self.unfinished:
            return Kind.STATE
        return next(one for one in Kind if getattr(self, one, None) is not None)

    def matches(self, job: "Job", newest: int) -> bool:
        """Return whether a job matches; `newest` is the id of the newest job."""
        if self.ids is not None:
            return self.ids[0] <= job.id <= self.ids[1]
        if self.last:
            return job.id == newest
        if self.unfinished:
            return job.state in UNFINISHED
        if self.name is not None:
            return matches(self.name, job.name)
        kind = self.kind
        return bool(getattr(job, kind) == getattr(self, kind))


class Selection(msgspec.Struct, frozen=True):
    """The jobs that several selectors mean together; without selectors, all jobs."""

    groups: tuple[tuple[Selector, ...], ...] = ()
    """A job matches at least one selector of each group."""
    newest: bool = False
    """Only the newest of these jobs."""

    def __iter__(self) -> Iterator[Selector]:
        """Yield the selectors of all groups."""
        return chain.from_iterable(self.groups)

    @property
    def is_whole(self) -> bool:
        """Whether all jobs are meant."""
        return not self.groups and not self.newest

    @property
    def by_id(self) -> bool:
        """Whether every job in it is named by its id."""
        by_ids = ({one.kind for one in group} for group in self.groups)
        return self.newest or any(kinds <= {Kind.IDS, Kind.LAST} for kinds in by_ids)

    @property
    def has_pattern(self) -> bool:
        """Whether names have to be searched, for which there is no index."""
        return any(one.name is not None for one in self)

    def among(self, jobs: "list[Job]") -> "list[Job]":
        """Return those of all the jobs there are that match."""
        newest = max((job.id for job in jobs), default=0)
        found = [
            job
            for job in jobs
            if all(any(one.matches(job, newest) for one in g) for g in self.groups)
        ]
        if self.newest and found:
            return [max(found, key=lambda job: job.id)]
        return found


def combine(selectors: Iterable[Selector], *, union: bool = False) -> Selection:
    """Return the jobs that selectors mean together, or in a union any of them."""
    every = tuple(dict.fromkeys(selectors))
    if union:
        return Selection((every,) if every else ())
    by_kind = [tuple(one for one in every if one.kind is kind) for kind in Kind]
    *groups, last = by_kind
    return Selection(tuple(filter(None, groups)), newest=bool(last))


_IDS = re.compile(r"(\d{1,16})(?:-(\d{1,16}))?\Z")


def read(text: str) -> Selector:
    """Read one selector."""
    if not _is_text(text):
        raise UsageError(f"`{text}` selects no job: it is not UTF-8")
    if found := _IDS.match(text):
        return _ids(text, int(found.group(1)), found.group(2))
    if text in ("last", "all"):
        return Selector(last=text == "last", unfinished=text == "all")
    if text.startswith("@") and len(text) > 1:
        return Selector(project=text[1:])
    if text.startswith("name~"):
        return Selector(name=_pattern(text[len("name~") :]))
    if text.startswith("state:"):
        return Selector(state=_state(text[len("state:") :]))
    if text.startswith("queue:") and len(text) > len("queue:"):
        return Selector(queue=text[len("queue:") :])
    raise UsageError(
        f"`{text}` selects no job",
        "use an id, 3-9, last, all, @project, name~re, state:failed or queue:q1",
    )


def _is_text(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode() == text


def _ids(text: str, first: int, last: str | None) -> Selector:
    end = int(last) if last is not None else first
    if end < first or end > LARGEST_ID:
        raise UsageError(f"`{text}` is not a range of ids", "write 3-9")
    return Selector(ids=(first, end))


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except ValueError as error:
        raise UsageError(
            f"`name~{text}`: {error}", "write a regular expression"
        ) from None
    return text


def _state(text: str) -> JobState:
    try:
        return JobState(text)
    except ValueError:
        known = ", ".join(JobState)
        raise UsageError(f"there is no state `{text}`", f"states: {known}") from None


@lru_cache(maxsize=16)
def compile_pattern(text: str) -> Any:  # noqa: ANN401 -- re2 has no types of its own
    """Return the compiled pattern; raise ValueError if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not understood"
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from None


@lru_cache(maxsize=4096)
def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found anywhere in the text."""
    return compile_pattern(pattern).search(text) is not None
