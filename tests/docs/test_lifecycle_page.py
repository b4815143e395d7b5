"""The diagrams on the page about states are the tables the program goes by."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import pytest

from grass.model.jobs.lifecycle import (
    ATTEMPT_ARROWS,
    ENDED,
    JOB_ARROWS,
    AttemptState,
    JobState,
)

from .pages import ROOT, blocks

PAGE = (ROOT / "docs/explanation/lifecycle.md").read_text()


T = TypeVar("T", bound=StrEnum)

BEGINNINGS = {JobState.HELD, JobState.WAITING, JobState.QUEUED}


def diagram(arrows: Mapping[T, frozenset[T]], first: set[T], last: set[T]) -> str:
    """Draw a table of arrows as mermaid does."""
    order = list(arrows)
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state}" for state in order if state in first]
    for start in order:
        ends = sorted(arrows[start], key=order.index)
        lines += [f"    {start} --> {end}" for end in ends]
        lines += [f"    {start} --> [*]"] if start in last else []
    return "\n".join(lines)


DIAGRAMS = [
    diagram(JOB_ARROWS, BEGINNINGS, set(ENDED)),
    diagram(
        ATTEMPT_ARROWS,
        {AttemptState.STARTING},
        {state for state, ends in ATTEMPT_ARROWS.items() if not ends},
    ),
]


def test_the_diagrams_are_made_from_the_tables() -> None:
    assert blocks(PAGE, "mermaid") == DIAGRAMS


@pytest.mark.parametrize("states", [JobState, AttemptState])
def test_every_state_is_explained(states: type[StrEnum]) -> None:
    explained = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert set(states) <= set(explained)
