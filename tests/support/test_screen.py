"""A command on a terminal that a test leaves is ended."""

from tests.support.screen import Screen, leave_all


def test_a_screen_that_is_left_is_closed_and_its_command_ended() -> None:
    closed = Screen(["sleep", "600"], {})
    closed.close()
    # It ignores that its window is closed.
    stubborn = Screen(["sh", "-c", "trap '' HUP; echo up; exec sleep 600"], {})
    stubborn.until("up")
    leave_all()
    assert None not in (closed.process.returncode, stubborn.process.returncode)
