"""`grass enqueue`: add a job, an array, or many from a file, and print the ids."""

from __future__ import annotations

import sys

from grass.cli.parsing import job_options
from grass.cli.parsing.enqueue_grammar import Line, broker_of, read_line
from grass.cli.parsing.job_options import check_paths, settings
from grass.cli.parsing.options import BROKER, Command, Option, Values
from grass.client.client import Client
from grass.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.wire import Document

QUIET = Option("-q, --quiet", about="no hints on stderr")
OPTIONS = (
    *job_options.OPTIONS,
    Option("--array", "LIST", "one job for each index: 1-100, 0-90:10, 1-1000%8"),
    Option("--max-fails", "N", "pause the queue when N of the array have failed"),
    Option("--from", "FILE", "one job for each line: shell lines, or JSON objects"),
    BROKER,
    QUIET,
    Option("--format", "text|json", "what to print (default: text)"),
)
_FEW = 1000


def run(words: list[str]) -> int:
    """Enqueue what the words say."""
    with Client(broker=broker_of(OPTIONS, words)) as client:
        line = read_call(client, OPTIONS, words)
        style = output_format(line.values)
        source = line.values.text("from")
        if source is None:
            reply = enqueue_line(client, line)
        else:
            reply = _enqueue_file(client, line, source)
    give_hint(reply, line.values)
    sys.stdout.write(_printed(reply, style))
    return 0


def read_call(client: Client, options: tuple[Option, ...], words: list[str]) -> Line:
    """Read the words, asking the daemon which of them is a queue."""
    return read_line(options, words, lambda name: _prefix(client, name))


def enqueue_line(client: Client, line: Line) -> Document:
    """Add the jobs of one command."""
    if not line.command and line.queue is None:
        raise UsageError("no command was given", "write it after --: -- python x.py")
    defaults = settings(line.values, line.queue)
    check_paths(client, defaults)
    return client.enqueue_jobs([{"command": line.command}], defaults)


def give_hint(reply: Document, values: Values) -> None:
    """Say on stderr what the daemon thinks is worth saying."""
    if reply["hint"] and not values.has("quiet"):
        sys.stderr.write(f"grass: {reply['hint']}\n")


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


def _enqueue_file(client: Client, line: Line, source: str) -> Document:
    from grass.cli.parsing import jobs_file

    if line.command:
        raise UsageError(
            f"`{line.command[0]}` is too much: with --from, commands come from the file"
        )
    if line.values.has("array"):
        raise UsageError("--array and --from both say how many jobs", "give one")
    defaults = settings(line.values, line.queue)
    lines = jobs_file.read(source)
    check_paths(client, defaults)
    jobs_file.check(client, source, lines, defaults)
    with jobs_file.errors_by_line(source, lines):
        return client.enqueue_jobs([job for _, job in lines], defaults)


def _printed(reply: Document, style: str) -> str:
    first, last = reply["first"], reply["last"]
    if style == "text":
        return f"{first}\n" if first == last else f"{first}-{last}\n"
    from grass.client.wire import encoded

    document = {"first": first, "last": last}
    if last - first < _FEW:
        document["ids"] = list(range(first, last + 1))
    return encoded(document).decode() + "\n"


COMMAND = Command(
    usage="[OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...",
    about=(
        "Add a job and print its id. Words before `--` name the queue; without `--`, a "
        "first word that is a queue's name is the queue. After a queue with a command "
        "prefix, every word is an argument of that prefix. Leading NAME=value words "
        "are environment; one word with spaces is a shell line. With --array there is "
        "one job for each index, which it finds as {index} and in GRASS_ARRAY_INDEX: "
        "all of them are added, or none."
    ),
    options=OPTIONS,
    examples=(
        "grass enqueue python train.py",
        "grass enqueue -g 0.5 -m 8G -- python train.py lr=0.1",
        "grass enqueue q1 --env 'CUDA_VISIBLE_DEVICES={gpu}' -- python train.py",
        'grass enqueue "python a.py && python b.py"',
        "grass enqueue q1 --require '{gpu:1}' --from jobs.txt",
        "grass enqueue --array 1-100%8 -- python train.py seed={index}",
        "grass enqueue --broker my.server.com:7500 --label a100 -- nvidia-smi",
        "grass enqueue --after 7 --time-limit 2h --retries 3 -- python test.py",
    ),
    run=run,
)
