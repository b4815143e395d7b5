"""Pilots of a scheduler that has no command to list and end them.

The program of a pilot then leaves notes in the folder that it shares with the broker:
one when it begins, with the time at which it is over for sure, and one when it ends. A
pilot that has not begun still has the file of its token there, and without that it
could not begin. So it is ended by removing that file, or else with the note `.stop`,
which every pilot looks for. The mark is its id.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from grass.model.pools import PilotReport, PilotState

BEGAN, ENDED, STOP = ".began", ".ended", ".stop"
"""Ends of names beside that of the token's file; the pilot writes the same."""
_SPARE_S = 60


def reports(folder: Path, marks: Sequence[str]) -> list[PilotReport]:
    """Read the notes of these pilots; one that left nothing is not listed."""
    found = [(mark, _state(folder, mark)) for mark in marks]
    return [
        PilotReport(mark=mark, state=state, engine_id=mark, word=word)
        for mark, (state, word) in found
        if state is not PilotState.ABSENT
    ]


def cancel(folder: Path, marks: Sequence[str]) -> None:
    """End these pilots, also those that have not begun."""
    for mark in marks:
        (folder / mark).unlink(missing_ok=True)
        (folder / f"{mark}{STOP}").touch()


def _state(folder: Path, mark: str) -> tuple[PilotState, str]:
    if (folder / f"{mark}{ENDED}").exists():
        return PilotState.ENDED, "ended"
    try:
        ends_at = float((folder / f"{mark}{BEGAN}").read_text())
    except FileNotFoundError:
        if (folder / mark).exists():
            return PilotState.PENDING, "submitted"
        # Cancelled before it began, or never prepared.
        cancelled = (folder / f"{mark}{STOP}").exists()
        return (PilotState.ENDED, "cancelled") if cancelled else _ABSENT
    except ValueError:
        # It is being written.
        return PilotState.RUNNING, "began"
    if time.time() > ends_at + _SPARE_S:
        return PilotState.ENDED, "its time is over"
    return PilotState.RUNNING, "began"


_ABSENT = (PilotState.ABSENT, "")
