"""`{gpu}` and its like: what is filled in, what is left alone, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.placeholders import check, fill, unit_names

VALUES = {"gpu": "0,1", "id": "7"}
ONE_GPU = (("gpu", 10_000),)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("--device {gpu}", "--device 0,1"),
        ("{id}/{gpu}.log", "7/0,1.log"),
        ("${gpu}", "${gpu}"),
        ("$X{gpu}", "$X0,1"),
        ("{gpus} {} { gpu } {GPU}", "{gpus} {} { gpu } {GPU}"),
        ('{"gpu": 1}', '{"gpu": 1}'),
        ("{{gpu}}", "{0,1}"),
        ("awk '{print $1}'", "awk '{print $1}'"),
        ("nothing", "nothing"),
    ],
)
def test_placeholders_are_filled_and_other_braces_left_alone(
    text: str, filled: str
) -> None:
    assert fill(text, VALUES) == filled


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    assert fill("{name}", {"name": "{gpu}", "gpu": "0"}) == "{gpu}"


@given(st.text(alphabet="{}$ gpuid", max_size=30))
def test_without_values_every_text_stays_as_it_is(text: str) -> None:
    assert fill(text, {}) == text


@pytest.mark.parametrize("text", ["{gpu}", "a{gpu}b", "$ {gpu}"])
def test_a_gpu_that_was_not_asked_for_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="asks for no gpu") as refused:
        check(["fine", text], (), ["gpu", "cpu"])
    assert "--require '{gpu:1}'" in refused.value.hint


@pytest.mark.parametrize("text", ["${gpu}", "{unknown}", "{id}", "{}", "gpu"])
def test_what_is_no_placeholder_is_not_refused(text: str) -> None:
    check([text], (), ["gpu", "cpu"])


def test_a_gpu_that_was_asked_for_is_fine() -> None:
    check(["{gpu}"], ONE_GPU, ["gpu"])


def test_units_are_joined_in_the_order_people_count() -> None:
    held = {"gpu": {"10": 1, "2": 1}, "cpu": {"0": 1}}
    assert unit_names(held) == {"gpu": "2,10", "cpu": "0"}
