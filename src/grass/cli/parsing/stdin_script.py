"""A script from stdin: its text becomes the job, run by the program it names.

The text travels as one argument of that program, so its length is limited by the
kernel. Placeholders in it are left alone, as they are in a script of its own file.
"""

from __future__ import annotations

import os
import stat
import sys

from grass.cli.parsing.directives import Directives, merged
from grass.cli.parsing.job_options import settings
from grass.cli.parsing.scripts import tell
from grass.errors import UsageError
from grass.model.jobs.commands import LONGEST_WORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.cli.parsing.options import Option, Values
    from grass.client.json_codec import Document

NAME = "stdin"
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
_WITH_E = ("perl", "ruby", "node", "Rscript", "julia", "lua")


def is_given() -> bool:
    """Tell whether stdin is a file or a pipe: neither a terminal nor /dev/null."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def read_job(
    queue: str | None, values: Values, options: Sequence[Option]
) -> tuple[list[Document], Document, Directives]:
    """Return the script as a job, with its options, and its directives."""
    text = read()
    fields = job_of(text)
    job: Document = {"command": fields.pop("command")}
    head = "" if values.has("no_directives") else text
    script = Directives(NAME, head, options)
    tell(script, values)
    own = script.below(settings(values, queue))
    return [job], merged(fields, own), script


def read() -> str:
    """Read the script, or refuse one that is empty or too long."""
    try:
        data = sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"stdin: {error.strerror}") from None
    if not data.strip():
        raise UsageError("no command was given", "write it after --: -- python x.py")
    if len(data) > LONGEST_WORD:
        raise UsageError(
            f"the script has {len(data):,} bytes, and at most {LONGEST_WORD:,} can come"
            " from stdin",
            "save it as a file and enqueue that",
        )
    return os.fsdecode(data)


def job_of(text: str) -> Document:
    """Return the fields of the job that runs a script."""
    fields: Document = {"name": NAME, "verbatim": True}
    words = _interpreter(text)
    if not words:
        return {**fields, "command": text}
    flag = flag_of(words[0])
    if flag is None:
        raise UsageError(
            f"a script for `{os.path.basename(words[0])}` cannot come from stdin",
            "save it as a file and enqueue that",
        )
    if flag == "-c" and len(words) == 1:
        return {**fields, "command": text, "shell_program": words[0]}
    return {**fields, "command": [*words, flag, text]}


def flag_of(program: str) -> str | None:
    """Return the option by which a program runs a text; None: none is known."""
    name = os.path.basename(program)
    if name in _SHELLS or name.startswith(("python", "pypy")):
        return "-c"
    return "-e" if name in _WITH_E else None


def _interpreter(text: str) -> list[str]:
    """Return the program of a script's first line, and its argument."""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        return []
    program, _, argument = first[2:].strip().partition(" ")
    words = [program, argument.strip()] if argument.strip() else [program]
    if os.path.basename(program) == "env":
        words = [one for one in argument.split() if one not in ("-S", "-i", "--")]
    return words if words and words[0] else []
