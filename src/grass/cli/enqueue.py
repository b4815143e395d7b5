"""`grass enqueue`: add a job, or many from a file, and print the ids.

The daemon reads JSON5 and checks everything that does not depend on where the caller
stands; this side resolves paths, `--env NAME` and the grammar of the words.
"""

from __future__ import annotations

import os
import sys

from grass.cli.grammar import Line, read_line
from grass.cli.options import Command, Option, Values
from grass.client.client import Client
from grass.client.surroundings import caller_directory
from grass.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.wire import Document

OPTIONS = (
    Option("--json, --require", "JSON5", "what the job needs, as {gpu:0.5,ram:'8G'}"),
    Option("-g, --gpu", "N", "GPUs, also fractions"),
    Option("-c, --cpu", "N", "CPU cores"),
    Option("-m, --ram", "SIZE", "memory: 8G, 500M; a bare number is GiB"),
    Option("--env", "NAME=VALUE", "set a variable; NAME alone copies it; repeatable"),
    Option("--cwd", "DIR", "directory to run in (default: the current one)"),
    Option("--queue", "QUEUE", "the queue, named as an option"),
    Option("--name", "NAME", "the job's name (default: the program's)"),
    Option("--project", "NAME", "the project it belongs to (default: default)"),
    Option("--priority", "N", "higher starts earlier (default: 0)"),
    Option("--output", "PATH", "append output to this file"),
    Option("--stderr", "PATH", "append what goes to stderr to this file"),
    Option("--max-output", "SIZE", "most output that is kept (default: 10G)"),
    Option("--raw", about="leave {gpu} and other placeholders alone"),
    Option("--pin", about="run on the allocated CPU cores only"),
    Option("--from", "FILE", "one job for each line: shell lines, or JSON objects"),
    Option("-q, --quiet", about="no hints on stderr"),
    Option("--format", "text|json", "what to print (default: text)"),
)
_FEW = 1000


def run(words: list[str]) -> int:
    """Enqueue what the words say."""
    with Client() as client:
        line = read_line(OPTIONS, words, lambda name: _prefix(client, name))
        values = line.values
        style = output_format(values)
        defaults = settings(values, line.queue)
        source = values.text("from")
        if source is None:
            if not line.command and line.queue is None:
                raise UsageError("no command was given", "grass enqueue -- python x.py")
            reply = client.enqueue_jobs([{"command": line.command}], defaults)
        else:
            reply = _enqueue_file(client, line, source, defaults)
    if reply["hint"] and not values.has("quiet"):
        sys.stderr.write(f"grass: {reply['hint']}\n")
    sys.stdout.write(_printed(reply, style))
    return 0


def settings(values: Values, queue: str | None) -> Document:
    """Return the options as the fields of a job; those not given are left out."""
    fields: Document = {
        "queue": queue,
        "require": _require(values),
        "priority": values.whole_number("priority"),
        "name": values.text("name"),
        "project": values.text("project"),
        "env": variables(values.all("env")) or None,
        "cwd": _absolute(values.text("cwd")),
        "output": _absolute(values.text("output")),
        "stderr": _absolute(values.text("stderr")),
        "max_output": values.text("max_output"),
        "raw": values.has("raw") or None,
        "pin": values.has("pin") or None,
    }
    check_directory(fields["cwd"])
    return {name: value for name, value in fields.items() if value is not None}


def variables(texts: list[str]) -> dict[str, str]:
    """Read `--env NAME=value`, or `--env NAME` which copies the caller's."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise UsageError(f"--env `{text}` has no name", "write NAME=value")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: there is no such variable here")
        found[name] = value if equals else os.environ[name]
    return found


def check_directory(path: str | None) -> None:
    """Refuse a directory that is not there, unless it has a placeholder."""
    if path is not None and "{" not in path and not os.path.isdir(path):
        raise UsageError(f"there is no directory {path}")


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


def _require(values: Values) -> str | dict[str, object] | None:
    text = values.text("require")
    short: dict[str, object] = {}
    for kind in ("gpu", "cpu"):
        number = values.text(kind)
        if number is not None:
            short[kind] = _number(kind, number)
    ram = values.text("ram")
    if ram is not None:
        short["ram"] = ram
    if text is None or not short:
        return text if text is not None else short or None
    return _merged(text, short)


def _merged(text: str, short: dict[str, object]) -> dict[str, object]:
    from grass.model.json5 import read_object

    asked = read_object(text, "--require")
    for kind in short:
        if kind in asked:
            raise UsageError(f"{kind} is asked for twice: in --require and as --{kind}")
    return {**asked, **short}


def _number(kind: str, text: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise UsageError(f"--{kind} must be a number, not `{text}`")
    return int(number) if number.is_integer() else number


def _absolute(path: str | None) -> str | None:
    if path is None:
        return None
    path = os.path.expanduser(path)
    return path if os.path.isabs(path) else os.path.join(caller_directory(), path)


def _enqueue_file(
    client: Client, line: Line, source: str, defaults: Document
) -> Document:
    from grass.cli import jobs_file

    if line.command:
        raise UsageError(
            f"`{line.command[0]}` is too much: with --from, commands come from the file"
        )
    lines = jobs_file.read(source)
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
        "are environment; one word with spaces is a shell line."
    ),
    options=OPTIONS,
    examples=(
        "grass enqueue python train.py",
        "grass enqueue -g 0.5 -m 8G -- python train.py lr=0.1",
        "grass enqueue q1 --env 'CUDA_VISIBLE_DEVICES={gpu}' -- python train.py",
        'grass enqueue "python a.py && python b.py"',
        "grass enqueue q1 --require '{gpu:1}' --from jobs.txt",
    ),
    run=run,
)
