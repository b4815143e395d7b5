"""Fixtures of the broker's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.brokerage import Brokerage


@pytest.fixture
def broker_of(tmp_path: Path) -> Iterator[Callable[[str], Brokerage]]:
    """Make a broker whose worker found these units."""
    made: list[Brokerage] = []

    def make(found: str) -> Brokerage:
        made.append(Brokerage(tmp_path / "grass.db", found))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


@pytest.fixture
def broker(broker_of: Callable[[str], Brokerage]) -> Brokerage:
    return broker_of("{cpu:2}")


@pytest.fixture(params=["running on", "restarted"])
def meanwhile(request: pytest.FixtureRequest) -> Callable[[Brokerage], None]:
    """Do nothing to a broker, or rebuild it from the store: all must go on the same."""

    def run_on(broker: Brokerage) -> None:
        assert not broker.core.busy

    def restart(broker: Brokerage) -> None:
        broker.restart_all()

    return restart if request.param == "restarted" else run_on
