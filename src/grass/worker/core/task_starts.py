"""The start of a task: which runner can run it, and what is its own.

A runner is a process that runs many attempts. What a process gets once, when it is
started, is in the runner's key: interpreter, environment, directory, umask, priority,
cores and limits. So is the owner of the job: a function may change the process for
those after it, and a client unpickles what the runner writes for its own jobs.
Variables that tell an attempt what it is travel with it, and so do those whose values
were filled in for it alone.
"""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from grass.config import MARKER, OWN_PORT
from grass.keeper.protocol import StartVerb, TaskRun
from grass.link.messages import Start
from grass.model.jobs.task_call import TaskCall
from grass.model.resources import GPU_KINDS

RUNNER = ("-P", "-m", "grass.tasks.runner")
"""Without modules of the job's directory, which come after the runner's own."""
OF_DEVICES = frozenset({"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"})
"""Libraries read these once, so they are the runner's."""


class TaskPlace(NamedTuple):
    """What a worker offers a task."""

    python: str
    """The interpreter for callers of other machines."""
    blob_folder: str
    own_path: str
    """Of the attempt's own files, without their endings."""
    tells_results: bool
    """Whether results may go with the exit, where the broker takes them."""


def task_verb(
    verb: StartVerb, start: Start, place: TaskPlace, own: Iterable[str]
) -> StartVerb:
    """Turn the start of a command into that of a task, if it is one.

    `own` are the variables by which an attempt is told what it is.
    """
    task = start.task
    if task is None:
        return verb
    names = _attempts_names(start, verb.env, own)
    of_attempt = {name: verb.env[name] for name in names if name in verb.env}
    of_runner = {name: verb.env[name] for name in verb.env.keys() - of_attempt.keys()}
    argv = [task.interpreter or place.python, *RUNNER]
    verb = verb._replace(argv=argv, env=of_runner, under=[], script=None)
    return verb._replace(task=_task_run(verb, start, task, place, of_attempt))


def _attempts_names(
    start: Start, env: dict[str, str], own: Iterable[str]
) -> frozenset[str]:
    """Name the variables of an attempt: what is alike for all of a key is not."""
    given = (*start.queue_env, *start.env)
    filled = (name for name, value in given if env.get(name) != value)
    # A port is chosen for each attempt.
    port = ("MASTER_PORT", OWN_PORT) if OWN_PORT in env else ()
    return frozenset((*own, *filled, *port, MARKER)) - OF_DEVICES


def _task_run(
    verb: StartVerb,
    start: Start,
    task: TaskCall,
    place: TaskPlace,
    of_attempt: dict[str, str],
) -> TaskRun:
    blob = start.arguments_blob
    return TaskRun(
        key=runner_key(verb, start.owner),
        function=blob_path(place.blob_folder, task.function),
        arguments=blob_path(place.blob_folder, blob) if blob else "",
        inline=b64encode(start.arguments).decode(),
        result=f"{place.own_path}.result",
        env=of_attempt,
        python=task.python,
        name=task.name or start.name,
        keep=GPU_KINDS.isdisjoint(start.allocation),
        most_told=start.most_told if place.tells_results else 0,
        units=start.allocation,
    )


def runner_key(verb: StartVerb, owner: str) -> str:
    """Return what tells the runners apart that a start may be handed to."""
    once = verb.umask, verb.nice, verb.cpus, verb.memory_max, verb.cpu_max
    parts = [owner, verb.cwd, repr(once), *verb.argv, "", *sorted(_written(verb.env))]
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _written(env: dict[str, str]) -> Iterable[str]:
    return (f"{name}={value}" for name, value in env.items())


def blob_path(folder: str, name: str) -> str:
    """Return where a blob is."""
    return f"{folder}/{name[:2]}/{name}"
