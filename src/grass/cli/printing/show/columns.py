"""The columns of `show`.

A column is a name, its meaning, how its cell is written, and how jobs are sorted by it.
A daemon of another version may leave fields out, so cells read them with `get`.
"""

from __future__ import annotations

from functools import partial

from grass.cli.printing.command_text import in_a_row
from grass.cli.printing.quantities import (
    age,
    between,
    brief,
    local,
    ran,
    utc_now,
)
from grass.cli.printing.show.array_rows import counts
from grass.cli.printing.usage_text import (
    CPU,
    GPU_MEMORY,
    GPU_UTILIZATION,
    MEMORY,
    amount,
    total,
)
from grass.cli.printing.wording import (
    ENDED_STATES,
    asked,
    ending,
    label,
    owner,
    reason,
    state,
    units,
)
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any

    from grass.client.json_codec import Document

    Cell = Callable[[Document, datetime], str]
    SortKey = Callable[[Document], Any]

DEFAULT = (
    *("id", "state", "queue", "name", "owner", "worker", "units", "time"),
    *("reason", "command"),
)


class Column:
    """One column."""

    def __init__(
        self,
        name: str,
        about: str,
        cell: Cell,
        key: SortKey | None = None,
        *,
        tells_usage: bool = False,
    ) -> None:
        """Without a `key`, jobs are sorted by the cell's text."""
        self.name = name
        self.about = about
        self.cell = cell
        self.key = key
        self.tells_usage = tells_usage
        """Whether it needs to know what jobs use now."""
        self.header = name.upper()


def chosen(text: str | None) -> list[Column]:
    """Read `--columns id,name`; without it, the usual ones."""
    if text is None:
        return [_find(name) for name in DEFAULT]
    return [_find(name.strip()) for name in text.split(",") if name.strip()]


def order(text: str) -> Callable[[Iterable[Document]], list[Document]]:
    """Read `--sort name` or `--sort -name`; return what sorts jobs so."""
    column = _find(text.removeprefix("-"))
    now = utc_now()

    def key(job: Document) -> tuple[bool, Any]:
        value = column.key(job) if column.key else column.cell(job, now)
        return (value is None, "" if value is None else value)

    def put(jobs: Iterable[Document]) -> list[Document]:
        known = sorted(jobs, key=key, reverse=text.startswith("-"))
        # Jobs without a value come last in both directions.
        return sorted(known, key=lambda job: key(job)[0])

    return put


def rows(
    jobs: Iterable[Document], columns: Sequence[Column], now: datetime
) -> Iterator[list[str]]:
    """Return a row for each job."""
    for job in jobs:
        yield [column.cell(job, now) for column in columns]


def about_all() -> str:
    """List the columns, for the help."""
    return "Columns: " + ", ".join(column.name for column in COLUMNS) + "."


def _find(name: str) -> Column:
    for column in COLUMNS:
        if column.name == name:
            return column
    known = ", ".join(column.name for column in COLUMNS)
    raise UsageError(f"there is no column `{name}`", f"columns: {known}")


def _time(job: Document, now: datetime) -> str:
    if job["state"] in ENDED_STATES:
        return f"{_coarse(age(job['finished_at'], now))} ago"
    return brief(age(job["started_at"] or job["created_at"], now))


def _coarse(duration_s: float) -> str:
    """Write a duration in its largest unit alone: `5m` of `5m03s`."""
    text = brief(duration_s)
    letter = next(at for at, one in enumerate(text) if one.isalpha())
    return text[: letter + 1]


def held_units(job: Document) -> Document:
    """Return the units that a job holds, or that its last attempt held."""
    last = job["attempts"][-1] if job["attempts"] else {}
    held: Document = job["allocation"] or last.get("allocation") or {}
    return held


def _command(job: Document, _now: datetime) -> str:
    """Write a command; of an array, after the states of its members."""
    text = in_a_row(job)
    return f"{counts(job['members'])}: {text}" if "members" in job else text


def _span(start: str, end: str) -> Cell:
    def cell(job: Document, now: datetime) -> str:
        took = between(job[start], job[end], now)
        return "" if took is None else brief(took)

    return cell


def _ran(job: Document, now: datetime) -> str:
    took = ran(job, now)
    return "" if took is None else brief(took)


def _span_key(start: str, end: str) -> SortKey:
    return lambda job: between(job[start], job[end], utc_now())


def _plain(name: str, about: str, field: str = "") -> Column:
    def cell(job: Document, _now: datetime) -> str:
        value = job.get(field or name)
        return "" if value is None else str(value)

    return Column(name, about, cell, lambda job: job.get(field or name))


