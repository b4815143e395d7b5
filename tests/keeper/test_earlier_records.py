"""Records that a keeper of the version before has left."""

from __future__ import annotations

from grass.keeper.core.attempt import attempts_of

from .earlier import SPAWNING, STARTED


def test_fields_that_were_added_since_have_a_default() -> None:
    attempt = attempts_of([SPAWNING, STARTED])["a"]
    assert (attempt.state, attempt.pid, attempt.offset) == ("running", 7, 10)
    assert (attempt.spawning.own_output, attempt.stderr_offset) == (False, 0)
    assert (attempt.suspended, attempt.found) == (False, False)
