"""Jobs that would wait for themselves, however many others stand in between."""

from contextlib import closing
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.brokerage import Brokerage

from grass.errors import Refused

JOBS = 6
numbers = st.sets(st.integers(1, JOBS), max_size=3)


def has_cycle(waits: dict[int, set[int]]) -> bool:
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return True
    return False


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(numbers, min_size=JOBS, max_size=JOBS), numbers, numbers)
def test_exactly_those_edits_are_refused_that_close_a_circle(
    tmp_path_factory: pytest.TempPathFactory,
    wanted: list[set[int]],
    edited: set[int],
    after: set[int],
) -> None:
    broker = Brokerage(Path(tmp_path_factory.mktemp("cycles")) / "grass.db")
    with closing(broker.store):
        check_edit(broker, wanted, edited, after)


def check_edit(
    broker: Brokerage, wanted: list[set[int]], edited: set[int], after: set[int]
) -> None:
    broker.pause()
    waits = {}
    for job, earlier in enumerate(wanted, 1):
        waits[job] = {one for one in earlier if one < job}
        broker.enqueue(after=tuple(map(str, sorted(waits[job]))))
    waits |= dict.fromkeys(edited, after)
    asked = tuple(map(str, sorted(after)))
    if edited and has_cycle(waits):
        with pytest.raises(Refused, match="would wait for itself"):
            broker.edit(*edited, after=asked)
    else:
        broker.edit(*edited, after=asked)


def test_a_line_of_jobs_that_run_again_together_may_wait_for_each_other(
    broker: Brokerage,
) -> None:
    first = broker.enqueue(hold=True)
    line = [first]
    for _ in range(20):
        line.append(broker.enqueue(after=(str(line[-1]),)))
    broker.cancel(first)
    assert broker.rerun(*line, hold=True).jobs == line


def test_a_circle_of_jobs_that_run_again_together_is_refused(broker: Brokerage) -> None:
    first = broker.enqueue(hold=True)
    second = broker.enqueue(after=(str(first),))
    third = broker.enqueue(after=(str(second),))
    broker.cancel(first)
    with pytest.raises(Refused, match="would wait for itself"):
        broker.rerun(first, second, third, after=(str(third),))
