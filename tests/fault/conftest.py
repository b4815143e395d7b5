"""The fixtures of tests with a real daemon."""

from tests.support.fixtures import (
    cold,
    database,
    fifo,
    gate,
    home,
    lasting,
    news,
    postgres,
    shared,
)

__all__ = [
    "cold",
    "database",
    "fifo",
    "gate",
    "home",
    "lasting",
    "news",
    "postgres",
    "shared",
]