def _moment(name: str, about: str, field: str) -> Column:
    return Column(name, about, lambda job, _: local(job.get(field)), _field(field))


def _field(name: str) -> SortKey:
    return lambda job: job.get(name)


def _last(job: Document, field: str) -> float | None:
    """Return a measurement of the last attempt."""
    tried = job["attempts"]
    return tried[-1][field] if tried else None


def _measured(
    name: str, about: str, field: str, text: Callable[[float], str]
) -> Column:
    def cell(job: Document, _now: datetime) -> str:
        value = _last(job, field)
        return "" if value is None else text(value)

    return Column(name, about, cell, lambda job: _last(job, field))


def most_memory(job: Document) -> float | None:
    """Return the most memory that a job uses, or used in its last attempt."""
    told = total(job, MEMORY, "peak")
    if told is not None or not job["attempts"]:
        return told
    last = job["attempts"][-1]
    measured = (last.get("peak") or {}).get("memory")
    known = [one for one in (measured, last["max_rss"]) if one is not None]
    return max(known, default=None)


def _memory(job: Document, _now: datetime) -> str:
    return amount(MEMORY, most_memory(job))


def _used(name: str, about: str, what: str, field: str) -> Column:
    def cell(job: Document, _now: datetime) -> str:
        return amount(what, total(job, what, field))

    key = partial(total, what=what, field=field)
    return Column(name, about, cell, key, tells_usage=True)


def _retries(job: Document, _now: datetime) -> str:
    return f"{job.get('retries_left')}/{job['retries']}" if job.get("retries") else ""


def _limit(job: Document, _now: datetime) -> str:
    limit = job.get("time_limit_s")
    return "" if limit is None else brief(limit)


def _params(job: Document) -> str:
    return " ".join(
        f"{name}={text}" for name, text in (job.get("params") or {}).items()
    )


COLUMNS = (
    Column(
        "id", "the id, and its index in an array", lambda j, _: label(j), _field("id")
    ),
    Column("state", "the state", lambda job, _: state(job)),
    _plain("queue", "its queue"),
    _plain("name", "its name"),
    _plain("project", "its project"),
    Column("owner", "who enqueued it", lambda job, _: owner(job["owner"])),
    _plain("priority", "its priority"),
    Column(
        "units",
        "the units it holds, or held last",
        lambda job, _: units(held_units(job)),
    ),
    Column("request", "what it asked for", lambda job, _: asked(job["request"])),
    Column("time", "how long it waits or runs, or ago it ended", _time, _field("id")),
    Column(
        "waited",
        "how long it waited",
        _span("created_at", "started_at"),
        _span_key("created_at", "started_at"),
    ),
    Column(
        "ran",
        "how long it ran",
        _ran,
        lambda job: ran(job, utc_now()),
    ),
    _moment("created", "when it was enqueued", "created_at"),
    _moment("started", "when it started", "started_at"),
    _moment("finished", "when it ended", "finished_at"),
    Column("exit", "its exit code or signal", lambda job, _: ending(job)),
    Column("reason", "why it waits, or ended as it did", lambda job, _: reason(job)),
    Column("command", "what it runs", _command),
    _plain("worker", "where it runs or ran"),
    _plain("pid", "its process"),
    _plain("directory", "where it runs", "cwd"),
    _plain("output", "the file with its output"),
    Column(
        "attempts",
        "how often it was started",
        lambda job, _: str(len(job["attempts"])),
        lambda job: len(job["attempts"]),
    ),
    Column(
        "retries", "retries left, of those allowed", _retries, _field("retries_left")
    ),
    Column(
        "after", "the jobs it waits for", lambda j, _: " ".join(j.get("after") or [])
    ),
    _moment("begin", "when it may start", "begin_at"),
    Column("limit", "its time limit", _limit, _field("time_limit_s")),
    _plain("nice", "how nice it is"),
    Column("params", "its parameters", lambda job, _: _params(job)),
    _plain("array", "the first job of its array"),
    _plain("index", "its index in its array"),
    Column("memory", "most memory it used", _memory, most_memory),
    _used("used", "memory it uses now", MEMORY, "now"),
    _measured("cpu", "processor time it used", "cpu_s", brief),
    _used("cores", "cores it uses now", CPU, "now"),
    _used("gpu-memory", "GPU memory it uses now", GPU_MEMORY, "now"),
    _used("gpu-peak", "most GPU memory it used", GPU_MEMORY, "peak"),
    _used("gpu-use", "how busy its GPUs are now", GPU_UTILIZATION, "now"),
)
