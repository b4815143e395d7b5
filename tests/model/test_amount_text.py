"""Amounts as people read them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grass.model.amount_text import WHOLE, amount_text, amount_texts
from grass.model.amounts import LARGEST, capacity_amount, request_amount

sizes = st.integers(min_value=0, max_value=LARGEST)


@pytest.mark.parametrize(
    "text",
    ["0", "1M", "1.5M", "100M", "500M", "2.75G", "3.5G", "23.5G", "503.6G", "8T", "2P"],
)
def test_a_size_is_written_as_it_was_asked_for(text: str) -> None:
    assert amount_text(request_amount(text, "ram"), "ram") == text
    assert amount_text(request_amount(text, "vram"), "vram") == text


@pytest.mark.parametrize(
    ("asked", "text"),
    [("0.5G", "512M"), ("1024M", "1G"), ("23.4375G", "23.4G"), ("1023.99G", "1T")],
)
def test_a_size_is_written_in_few_digits(asked: str, text: str) -> None:
    assert amount_text(capacity_amount(asked, "ram"), "ram") == text


def test_other_kinds_are_numbers() -> None:
    assert amount_text(5_000, "gpu") == "0.5"
    assert amount_text(3_334, "gpu") == "0.3334"
    assert amount_texts("cpu", 10_000, 0) == ["1", "0"]


@given(sizes, sizes)
@example(2 * 1024**2 * WHOLE, 2 * 1024**2 * WHOLE + 1)
@example(LARGEST, LARGEST - 1)
def test_sizes_that_differ_are_written_differently(one: int, other: int) -> None:
    first, second = amount_texts("ram", one, other)
    assert (first == second) == (one == other)


def test_digits_are_added_only_where_they_are_needed() -> None:
    assert amount_texts("ram", 234_400, 234_375) == ["23.44G", "23.438G"]
    assert amount_texts("ram", 250_000, 234_375) == ["25G", "23.4G"]
    petabytes = 2 * 1024**2 * WHOLE
    assert amount_texts("ram", petabytes, petabytes + 1) == [
        "2097152G",
        "2097152.0001G",
    ]
