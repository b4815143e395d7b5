"""`grass edit`: change jobs that have not started.

Words before `--` are selectors and options; what comes after it is the new command.
Without any change one job is opened in the user's editor.
"""

from __future__ import annotations

from grass.cli.commands import verb_command
from grass.cli.commands.verb_command import JobVerb, choose, report
from grass.cli.parsing.job_changes import CHANGES_BEFORE_START, changes
from grass.cli.parsing.job_options import check_paths
from grass.cli.parsing.options import Command, Option, Values, names_one, read
from grass.cli.printing.streams import say
from grass.cli.printing.wording import UNSTARTED
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.cli.commands.job_editor import Send
    from grass.client.json_codec import Document

FIRST = Option(
    "--first",
    about="start before all others that wait in its queue: raises its priority",
)
BEFORE = Option(
    "--before",
    "ID",
    "start right before this job of its queue: changes its priority",
)
OPTIONS = (
    FIRST,
    BEFORE,
    *CHANGES_BEFORE_START,
    *verb_command.OPTIONS,
)
VERB = JobVerb("edit", "edited", UNSTARTED, "no such job has not started yet")


def run(words: list[str]) -> int:
    """Change the selected jobs."""
    values, select, command = read_words(OPTIONS, words)
    wanted = changes(values, command)
    if values.has("first"):
        wanted["first"] = True
    if values.has("before"):
        wanted["before"] = values.whole_number("before")
    if not wanted:
        return _in_editor(values, select)
    with Client(broker=values.broker) as client:
        check_paths(client, wanted)
        choice = choose(client, VERB, values, select)
        if choice is not None:
            report(VERB, values, client.edit(choice.select, **wanted))
    return 0


def _in_editor(values: Values, select: list[str]) -> int:
    done = edited(VERB, values, select, OPTIONS, _send)
    if done is None:
        say("nothing was changed")
    else:
        report(VERB, values, done)
    return 0


def _send(client: Client, select: list[str], changed: Document) -> Document:
    return client.edit(select, **changed)


def edited(
    verb: JobVerb,
    values: Values,
    select: list[str],
    options: Sequence[Option],
    send: Send,
) -> Document | None:
    """Have the user change one job in an editor; None: nothing was changed."""
    from grass.cli.commands.job_editor import JobEditor, can_open_editor

    example = f"grass {verb.name} 7 --priority 5"
    if not can_open_editor() or values.has("dry_run") or not select:
        raise UsageError("nothing to change was given", example)
    if not names_one(select):
        raise UsageError("an editor takes one job", f"for several: {example}")

    def connect() -> Client:
        return Client(broker=values.broker)

    editor = JobEditor(connect, select[0], verb.states, options)
    return editor.run(lambda given: changes(given, None), send)


def read_words(
    options: Sequence[Option], words: list[str]
) -> tuple[Values, list[str], list[str] | None]:
    """Return options, selectors, and the command after `--` where there is one."""
    at = words.index("--") if "--" in words else len(words)
    values, select = read(options, words[:at])
    command = words[at + 1 :] if at < len(words) else None
    if command == []:
        raise UsageError("after `--` comes the new command, and there is none")
    return values, select, command


COMMAND = Command(
    usage="[OPTIONS] SELECTOR... [-- COMMAND...]",
    about=(
        "Change jobs that have not started. What is not named stays as it is; words "
        "after `--` are the new command. Without any change one job is opened in "
        "$VISUAL or $EDITOR."
    ),
    options=OPTIONS,
    examples=(
        "grass edit 7",
        "grass edit 7 --priority 5",
        "grass edit 7 --first",
        "grass edit 9 --before 7",
        "grass edit 7 -g 2 --time-limit 4h",
        "grass edit 7 -- python train.py lr=0.01",
        "grass edit --yes queue:q1 --queue q2",
    ),
    run=run,
)
