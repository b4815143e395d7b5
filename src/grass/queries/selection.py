"""Which jobs selectors mean.

An id, a project, a name or a queue that never existed is an error. A state in which no
job is at the time is not.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

from grass.broker.core.jobs import queues
from grass.broker.shell.service import Broker
from grass.errors import NotFound, UsageError
from grass.model import selectors
from grass.model.selectors import Selection
from grass.store.interface import JobDetails, JobFilter, Store

T = TypeVar("T")

MOST_AT_ONCE = 200
"""Selectors other than ids: SQLite limits how deep they nest."""


async def select(broker: Broker, texts: list[str]) -> list[int]:
    """Resolve selectors into ids, in order."""
    selections = read_selectors(texts)
    read = reading(broker, selections)
    ids = await read(partial(_selected, selections=selections))
    for text, selection in zip(texts, selections, strict=True):
        if selection.queue is not None:
            queues.find(broker.state, selection.queue)
        elif _misses(selection, ids):
            raise _unknown(text)
    return ids


def reading(
    broker: Broker, selections: Iterable[Selection]
) -> Callable[[Callable[[Store], T]], Awaitable[T]]:
    """Return how to read what selectors mean: names are looked through apart."""
    by_name = any(one.name is not None for one in selections)
    return broker.scan if by_name else broker.read


async def with_dependents(broker: Broker, ids: list[int]) -> list[int]:
    """Add the jobs that were cancelled because these ended otherwise, in order."""
    more = await broker.read(lambda db: db.dependents(ids))
    return sorted({*ids, *more})


async def check_known(broker: Broker, texts: list[str]) -> None:
    """Raise if an id never existed; reads at most one job for each selector."""
    read = {text: selectors.read(text) for text in texts}
    named = {text: one for text, one in read.items() if one.ids is not None or one.last}
    if named:
        missing = await broker.read(partial(_missing, named=named))
        if missing is not None:
            raise _unknown(missing)


def read_selectors(texts: list[str]) -> list[Selection]:
    """Read at least one selector; only the number of ids is not limited."""
    if not texts:
        raise UsageError("no job was named", "give an id, a range, or `all`")
    selections = [selectors.read(text) for text in texts]
    others = sum(one.ids is None for one in selections)
    if others > MOST_AT_ONCE:
        raise UsageError(
            f"{others} selectors that are no ids", f"at most {MOST_AT_ONCE} at a time"
        )
    return selections


async def job_of(broker: Broker, text: str) -> JobDetails:
    """Return the one job that a selector names."""
    ids = await select(broker, [text])
    if len(ids) != 1:
        raise UsageError(f"`{text}` selects {len(ids)} jobs", "name one")
    return await details_of(broker, ids[0])


async def details_of(broker: Broker, job: int) -> JobDetails:
    """Read one job."""
    found = await broker.read(lambda db: db.details([job]))
    if not found:
        raise NotFound(f"there is no job {job}")
    return found[0]


def _misses(selection: Selection, ids: list[int]) -> bool:
    if selection.ids is None:
        named = selection.last or selection.project or selection.name
        return bool(named) and not ids
    first, last = selection.ids
    place = bisect_left(ids, first)
    return place == len(ids) or ids[place] > last


def _unknown(text: str) -> NotFound:
    what = f"there is no job {text}" if text.isdecimal() else f"no job is `{text}`"
    return NotFound(what, "`grass show --all` lists all")


def _selected(store: Store, selections: list[Selection]) -> list[int]:
    return store.select(selections)


def _missing(store: Store, named: dict[str, Selection]) -> str | None:
    """Return the first selector that matches no job."""
    for text, selection in named.items():
        if not store.jobs(JobFilter(selections=(selection,)), 1):
            return text
    return None
