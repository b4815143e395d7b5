"""Starts of jobs that are alike: most of a start verb is made once for all of them.

Members of an array have the same command, environment, directory and limits, and to
compose these takes longer than a short job runs. So the last start is kept with its
verb, and one that is alike takes all from it but what is its own: identity, units,
place among the others, output, arguments.

A start whose parts depend on what is its own is always composed anew: placeholders,
GPUs, limits that are enforced, input, a guest.
"""

from base64 import b64encode
from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple, cast

from grass.config import MARKER
from grass.keeper.protocol import Notes, StartVerb, TaskRun
from grass.link.messages import Start
from grass.model.jobs.spec import NO_INPUT
from grass.model.resources import GPU_KINDS
from grass.worker.core.prepare import Surroundings, own_path, own_variables, start_verb
from grass.worker.core.task_starts import OF_DEVICES, blob_path

_OWN = frozenset(
    {"allocation", "arguments", "arguments_blob", "attempt", "index", "job"}
    | {"after", "number", "placed_at"}
)
_ALIKE = attrgetter(*(one for one in Start.__struct_fields__ if one not in _OWN))


class _Known(NamedTuple):
    alike: tuple[object, ...]
    kinds: frozenset[str]
    is_member: bool
    around: Surroundings
    verb: StartVerb


class StartTemplates:
    """Composes start verbs, those that are alike from the last one."""

    def __init__(self) -> None:
        self._known: _Known | None = None

    def verb(self, start: Start, around: Surroundings) -> StartVerb:
        """Compose the keeper's start verb."""
        known = self._known
        if known is not None and _is_alike(start, around, known):
            return _derived(start, around, known.verb)
        verb = start_verb(start, around)
        self._known = _template(start, around, verb) if _is_plain(start) else None
        return verb


def _template(start: Start, around: Surroundings, verb: StartVerb) -> _Known:
    is_member = start.index is not None
    return _Known(_ALIKE(start), frozenset(start.allocation), is_member, around, verb)


def _is_alike(start: Start, around: Surroundings, known: _Known) -> bool:
    return (
        known.around is around
        and known.is_member == (start.index is not None)
        and known.alike == _ALIKE(start)
        and known.kinds == start.allocation.keys()
    )


def _is_plain(start: Start) -> bool:
    """Tell whether nothing but what is derived here is of this start alone."""
    if start.params or start.pin or start.guest is not None or start.sbatch:
        return False
    if start.enforce is not None or start.stdin != NO_INPUT or start.output is not None:
        return False
    if not GPU_KINDS.isdisjoint(start.allocation):
        return False
    given = (*start.queue_env, *start.env)
    texts = *start.words, *start.prefix, start.cwd or "", start.stderr or ""
    if any("{" in text for text in (*texts, *(value for _, value in given))):
        return False
    own = {MARKER, *own_variables(start, {})}
    # Leading words of a command may be variables, too.
    return own.isdisjoint(name for name, _ in given) and not (
        start.task is None and any("=" in word for word in start.words)
    )


def _derived(start: Start, around: Surroundings, known: StartVerb) -> StartVerb:
    own = own_variables(start, around.gpus)
    own[MARKER] = start.attempt
    path = own_path(start, around)
    output, task = f"{path}.log", known.task
    return known._replace(
        id=start.attempt,
        output=output,
        after=start.after,
        meta=_notes(start, cast("Notes", known.meta), output),
        env={**known.env, **own} if task is None else known.env,
        task=None if task is None else _task(start, around, task, path, own),
    )


def _notes(start: Start, known: Notes, output: str) -> Notes:
    return known._replace(
        allocation=start.allocation,
        output=output,
        after=start.after,
        placed_at=start.placed_at,
    )


def _task(
    start: Start,
    around: Surroundings,
    known: TaskRun,
    path: str,
    own: Mapping[str, str],
) -> TaskRun:
    blob = start.arguments_blob
    of_attempt = {name: own[name] for name in own if name not in OF_DEVICES}
    return known._replace(
        arguments=blob_path(around.blob_folder, blob) if blob else "",
        inline=b64encode(start.arguments).decode(),
        result=f"{path}.result",
        env={**known.env, **of_attempt},
        units=start.allocation,
    )
