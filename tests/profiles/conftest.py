"""Real daemons, and programs that use grass from Python."""

from collections.abc import Iterator

import pytest

from tests.profiles.programs import Programs
from tests.support.fixtures import cold, fifo, gate, gpus, home, lasting, news, shared

__all__ = ["cold", "fifo", "gate", "gpus", "home", "lasting", "news", "shared"]


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Programs beside a test."""
    begun = Programs()
    yield begun
    begun.end()
