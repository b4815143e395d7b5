"""What jobs tell about themselves, and whether the database tells the same.

Every job appends its own start and end to one ledger, a witness that neither daemon nor
keeper can influence. A job's number says how it ends, so that a wrong exit code shows.
"""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.homes import GrassHome

CODES = 5
KILLED_EVERY = 7
"""Every so many jobs end by a signal instead of a code."""

_FIELDS = ("exit_code", "signal", "output", "reason", "started_at", "finished_at")
_ROWS = f"""
    SELECT job.name, job.state, job.attempts, try.state, try.output_bytes,
           {", ".join(f"JSON_EXTRACT(try.body, '$.{name}')" for name in _FIELDS)}
    FROM jobs AS job LEFT JOIN attempts AS try ON try.job = job.id
    ORDER BY job.id, try.number
"""


class Attempt(NamedTuple):
    """A job as the database knows it, with its only attempt."""

    number: int
    state: str
    attempts: int
    attempt_state: str | None
    output_bytes: int
    code: int | None
    signal: int | None
    output: str | None
    reason: str | None
    started_at: float
    finished_at: float


class Life(NamedTuple):
    """When a job ran, as it wrote itself; None where it did not come to that."""

    started_at: float | None
    ended_at: float | None


class Verdict(NamedTuple):
    """The numbers of the jobs that went wrong, by how."""

    lost: list[int]
    twice: list[int]
    wrong: list[int]
    unlike: list[int]
    """Whose output is not what the job wrote."""
    called_lost: list[Attempt]

    @property
    def fine(self) -> bool:
        """Tell whether ledger, database and output agree."""
        return not (self.lost or self.twice or self.wrong or self.unlike)


def line(ledger: Path, number: int, seconds: float) -> str:
    """Write the command of a job that keeps the ledger."""
    code, signal = ending(number)
    end = f"exit {code}" if signal is None else f"kill -{signal} $$"
    path = shlex.quote(str(ledger))
    return (
        f'echo "start {number} $EPOCHREALTIME" >> {path}; echo {number}; '
        f'sleep {seconds:.3f}; echo "end {number} $EPOCHREALTIME" >> {path}; {end}'
    )


def ending(number: int) -> tuple[int | None, int | None]:
    """Return the exit code or the signal by which a job of this number ends."""
    if number % KILLED_EVERY == 0:
        return None, 9
    return number % CODES, None


def lives(ledger: Path) -> dict[int, list[Life]]:
    """Read the ledger; a job that ran twice has two lives."""
    found: dict[int, list[Life]] = {}
    text = ledger.read_text() if ledger.exists() else ""
    for word, number, at in (one.split() for one in text.splitlines()):
        told = found.setdefault(int(number), [])
        if word == "start":
            told.append(Life(float(at), None))
        else:
            begun = told.pop() if told else Life(None, None)
            told.append(Life(begun.started_at, float(at)))
    return found


def attempts(home: GrassHome) -> list[Attempt]:
    """Read what the database says of every job and attempt."""
    return [
        Attempt._make((int(name), *facts, (began or 0) / 1e6, (ended or 0) / 1e6))
        for name, *facts, began, ended in home.rows(_ROWS)
    ]


def judge(home: GrassHome, ledger: Path, numbers: Mapping[int, int]) -> Verdict:
    """Compare ledger, database and output; `numbers` were acknowledged, by id."""
    told = lives(ledger)
    known = attempts(home)
    times = Counter(one.number for one in known)
    called_lost = [one for one in known if one.attempt_state == "lost"]
    excused = {one.number for one in called_lost}
    ran = {number for number, each in told.items() if each[-1].ended_at is not None}
    expected = set(numbers.values())
    return Verdict(
        lost=sorted((expected - set(times)) | (expected - ran - excused)),
        twice=sorted(
            {number for number, each in told.items() if len(each) > 1}
            | {one.number for one in known if one.attempts != 1}
            | {number for number, count in times.items() if count > 1}
            | (set(times) - expected)
        ),
        wrong=sorted(one.number for one in known if _is_wrong(one)),
        unlike=sorted(one.number for one in known if _is_unlike(one, told)),
        called_lost=called_lost,
    )


def _is_wrong(one: Attempt) -> bool:
    if one.attempt_state == "lost":
        return (one.state, one.code, one.signal) != ("lost", None, None)
    code, signal = ending(one.number)
    state = "succeeded" if code == 0 else "failed"
    return (one.state, one.code, one.signal) != (state, code, signal)


def _is_unlike(one: Attempt, told: Mapping[int, list[Life]]) -> bool:
    """Tell whether what a job wrote is not what can be read of it."""
    if one.number not in told:
        return False
    if one.attempt_state == "lost" and one.output is None:
        # Nobody lived to tell where it wrote.
        return False
    text = f"{one.number}\n"
    path = Path(one.output or "")
    if one.attempt_state == "lost" and told[one.number][-1].ended_at is None:
        # It was killed on its way, maybe before it came to write.
        return path.is_file() and path.read_text() not in ("", text)
    if not path.is_file() or path.read_text() != text:
        return True
    return one.attempt_state != "lost" and one.output_bytes != len(text)


def most_at_once(ledger: Path) -> int:
    """Count how many jobs were alive at the same time, at the most."""
    moments: list[tuple[float, int]] = []
    for each in lives(ledger).values():
        for life in each:
            if life.started_at is not None and life.ended_at is not None:
                moments += [(life.started_at, 1), (life.ended_at, -1)]
    alive = most = 0
    for _, change in sorted(moments):
        alive += change
        most = max(most, alive)
    return most
