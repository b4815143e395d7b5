"""Signals as people write them."""

import pytest

from grass.errors import UsageError
from grass.model.jobs import signals


@pytest.mark.parametrize(
    ("text", "number"),
    [("USR1", 10), ("SIGUSR1", 10), ("usr2", 12), ("9", 9), ("64", 64), ("INT", 2)],
)
def test_a_signal_has_a_name_and_a_number(text: str, number: int) -> None:
    assert signals.signal_number(text) == number


@pytest.mark.parametrize(
    "text", ["", "0", "65", "-1", "USR3", "SIG_DFL", "999999", "\u0661"]
)
def test_what_is_no_signal_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="there is no signal"):
        signals.signal_number(text)


@pytest.mark.parametrize("number", range(1, 65))
def test_a_name_is_read_as_its_number(number: int) -> None:
    assert signals.signal_number(signals.short_name(number)) == number


@pytest.mark.parametrize(("number", "instead"), [(19, "suspend"), (18, "continue")])
def test_signals_that_suspend_are_refused(number: int, instead: str) -> None:
    with pytest.raises(UsageError) as refused:
        signals.check_sendable(number)
    assert f"grass {instead}" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("USR1@60", "USR1@60"),
        ("sigusr1@5m", "USR1@300"),
        ("10", "USR1@60"),
        ("TERM@0.5s", "TERM@0.5"),
        ("INT@30d", "INT@2592000"),
    ],
)
def test_a_signal_before_the_limit_is_written_in_one_way(
    text: str, written: str
) -> None:
    assert signals.written_limit_signal(text) == written
    assert signals.written_limit_signal(written) == written


@pytest.mark.parametrize("text", ["", "@60", "USR1@", "USR1@0", "USR1@x", "STOP@60"])
def test_a_signal_that_could_never_come_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        signals.written_limit_signal(text)


@pytest.mark.parametrize(
    ("limit_s", "word"), [(None, "--time-limit"), (60.0, "60 s"), (30.0, "30 s")]
)
def test_a_signal_needs_a_longer_time_limit(limit_s: float | None, word: str) -> None:
    with pytest.raises(UsageError) as refused:
        signals.check_limit_signal("USR1@60", limit_s)
    assert word in f"{refused.value.message} {refused.value.hint}"
    signals.check_limit_signal("USR1@60", 61.0)
    signals.check_limit_signal(None, limit_s)
