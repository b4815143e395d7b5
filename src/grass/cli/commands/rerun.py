"""`grass rerun`: run jobs that have ended again, changed if need be."""

import sys

from grass.cli.commands import verb_command
from grass.cli.commands.edit import edited, read_words
from grass.cli.commands.verb_command import JobVerb, choose, compact, report
from grass.cli.parsing.job_changes import CHANGES, changes
from grass.cli.parsing.job_options import check_paths
from grass.cli.parsing.options import Command, Option, Values, chosen
from grass.cli.printing.streams import counted, say, warn
from grass.cli.printing.wording import ENDED_STATES
from grass.client.client import Client
from grass.client.id_ranges import as_ranges
from grass.client.json_codec import Document
from grass.errors import UsageError

OPTIONS = (
    Option("--edit", about="with the command after `--`, or changed in an editor"),
    *CHANGES,
    Option("--hold", about="start only after `grass release`"),
    Option(
        "--with-dependents",
        about="also the jobs that were cancelled because they waited for these",
    ),
    *verb_command.OPTIONS,
)
VERB = JobVerb("rerun", "enqueued again", ENDED_STATES, "no such job has ended")


def run(words: list[str]) -> int:
    """Run the selected jobs again."""
    values, select, command = read_words(OPTIONS, words)
    wanted = changes(values, command)
    _check_edit(values, command)
    if values.has("edit") and not wanted:
        return _in_editor(values, select)
    with Client(broker=values.broker) as client:
        check_paths(client, wanted)
        if values.has("with_dependents") and select:
            return _with_dependents(client, values, select, wanted)
        choice = choose(client, VERB, values, select)
        if choice is None:
            return 0
        done = client.rerun(choice.select, hold=values.has("hold"), **wanted)
    _print(values, done)
    return 0


def _with_dependents(
    client: Client, values: Values, select: list[str], wanted: Document
) -> int:
    """Run jobs again, changed, and as they were those cancelled because of them."""
    select = chosen(values, select)
    leaders = set(client.select(select)["jobs"])
    found = client.select(select, dependents=True)["jobs"]
    if not found:
        report(VERB, values, {"jobs": [], "warnings": [], "changed": False})
        return 0
    choice = choose(client, VERB, values, as_ranges(found))
    if choice is None or choice.ids is None:
        return 0
    first = [one for one in choice.ids if one in leaders]
    rest = [one for one in choice.ids if one not in leaders]
    done: Document = {"jobs": [], "warnings": [], "changed": False}
    for ids, fields in ((first, wanted), (rest, {})):
        if ids:
            hold = values.has("hold") and ids is first
            part = client.rerun(as_ranges(ids), hold=hold, **fields)
            done = {name: done[name] + part[name] for name in ("jobs", "warnings")}
            done["changed"] = True
    if not (values.has("json") or values.has("quiet")):
        told = f"{counted(len(rest), 'job')} of these had waited for the others"
        warn(told if rest else "no cancelled job had waited for these")
    _print(values, done)
    return 0


def _check_edit(values: Values, command: list[str] | None) -> None:
    if command is not None and not values.has("edit"):
        raise UsageError(
            f"`{command[0]}` would be a new command", "grass rerun 7 --edit -- COMMAND"
        )


def _in_editor(values: Values, select: list[str]) -> int:
    def send(client: Client, select: list[str], changed: Document) -> Document:
        return client.rerun(select, hold=values.has("hold"), **changed)

    done = edited(VERB, values, select, CHANGES, send)
    if done is None:
        say(f"nothing was changed (`grass rerun {select[0]}` runs it as it was)")
    else:
        _print(values, done)
    return 0


def _print(values: Values, done: Document) -> None:
    """Print ids as `enqueue` does, so that `wait` and `logs` can take them."""
    if values.has("json") or values.has("quiet") or not done["jobs"]:
        report(VERB, values, done)
        return
    for warning in done.get("warnings", ()):
        warn(warning)
    sys.stdout.write("".join(f"{run}\n" for run in compact(done["jobs"])))


COMMAND = Command(
    usage="[OPTIONS] SELECTOR... [--edit [-- COMMAND...]]",
    about=(
        "Give jobs that have ended a new attempt, and print their ids. The job stays "
        "the same: `grass logs --attempt 1` still has what it wrote the first time. "
        "What is not named stays as it is."
    ),
    options=OPTIONS,
    examples=(
        "grass rerun 7",
        "grass rerun --yes state:failed",
        "grass rerun 7 -m 32G --priority 5",
        "grass rerun --yes 7 --with-dependents",
        "grass rerun 7 --edit",
        "grass rerun 7 --edit -- python train.py lr=0.01",
    ),
    run=run,
)
