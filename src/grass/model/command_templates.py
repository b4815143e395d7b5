"""A site's own commands: how a scheduler is asked that Grass knows nothing of.

A template is what a user writes into the file of a pool, and is kept with the pool.
Patterns are regular expressions with one group, which holds what is looked for. Words
in braces are filled from what a worker needs; `engines/filling.py` does that.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from grass.errors import UsageError
from grass.model.selectors import compile_pattern

TABLES = ("submit", "check", "status", "states", "cancel")
"""The tables of a pool's file that make a template."""


class SubmitCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How one worker is asked for."""

    command: tuple[str, ...]
    """The words of the command; it reads the script from its input."""
    script: str
    """What the scheduler runs."""
    id: str = r"(\S+)"
    """Finds the job's id in what the command prints."""
    no_answer: tuple[str, ...] = ()
    """Parts of errors after which it is not known whether the job was taken."""


class CheckCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How a scheduler says whether it would take a script, without taking it."""

    command: tuple[str, ...]


class StatusCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How the jobs of a pool are listed, and read from the list."""

    command: tuple[str, ...]
    id: str
    mark: str
    state: str
    reason: str = ""
    place: str = ""
    expected_start: str = ""
    split: str = ""
    """What each job begins with; "": each line is one."""
    unfold: str = ""
    """What long lines are broken with, and is taken out; "": they are not."""
    answer: str = ""
    """What the list of a scheduler that answers always holds; "": nothing."""
    empty: tuple[str, ...] = ()
    """Parts of errors that only say that there is no such job."""

    def patterns(self) -> Mapping[str, str]:
        """Return the patterns that were given, by the field that each finds."""
        names = ("id", "mark", "state", "reason", "place", "expected_start")
        given = {name: str(getattr(self, name)) for name in names}
        return {name: pattern for name, pattern in given.items() if pattern}


class StateWords(msgspec.Struct, frozen=True, kw_only=True):
    """What the words of a scheduler mean; any other word is unknown."""

    pending: tuple[str, ...]
    running: tuple[str, ...]
    ended: tuple[str, ...] = ()
    """A scheduler that forgets ended jobs at once has no word for them."""


class CancelCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs are ended."""

    command: tuple[str, ...]
    over: tuple[str, ...] = ()
    """Parts of errors that only say that a job has ended already."""


class CommandTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """All commands of a site."""

    submit: SubmitCommand
    status: StatusCommand | None = None
    """None: pilots tell of themselves, with notes in the folder that they share."""
    states: StateWords | None = None
    cancel: CancelCommand | None = None
    check: CheckCommand | None = None


def template_from(tables: Mapping[str, object]) -> CommandTemplate:
    """Read and check a template; an error's field is the key that is wrong."""
    for key in _unknown_keys(tables):
        raise _wrong(key, "there is no such key", "docs/how-to/other-schedulers.md")
    try:
        template = msgspec.convert(dict(tables), CommandTemplate)
    except msgspec.ValidationError as error:
        raise _wrong(*_key_and_reason(str(error))) from None
    check(template)
    return template


def check(template: CommandTemplate) -> None:
    """Refuse a template that could not work; an error's field is the key."""
    for key, words in _commands(template):
        if not words or not words[0]:
            raise _wrong(key, "it has no words", 'as `["qsub"]`')
    _check_pattern("submit.id", template.submit.id)
    if "{command}" not in template.submit.script:
        raise _wrong("submit.script", "it does not run {command}", "`exec {command}`")
    _check_asking(template)


def _check_asking(template: CommandTemplate) -> None:
    """Check how jobs are listed and ended: all of it is there, or nothing."""
    status, states, cancel = template.status, template.states, template.cancel
    if status is None or states is None or cancel is None:
        given = {"status": status, "states": states, "cancel": cancel}
        missing = [name for name, table in given.items() if table is None]
        if len(missing) < len(given):
            raise _wrong(missing[0], "it is missing", "add it, or leave all three out")
        return
    for name, pattern in status.patterns().items():
        _check_pattern(f"status.{name}", pattern)
    _check_answer(status.answer)
    submit = template.submit
    if "{mark}" not in "\0".join((*submit.command, submit.script)):
        raise _wrong(
            "submit.script",
            "it has no {mark}, by which a job is found again after a crash",
            "put it where `status` prints it, as the job's name",
        )
    if "{ids}" not in "\0".join(cancel.command):
        raise _wrong("cancel.command", "it has no {ids}", 'as `["qdel", "{ids}"]`')
    _check_states(states)


def _check_pattern(key: str, pattern: str) -> None:
    try:
        groups = compile_pattern(pattern).groups
    except ValueError as error:
        raise _wrong(key, f"it is no regular expression: {error}", "RE2") from None
    if groups != 1:
        raise _wrong(
            key,
            f"it has {groups} groups, not one",
            r"put what is meant in (): `^(\d+)`",
        )


def _check_answer(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        reason = f"it is no regular expression: {error}"
        raise _wrong("status.answer", reason, "RE2") from None


def _check_states(states: StateWords) -> None:
    seen: dict[str, str] = {}
    for name in ("pending", "running", "ended"):
        for word in getattr(states, name):
            if seen.setdefault(word, name) != name:
                reason = f"`{word}` is listed under {seen[word]} too"
                raise _wrong(f"states.{name}", reason, "keep it in one of them")
    if not states.pending and not states.running:
        raise _wrong("states.running", "no word means that a job runs", '`["R"]`')


def _commands(template: CommandTemplate) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in ("submit", "status", "cancel", "check"):
        table = getattr(template, name)
        if table is not None:
            yield f"{name}.command", table.command


_STRUCTS: Mapping[str, type[msgspec.Struct]] = {
    "submit": SubmitCommand,
    "check": CheckCommand,
    "status": StatusCommand,
    "states": StateWords,
    "cancel": CancelCommand,
}


def _unknown_keys(tables: Mapping[str, object]) -> Iterator[str]:
    for table, keys in tables.items():
        if table not in _STRUCTS:
            yield table
        elif isinstance(keys, Mapping):
            known = _STRUCTS[table].__struct_fields__
            yield from (f"{table}.{key}" for key in keys if key not in known)


def _key_and_reason(text: str) -> tuple[str, str, str]:
    """Turn msgspec's words into a key and what is wrong with it."""
    reason, _, place = text.partition(" - at `$.")
    key = place.rstrip("`").partition("[")[0]
    missing = "Object missing required field `"
    if reason.startswith(missing):
        field = reason.removeprefix(missing).rstrip("`")
        return ".".join(filter(None, (key, field))), "it is missing", "add it"
    said = reason.replace("Expected `array`", "Expected a list of words")
    return key, said[:1].lower() + said[1:], "docs/how-to/other-schedulers.md"


def _wrong(key: str, reason: str, hint: str) -> UsageError:
    error = UsageError(f"`{key}`: {reason}", hint)
    error.field = f"template.{key}"
    return error


def tables_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a pool's file that belong to a template."""
    return {name: document[name] for name in TABLES if name in document}
