"""A job's name where none is given: that of the script, else of the program.

`python train.py` is `train.py`, and `python -m pkg.mod` is `pkg.mod`: a list of jobs
that are all named `python` tells nothing. Programs that start others, such as
`torchrun` or `uv run`, are looked through for what they start.
"""

import re
from collections.abc import Sequence

from grass.model.jobs.commands import split_assignments

LONGEST = 64
_SPACE = re.compile(r"\s")
_SHELL = re.compile(r"(ba|da|z|k|fi)?sh\Z")
_PYTHON = re.compile(r"(python|pypy)[0-9.]*\Z")
_OTHER = re.compile(r"(Rscript|julia|node|perl|ruby|php|lua)[0-9.]*\Z")
_SCRIPT = re.compile(r"[^-].*\.(py|sh|bash|R|jl|m?js|pl|rb)\Z", re.DOTALL)
_LAUNCHERS = (
    *(("torchrun",), ("deepspeed",), ("mpirun",), ("nohup",), ("time",), ("xvfb-run",)),
    *(("accelerate", "launch"), ("uv", "run"), ("poetry", "run"), ("pipenv", "run")),
    *(("conda", "run"), ("mamba", "run"), ("micromamba", "run"), ("pixi", "run")),
)
"""Programs that start the one that they are given."""
_MODULE = re.compile(r"-[A-Za-z]*m")
_WITH_VALUE = ("-W", "-X", "-o", "-O", "-r", "-I", "--require")
"""Options of interpreters whose value is the next word."""
_WITH_VALUE_IN_PYTHON = ("-W", "-X", "--check-hash-based-pycs")


def default_name(words: Sequence[str]) -> str:
    """Return the name of a job that runs this command."""
    _, rest = split_assignments(words)
    if rest and _SPACE.search(rest[0].strip()):
        _, rest = split_assignments(rest[0].split())
    return (_base(subject(rest).rstrip(";&|")) if rest else "")[:LONGEST] or "job"


def subject(words: Sequence[str]) -> str:
    """Return what a command is about: a script or program as it is written."""
    program = _base(words[0])
    if is_interpreter(program):
        return _run_by(program, words[1:]) or program
    for launcher in _LAUNCHERS:
        if (program, *words[1 : len(launcher)]) == launcher:
            return _started_by(words[len(launcher) :]) or program
    return words[0]


def script_of(words: Sequence[str]) -> str | None:
    """Return the file that a command's interpreter reads; None: there is surely none.

    A shell looks for a plain name in its PATH as well, and others may read a number as
    the value of an option that is not listed here.
    """
    interpreter = _base(words[0])
    if not is_interpreter(interpreter):
        return None
    word = _run_by(interpreter, words[1:])
    if not word or _is_module(interpreter, words, word):
        return None
    is_path = "/" in word if _SHELL.match(interpreter) else _SCRIPT.match(word)
    return word if is_path or _PYTHON.match(interpreter) else None


def _is_module(interpreter: str, words: Sequence[str], word: str) -> bool:
    before = words[words.index(word, 1) - 1]
    return bool(_PYTHON.match(interpreter) and _MODULE.fullmatch(before))


def _run_by(interpreter: str, words: Sequence[str]) -> str:
    """Return the script or module that an interpreter runs; empty: none of a name."""
    position, python = 0, _PYTHON.match(interpreter)
    with_value = _WITH_VALUE_IN_PYTHON if python else _WITH_VALUE
    while position < len(words):
        word = words[position]
        if not word.startswith("-"):
            return word
        if _is_code(interpreter, word):
            return ""
        if python and _MODULE.fullmatch(word):
            return words[position + 1] if position + 1 < len(words) else ""
        position += 2 if word in with_value else 1
    return ""


def _is_code(interpreter: str, option: str) -> bool:
    """Return whether an option is followed by code instead of a script."""
    if _SHELL.match(interpreter) or _PYTHON.match(interpreter):
        return option == "-" or re.fullmatch(r"-[A-Za-z]*c", option) is not None
    return option in ("-", "-e", "-E", "--eval", "-p", "--print")


def _started_by(words: Sequence[str]) -> str:
    """Return what a launcher starts; the values of its options are passed over."""
    if words and not words[0].startswith("-"):
        return subject(words)
    for position, word in enumerate(words):
        if is_interpreter(_base(word)):
            return subject(words[position:])
        if _SCRIPT.match(word):
            return word
        if word == "-m" and position + 1 < len(words):
            return words[position + 1]
    return ""


def is_interpreter(program: str) -> bool:
    """Return whether a program runs scripts."""
    return any(kind.match(program) for kind in (_PYTHON, _SHELL, _OTHER))


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
