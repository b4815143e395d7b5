"""Scripts that a command runs: their heads, and whether they can be run at all.

A script is read on the caller's machine. Nothing here is imported unless a word of a
command is the name of a file.
"""

from __future__ import annotations

import os
import sys

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.cli.parsing.directives import Directives
    from grass.cli.parsing.options import Option, Values

_HEAD = 65536
"""In bytes: no comment block with directives is longer."""
_MOST_WORDS = 16
"""How many words are looked at for the script."""
_MARKS = (b"#GRASS", b"#SBATCH")
_INTERPRETERS = {".py": "python", ".R": "Rscript", ".jl": "julia", ".pl": "perl"}


def directives_of(
    command: Sequence[str], values: Values, options: Sequence[Option]
) -> Directives | None:
    """Return what the script asks for that a command runs, if it has directives."""
    if values.has("no_directives"):
        return None
    found = _found(command, values.text("cwd") or "")
    if found is None:
        return None
    from grass.cli.parsing.directives import Directives

    script = Directives(*found, options)
    tell(script, values)
    return script


def tell(script: Directives, values: Values) -> None:
    """Print what was taken of another scheduler's directives."""
    if script.told and not values.has("quiet"):
        sys.stderr.write(f"grass: {script.told}\n")


def _found(words: Sequence[str], cwd: str) -> tuple[str, str] | None:
    """Return the name and the head of the script that is run, if it has directives."""
    for word in words[:_MOST_WORDS]:
        path = os.path.join(cwd, word)
        head = b"" if word.startswith("-") else _head(path)
        if any(mark in head for mark in _MARKS) and _is_run(word, words):
            return word, os.fsdecode(head)
    return None


def check_executable(words: Sequence[str], cwd: str) -> None:
    """Refuse a script in the job's directory that may not be executed."""
    from grass.model.jobs.commands import split_assignments

    _, command = split_assignments(words)
    program = command[0] if command else ""
    path = os.path.join(cwd, program)
    if not os.path.isfile(path) or os.access(path, os.X_OK):
        return
    if "/" not in program and _in_path(program):
        return
    runner = _INTERPRETERS.get(os.path.splitext(program)[1], "bash")
    raise UsageError(
        f"`{program}` is not executable",
        f"`chmod +x {program}`, or run it by its interpreter: {runner} {program}",
    )


def _head(path: str) -> bytes:
    if not os.path.isfile(path):
        return b""  # Opening a pipe would wait.
    try:
        with open(path, "rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def _is_run(word: str, words: Sequence[str]) -> bool:
    """Tell whether a file is what a command runs, and not what it reads."""
    from grass.model.jobs.default_names import default_name

    return default_name(words) == os.path.basename(word)[:64]


def _in_path(program: str) -> bool:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return any(os.access(os.path.join(one, program), os.X_OK) for one in folders)
