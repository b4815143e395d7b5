"""The fixtures of tests with a real daemon."""

from tests.support.fixtures import cold, fifo, gate, home, lasting, news, shared

__all__ = ["cold", "fifo", "gate", "home", "lasting", "news", "shared"]
