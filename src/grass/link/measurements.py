"""What a worker has measured, as it tells a broker without being asked."""

import msgspec

from grass.link.requests import Message
from grass.model.resources import Capacity, Units


class Withheld(Message, tag="withheld"):
    """What no job can have of a worker's GPUs now; replaces what was told before.

    Sent only to a broker whose `Welcome` has `heeds_withheld`; every `Hello` has it.
    """

    units: Capacity = msgspec.field(default_factory=dict)
    """Of each unit what is not on offer: it is used by no job, or beyond its share."""
    strangers: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """By unit the processes of no job: `python (pid 4711, alice): 12G`."""
    faults: dict[str, str] = msgspec.field(default_factory=dict)
    """By unit why nothing can run there, in words."""
    busy: frozenset[str] = frozenset()
    """Units that are too busy for one more job whose memory is learned."""
    processes: dict[int, Units] = msgspec.field(default_factory=dict)
    """By pid what one process has of `units`: not in its own way as a guest."""
    passing: frozenset[str] = frozenset()
    """Units of `faults` of which only an answer is missing."""


class Overran(Message, tag="overran"):
    """An enforced attempt uses more memory of a shared GPU than it reserved.

    Sent once for each attempt; sizes are bytes.
    """

    attempt: str
    unit: str
    used: int
    reserved: int
    placed_at: int = 0


class ProfileNoted(Message, tag="profile-noted"):
    """What an attempt uses of a GPU, which does not grow any more, or grew again.

    Sent for attempts whose `Start` has `learns`.
    """

    attempt: str
    memory: int
    """In bytes, the most that it used of one GPU."""
    ran_s: float = 0.0
    to_peak_s: float = 0.0
    placed_at: int = 0
    late: bool = False
    """Whether it still grows, or uses nothing, and no job should wait for it."""
