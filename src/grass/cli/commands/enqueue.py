"""`grass enqueue`: add a job, an array, or many from a file, and print the ids.

How its words are read, and those of `grass run`, is in `parsing/enqueue_line.py`.
"""

from __future__ import annotations

import sys

from grass.cli.parsing import job_options
from grass.cli.parsing.enqueue_line import STDIN, EnqueueLine, asked, is_mark
from grass.cli.parsing.job_options import check_paths, settings
from grass.cli.parsing.options import BROKER, Command, Option, Values
from grass.client.client import Client
from grass.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.cli.parsing.directives import Directives
    from grass.client.json_codec import Document

    Add = Callable[..., Document]
    """Enqueues jobs, or says what would be enqueued."""

OPTIONS = (
    *job_options.OPTIONS,
    job_options.ARRAY,
    *job_options.OF_ARRAYS,
    Option(
        "--from",
        "FILE",
        "one job for each line: shell lines or JSON objects; before a command, values "
        "for its {} or {1} {2}",
    ),
    BROKER,
    job_options.QUIET,
    job_options.NO_DIRECTIVES,
    Option("--dry-run", about="say what would be enqueued; enqueue nothing"),
    Option("--format", "text|json", "what to print (default: text)"),
)
_FEW = 1000


def run(words: list[str]) -> int:
    """Enqueue what the words say."""
    line = EnqueueLine(OPTIONS, words)
    with Client(broker=line.values.broker) as client:
        find_queue(client, line)
        style = output_format(line.values)
        reply = _enqueue(client, line)
    give_hint(reply, line.values)
    if line.values.has("dry_run"):
        sys.stdout.write(_planned(reply, style))
    else:
        sys.stdout.write(_printed(reply, style))
    return 0


def _enqueue(client: Client, line: EnqueueLine) -> Document:
    source = line.values.text("from")
    if source is None and _comes_from_stdin(client, line):
        from grass.cli.parsing import stdin_script

        add = _adding(client, line.values)
        jobs, fields, script = stdin_script.read_job(
            line.queue, line.values, line.options
        )
        check_paths(client, fields)
        return _send(add, line, script, jobs, fields)
    if not line.values.has("raw") and any(map(is_mark, line.command)):
        return _enqueue_combinations(client, line)
    if source is None:
        return enqueue_line(client, line)
    if line.values.has("array"):
        raise UsageError("--array and --from both say how many jobs", "give one")
    if line.command:
        return _enqueue_values(client, line, source)
    return _enqueue_file(client, line, source)


def _comes_from_stdin(client: Client, line: EnqueueLine) -> bool:
    """Tell whether the command is a script on stdin."""
    if line.command not in ([], STDIN):
        return False
    if line.queue is not None and _prefix(client, line.queue):
        return False
    from grass.cli.parsing import stdin_script

    return line.command == STDIN or stdin_script.is_given()


def _enqueue_combinations(client: Client, line: EnqueueLine) -> Document:
    from grass.cli.parsing import combinations

    for option in ("array", "from"):
        if line.values.has(option):
            raise UsageError(f"--{option} and ::: both say how many jobs", "give one")
    line.command, params = combinations.split(line.command)
    with combinations.errors_by_row(lambda _: ""):
        return _enqueue_template(client, line, params)


def _enqueue_values(client: Client, line: EnqueueLine, source: str) -> Document:
    from grass.cli.parsing.combinations import errors_by_row
    from grass.cli.parsing.values_file import ValuesFile

    values = ValuesFile(source)
    with errors_by_row(values.place):
        return _enqueue_template(client, line, values.params)


def _enqueue_template(client: Client, line: EnqueueLine, params: Document) -> Document:
    """Add a job for each row of parameters."""
    from grass.cli.parsing.combinations import template

    if not line.command and line.queue is None:
        raise UsageError("no command was given", "write it before :::")
    defaults, script = asked(client, line, {})
    job = {"command": template(line.command, params, defaults)}
    return _send(_adding(client, line.values), line, script, [job], defaults, params)


def _adding(client: Client, values: Values) -> Add:
    return client.plan_jobs if values.has("dry_run") else client.enqueue_jobs


