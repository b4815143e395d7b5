"""Named pipes to talk with commands."""

from tests.support.fixtures import fifo, gate, news

__all__ = ["fifo", "gate", "news"]
