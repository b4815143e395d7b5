"""Idempotency keys and their age."""

import pytest

from grass.model.keys import is_fresh

NOW_S = 0x68000000


@pytest.mark.parametrize("age_s", [0, 1, 200, -4])
def test_a_key_of_the_last_minutes_is_fresh(age_s: int) -> None:
    assert is_fresh(f"{NOW_S - age_s:x}-abc", NOW_S)


@pytest.mark.parametrize(
    "key",
    [
        f"{NOW_S - 300:x}-abc",
        f"{NOW_S + 60:x}-abc",
        "once",
        "",
        "-",
        "xyz-abc",
        "68000000",
        "-5-6",
    ],
)
def test_any_other_key_is_looked_up(key: str) -> None:
    assert not is_fresh(key, NOW_S)