def _send(
    add: Add, line: EnqueueLine, script: Directives | None, *call: object
) -> Document:
    """Add jobs; an error about an option of the script names its line."""
    if script is None:
        return add(*call)
    with script.errors(line.values):
        return add(*call)


def find_queue(client: Client, line: EnqueueLine) -> None:
    """Read the words after the first options, asking the daemon for queues."""
    line.find_queue(lambda name: _prefix(client, name))


def enqueue_line(
    client: Client, line: EnqueueLine, more: Document | None = None
) -> Document:
    """Add the jobs of one command; `more` goes before what its options say."""
    if not line.command and line.queue is None:
        raise UsageError("no command was given", "write it after --: -- python x.py")
    defaults, script = asked(client, line, more or {})
    jobs = [{"command": line.command}]
    return _send(_adding(client, line.values), line, script, jobs, defaults)


def give_hint(reply: Document, values: Values) -> None:
    """Print the daemon's hints, a line each, on stderr."""
    if reply["hint"] and not values.has("quiet"):
        for line in reply["hint"].split("\n"):
            sys.stderr.write(f"grass: {line}\n")


def output_format(values: Values) -> str:
    """Read `--format`."""
    style = values.text("format") or "text"
    if style not in ("text", "json"):
        raise UsageError(f"--format is text or json, not `{style}`")
    return style


def _prefix(client: Client, name: str) -> list[str] | None:
    try:
        prefix: list[str] = client.queue(name)["prefix"]
    except NotFound:
        return None
    return prefix


def _enqueue_file(client: Client, line: EnqueueLine, source: str) -> Document:
    from grass.cli.parsing.jobs_file import JobsFile

    defaults = settings(line.values, line.queue)
    file = JobsFile(source)
    check_paths(client, defaults)
    file.check(client, defaults)
    with file.errors_by_line():
        return _adding(client, line.values)(file.jobs, defaults)


def _printed(reply: Document, style: str) -> str:
    first, last = reply["first"], reply["last"]
    if style == "text":
        return f"{first}\n" if first == last else f"{first}-{last}\n"
    from grass.client.json_codec import encoded

    document = {"first": first, "last": last}
    if last - first < _FEW:
        document["ids"] = list(range(first, last + 1))
    document["hint"] = reply["hint"]
    return encoded(document).decode() + "\n"


def _planned(reply: Document, style: str) -> str:
    if style == "text":
        from grass.cli.printing import plan

        return plan.text(reply)
    from grass.client.json_codec import encoded

    return encoded(reply).decode() + "\n"


COMMAND = Command(
    usage="[OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...",
    about=(
        "Add a job and print its id. Words before `--` name the queue; without `--`, a "
        "first word that is a queue's name is the queue. After a queue with a command "
        "prefix, every word is an argument of that prefix. Leading NAME=value words "
        "are environment; one word with spaces is a shell line. With --array there is "
        "one job for each index, which it finds as {index} and in GRASS_ARRAY_INDEX. "
        "With ::: after the command there is one for each combination of the values, "
        "which it finds as {1} {2} and in GRASS_PARAM_1: all are enqueued, or none."
    ),
    options=OPTIONS,
    examples=(
        "grass enqueue python train.py",
        "grass enqueue -g 0.5 -m 8G -- python train.py lr=0.1",
        "grass enqueue q1 --env 'CUDA_VISIBLE_DEVICES={gpu}' -- python train.py",
        'grass enqueue "python a.py && python b.py"',
        "grass enqueue q1 --require '{gpu:1}' --from jobs.txt",
        "grass enqueue --array 1-100%8 -- python train.py seed={index}",
        "grass enqueue -- python train.py {1} {2} ::: 0.1 0.01 ::: 1 2 3",
        "grass enqueue --from values.txt --at-most 8 -- python train.py {}",
        "grass enqueue --dry-run --array 1-100 -- python train.py seed={index}",
        "grass enqueue --broker my.server.com:7500 --label a100 -- nvidia-smi",
        "grass enqueue --after 7 --time-limit 2h --retries 3 -- python test.py",
    ),
    run=run,
)
