"""Keywords as options of the command line: one table of options, one meaning of each.

A keyword is the option of that name, and is written as the words that a shell would
give. So what it may be, what it means and what is said of a wrong one are decided in
`cli/parsing` alone. The types here are for readers and type checkers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from grass.cli.parsing import job_options
from grass.cli.parsing.options import Values, scan
from grass.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.cli.parsing.options import Option
    from grass.client.json_codec import Document
    from grass.verbs.selected import Selected

    Path = str | os.PathLike[str]
    Amount = float | str
    """A number, or memory with its unit: `"8G"`."""
    Duration = float | str | timedelta
    """In seconds, or as on the command line: `"90s"`, `"2h"`."""
    After: TypeAlias = "int | str | Selected"
    """A job, or several."""


_REQUESTS = ("request", "require")


class JobOptions(TypedDict, total=False):
    """The options of `grass enqueue`, as keywords; None is as if it were not given."""

    request: Mapping[str, Amount] | str | None
    """All that it asks for: `{"gpu": 0.5, "ram": "8G"}`."""
    require: Mapping[str, Amount] | str | None
    """The same, by the name of the option."""
    gpu: Amount | None
    """So many GPUs, besides what else a job of its queue asks for."""
    cpu: Amount | None
    ram: Amount | None
    vram: Amount | None
    gpu_model: str | None
    policy: str | None
    type: str | None
    enforce: str | bool | None
    env: Mapping[str, object] | Sequence[str] | None
    cwd: Path | None
    queue: str | None
    name: str | None
    project: str | None
    worker: str | None
    label: str | Sequence[str] | None
    pool: str | None
    priority: int | None
    after: After | Sequence[After] | None
    """Jobs that have to succeed first; `"7:failed"` and `"3-8:any"` as usual."""
    begin: datetime | str | None
    hold: bool
    time_limit: Duration | None
    signal: str | None
    grace: Duration | None
    retries: int | None
    backoff: Duration | None
    retry_on: str | Sequence[str | int] | None
    retry_lost: int | None
    nice: int | None
    shell: str | None
    output: Path | None
    stderr: Path | None
    max_output: Amount | None
    raw: bool
    pin: bool
    broker: str | None
    """The broker to speak to, `HOST:PORT` or `local`; None is the usual one."""
    quiet: bool
    """Whether the daemon's hints are left out on stderr."""
    no_directives: bool


class ArrayOptions(JobOptions, total=False):
    """The options of `enqueue_array`."""

    at_most: int | None
    max_fails: int | None


class JobChanges(TypedDict, total=False):
    """What `rerun` and `edit` change; None takes something away."""

    request: Mapping[str, Amount] | str
    require: Mapping[str, Amount] | str
    gpu: Amount
    cpu: Amount
    ram: Amount
    vram: Amount
    gpu_model: str | None
    policy: str | None
    type: str | None
    priority: int
    queue: str
    worker: str | None
    label: str | Sequence[str] | None
    pool: str | None
    time_limit: Duration | None
    signal: str | None
    env: Mapping[str, object] | Sequence[str]
    cwd: Path
    name: str


class ChangesBeforeStart(JobChanges, total=False):
    """What `edit` changes besides."""

    after: After | Sequence[After] | None
    begin: datetime | str | None
    retries: int


def as_words(given: Mapping[str, object], none: str | None = None) -> list[str]:
    """Write keywords as options; `none` is what None is written as."""
    return [word for name in given for word in _option(name, given[name], none)]


def as_values(
    options: Sequence[Option], given: Mapping[str, object], none: str | None = None
) -> Values:
    """Read keywords as the options of a command."""
    values = Values()
    scan(options, as_words(given, none), 0, values)
    return values


def job_fields(given: Mapping[str, object]) -> Document:
    """Read keywords as what the document of a job has of them."""
    values = as_values(job_options.OPTIONS, given)
    return job_options.settings(values, values.text("queue"))


def _option(name: str, value: object, none: str | None) -> list[str]:
    # A job has a request; the option that states it was named after what it does.
    option = "--" + ("require" if name == "request" else name.replace("_", "-"))
    if name in _REQUESTS and hasattr(value, "parts"):
        raise UsageError(
            f"`{name}={value!r}` is what a task of a program asks for",
            'of a job it is `request={"cpu": 1, "ram": "8G"}`',
        )
    if isinstance(value, bool):
        return [option] if value else []
    if name == "env" and isinstance(value, Mapping):
        return [f"{option}={key}={value[key]}" for key in value]
    if name == "env" and not isinstance(value, str) and isinstance(value, Iterable):
        return [f"{option}={one}" for one in value]
    text = none if value is None else written(value)
    if not text and not isinstance(value, str):
        text = none  # A list of nothing.
    return [] if text is None else [f"{option}={text}"]


def written(value: object) -> str:
    """Write a value as a word of the command line."""
    if isinstance(value, timedelta):
        return f"{value.total_seconds():f}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    several = getattr(value, "selectors", value)
    if isinstance(several, Iterable) and not isinstance(several, str):
        return ",".join(map(written, several))
    return str(several)
