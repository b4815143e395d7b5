"""How verbs name jobs."""

import pytest

from grass.errors import UsageError
from grass.model.jobs.lifecycle import JobState
from grass.model.selectors import LARGEST_ID, Selection, Selector, combine, read


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("7", Selector(ids=(7, 7))),
        ("3-9", Selector(ids=(3, 9))),
        ("last", Selector(last=True)),
        ("all", Selector(unfinished=True)),
        ("@thesis", Selector(project="thesis")),
        ("name~^train_\\d+", Selector(name="^train_\\d+")),
        ("name~", Selector(name="")),
        ("state:failed", Selector(state=JobState.FAILED)),
        ("queue:q1", Selector(queue="q1")),
    ],
)
def test_each_form_is_understood(text: str, selector: Selector) -> None:
    assert read(text) == selector


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "@",
        "queue:",
        "-3",
        "3-",
        "9-3",
        "1.5",
        "7 ",
        "7\n",
        "ALL",
        "0x7",
    ],
)
def test_what_is_no_selector_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(text)
    assert refused.value.hint


@pytest.mark.parametrize("text", [str(LARGEST_ID + 1), f"1-{'9' * 16}", "9" * 30])
def test_ids_beyond_all_bounds_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read(text)


def test_a_broken_pattern_is_refused_with_what_is_wrong() -> None:
    with pytest.raises(UsageError, match="missing \\]"):
        read("name~[a")


def test_an_unknown_state_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no state `done`") as refused:
        read("state:done")
    assert "succeeded" in refused.value.hint


def test_a_selector_that_is_not_text_is_refused() -> None:
    with pytest.raises(UsageError, match="not UTF-8"):
        read("@caf\udce9")


def test_selectors_are_grouped_by_their_kind() -> None:
    words = ["state:failed", "7", "@a", "all", "3-9", "7", "@b"]
    ids, seven, a, b = read("3-9"), read("7"), read("@a"), read("@b")
    states = (read("state:failed"), read("all"))
    assert combine(map(read, words)) == Selection(((seven, ids), states, (a, b)))


def test_last_applies_after_the_others() -> None:
    assert combine([read("last")]) == Selection(newest=True)
    both = combine([read("last"), read("@a")])
    assert both == Selection(((read("@a"),),), newest=True)


def test_a_union_is_one_group() -> None:
    words = (read("@a"), read("last"), read("7"))
    assert combine(words, union=True) == Selection((words,))
