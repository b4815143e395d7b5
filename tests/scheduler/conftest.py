"""Fixtures of the scheduler's tests."""

import pytest

from .lab import Lab


@pytest.fixture
def lab() -> Lab:
    """Return a scheduler without workers."""
    return Lab()
