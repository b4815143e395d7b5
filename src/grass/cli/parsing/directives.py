"""Options in a script: `#GRASS` and `#SBATCH` lines at its head.

Only the comment block at the head counts. Options of the command line win over
`#GRASS`, and these over `#SBATCH`. An error names the file, the line and the option.
"""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager

from grass.cli.parsing.job_options import settings
from grass.cli.parsing.options import HelpWanted, Option, Values, scan
from grass.config import caller_directory
from grass.errors import GrassError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grass.cli.parsing import sbatch_directives as sbatch
    from grass.client.json_codec import Document

_NOT_IN_A_SCRIPT = (
    *("from", "broker", "quiet", "format", "dry_run", "no_directives"),
    *("pty", "no_stdin"),
)
"""Options about the call, and not about the job."""
_GRASS, _SBATCH = "#GRASS", "#SBATCH"
_REQUEST = ("require", "gpu", "cpu", "ram", "vram")


class Directives:
    """What a script asks for: fields of a job, and where each option stands."""

    def __init__(self, place: str, head: str, options: Sequence[Option]) -> None:
        self.fields: Document = {}
        self.told = ""
        self._place = place
        self._options = [one for one in options if one.key not in _NOT_IN_A_SCRIPT]
        self._lines: dict[str, int] = {}
        """By an option's key: the line that gives it."""
        own, foreign = Values(), Values()
        lines = list(_directives(head))
        for number, mark, text in lines:
            if mark == _GRASS:
                self._read(number, _split(place, number, text), own)
        if any(mark == _SBATCH for _, mark, _ in lines):
            asked = self._read_sbatch(lines, foreign)
            self.fields["sbatch"] = {
                "options": [*asked],
                "directory": caller_directory(),
                "host": os.uname().nodename,
            }
        self.fields |= merged(settings(foreign, None), settings(own, None))
        queue = own.text("queue")
        if queue is not None:
            self.fields["queue"] = queue

    def _read(self, number: int, words: list[str], values: Values) -> None:
        """Read the options of one line, and check their values."""
        found = Values()
        with self._named(number):
            try:
                at = scan(self._options, words, 0, found)
            except HelpWanted:
                raise UsageError("--help is no option of a job") from None
            if at < len(words):
                raise UsageError(f"`{words[at]}` is no option")
            settings(found, None)
        for option in self._options:
            for value in found.all(option.key):
                values.add(option, value)
                self._lines[option.key] = number

    def _read_sbatch(
        self, lines: list[tuple[int, str, str]], values: Values
    ) -> sbatch.Asked:
        from grass.cli.parsing import sbatch_directives as sbatch

        asked: sbatch.Asked = {}
        for number, mark, text in lines:
            if mark == _SBATCH:
                with self._named(number):
                    sbatch.read(text, number, asked)
        known = {name for option in self._options for name in option.names}
        taken, left_out = list[str](), list[str]()
        for name, (number, _) in asked.items():
            with self._named(number):
                words = sbatch.translated(name, asked)
            if words is None or (words and words[0] not in known):
                left_out.append(f"--{name}")
            else:
                self._read(number, words, values)
                taken.append(f"--{name}")
        others = f"; left out: {', '.join(left_out)}" if left_out else ""
        what = ", ".join(taken) or "nothing"
        self.told = f"{self._place}: taken from #SBATCH: {what}{others}"
        return asked

    def below(self, fields: Document) -> Document:
        """Return fields of a job over those of the script."""
        return merged(self.fields, fields)

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            where = f"{self._place}, line {number}"
            raise UsageError(f"{where}: {error.message}", error.hint) from None

    @contextmanager
    def errors(self, given: Values) -> Iterator[None]:
        """Name the line in the daemon's errors about an option of the script."""
        try:
            yield
        except GrassError as error:
            number = self._blamed(error.message, given)
            if number is None:
                raise
            where = f"{self._place}, line {number}"
            raise type(error)(f"{where}: {error.message}", error.hint) from None

    def _blamed(self, message: str, given: Values) -> int | None:
        for option in self._options:
            if option.key not in self._lines or given.has(option.key):
                continue
            names = [name for name in option.names if name.startswith("--")]
            is_kind = option.key in _REQUEST and message.startswith(f"{option.key}:")
            if is_kind or any(name in message for name in names):
                return self._lines[option.key]
        return None


def merged(below: Document, above: Document) -> Document:
    """Return fields of a job over others; a whole request is all it asks for."""
    both = {**below, **above}
    for name in ("env", "require_also"):
        if name in below and name in above:
            both[name] = {**below[name], **above[name]}
    if "require" in above and "require_also" not in above:
        both.pop("require_also", None)
    return both


def _directives(head: str) -> Iterator[tuple[int, str, str]]:
    """Return the directives of a comment block: line, mark and text."""
    for number, line in enumerate(head.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            return
        for mark in (_GRASS, _SBATCH):
            rest = line.removeprefix(mark)
            if rest != line and (not rest or rest[0].isspace()):
                yield number, mark, rest


def _split(place: str, number: int, text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        problem = str(error).lower()
        raise UsageError(f"{place}, line {number}: {problem}") from None
