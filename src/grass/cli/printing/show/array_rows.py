"""Arrays as single rows: `724-735  2 running, 8 queued, 2 done, 0 failed`, with a bar.

A row is made of the array's summary. It has the fields of a job, so that every column
can be written of it, and its counts beside them.
"""

from __future__ import annotations

from grass.cli.printing.styled import Styled
from grass.cli.printing.table import Span
from grass.cli.printing.wording import ENDED_STATES, IN_ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from grass.cli.printing.signs import Signs
    from grass.client.json_codec import Document

_WORDS = {"succeeded": "done"}
_BAR_TINTS = {"succeeded": "green", "failed": "red", "lost": "red", "running": "cyan"}
_COUNT_TINTS = {"running": "green", "failed": "red", "lost": "red"}
_BAR_WIDTH = 10


def with_arrays(
    jobs: Iterable[Document], arrays: Sequence[Document]
) -> Iterator[Document]:
    """Return the jobs, with a row in place of the first job of each array.

    An array of one job is shown as that job.
    """
    left = {summary["id"]: summary for summary in arrays}
    known = frozenset(left)
    for job in jobs:
        array = job.get("array")
        if array not in known:
            yield job
        elif array in left:
            summary = left.pop(array)
            yield _row(summary, job) if summary["total"] > 1 else job
    for summary in left.values():
        yield _row(summary, {})


def _row(summary: Document, member: Document) -> Document:
    """Return an array as a job: of its member it has what all members have alike."""
    states = summary["states"]
    return {
        "cwd": None,
        **member,
        **summary,
        "filled_command": summary["command"],
        "worker": None,
        "id": f"{summary['id']}-{summary['last']}",
        "state": _state(states),
        "array": summary["id"],
        "index": None,
        "flags": [],
        "params": {},
        "allocation": {},
        "attempts": [],
        "pid": None,
        "exit_code": None,
        "signal": None,
        "output": None,
        "ran_s": None,
        "members": states,
    }


def _state(states: Mapping[str, int]) -> str:
    """Return the state of the whole: what members do, or the worst of their ends."""
    order = (*IN_ORDER[:4], "failed", "lost", "succeeded", "cancelled")
    return next((state for state in order if states.get(state)), "queued")


def counts(states: Mapping[str, int]) -> str:
    """Write `2 running, 8 queued, 2 done, 0 failed`."""
    return ", ".join(text for _, text in _counted(states))


def span(row: Document, since: str, command: str, signs: Signs) -> Span:
    """Write the counts of an array, how old it is, and its command.

    Where that leaves no room for its age, signs stand for the words of the states.
    """
    words = _painted(row, ", ", _counted(row["members"]))
    states = [state for state, _ in _counted(row["members"])]
    signed = [(one, f"{signs.of(one)}{row['members'].get(one, 0)}") for one in states]
    short = _painted(row, "  ", signed)
    age, what = Styled((f"  {since}", "")), Styled((f"  {command}", "dim"))
    return Span(words, age, what, short=short)


def _painted(row: Document, gap: str, counted: Iterable[tuple[str, str]]) -> Styled:
    pieces: list[tuple[str, str]] = []
    for state, text in counted:
        tint = _COUNT_TINTS.get(state, "") if row["members"].get(state) else ""
        pieces += [(gap if pieces else "", ""), (text, tint)]
    return Styled(*pieces)


def _counted(states: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Write the count of each state that has jobs, and of failures once some ended."""
    ended = any(states.get(state) for state in ENDED_STATES)
    for state in IN_ORDER:
        if states.get(state) or (state == "failed" and ended):
            yield state, f"{states.get(state, 0)} {_WORDS.get(state, state)}"


def bar(row: Document, signs: Signs) -> Styled:
    """Draw an array's bar: what is done, failed, running; and the rest."""
    return Styled(*_parts(row["members"], signs))


def _parts(states: Mapping[str, int], signs: Signs) -> Iterator[tuple[str, str]]:
    total = sum(states.values()) or 1
    used, passed = 0, 0
    for state in ("succeeded", "failed", "lost", "cancelled", "running"):
        count = states.get(state, 0)
        passed += count
        # A part is never left out because it is small.
        end = max(used + bool(count), round(_BAR_WIDTH * passed / total))
        end = min(end, _BAR_WIDTH)
        letter = signs.half if state == "running" else signs.full
        yield letter * (end - used), _BAR_TINTS.get(state, "dim")
        used = end
    yield signs.empty * (_BAR_WIDTH - used), "dim"
