"""How verbs name jobs."""

import pytest

from grass.errors import UsageError
from grass.model.jobs.lifecycle import JobState
from grass.model.selectors import LARGEST_ID, Selection, read


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("7", Selection(ids=(7, 7))),
        ("3-9", Selection(ids=(3, 9))),
        ("last", Selection(last=True)),
        ("all", Selection(unfinished=True)),
        ("@thesis", Selection(project="thesis")),
        ("name~^train_\\d+", Selection(name="^train_\\d+")),
        ("name~", Selection(name="")),
        ("state:failed", Selection(state=JobState.FAILED)),
        ("queue:q1", Selection(queue="q1")),
    ],
)
def test_each_form_is_understood(text: str, selection: Selection) -> None:
    assert read(text) == selection


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
