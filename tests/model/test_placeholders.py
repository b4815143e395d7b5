"""`{gpu}` and its like: what is filled in, what is left alone, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.jobs.placeholders import (
    check,
    check_quoted,
    fill,
    fill_command,
    unit_names,
    values_of,
)

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


PAIR = {"1": "0.1", "2": "a b"}


@pytest.mark.parametrize(
    ("words", "filled"),
    [
        (["x", "{1}", "{2}"], ["x", "0.1", "a b"]),
        (["x", "{}"], ["x", "0.1", "a b"]),
        (["x", "all:{}"], ["x", "all:0.1 a b"]),
        (["x", "{3}", "[0-9]{4}", "${1}"], ["x", "{3}", "[0-9]{4}", "${1}"]),
        (["x", "{index}-{name}"], ["x", "3-fit 3"]),
    ],
)
def test_values_stay_the_words_that_they_are(
    words: list[str], filled: list[str]
) -> None:
    assert fill_command(words, values(PAIR), PAIR, shell=False) == filled


@pytest.mark.parametrize(
    ("line", "filled"),
    [
        ("echo {1} {2}", "echo 0.1 'a b'"),
        ("echo {}", "echo 0.1 'a b'"),
        ("echo {name} {index} {gpu}", "echo 'fit 3' 3 0,1"),
        ("echo {3} ${1}", "echo {3} ${1}"),
    ],
)
def test_values_in_a_shell_line_are_quoted(line: str, filled: str) -> None:
    assert fill_command(["A={2}", line], values(PAIR), PAIR, shell=True) == [
        "A=a b",
        filled,
    ]


def test_braces_without_parameters_are_left_alone() -> None:
    words = ["find", "-exec", "rm", "{}", "{1}", "{lr}"]
    assert fill_command(words, values({}), {}, shell=False) == words
    named = {"lr": "0.1"}
    filled = fill_command(words, values(named), named, shell=False)
    assert filled == [*words[:-1], "0.1"]


@pytest.mark.parametrize("line", ['echo "{2}"', "echo '{2}'", "a 'b {}", 'x "a\\"{2}"'])
def test_a_value_that_would_end_the_quotes_of_a_line_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="stands in quotes, and its value 'a b'"):
        check_quoted(line, PAIR)


@pytest.mark.parametrize(
    "line", ["echo {2}", "echo '{1}' {2}", '"x" {2} "y"', "\\'{2}", "'{3} {gpu}'"]
)
def test_a_value_outside_of_quotes_or_without_need_of_them_is_fine(line: str) -> None:
    check_quoted(line, PAIR)


def values(params: dict[str, str]) -> dict[str, str]:
    return values_of(
        id=7,
        name="fit 3",
        project="p",
        index=3,
        params=params,
        allocation={"gpu": {"0": 1, "1": 1}},
    )
