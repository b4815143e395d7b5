"""What a keeper of the version before has put on record of an attempt that runs."""

import json
from typing import Any

from grass.keeper.codec import decode_entry
from grass.keeper.protocol import Entry

_SPAWNING = {
    "e": "spawning",
    "id": "a",
    "output": "/output",
    "stderr": None,
    "grace": 15.0,
    "time_limit": None,
    "max_output": None,
    "meta": None,
}
_STARTED = {
    "e": "started",
    "id": "a",
    "pid": 7,
    "ticks": 8,
    "at": 9,
    "offset": 10,
    "since": 11.0,
}


def _decoded(entry: dict[str, Any]) -> Entry:
    decoded = decode_entry(json.dumps(entry).encode())
    assert decoded is not None
    return decoded


SPAWNING, STARTED = _decoded(_SPAWNING), _decoded(_STARTED)
