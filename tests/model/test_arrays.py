"""Arrays as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.jobs.arrays import MOST_MEMBERS, limiter, read_array


@pytest.mark.parametrize(
    ("text", "indices", "at_most"),
    [
        ("1-4", [1, 2, 3, 4], None),
        ("0-90:30", [0, 30, 60, 90], None),
        ("0-95:30", [0, 30, 60, 90], None),
        ("1-3%2", [1, 2, 3], 2),
        ("5", [5], None),
        ("1,4,7-9", [1, 4, 7, 8, 9], None),
        ("7-9,1,8", [7, 8, 9, 1], None),
        (" 1 , 2 %1", [1, 2], 1),
        ("1-10:4,3%5", [1, 5, 9, 3], 5),
    ],
)
def test_arrays_are_read_as_people_write_them(
    text: str, indices: list[int], at_most: int | None
) -> None:
    assert read_array(text)[:2] == (indices, at_most)


@pytest.mark.parametrize(
    ("text", "step"),
    [("1-9:4", 4), ("1-3,5-9:2", 2), ("1-5:2,10-20:5%3", 2), ("2,4,6%2", 1)],
)
def test_the_first_step_is_that_of_the_array(text: str, step: int) -> None:
    assert read_array(text).step == step


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%2",
        "1-",
        "-3",
        "a",
        "1-3%",
        "1-3%0",
        "1-3%x",
        "1-3%-1",
        "5-1",
        "1-5:0",
        "1..3",
        "1,,2",
        "1-3%2%2",
        "1.5",
    ],
)
def test_what_is_no_array_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_array(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["0-100000", "1-999999999", "1-100000,0"])
def test_an_array_that_is_too_large_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(UsageError, match="at most"):
        read_array(text)
    assert len(read_array("1-100000").indices) == MOST_MEMBERS


@given(
    first=st.integers(0, 10_000),
    count=st.integers(1, 200),
    step=st.integers(1, 50),
    at_most=st.none() | st.integers(1, 1000),
)
def test_a_range_holds_every_step_up_to_its_end(
    first: int, count: int, step: int, at_most: int | None
) -> None:
    last = first + step * (count - 1)
    cap = "" if at_most is None else f"%{at_most}"
    array = read_array(f"{first}-{last}:{step}{cap}")
    assert array.indices == list(range(first, last + 1, step))
    assert array.at_most == at_most


@given(st.lists(st.integers(0, 999_999_999), min_size=1))
def test_a_list_keeps_its_order_and_names_each_index_once(indices: list[int]) -> None:
    text = ",".join(map(str, indices))
    assert read_array(text).indices == list(dict.fromkeys(indices))


def test_each_array_has_a_limiter_of_its_own() -> None:
    assert limiter(7) != limiter(8)
