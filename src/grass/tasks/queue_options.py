"""Options of tasks that are jobs: those of any task, and those of `grass enqueue`.

`wg.options(queue="night", after=[job], project="thesis")` gives them, and so does
`run_combine(main, broker=..., queue="night")` for all. What a task asks for is its
resource, so options that would say the same are none here.
"""

from __future__ import annotations

from math import isinf

from grass.errors import UsageError
from grass.model.amounts import decimal_number
from grass.resource import WTime, counted, own_parts
from grass.tasks.task import TRIES, Options
from grass.verbs.keywords import JobOptions, job_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grass.client.json_codec import Document
    from grass.resource import Resource

_ASKED = {
    "request": "Cores(2) & Memory(4)",
    "require": "Cores(2) & Memory(4)",
    "gpu": "Gpu(1)",
    "cpu": "Cores(1)",
    "ram": "Memory(4)",
    "vram": "Vram(8)",
}
_OF_ALL = Options.__slots__
_NONE = {"broker", "quiet", "no_directives", "shell", "raw", *_OF_ALL, *_ASKED}
OF_JOBS = tuple(name for name in JobOptions.__annotations__ if name not in _NONE)


class QueueOptions(Options):
    """Options of a task, and of the job that it is."""

    __slots__ = ("fields", "given")

    def __init__(self, given: dict[str, Any], **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        self.given = given
        """Options of the job, as keywords."""
        self.fields: Document = job_fields(given) if given else {}

    def changed(self, **changes: Any) -> QueueOptions:  # noqa: ANN401
        """Return the same options but for some; refuse what is none."""
        for name in changes.keys() & _ASKED:
            raise UsageError(
                f"`{name}=` is no option of a task: it asks by its resource",
                f"for example `wg.submit({_ASKED[name]}, ...)`",
            )
        given = {name: changes.pop(name) for name in OF_JOBS if name in changes}
        self.check(changes, (*_OF_ALL, *OF_JOBS))
        known = {name: getattr(self, name) for name in _OF_ALL}
        return QueueOptions({**self.given, **given}, **{**known, **changes})

    def fields_for(self, res: Resource) -> Document:
        """Return the job of a task that asks for this, as documents have it."""
        check_counted(res)
        fields: Document = {}
        if self.reschedule and self.persistent:
            again = TRIES - 1
            fields = {"retries": again, "retry_on": ["signal"], "retry_lost": again}
        fields |= self.fields
        if self.priority:
            fields["priority"] = self.priority
        if self.name:
            fields["name"] = self.name
        request = {kind: decimal_number(amount) for kind, amount in counted(res)}
        if request:
            fields["require"] = request
        limit = own_parts(res).get("WTime")
        known = limit.known() if isinstance(limit, WTime) else None
        if known is not None and not isinf(known.T):
            fields["time_limit_s"] = known.T
        return fields


def check_counted(res: Resource) -> None:
    """Refuse what a broker cannot count."""
    for part in own_parts(res).values():
        if not isinstance(part, WTime):
            raise UsageError(
                f"`{part!r}` is asked in the program that made it, so a task that wants"
                " it cannot go through a broker",
                "declare it there by kind and amount, and ask for `Kind(name, amount)`",
            )
