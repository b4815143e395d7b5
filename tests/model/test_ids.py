"""Attempt ids, idempotency keys and their age, codes of errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import ProtocolError, error_classes
from grass.model.ids import AttemptId, attempt_id, is_fresh

CLUSTER = "0123456789abcdef"
NOW_S = 0x68000000


@given(st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1))
def test_an_attempt_reads_back_from_its_name(job: int, number: int) -> None:
    identity = AttemptId(CLUSTER, job, number)
    assert attempt_id(str(identity)) == identity


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7.1",
        f"{CLUSTER}.7",
        f"{CLUSTER}.7.1.2",
        f"{CLUSTER}.-7.1",
        f"{CLUSTER}.7.1\n",
        f"{CLUSTER.upper()}.7.1",
        f"{CLUSTER}.{'9' * 19}.1",
        f"{CLUSTER}.7.{'9' * 19}",
        f"{CLUSTER}.07.1",
        f"{CLUSTER}.7.01",
        f"{CLUSTER}.\u0667.1",
        "x" * 10_000,
    ],
)
def test_what_is_no_attempt_is_refused_in_a_short_line(text: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        attempt_id(text)
    assert len(str(refused.value)) < 100


def test_two_clusters_never_share_an_attempt() -> None:
    assert AttemptId(CLUSTER, 7, 1) != AttemptId(CLUSTER[::-1], 7, 1)


def test_every_error_has_a_code_of_its_own() -> None:
    classes = error_classes()
    assert {"usage", "not-found", "refused", "never-fits", "storage"} <= set(classes)
    assert all(classes[code].code == code for code in classes)


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
