"""`grass edit-queue`: change a queue; what is not named stays as it is.

The grammar is that of `create-queue`: from the first plain word after the name on,
everything is the new command prefix.
"""

from grass.cli.commands.create_queue import capacity, of_this_machine, read_words
from grass.cli.parsing.job_options import (
    absolute,
    check_directory,
    enforcement,
    variables,
)
from grass.cli.parsing.options import JSON, Command, Option, Values
from grass.cli.printing.streams import report_change
from grass.client.client import Client
from grass.client.json_codec import Document
from grass.config import LOCAL, caller_directory
from grass.errors import UsageError

OPTIONS = (
    Option("--capacity", "JSON5", "what its jobs may use, as {gpu:4,cpu:16}"),
    Option("--file", "PATH", "the capacity, from a file"),
    Option("--env", "NAME=VALUE", "the variables for its jobs, all anew; repeatable"),
    Option("--cwd", "DIR", "directory its command runs in"),
    Option("--default-require", "JSON5", "what a job needs that does not say; or none"),
    Option("--max-running", "N", "most jobs that run at a time; or none"),
    Option("--max-fails", "N", "pause it when N in a row have failed; or none"),
    Option(
        "--enforce",
        "[warn|stop|off]",
        "hold its jobs to their requests, unless they say otherwise",
    ),
    JSON,
)
_NONE = "none"


def run(words: list[str]) -> int:
    """Change the queue that the words describe."""
    values, name, prefix = read_words(OPTIONS, words)
    body = _body(values, prefix)
    if not body:
        raise UsageError(
            "nothing to change was given", f"grass edit-queue {name} --max-running 2"
        )
    with Client(broker=LOCAL) as client:
        done = of_this_machine(client, name, lambda: client.edit_queue(name, body))
    said = f"changed queue {name}", f"queue {name} is like that already"
    return report_change(values, {"queue": name, **done}, *said)


def _body(values: Values, prefix: list[str]) -> Document:
    """Return the fields that change; null removes a limit."""
    body: Document = {}
    asked = capacity(values)
    if asked is not None:
        body["capacity"] = asked
    if prefix:
        body.update(command=prefix, directory=caller_directory())
    if values.has("cwd"):
        body["directory"] = absolute(values.text("cwd"))
        check_directory(body["directory"])
    if values.has("env"):
        body["env"] = variables(values.all("env"))
    if values.has("default_require"):
        text = values.text("default_require")
        body["default_require"] = None if text == _NONE else text
    for key in ("max_running", "max_fails"):
        if values.has(key):
            none = values.text(key) == _NONE
            body[key] = None if none else values.whole_number(key)
    if values.has("enforce"):
        body["enforce"] = enforcement(values, "enforce")
    return body


COMMAND = Command(
    usage="[OPTIONS] NAME [OPTIONS] [--] [COMMAND ARG...]",
    about=(
        "Change a queue. What is not named stays as it is; `none` takes a limit away. "
        "Running jobs go on as they were started."
    ),
    options=OPTIONS,
    examples=(
        'grass edit-queue q1 --capacity "{gpu:2}"',
        "grass edit-queue q1 --max-running 2 --max-fails none",
        "grass edit-queue print lpr -P office",
    ),
    run=run,
)
