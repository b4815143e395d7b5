"""What an enqueue would add: the same checks, and nothing is changed.

A job that does not exist has no id, so `{id}` stays as it is.
"""

from grass.broker.core.calls import NewJob, PlanEnqueue, Planned, PlannedJob
from grass.broker.core.jobs import enqueue_hints
from grass.broker.core.jobs.bulk_enqueue import Prepared, is_for_a_shell, name_of
from grass.broker.core.jobs.enqueue import checked_call
from grass.broker.core.state import State
from grass.model.jobs.job import DEFAULT_PROJECT
from grass.model.jobs.placeholders import fill, fill_command, values_of
from grass.model.jobs.spec import asked_json

MOST_LISTED = 1000


def plan(state: State, call: PlanEnqueue) -> Planned:
    """Check all jobs of a call, and return how the first of them would run."""
    asked = call.enqueue
    asked.found = call.found
    prepared, _ = checked_call(state, asked)
    listed = [
        _planned(new, prepared[id(new.patch)]) for new in asked.jobs[:MOST_LISTED]
    ]
    hint = enqueue_hints.hints(state, prepared.values())
    return Planned(len(asked.jobs), listed, hint)


def _planned(new: NewJob, known: Prepared) -> PlannedJob:
    patch, spec = new.patch, known.spec
    shell, params = is_for_a_shell(new, known), new.params or {}
    values = values_of(
        id=0,
        name="",
        project=patch.project or DEFAULT_PROJECT,
        index=new.index,
        params=params,
    )
    del values["id"], values["name"]
    name = fill(name_of(new, known), values)
    command = [*known.prefix, *new.words]
    if not spec.raw:
        values["name"] = name
        command = fill_command(command, values, params, shell=shell)
    return PlannedJob(
        name=name,
        project=patch.project or DEFAULT_PROJECT,
        queue=known.queue,
        command=command,
        shell=shell,
        request=asked_json(spec),
        priority=patch.priority or 0,
        cwd=spec.cwd or spec.queue_cwd,
        index=new.index,
        params=params,
    )
