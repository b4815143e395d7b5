"""JSON5 that people type: what is read, and where errors point."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.json5 import DEEPEST, LARGEST_TEXT, read_object


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as refused:
        read_object(text, "--require")
    return str(refused.value)


def column_of_caret(message: str) -> int:
    return message.splitlines()[-1].index("^") - 1


def test_comments_bare_words_and_trailing_commas_are_fine() -> None:
    text = "{ // one\n gpu: .5, /* two */ 'ram': \"8G\", }"
    assert read_object(text, "--require") == {"gpu": 0.5, "ram": "8G"}


def test_an_error_names_line_and_column_and_draws_a_caret() -> None:
    message = refusal("{gpu:1,\n  ram:oops}")
    assert message.startswith("--require, line 2, column 7: ")
    assert message.splitlines()[1] == "    ram:oops}"
    assert column_of_caret(message) == 7


def test_what_follows_the_object_is_pointed_at() -> None:
    message = refusal("{gpu:1} x")
    assert "something follows the closing brace" in message
    assert column_of_caret(message) == 8


def test_a_key_given_twice_is_an_error_at_the_second() -> None:
    message = refusal("{gpu:1, gpu:2}")
    assert "`gpu` is given twice" in message
    assert column_of_caret(message) == 9


@pytest.mark.parametrize(
    "text", ["{gpu:1,'gpu':2}", '{"gpu":1,"\\u0067pu":2}', "{a:{gpu:1,gpu:2}}"]
)
def test_a_key_given_twice_is_seen_however_it_is_spelled(text: str) -> None:
    assert "`gpu` is given twice" in refusal(text)


@pytest.mark.parametrize(
    "text",
    ["{a:{gpu:1},b:{gpu:2}}", "{a:'gpu:1',gpu:'a'}", "{a:[1,2],b:['a','a']}"],
)
def test_the_same_word_in_another_place_is_no_repetition(text: str) -> None:
    read_object(text, "--require")


@pytest.mark.parametrize(
    "text", ["", "   ", "{", "{gpu:1", "{gpu:1,,}", "{gpu}", "{:1}"]
)
def test_what_is_cut_short_is_refused_with_a_caret(text: str) -> None:
    assert refusal(text).splitlines()[-1].endswith("^")


@pytest.mark.parametrize("text", ["[1]", "7", "null", "'gpu'"])
def test_only_an_object_will_do(text: str) -> None:
    assert "must be an object" in refusal(text)


def test_depth_is_limited() -> None:
    deep = "{a:" * (DEEPEST + 5) + "1" + "}" * (DEEPEST + 5)
    assert f"nested deeper than {DEEPEST}" in refusal(deep)


def test_size_is_limited() -> None:
    assert "longer than" in refusal("{a:'" + "x" * LARGEST_TEXT + "'}")


def test_a_long_line_is_cut_around_the_caret() -> None:
    message = refusal("{" + "a" * 500 + ":1, b:oops}")
    assert max(map(len, message.splitlines()[1:])) <= 80
    _, shown, caret = message.splitlines()
    assert shown[caret.index("^")] in "oops:"


@given(st.text(alphabet="{}[]:,'\"\\/*a1.-\n \u2028\ud800", max_size=30))
def test_any_text_is_read_or_refused_in_plain_words(text: str) -> None:
    try:
        value: object = read_object(text, "--require")
    except UsageError as refused:
        value = {"refused": refused.message.removeprefix("--require")}
    assert isinstance(value, dict)
    assert value.get("refused") != ""
