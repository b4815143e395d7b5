"""The grammar of `enqueue` and `run`: which word is the queue, where a command begins.

    enqueue [OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...

Words before `--` name the queue. Without `--`, a first word that is a queue's name is
the queue, otherwise it must be a program the caller can find: a slip in a queue's name
must not become a job that fails. After a queue with a prefix nothing is an option.
"""

from __future__ import annotations

import os

from grass.cli.parsing.options import HelpWanted, Option, Values, scan
from grass.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    AskPrefix = Callable[[str], "list[str] | None"]
    """Gives a queue's prefix, empty when it has none; None when there is no queue."""


class Line:
    """A call of `enqueue` or `run`, read."""

    def __init__(
        self, values: Values, queue: str | None, command: Sequence[str]
    ) -> None:
        self.values = values
        self.queue = queue
        self.command = list(command)


def read_line(
    options: Sequence[Option], words: Sequence[str], ask_prefix: AskPrefix
) -> Line:
    """Read the words; asks for a queue only where a word may be one."""
    values = Values()
    at = scan(options, words, 0, values)
    asked = values.broker
    if values.has("queue"):
        line = _with_queue_option(words, at, values, ask_prefix)
    elif at == len(words) or words[at] == "--":
        line = Line(values, None, words[at + 1 :])
    else:
        line = _with_first_word(options, words, at, values, ask_prefix)
    if line.values.broker != asked:
        # Its queues say which words are options, so it must be known before them.
        raise UsageError("--broker comes too late", "write it before the queue's name")
    return line


def broker_of(options: Sequence[Option], words: Sequence[str]) -> str | None:
    """Return the broker that is to be asked for queues."""
    values = Values()
    scan(options, words, 0, values)
    return values.broker


def _with_queue_option(
    words: Sequence[str], at: int, values: Values, ask_prefix: AskPrefix
) -> Line:
    queue, rest = values.text("queue") or "", words[at:]
    if rest[:1] and rest[0] != "--":
        if rest[1:2] == ["--"]:
            raise UsageError(f"two queues: `{queue}` and `{rest[0]}`")
        if not ask_prefix(queue) and not _is_command(rest, values.text("cwd")):
            raise _not_found(_program(rest))
    return Line(values, queue, _after_dashes(words, at))


def _with_first_word(
    options: Sequence[Option],
    words: Sequence[str],
    at: int,
    values: Values,
    ask_prefix: AskPrefix,
) -> Line:
    word = words[at]
    prefix = ask_prefix(word) if _may_be_queue(word) else None
    if prefix:
        return Line(values, word, _after_dashes(words, at + 1))
    if prefix is not None:
        at = scan(options, words, at + 1, values)
        if values.has("queue") and values.text("queue") != word:
            raise UsageError(f"two queues: `{word}` and `{values.text('queue')}`")
        return Line(values, word, _after_dashes(words, at))
    if _dashes_follow(options, words, at + 1):
        raise NotFound(
            f"there is no queue `{word}`",
            f"for a program of that name write `--` before it: -- {word} ...",
        )
    if not _is_command(words[at:], values.text("cwd")):
        raise _not_found(_program(words[at:]))
    return Line(values, None, words[at:])


def _not_found(program: str) -> NotFound:
    hint = "`grass show` lists the queues; `--` before a command skips this check"
    if " " in program:
        hint = "a shell line is one word alone: put all of it into the quotes"
    return NotFound(f"no queue or program `{program}`", hint)


def _after_dashes(words: Sequence[str], at: int) -> Sequence[str]:
    return words[at + 1 :] if words[at : at + 1] == ["--"] else words[at:]


def _dashes_follow(options: Sequence[Option], words: Sequence[str], at: int) -> bool:
    try:
        end = scan(options, words, at, Values())
    except (UsageError, HelpWanted):
        return False
    return end < len(words) and words[end] == "--"


def _may_be_queue(word: str) -> bool:
    letters = word.replace("-", "").replace("_", "").replace(".", "")
    return word.isascii() and (letters.isalnum() or not letters) and word != ""


def is_assignment(word: str) -> bool:
    """Tell whether a word is `NAME=value`."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


def _program(words: Sequence[str]) -> str:
    return next((word for word in words if not is_assignment(word)), words[0])


def _is_command(words: Sequence[str], cwd: str | None) -> bool:
    program = _program(words)
    if is_assignment(program):
        return False
    if any(letter.isspace() for letter in program) and len(words) == 1:
        return program.strip() != ""
    if os.path.exists(os.path.join(cwd or "", program)) or os.path.exists(program):
        return program != ""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return "/" not in program and any(
        os.access(os.path.join(folder, program), os.X_OK) for folder in folders
    )
