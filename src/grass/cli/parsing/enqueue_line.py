"""The words of `enqueue`, `run` and `shell`: options, queue and command.

    enqueue [OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...

Words before `--` name the queue. Without `--`, a first word that is a queue's name is
the queue, otherwise it must be a program that the caller can find: a misspelled queue
must not become a job that fails. After a queue with a prefix no word is an option.
"""

from __future__ import annotations

import os

from grass.cli.parsing.job_options import check_paths, settings
from grass.cli.parsing.options import HelpWanted, Option, Values, scan
from grass.errors import NotFound, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grass.cli.parsing.directives import Directives
    from grass.client.client import Client
    from grass.client.json_codec import Document

    FindPrefix = Callable[[str], list[str] | None]
    """Returns a queue's prefix, empty when it has none; None when there is no queue."""

STDIN = ["-"]
"""The command that means a script on stdin."""
_MOST_WORDS = 16
"""How many words are looked at for the script that a command runs."""


class EnqueueLine:
    """The words of `enqueue` or `run`: options, queue and command.

    The options before the first plain word are read at once, as they name the broker.
    Its queues decide how the rest is read: `find_queue` does that.
    """

    def __init__(self, options: Sequence[Option], words: Sequence[str]) -> None:
        self.values = Values()
        self.queue: str | None = None
        self.command: list[str] = []
        self.options = options
        self._words = list(words)
        self._at = scan(options, words, 0, self.values)
        if self.values.text("require") == "--":
            raise UsageError(
                "--json takes a request here, as --require does",
                "to print JSON write --format json",
            )

    def find_queue(self, find_prefix: FindPrefix) -> None:
        """Set queue and command; ask for a queue only where a word may be one."""
        broker = self.values.broker
        rest = self._words[self._at :]
        if self.values.has("queue"):
            self._read_after_queue_option(rest, find_prefix)
        elif not rest or rest[0] == "--":
            self.command = [*rest[1:]]
        elif rest == STDIN:
            self.command = [*rest]
        else:
            self._read_from_first_word(rest[0], find_prefix)
        if self.values.broker != broker:
            raise UsageError(
                "--broker comes too late", "write it before the queue's name"
            )

    def _read_after_queue_option(
        self, rest: Sequence[str], find_prefix: FindPrefix
    ) -> None:
        queue = self.queue = self.values.text("queue") or ""
        if rest and rest[0] != "--":
            if rest[1:2] == ["--"]:
                raise UsageError(f"two queues: `{queue}` and `{rest[0]}`")
            if not find_prefix(queue) and rest != STDIN:
                self._check_command(rest)
        self.command = _after_dashes(rest)

    def _read_from_first_word(self, word: str, find_prefix: FindPrefix) -> None:
        prefix = find_prefix(word) if _may_be_queue(word) else None
        if prefix is None:
            self._read_command(word)
            return
        self.queue = word
        self._at += 1
        if not prefix:
            self._at = scan(self.options, self._words, self._at, self.values)
            if self.values.has("queue") and self.values.text("queue") != word:
                other = self.values.text("queue")
                raise UsageError(f"two queues: `{word}` and `{other}`")
        self.command = _after_dashes(self._words[self._at :])

    def _read_command(self, word: str) -> None:
        if self._dashes_follow():
            raise NotFound(
                f"there is no queue `{word}`",
                f"for a program of that name write `--` before it: -- {word} ...",
            )
        self.command = [*self._words[self._at :]]
        self._check_command(self.command)

    def _dashes_follow(self) -> bool:
        try:
            end = scan(self.options, self._words, self._at + 1, Values())
        except (UsageError, HelpWanted):
            return False
        return self._words[end : end + 1] == ["--"]

    def _check_command(self, words: Sequence[str]) -> None:
        words = _before_values(words)
        if not _is_command(words, self.values.text("cwd")):
            raise _not_found(_program(words))


def asked(
    client: Client, line: EnqueueLine, more: Document
) -> tuple[Document, Directives | None]:
    """Return the options of a command over those of its script, and the latter."""
    fields, script = {**settings(line.values, line.queue), **more}, None
    cwd = line.values.text("cwd") or ""
    files = [os.path.join(cwd, word) for word in line.command[:_MOST_WORDS]]
    if any(map(os.path.isfile, files)):
        from grass.cli.parsing.path_checks import PathChecks
        from grass.cli.parsing.scripts import directives_of

        script = directives_of(line.command, line.values, line.options)
        fields = fields if script is None else script.below(fields)
        PathChecks(client).check_script(line.command, fields)
    check_paths(client, fields)
    return fields, script


def _not_found(program: str) -> NotFound:
    hint = "`grass show` lists the queues; `--` before a command skips this check"
    if " " in program:
        hint = "a shell line is one word alone: put all of it into the quotes"
    return NotFound(f"no queue or program `{program}`", hint)


def _after_dashes(words: Sequence[str]) -> list[str]:
    return [*words[1:]] if words[:1] == ["--"] else [*words]


def _may_be_queue(word: str) -> bool:
    letters = word.replace("-", "").replace("_", "").replace(".", "")
    return word.isascii() and (letters.isalnum() or not letters) and word != ""


def is_mark(word: str) -> bool:
    """Tell whether values follow a word."""
    return word.startswith(":::")


def _before_values(words: Sequence[str]) -> Sequence[str]:
    at = next((at for at, word in enumerate(words) if is_mark(word)), len(words))
    return words[:at] or words


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


def _program(words: Sequence[str]) -> str:
    return next((word for word in words if not _is_assignment(word)), words[0])


def _is_command(words: Sequence[str], cwd: str | None) -> bool:
    program = _program(words)
    if _is_assignment(program):
        return False
    if any(letter.isspace() for letter in program) and len(words) == 1:
        return program.strip() != ""
    if os.path.exists(os.path.join(cwd or "", program)) or os.path.exists(program):
        return program != ""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return "/" not in program and any(
        os.access(os.path.join(folder, program), os.X_OK) for folder in folders
    )
