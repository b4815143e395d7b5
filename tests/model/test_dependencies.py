"""Dependencies as people write them, and what an end means for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.errors import UsageError
from grass.model.jobs.dependencies import MOST_DEPENDENCIES, NEEDS, After, met, read
from grass.model.jobs.lifecycle import ENDED, UNFINISHED, JobState

afters = st.builds(After, st.integers(1, 10**9), st.sampled_from(NEEDS))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["7"], ["7:succeeded"]),
        (["7:succeeded"], ["7:succeeded"]),
        (["7:failed"], ["7:failed"]),
        (["7:any"], ["7:any"]),
        (["7,9"], ["7:succeeded", "9:succeeded"]),
        (["7", "9:any"], ["7:succeeded", "9:any"]),
        ([" 7 , 9:any "], ["7:succeeded", "9:any"]),
        (["3-5:any"], ["3:any", "4:any", "5:any"]),
        (["last"], ["42:succeeded"]),
        (["last:failed"], ["42:failed"]),
        (["7", "7", "7:any"], ["7:succeeded", "7:any"]),
        ([], []),
    ],
)
def test_dependencies_are_read_as_people_write_them(
    texts: list[str], expected: list[str]
) -> None:
    assert [str(one) for one in read(texts, last_job=42)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "7,",
        "x",
        "all",
        "@project",
        "state:failed",
        "7:",
        "7:cancelled",
        "7:failed:any",
        "-7",
        "3-",
        "5-3",
        "7x",
        "name~a",
    ],
)
def test_what_names_no_job_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read([text], last_job=42)
    assert "\n" not in str(caught.value)


def test_the_last_job_must_exist() -> None:
    with pytest.raises(UsageError):
        read(["last"], last_job=0)


def test_too_many_are_refused_before_they_are_made() -> None:
    assert len(read([f"1-{MOST_DEPENDENCIES}"], 0)) == MOST_DEPENDENCIES
    for texts in (
        [f"1-{MOST_DEPENDENCIES + 1}"],
        ["1-999999999999"],
        [f"1-{MOST_DEPENDENCIES}", "0"],
    ):
        with pytest.raises(UsageError, match="at most"):
            read(texts, 0)


@given(st.lists(afters, unique=True))
def test_what_is_written_is_read_back(wanted: list[After]) -> None:
    assert read([str(one) for one in wanted], 0) == tuple(wanted)
    assert read([",".join(map(str, wanted))] if wanted else [], 0) == tuple(wanted)


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("state", JobState)
def test_only_an_end_decides_a_dependency(need: str, state: JobState) -> None:
    decided = met(need, state)
    if state in UNFINISHED:
        assert decided is None
    else:
        assert state in ENDED
        assert decided is (need == "any" or need == state.value)
