"""`grass completion`: print a script that completes commands, options, ids and names.

The script is made from the commands' own descriptions: the word for a value in the help
(`QUEUE`, `PATH`, `text|json`) decides what is completed there. Ids, names and units are
read when Tab is pressed (`completion_offers`), which never starts a daemon; ids are
those of jobs that the command can act on. After a program come files.
"""

from __future__ import annotations

import sys

from grass.cli.commands.completion_offers import JOBS, QUEUES, UNITS, WORKERS
from grass.cli.parsing.options import Command, Option, one_word, read
from grass.cli.printing.show.columns import COLUMNS
from grass.cli.printing.wording import ENDED_STATES, UNFINISHED_STATES
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SHELLS = ("bash", "zsh", "fish")
FILES, FOLDERS, PROGRAMS = "files", "folders", "programs"
OPTIONS = (Option("--offer", "KIND", "print what may stand here", hidden=True),)
_KINDS = {
    "SELECTOR": JOBS,
    "JOB": JOBS,
    "QUEUE": QUEUES,
    "WORKER": WORKERS,
    "KIND:UNIT": UNITS,
    "PATH": FILES,
    "FILE": FILES,
    "DIR": FOLDERS,
    "COMMAND": PROGRAMS,
}


class Choices:
    """The completions at one place: kinds of things, and words."""

    def __init__(self, kinds: list[str], words: list[str]) -> None:
        self.kinds = kinds
        self.words = words


class Described:
    """A command's options and words, for completion."""

    def __init__(self, name: str, about: str, command: Command) -> None:
        self.name = name
        self.about = about
        self.options = [option for option in command.options if not option.hidden]
        self.plain = _plain(name, command)
        self.runs_program = PROGRAMS in self.plain.kinds


def run(words: list[str]) -> int:
    """Print the script of one shell, or what it offers at one place."""
    values, rest = read(OPTIONS, words)
    kind = values.text("offer")
    if kind is not None:
        sys.stdout.write("".join(f"{one}\n" for one in _offers(kind, rest)))
        return 0
    shell = one_word(rest, "the shell")
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for `{shell}`", "bash, zsh or fish")
    sys.stdout.write(script(shell))
    return 0


def _offers(kind: str, words: list[str]) -> list[str]:
    from grass.cli.commands.completion_offers import offers

    word = words[0] if words else ""
    return [one for one in offers(kind, word) if one.startswith(word)]


def script(shell: str) -> str:
    """Write the script for one of the shells."""
    from grass.cli.commands import completion_scripts
    from grass.cli.main import COMMANDS

    return completion_scripts.WRITERS[shell](described(COMMANDS))


def described(commands: Mapping[str, str]) -> list[Described]:
    """Read the descriptions of all commands."""
    from grass.cli.main import command

    return [Described(name, about, command(name)) for name, about in commands.items()]


def value(option: Option) -> Choices:
    """Return the completions of an option's value."""
    if option.value in _KINDS:
        return Choices([_KINDS[option.value]], [])
    if option.value == "STATE":
        return Choices([], [*UNFINISHED_STATES, *ENDED_STATES])
    if option.value in ("COLUMN", "COLUMNS"):
        return Choices([], [column.name for column in COLUMNS])
    is_choice = "|" in option.value and option.value == option.value.lower()
    return Choices([], option.value.split("|") if is_choice else [])


def _plain(name: str, command: Command) -> Choices:
    """Return the completions of words that are no options, from the usage line."""
    kinds, words = list[str](), list[str]()
    values = {option.value for option in command.options}
    before = ""
    for word in command.usage.translate(str.maketrans("[]|.", "    ")).split():
        is_value = before.startswith("-") and word in values
        before = word
        if word.startswith("-") or is_value:
            continue
        kind = QUEUES if word == "NAME" and _names_queue(name) else _KINDS.get(word)
        if kind is not None:
            kinds.append(kind)
        elif word == word.lower():
            words.append(word)
    # Where jobs are named first, a command comes only after `--`.
    kinds = [kind for kind in kinds if kind != PROGRAMS or JOBS not in kinds]
    kinds = list(dict.fromkeys(kinds))
    return Choices([_of_states(kind, name) for kind in kinds], words)


def _of_states(kind: str, name: str) -> str:
    """Add to ids the states of jobs that a verb is for: `jobs=held`."""
    if kind != JOBS:
        return kind
    from grass.cli.main import MODULES

    module = sys.modules.get("grass.cli.commands." + MODULES.get(name, name))
    verb = getattr(module, "VERB", None)
    states = UNFINISHED_STATES if name == "wait" else getattr(verb, "states", ())
    return f"{kind}={','.join(states)}" if states else kind


def _names_queue(name: str) -> bool:
    return name.endswith("-queue") and name != "create-queue"


COMMAND = Command(
    usage="bash|zsh|fish",
    about=(
        "Print a script that lets a shell complete commands, options, ids of jobs, and "
        "names of queues and workers. Load it from the shell's start file as below."
    ),
    options=OPTIONS,
    examples=(
        'eval "$(grass completion bash)"   # in ~/.bashrc',
        'eval "$(grass completion zsh)"    # in ~/.zshrc, after compinit',
        "grass completion fish | source    # in ~/.config/fish/config.fish",
    ),
    run=run,
)
