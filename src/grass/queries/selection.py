"""Which jobs selectors mean.

An id, a project, a name or a queue that never existed is an error. A state in which no
job is at the time is not, and neither is a range in which no job is left. An id that
the other selectors leave out is one: the caller expects something to happen to it.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from grass.broker.core.jobs import queues
from grass.broker.shell.service import Broker
from grass.errors import NotFound, UsageError
from grass.model import selectors
from grass.model.id_runs import runs
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.selectors import Selection, Selector, combine
from grass.store.interface import JobDetails, JobFilter, Store

T = TypeVar("T")

MOST_AT_ONCE = 200
"""Selectors other than ids: SQLite limits how deep they nest."""
MAX_NAMED = 5
"""How many jobs an error names."""


class Words(msgspec.Struct, frozen=True):
    """Selectors as they were written, and the jobs that they mean together."""

    by_text: dict[str, Selector] = {}
    selection: Selection = Selection()

    @property
    def single(self) -> dict[int, str]:
        """The words that are one id each."""
        every = self.by_text.items()
        return {one.ids[0]: text for text, one in every if one.ids and text.isdecimal()}


async def select(broker: Broker, texts: list[str], *, union: bool = False) -> list[int]:
    """Resolve selectors into ids, in order."""
    words = read_words(texts, union=union)
    ids = await reading(broker, words.selection)(partial(_selected, words=words))
    for selector in words.by_text.values():
        if selector.queue is not None:
            queues.find(broker.state, selector.queue)
    return ids


def reading(
    broker: Broker, selection: Selection
) -> Callable[[Callable[[Store], T]], Awaitable[T]]:
    """Return how to read what selectors mean: names are looked through apart."""
    return broker.scan if selection.has_pattern else broker.read


async def in_states(
    broker: Broker, ids: list[int], states: Sequence[JobState]
) -> list[int]:
    """Return those of these jobs that are in one of some states."""
    by_id = tuple(Selector(ids=one) for one in runs(ids))
    by_state = tuple(Selector(state=one) for one in states)
    if not by_id or not by_state:
        return []
    return await broker.read(lambda db: db.select(Selection((by_id, by_state))))


async def with_dependents(broker: Broker, ids: list[int]) -> list[int]:
    """Add the jobs that were cancelled because these ended otherwise, in order."""
    more = await broker.read(lambda db: db.dependents(ids))
    return sorted({*ids, *more})


async def check_known(broker: Broker, words: Words) -> None:
    """Raise if an id never existed, or is left out by the other selectors.

    Reads at most one job for each selector.
    """
    if any(one.ids is not None or one.last for one in words.by_text.values()):
        read = reading(broker, words.selection)
        await read(partial(_check_named, words=words))


def read_words(texts: list[str], *, union: bool = False) -> Words:
    """Read at least one selector; only the number of ids is not limited."""
    if not texts:
        raise UsageError("no job was named", "give an id, a range, or `all`")
    by_text = {text: selectors.read(text) for text in texts}
    others = sum(by_text[text].ids is None for text in texts)
    if others > MOST_AT_ONCE:
        raise UsageError(
            f"{others} selectors that are no ids", f"at most {MOST_AT_ONCE} at a time"
        )
    return Words(by_text, combine(by_text.values(), union=union))


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


def _selected(store: Store, words: Words) -> list[int]:
    ids = store.select(words.selection)
    _check_ids(store, words, ids)
    if not ids:
        for text, selector in words.by_text.items():
            of_name = selector.project is not None or selector.name is not None
            if of_name and not _exists(store, selector):
                raise _unknown(text)
    return ids


def _check_named(store: Store, words: Words) -> None:
    """Check the ids among the words, without reading all jobs that they mean."""
    selection, single = words.selection, words.single
    if not selection.newest:
        by_id = tuple(Selector(ids=(one, one)) for one in single)
        others = (g for g in selection.groups if any(one.ids is None for one in g))
        selection = Selection((by_id, *others))
    reads = bool(single) or selection.newest
    _check_ids(store, words, store.select(selection) if reads else [])


def _check_ids(store: Store, words: Words, ids: list[int]) -> None:
    """Raise if a job that was named does not exist, or is not among `ids`."""
    missing = [one for one in words.single if not _has(ids, one, one)]
    existing = {job.id: job for job in store.outcomes(missing)} if missing else {}
    for job in missing:
        if job not in existing:
            raise _unknown(words.single[job])
    if existing:
        raise _left_out(words, list(existing.values()))
    for text, selector in words.by_text.items():
        if selector.ids is None or _has(ids, *selector.ids):
            continue
        if not _exists(store, selector):
            raise _unknown(text)
    if words.selection.newest and not ids:
        others = [f"`{text}`" for text, one in words.by_text.items() if not one.last]
        left = f": no job matches {' '.join(others)}" if others else ""
        raise NotFound(f"no job is `last`{left}", "`grass show --all` lists all")


def _has(ids: list[int], first: int, last: int) -> bool:
    place = bisect_left(ids, first)
    return place < len(ids) and ids[place] <= last


def _exists(store: Store, selector: Selector) -> bool:
    wanted = JobFilter(selection=combine([selector]))
    return bool(store.jobs(wanted, 1))


def _unknown(text: str) -> NotFound:
    what = f"there is no job {text}" if text.isdecimal() else f"no job is `{text}`"
    return NotFound(what, "`grass show --all` lists all")


def _left_out(words: Words, jobs: list[Job]) -> NotFound:
    """Return the error for jobs that were named by ids and do not match the rest."""
    texts = {selector: text for text, selector in words.by_text.items()}
    out, by = jobs, ["`last`"]
    for group in words.selection.groups:
        unlike = [job for job in jobs if not any(one.matches(job, 0) for one in group)]
        if unlike:
            out, by = unlike, [f"`{texts[one]}`" for one in group]
            break
    which = f"job {out[0].id} is"
    if len(out) > 1:
        named = ", ".join(str(job.id) for job in out[:MAX_NAMED])
        more = len(out) - MAX_NAMED
        which = f"jobs {named}{f' and {more} more' if more > 0 else ''} are"
    return NotFound(
        f"{which} not {' or '.join(by)}",
        "selectors of different kinds narrow; `--any` takes the jobs of any of them",
    )
