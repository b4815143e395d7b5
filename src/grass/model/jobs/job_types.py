"""Job types: jobs of one type use about as much memory, so it is learned by type.

The type is what a user calls it, else what the command is about: its script, as the
path is written, or its program. That of a guest or a task is its function. Where a
command has neither script nor program of its own, as `python -c` or a shell line of
several commands, the type is the command itself.
"""

import re
from collections.abc import Sequence

from grass.model.field_readers import LONGEST_JOB_TYPE
from grass.model.jobs.commands import split_assignments
from grass.model.jobs.default_names import is_interpreter, subject
from grass.model.jobs.job import Job
from grass.model.jobs.spec import Spec

_SPACE = re.compile(r"\s")
_OF_A_SHELL = re.compile(r"[;&|<>`(]|\$\(")
"""What makes several commands of a line, or one that only a shell understands."""


def job_type(spec: Spec, words: Sequence[str], name: str = "") -> str:
    """Return the type of a job that runs these words; a guest has only a name."""
    if spec.job_type is not None:
        return spec.job_type
    if spec.task is not None:
        return spec.task.name or name or "job"
    return _default_type((*spec.prefix, *words))[:LONGEST_JOB_TYPE] or name or "job"


def type_of(spec: Spec, job: Job) -> str:
    """Return the type of a job."""
    return job_type(spec, job.words, job.common.name)


def learned_type(spec: Spec, job: Job) -> str | None:
    """Return the type in whose profile the memory of a job is looked up, if it is."""
    return type_of(spec, job) if spec.auto_vram else None


def _default_type(words: Sequence[str]) -> str:
    _, rest = split_assignments(words)
    if rest and _SPACE.search(rest[0].strip()):
        is_of_a_shell = _OF_A_SHELL.search(rest[0])
        # Their values may be secret, and are nothing that memory depends on.
        _, rest = split_assignments(rest[0].split())
        if is_of_a_shell:
            return _text(rest)
    if not rest:
        return ""
    about = subject(rest)
    return _text(rest) if is_interpreter(about) else _text([about.removeprefix("./")])


def _text(words: Sequence[str]) -> str:
    """Return words as one line that can be shown."""
    line = " ".join(" ".join(words).split())
    return "".join(one if one.isprintable() else "?" for one in line)
