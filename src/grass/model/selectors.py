"""Selectors: how verbs name jobs.

`7`, `3-9`, `last`, `all` (unfinished), `@project`, `name~re`, `state:failed`,
`queue:q1`. Several selectors select the union. This module only parses them.

Regular expressions that people type are matched by RE2, in linear time: Python's own
engine may take years for a short pattern and would block the daemon. RE2 has no back
references and no lookaround. It is loaded with the first pattern.
"""

import re
from functools import lru_cache
from typing import Any

import msgspec

from grass.errors import UsageError
from grass.model.jobs.lifecycle import JobState

LARGEST_ID = 2**53


class Selection(msgspec.Struct, frozen=True):
    """One parsed selector. Exactly one field is set."""

    ids: tuple[int, int] | None = None
    last: bool = False
    unfinished: bool = False
    project: str | None = None
    name: str | None = None
    state: JobState | None = None
    queue: str | None = None


_IDS = re.compile(r"(\d{1,16})(?:-(\d{1,16}))?\Z")


def read(text: str) -> Selection:
    """Read one selector."""
    if not _is_text(text):
        raise UsageError(f"`{text}` selects no job: it is not UTF-8")
    if found := _IDS.match(text):
        return _ids(text, int(found.group(1)), found.group(2))
    if text in ("last", "all"):
        return Selection(last=text == "last", unfinished=text == "all")
    if text.startswith("@") and len(text) > 1:
        return Selection(project=text[1:])
    if text.startswith("name~"):
        return Selection(name=_pattern(text[len("name~") :]))
    if text.startswith("state:"):
        return Selection(state=_state(text[len("state:") :]))
    if text.startswith("queue:") and len(text) > len("queue:"):
        return Selection(queue=text[len("queue:") :])
    raise UsageError(
        f"`{text}` selects no job",
        "use an id, 3-9, last, all, @project, name~re, state:failed or queue:q1",
    )


def _is_text(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode() == text


def _ids(text: str, first: int, last: str | None) -> Selection:
    end = int(last) if last is not None else first
    if end < first or end > LARGEST_ID:
        raise UsageError(f"`{text}` is not a range of ids", "write 3-9")
    return Selection(ids=(first, end))


def _pattern(text: str) -> str:
    try:
        compile_pattern(text)
    except ValueError as error:
        raise UsageError(
            f"`name~{text}`: {error}", "write a regular expression"
        ) from None
    return text


def _state(text: str) -> JobState:
    try:
        return JobState(text)
    except ValueError:
        known = ", ".join(JobState)
        raise UsageError(f"there is no state `{text}`", f"states: {known}") from None


@lru_cache(maxsize=16)
def compile_pattern(text: str) -> Any:  # noqa: ANN401 -- re2 has no types of its own
    """Return the compiled pattern; raise ValueError if it is invalid."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not understood"
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from None


@lru_cache(maxsize=4096)
def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found anywhere in the text."""
    return compile_pattern(pattern).search(text) is not None
