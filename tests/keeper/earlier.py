"""What a keeper of the version before has put on record of an attempt that runs."""

SPAWNING = {
    "e": "spawning",
    "id": "a",
    "output": "/output",
    "stderr": None,
    "grace": 15.0,
    "time_limit": None,
    "max_output": None,
    "meta": None,
}
STARTED = {
    "e": "started",
    "id": "a",
    "pid": 7,
    "ticks": 8,
    "at": 9,
    "offset": 10,
    "since": 11.0,
}
