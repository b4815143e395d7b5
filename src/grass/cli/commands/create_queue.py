"""`grass create-queue`: create a queue, with what it may use and what it runs.

The first plain word is the name. From the next plain word on everything is the command
prefix, dashes included.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from grass.cli.commands.enqueue import output_format
from grass.cli.parsing.job_options import enforcement, variables
from grass.cli.parsing.options import Command, Option, Values, scan
from grass.cli.printing.streams import print_document, say, warn
from grass.client.client import Client
from grass.client.json_codec import Document
from grass.config import LOCAL, caller_directory
from grass.errors import GrassError, NotFound, UsageError

OPTIONS = (
    Option("--json, --capacity", "JSON5", "what its jobs may use, as {gpu:4,cpu:16}"),
    Option("--file", "PATH", "the capacity, from a file"),
    Option("--env", "NAME=VALUE", "set a variable for its jobs; repeatable"),
    Option("--default-require", "JSON5", "what a job needs that does not say"),
    Option("--max-running", "N", "most jobs that run at a time"),
    Option("--max-fails", "N", "pause it when N of its jobs have failed in a row"),
    Option(
        "--enforce",
        "[warn|stop|off]",
        "hold its jobs to their requests, unless they say otherwise",
    ),
    Option("--format", "text|json", "what to print (default: text)"),
)


def run(words: list[str]) -> int:
    """Create the queue that the words describe."""
    values, name, prefix = read_words(OPTIONS, words)
    style = output_format(values)
    with Client(broker=LOCAL) as client:
        done = client.create_queue(name, _body(values, prefix))
        elsewhere = _elsewhere(client)
    if style == "json":
        print_document({"queue": name, **done})
        return 0
    for warning in done["warnings"]:
        warn(warning)
    if elsewhere is not None:
        warn(f"queue {name} is on this machine only; commands go to {elsewhere}")
    say(
        f"created queue {name}" if done["changed"] else f"queue {name} is there already"
    )
    return 0


def of_this_machine(
    client: Client, name: str, call: Callable[[], Document]
) -> Document:
    """Make a call about a queue of this machine; explain if there is no such queue."""
    try:
        return call()
    except NotFound:
        elsewhere = _elsewhere(client)
        if elsewhere is None:
            raise
        raise NotFound(
            f"there is no queue `{name}` on this machine; commands go to {elsewhere}",
            "a queue is changed on the machines that give it units",
        ) from None


def _elsewhere(client: Client) -> str | None:
    """Name the broker that commands go to, if that has other queues."""
    try:
        usual = Client()
    except GrassError:
        # A wrong address of a broker is reported by the commands that use it.
        return None
    if not usual.remote or client.overview()["daemon"].get("broker"):
        return None
    return usual.peer


def read_words(
    options: Sequence[Option], words: list[str]
) -> tuple[Values, str, list[str]]:
    """Return the options, the queue's name and the command prefix."""
    values = Values()
    at = scan(options, words, 0, values)
    if at == len(words) or words[at] == "--":
        raise UsageError("the queue's name is missing")
    name = words[at]
    if not name:
        raise UsageError("the queue's name is empty")
    at = scan(options, words, at + 1, values)
    prefix = words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:]
    return values, name, prefix


def _body(values: Values, prefix: list[str]) -> Document:
    return {
        "capacity": capacity(values) or "{}",
        "command": prefix,
        "directory": caller_directory() if prefix else None,
        "env": variables(values.all("env")),
        "default_require": values.text("default_require"),
        "max_running": values.whole_number("max_running"),
        "max_fails": values.whole_number("max_fails"),
        "enforce": enforcement(values, "enforce") if values.has("enforce") else None,
    }


def capacity(values: Values) -> str | None:
    """Return the capacity from `--capacity` or `--file`."""
    text, path = values.text("capacity"), values.text("file")
    if text is not None and path is not None:
        raise UsageError("--capacity and --file both say the capacity", "give one")
    if path is None:
        return text
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"--file {path} is not UTF-8 text") from None


COMMAND = Command(
    usage="[OPTIONS] NAME [OPTIONS] [--] [COMMAND ARG...]",
    about=(
        "Create a queue. Its capacity limits the kinds it names, and declares units "
        "that no worker found; without one it may use everything. With a COMMAND, the "
        "words of each job are added to it, and its jobs run in the directory where "
        "the queue was created. The same queue again changes nothing."
    ),
    options=OPTIONS,
    examples=(
        'grass create-queue q1 --capacity "{gpu:4,cpu:16}"',
        'grass create-queue --capacity "{printer:1}" print lpr',
        "grass create-queue q2 --file capacity.json5 --max-running 2 --max-fails 5",
    ),
    run=run,
)
