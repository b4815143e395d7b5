"""What a test reads of a command's stderr does not depend on the machine's speed."""

from tests.support.notices import without_notices


def test_only_notices_are_left_out() -> None:
    notices = (
        "grass: the daemon is starting; waiting up to 120 s\n"
        "grass: the daemon (pid 7) does not answer; waiting for it\n"
        "grass: the broker cannot be reached; going on if it is back within 30 s\n"
    )
    told = "grass: job 1 failed; see `grass logs 1`\n"
    assert without_notices(notices + told + notices) == told
