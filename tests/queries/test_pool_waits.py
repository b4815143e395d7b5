"""Where a job is that waits for a worker of a pool."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from grass.broker.core.pools.requests import (
    AddPool,
    PilotRefused,
    PilotsListed,
    PilotsNotListed,
    PilotSubmitted,
    SetPoolPaused,
)
from grass.model.pools import PilotReport, PilotState
from grass.queries.job_documents import why_waiting
from grass.queries.pool_documents import pool_documents
from tests.support.brokerage import ME, Brokerage
from tests.support.building import a_pool


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokerage]:
    made = Brokerage(tmp_path / "grass.db")
    made.call(AddPool(ME, a_pool(gpus=1)))
    made.enqueue(require="{gpu:1,cpu:1}")
    yield made
    made.store.close()


def why(broker: Brokerage) -> str | None:
    return why_waiting(broker.state.jobs[1], broker.state, 0.0, {})


def listed(broker: Brokerage, state: PilotState, **fields: str) -> None:
    (mark,) = broker.state.pools.pilots
    broker.call(PilotSubmitted("uni", mark, "812"))
    given = {"engine_id": "812", "place": "gpu", **fields}
    broker.call(PilotsListed([PilotReport(mark=mark, state=state, **given)]))


def test_a_job_waits_until_the_engine_has_taken_its_worker(broker: Brokerage) -> None:
    assert why(broker) == "waits until Slurm has taken its worker"


def test_the_engine_says_why_it_waits_and_when_it_may_start(broker: Brokerage) -> None:
    today = datetime.now().astimezone().date().isoformat()
    fields = {"reason": "Resources", "expected_start": f"{today}T14:20:00"}
    listed(broker, PilotState.PENDING, word="PENDING", **fields)
    assert why(broker) == (
        "waits in Slurm partition gpu: Resources, job 812, estimated start 14:20"
    )
    listed(broker, PilotState.PENDING, word="PENDING")
    assert why(broker) == "waits in Slurm partition gpu: Pending, job 812"


def test_a_worker_that_has_not_come_yet_is_named(broker: Brokerage) -> None:
    listed(broker, PilotState.RUNNING, word="RUNNING", place="gpu n7")
    assert why(broker) == "its worker starts on gpu n7: Slurm job 812"


def test_a_pool_that_was_refused_or_paused_says_so(broker: Brokerage) -> None:
    (mark,) = broker.state.pools.pilots
    broker.call(PilotRefused(mark, "Invalid account", answered=True))
    assert str(why(broker)).startswith("pool `uni` is asked again at 1970-")
    assert str(why(broker)).endswith("Z: Invalid account")
    broker.call(SetPoolPaused(ME, "uni", True))
    assert why(broker) == (
        "pool `uni` is paused: Invalid account; `grass pool resume uni` asks again"
    )


def test_an_engine_that_does_not_answer_is_named_with_its_words(
    broker: Brokerage,
) -> None:
    (mark,) = broker.state.pools.pilots
    broker.call(PilotRefused(mark, "Unable to contact", answered=False))
    silent = "Slurm does not answer: Unable to contact; it is asked again at 1970-01-"
    assert str(why(broker)).startswith(silent)
    assert pool_documents(broker.state)[0].words == why(broker)
    broker.call(PilotsNotListed("uni", "Socket timed out", 10.0))
    assert str(why(broker)).startswith("Slurm does not answer: Socket timed out; it ")
    absent = PilotReport(mark=mark, state=PilotState.ABSENT)
    broker.call(PilotsListed([absent]))
    unsure = "Slurm has not said whether it took its worker; unless Slurm lists it, it"
    assert str(why(broker)).startswith(f"{unsure} is asked again at 1970-01-01T")
    broker.pass_time(121)
    broker.call(PilotsListed([absent]))
    assert why(broker) == "waits until Slurm has taken its worker"


def test_what_an_engine_said_before_it_fell_silent_is_told_too(
    broker: Brokerage,
) -> None:
    listed(broker, PilotState.PENDING, reason="Resources")
    broker.call(PilotsNotListed("uni", "Socket timed out", 10.0))
    assert str(why(broker)).startswith(
        "waits in Slurm partition gpu: Resources, job 812;"
        " Slurm does not answer: Socket timed out; it is asked again at "
    )
    listed(broker, PilotState.PENDING, reason="Resources")
    assert why(broker) == "waits in Slurm partition gpu: Resources, job 812"
    assert pool_documents(broker.state)[0].words == ""


def test_a_pool_that_asks_its_engine_for_nothing_is_not_silent(
    broker: Brokerage,
) -> None:
    broker.call(PilotsNotListed("gone", "Socket timed out", 10.0))
    assert broker.state.pools.silent == {}


def test_what_is_short_here_comes_first(broker: Brokerage) -> None:
    for _ in range(3):
        broker.enqueue()
    said = why_waiting(broker.state.jobs[4], broker.state, 0.0, {})
    assert said == ("needs cpu 1, free 0 of 2; waits until Slurm has taken its worker")
