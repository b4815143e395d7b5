"""A task: a Python function that a job calls, in place of a command.

The function is a blob, named by the SHA-256 of its pickled bytes, which all jobs of a
call share. Arguments are a job's own: small ones travel as bytes, larger ones are a
blob as well. Nothing here is ever unpickled by the broker.
"""

import re
from base64 import b64decode
from typing import NamedTuple

import msgspec

from grass.errors import About, UsageError

MOST_INLINE = 16 * 1024
"""In bytes: larger arguments are a blob."""
BLOB_PREFIX = "sha256:"
"""What arguments of a request begin with that name a blob."""
LONGEST_NAME = 200
_BLOB = re.compile(r"[0-9a-f]{64}\Z")
_PYTHON = re.compile(r"[0-9]{1,2}\.[0-9]{1,3}\Z")


class TaskCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task calls, and what has pickled it."""

    function: str
    """The SHA-256, in hexadecimal, of the blob with the pickled function."""
    python: str
    """The minor version of Python that has pickled it, as `3.11`."""
    interpreter: str = ""
    """The caller's Python, for the machine that it is on; empty: the worker's."""
    name: str = ""
    """What the function is called."""


class Arguments(NamedTuple):
    """The pickled arguments of one job: bytes, or the name of the blob with them."""

    data: bytes = b""
    blob: str = ""


class TaskForm(msgspec.Struct, forbid_unknown_fields=True):
    """A task as a request gives it."""

    function: str
    python: str
    interpreter: str = ""
    name: str = ""


def is_blob_name(text: str) -> bool:
    """Tell whether a text is a SHA-256 as blobs are named."""
    return _BLOB.match(text) is not None


def check_blob_name(text: str) -> str:
    """Refuse what names no blob."""
    if not is_blob_name(text):
        raise UsageError(f"`{text[:80]}` is no SHA-256", "give 64 hexadecimal digits")
    return text


def read_task(form: TaskForm | None) -> TaskCall | None:
    """Read the task of a request."""
    if form is None:
        return None
    check_blob_name(form.function)
    if not _PYTHON.match(form.python):
        raise UsageError(f"`{form.python[:20]}` is no version of Python", "as `3.11`")
    path = form.interpreter
    if path and (not path.startswith("/") or "\0" in path):
        raise UsageError(f"the interpreter `{path[:80]}` is not an absolute path")
    name = form.name.encode("utf-8", "replace").decode()[:LONGEST_NAME]
    return TaskCall(form.function, form.python, path, name)


def read_arguments(text: str) -> Arguments:
    """Read the arguments of a request: base64, or `sha256:` and the name of a blob."""
    with About("arguments"):
        if text.startswith(BLOB_PREFIX):
            return Arguments(blob=check_blob_name(text.removeprefix(BLOB_PREFIX)))
        try:
            data = b64decode(text, validate=True)
        except ValueError:
            raise UsageError("arguments are not base64") from None
        if len(data) > MOST_INLINE:
            raise UsageError(
                f"arguments of {len(data)} bytes, at most {MOST_INLINE} travel in a"
                " request",
                "upload them as a blob, and name that",
            )
        return Arguments(data)


MOST_TOLD = 1024
"""In bytes: a result up to this size comes with the exit, and is stored with it.

The file system takes longer to make a file than a short task runs.
"""


def result_path(own_file: str | None) -> str | None:
    """Return where the result of an attempt is: beside its own log or history."""
    name, dot, ending = (own_file or "").rpartition(".")
    return f"{name}.result" if dot and ending in ("log", "usage") else None


def shown_call(task: TaskCall) -> str:
    """Return a task as a list of jobs shows its command."""
    return f"{task.name or 'task'}(...)"
