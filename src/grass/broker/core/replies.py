"""What the broker answers to a call, once its batch is committed."""

import msgspec

from grass.store.interface import JobDetails


class Done(msgspec.Struct):
    """The reply to the other verbs: what was touched, and what is worth saying."""

    jobs: list[int] = []
    warnings: list[str] = []
    changed: bool = True


class Enqueued(msgspec.Struct):
    """The reply to `Enqueue`: the ids, which follow on each other."""

    first: int
    last: int
    hint: str = ""


class Issued(msgspec.Struct):
    """The reply to `NewToken` and `Enrol`."""

    name: str
    role: str
    expires_at: int | None


class Pruned(msgspec.Struct):
    """The reply to `Prune`: what was forgotten, with all that is known of it."""

    jobs: list[JobDetails]
