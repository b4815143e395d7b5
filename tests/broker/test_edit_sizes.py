"""How large an edit or a rerun may make what a program is started with."""

import pytest
from tests.support.brokerage import Brokerage

from grass.errors import UsageError

LONG = "x" * 131_072
MANY = tuple((f"A{number}", LONG[9:]) for number in range(9))
MORE = tuple((f"B{number}", LONG[9:]) for number in range(9))


@pytest.mark.parametrize("variable", ["A", "PATH"])
def test_an_edit_cannot_give_a_variable_that_no_kernel_takes(
    broker: Brokerage, variable: str
) -> None:
    job = broker.enqueue(hold=True)
    with pytest.raises(UsageError, match="too long"):
        broker.edit(job, env=((variable, LONG),))
    assert broker.state.specs[broker.state.jobs[job].spec].env == ()


def test_what_edits_add_up_to_is_bounded(broker: Brokerage) -> None:
    job = broker.enqueue(hold=True)
    broker.edit(job, env=MANY)
    with pytest.raises(UsageError, match="too large"):
        broker.edit(job, env=MORE)


def test_a_rerun_cannot_add_what_no_kernel_takes(broker: Brokerage) -> None:
    job = broker.enqueue(hold=True)
    broker.cancel(job)
    with pytest.raises(UsageError, match="too long"):
        broker.rerun(job, env=(("A", LONG),))


def test_a_job_may_not_move_to_a_queue_whose_command_makes_it_too_large(
    broker: Brokerage,
) -> None:
    broker.create_queue("big", "{cpu:2}", *[LONG[1:]] * 9)
    job = broker.enqueue(hold=True, env=MANY)
    with pytest.raises(UsageError, match="too large"):
        broker.edit(job, queue="big")
