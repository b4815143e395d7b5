"""What a worker's core wants done, in order."""

from typing import Any

import msgspec

from grass.link.messages import ToBroker
from grass.log_lines import LogEvent

Verb = dict[str, Any]


class Effects(msgspec.Struct):
    """What is to be sent, in order."""

    to_broker: list[ToBroker] = []
    to_keeper: list[Verb] = []
    watch: dict[str, tuple[int, int]] = {}
    """Processes to hold on to besides the keeper: attempt to pid and start ticks."""
    unwatch: list[str] = []
    log_events: list[LogEvent] = []
