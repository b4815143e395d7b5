"""Selectors: how verbs name jobs.

`7`, `3-9`, `last`, `all` (unfinished), `@project`, `name~re`, `state:failed`,
`queue:q1`. Several selectors select the union. Reading them is pure; which jobs exist
is the broker's to say.
"""

import re

import msgspec

from grass.errors import UsageError
from grass.model import patterns
from grass.model.lifecycle import JobState

LARGEST_ID = 2**53


class Selection(msgspec.Struct, frozen=True):
    """One selector, read. Exactly one field is set."""

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
        patterns.compile_pattern(text)
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
