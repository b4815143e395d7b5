"""What is waited for is returned, and what never comes is told."""

import pytest

from tests.support.patience import in_time, until


def test_what_is_seen_once_it_is_right_is_returned() -> None:
    numbers = iter(range(9))
    assert until(lambda: next(numbers), "no three", lambda seen: seen == 3) == 3
    assert next(numbers) == 4


def test_what_never_holds_is_told_with_what_was_seen_last() -> None:
    with pytest.raises(AssertionError, match="it never comes; last seen: 'nothing'"):
        until(
            lambda: "nothing", "it never comes", lambda seen: seen == "it", within_s=0.0
        )


def test_what_comes_too_late_is_played_again_with_more_time() -> None:
    limits: list[float] = []

    def play(limit_s: float) -> str | None:
        limits.append(limit_s)
        return "in time" if limit_s > 1 else None

    assert in_time(play, "too late") == "in time"
    assert limits == sorted(set(limits))
    with pytest.raises(AssertionError, match="too late"):
        in_time(lambda _: None, "too late")
