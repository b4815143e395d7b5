"""Records that a keeper of the version before has left."""

from __future__ import annotations

from grass.keeper.attempt import attempts_of

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


def test_fields_that_were_added_since_have_a_default() -> None:
    attempt = attempts_of([SPAWNING, STARTED])["a"]
    assert (attempt.state, attempt.pid, attempt.offset) == ("running", 7, 10)
    assert (attempt.own_output, attempt.stderr_offset) == (False, 0)
    assert (attempt.suspended, attempt.found) == (False, False)
