"""Enqueue jobs, and find them: what `import grass` gives a program to begin with.

The first argument of `enqueue` decides what runs: words are a program with its
arguments, one text is a shell line, and a function is called in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from grass.cli.parsing import job_options
from grass.cli.parsing.enqueue_line import EnqueueLine, asked
from grass.cli.parsing.job_options import check_paths, settings
from grass.cli.parsing.options import BROKER
from grass.client.json_codec import AnyOf
from grass.errors import NoResult, NotFound, UsageError
from grass.verbs.calling import Caller, in_coroutines
from grass.verbs.job import Job
from grass.verbs.job_list import Jobs
from grass.verbs.keywords import as_values, as_words
from grass.verbs.selected import Selected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Unpack

    from grass.cli.parsing.options import Option, Values
    from grass.client.json_codec import Document
    from grass.verbs.keywords import ArrayOptions, JobOptions
    from grass.verbs.task_jobs import PackedCall

    Command = Iterable[str | os.PathLike[str]] | str
    """Words of a program, or a shell line."""

OPTIONS = (
    *job_options.OPTIONS,
    BROKER,
    job_options.QUIET,
    job_options.NO_DIRECTIVES,
)
ARRAY_OPTIONS = (*OPTIONS, job_options.ARRAY, *job_options.OF_ARRAYS)


@overload
def enqueue(command: Command, **options: Unpack[JobOptions]) -> Job: ...
@overload
def enqueue(command: Callable[..., Any], *args: object, **options: object) -> Job: ...
def enqueue(command: Command | Callable[..., Any], *args: Any, **options: Any) -> Job:
    """Add a job and return it once it is durable.

    Words are a program and its arguments, a text is a shell line. A function is called
    with the arguments that follow it, and `job.result()` is what it returns:
    `enqueue(train, lr=0.1, request={"gpu": 0.5})`. All run in the directory and with
    the environment of this process. The keywords are the options of `grass enqueue`:
    `request={"gpu": 0.5}`, `name="a"`, `after=[other]`; any other is the function's.
    """
    if callable(command):
        # Imported on use: most programs enqueue commands.
        from grass.verbs import task_jobs

        own, options = task_jobs.split_keywords(command, options)
        calls = task_jobs.calls_of(command, [(args, own)])
        return _enqueue_calls(task_jobs.enqueue_tasks, calls, options)[0]
    if args:
        raise UsageError("only a function has arguments", "give words as a list")
    with Caller(broker=options.get("broker")) as client:
        first = _enqueue_line(client, OPTIONS, command, {**options})["first"]
        return Job(first, options.get("broker"), client.job(first))


def map(
    function: Callable[..., Any], items: Iterable[Any], **options: Unpack[ArrayOptions]
) -> Jobs:
    """Add a call of a function for each item, as the members of one array.

    All or none. `results()` of what is returned has what they return, in the order of
    the items: `map(score, paths, request={"cpu": 2}, at_most=8).results()`.
    """
    from grass.verbs import task_jobs

    calls = task_jobs.calls_of(function, (((item,), {}) for item in items))
    if not calls:
        return Jobs((), options.get("broker"))
    return _enqueue_calls(task_jobs.enqueue_array_of_tasks, calls, {**options})


def enqueue_array(
    command: Command, array: str, **options: Unpack[ArrayOptions]
) -> Jobs:
    """Add a job for each index of an array, as `"1-100%8"`: all or none.

    Each finds its own as `{index}` in its command and in `GRASS_ARRAY_INDEX`.
    """
    given = {**options, "array": array}
    with Caller(broker=options.get("broker")) as client:
        added = _enqueue_line(client, ARRAY_OPTIONS, command, given)
    return _added(added, options.get("broker"))


def enqueue_many(commands: Iterable[Command], **options: Unpack[JobOptions]) -> Jobs:
    """Add a job for each command, with the same options: all or none."""
    values = as_values(OPTIONS, {**options})
    fields = settings(values, values.text("queue"))
    jobs = [{"command": _command(one)} for one in commands]
    if not jobs:
        return Jobs((), options.get("broker"))
    with Caller(broker=options.get("broker")) as client:
        check_paths(client, fields)
        added = client.enqueue_jobs(jobs, fields)
    _give_hint(added, values)
    return _added(added, options.get("broker"))


def jobs(
    *selectors: int | str | Selected, any: bool = False, broker: str | None = None
) -> Jobs:
    """Find jobs by what the command line takes: `7`, `"3-9"`, `"@demo"`, `"last"`.

    Selectors of one kind add up, those of different kinds narrow: `jobs("@demo",
    "state:failed", "state:lost")` are those of the project that failed or got lost.
    With `any` they are the jobs that any selector means. `"all"` are those that are
    unfinished.
    """
    if not selectors:
        raise UsageError("no job was named", 'jobs("all") are all unfinished ones')
    wanted = [
        text
        for one in selectors
        for text in (one.selectors if isinstance(one, Selected) else [str(one)])
    ]
    lists = [one for one in selectors if isinstance(one, Selected)]
    if not wanted or (lists and not any and not list(filter(_names_ids, wanted))):
        # A list without jobs leaves none over.
        return Jobs((), broker)
    with Caller(broker=broker) as client:
        try:
            found = client.select(AnyOf(wanted) if any else wanted)
            return Jobs(found["jobs"], broker)
        except NotFound:
            if len(wanted) == 1 and wanted[0].isdecimal():
                _check_forgotten(client, int(wanted[0]))
            raise


enqueue_async = in_coroutines(enqueue)
map_async = in_coroutines(map)
enqueue_array_async = in_coroutines(enqueue_array)
enqueue_many_async = in_coroutines(enqueue_many)
jobs_async = in_coroutines(jobs)


def _names_ids(selector: str) -> bool:
    return selector[:1].isdecimal()


def _check_forgotten(client: Caller, job: int) -> None:
    """Say of a job that is not there any more when it was forgotten."""
    try:
        client.result(job, 0.0)
    except NoResult as error:
        raise NotFound(error.message, error.hint) from None
    except NotFound:
        """It never was, or nobody knows."""


def _enqueue_calls(
    add: Callable[[Caller, Sequence[PackedCall], Document], Document],
    calls: Sequence[PackedCall],
    options: dict[str, Any],
) -> Jobs:
    """Add calls of a function, with options of their jobs."""
    values = as_values(ARRAY_OPTIONS, options)
    fields = settings(values, values.text("queue"))
    broker = options.get("broker")
    with Caller(broker=broker) as client:
        check_paths(client, fields)
        added = add(client, calls, fields)
    _give_hint(added, values)
    return _added(added, broker)


def _enqueue_line(
    client: Caller,
    options: Sequence[Option],
    command: Command,
    given: Mapping[str, object],
) -> Document:
    """Add what a command line would, whose words after `--` are the command."""
    command = _command(command)
    words = [command] if isinstance(command, str) else command
    line = EnqueueLine(options, [*as_words(given), "--", *words])
    line.find_queue(lambda _: None)
    if not words and line.queue is None:
        raise UsageError("no command was given", 'enqueue(["python", "x.py"])')
    fields, script = asked(client, line, {})
    jobs: list[Document] = [{"command": command}]
    if script is None:
        added = client.enqueue_jobs(jobs, fields)
    else:
        with script.errors(line.values):
            added = client.enqueue_jobs(jobs, fields)
    _give_hint(added, line.values)
    return added


def _command(command: Command) -> str | list[str]:
    if isinstance(command, str):
        return command
    try:
        words = list(command)
    except TypeError:
        raise UsageError(
            f"{command!r} is no command",
            'give words, ["python", "x.py"], or a shell line',
        ) from None
    return [_word(one) for one in words]


def _word(given: object) -> str:
    """Read a word of a command as `subprocess` does, so that no type is guessed."""
    try:
        return os.fsdecode(given)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(
            f"{given!r} is no word of a command", "words are text: str(0.1)"
        ) from None


def _added(reply: Document, broker: str | None) -> Jobs:
    return Jobs(range(reply["first"], reply["last"] + 1), broker)


def _give_hint(reply: Document, values: Values) -> None:
    if reply["hint"] and not values.has("quiet"):
        for line in reply["hint"].split("\n"):
            sys.stderr.write(f"grass: {line}\n")
