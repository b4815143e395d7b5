"""What people write as a number, and what becomes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.amount_text import WHOLE, decimal_text
from grass.model.amounts import (
    LARGEST,
    amount_of_bytes,
    capacity_amount,
    decimal_number,
    request_amount,
    size_bytes,
)

amounts = st.integers(min_value=0, max_value=10**12)


def test_ten_times_a_tenth_is_exactly_one() -> None:
    assert sum(request_amount(0.1, "gpu") for _ in range(10)) == WHOLE


def test_a_request_is_rounded_up_and_a_capacity_down() -> None:
    assert request_amount(1 / 3, "gpu") == 3334
    assert capacity_amount(1 / 3, "gpu") == 3333


def test_the_smallest_wish_is_still_a_wish_and_zero_is_none() -> None:
    assert request_amount(1e-300, "gpu") == 1
    assert request_amount(0, "gpu") == 0
    assert request_amount(-0.0, "gpu") == 0


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("8G", 8 * WHOLE),
        ("8GiB", 8 * WHOLE),
        ("8gb", 8 * WHOLE),
        (" 8 G ", 8 * WHOLE),
        ("512M", WHOLE // 2),
        ("0.5T", 512 * WHOLE),
        ("1P", 2**20 * WHOLE),
        ("8", 8 * WHOLE),
        ("1K", 1),
    ],
)
def test_memory_may_be_written_as_a_size(text: str, amount: int) -> None:
    assert request_amount(text, "ram") == amount
    assert request_amount(text, "vram") == amount


def test_a_bare_number_of_memory_is_gibibytes() -> None:
    assert request_amount(8, "ram") == request_amount("8G", "ram")


@pytest.mark.parametrize(
    "value", ["8G", "1", True, False, None, [1], {}, float("nan"), float("inf"), 1e400]
)
def test_what_is_not_a_number_of_units_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="gpu must be a number"):
        request_amount(value, "gpu")


@pytest.mark.parametrize(
    "value", ["", "G", "8X", "eight", "NaN", "inf", "1e", "8G8", "8 8", "-"]
)
def test_what_is_not_a_size_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="ram must be a number or a size"):
        request_amount(value, "ram")


@pytest.mark.parametrize("value", [-1, -0.5, -(10**4000), -1e300])
def test_negative_amounts_are_refused(value: float) -> None:
    with pytest.raises(UsageError, match="cannot be negative"):
        request_amount(value, "gpu")


@pytest.mark.parametrize("value", [10**16, 10**4000, 1e300, 2**64])
def test_absurd_amounts_are_refused_in_a_short_line(value: float) -> None:
    with pytest.raises(UsageError, match="no machine has that much") as refused:
        capacity_amount(value, "gpu")
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize("text", ["1e999999G", "1e99999999999G", "9" * 300, "1e30T"])
def test_absurd_sizes_are_refused_and_cost_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        request_amount(text, "ram")


@given(amounts)
def test_what_is_written_reads_back_as_the_same_amount(amount: int) -> None:
    assert request_amount(float(decimal_text(amount)), "gpu") == amount
    assert capacity_amount(decimal_number(amount), "gpu") == amount


@given(st.floats(min_value=0, max_value=1e9, allow_nan=False))
def test_rounding_never_sells_what_is_not_there(value: float) -> None:
    has, asked = capacity_amount(value, "gpu"), request_amount(value, "gpu")
    assert has <= asked <= has + 1


@given(st.one_of(st.floats(), st.integers(), st.text(max_size=12)))
def test_any_value_gives_an_amount_or_a_usage_error(value: object) -> None:
    try:
        amount = request_amount(value, "ram")
    except UsageError:
        return
    assert 0 <= amount <= LARGEST


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (WHOLE, "1"), (5000, "0.5"), (234_375, "23.4375"), (1, "0.0001")],
)
def test_amounts_are_shown_the_way_people_write_them(amount: int, text: str) -> None:
    assert decimal_text(amount) == text


def test_bytes_found_on_a_machine_are_rounded_down() -> None:
    assert amount_of_bytes(2**30) == WHOLE
    assert amount_of_bytes(2**30 - 1) == WHOLE - 1


@pytest.mark.parametrize(
    ("text", "size"),
    [("500", 500), ("10G", 10 * 2**30), ("1.5k", 1536), ("8KiB", 8192), ("0", 0)],
)
def test_sizes_of_files_are_bytes(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "-1", "-1G", "x", "nan", "1e999999", "1e99999999G"]
)
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        size_bytes(text)


def test_a_size_beyond_every_disk_means_no_limit() -> None:
    assert size_bytes("9000000P") == 2**63 - 1
