"""What follows from the events of a worker's core."""

import msgspec

from grass.keeper.protocol import Verb
from grass.link.messages import ToBroker
from grass.log_lines import LogEvent


class WorkerEffects(msgspec.Struct):
    """What is to be sent, in order."""

    to_broker: list[ToBroker] = []
    to_keeper: list[Verb] = []
    watch: dict[str, tuple[int, int]] = {}
    """Processes that the worker watches, too: attempt to pid and start ticks."""
    unwatch: list[str] = []
    ended_inputs: list[str] = []
    """Attempts with a socket for input that have ended."""
    log_events: list[LogEvent] = []
    look: bool = False
    """Whether starts wait for a look at the devices, which the shell begins now."""
