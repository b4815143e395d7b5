"""Parameters: which names they may have, and where a program finds them."""

import sys

import pytest

from grass.errors import UsageError
from grass.model.jobs.arrays import MOST_MEMBERS
from grass.model.jobs.job import Common, Job, new_job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.params import MOST_NAMES, check_kinds, positions, rows, variable
from grass.model.jobs.task_call import Arguments

COMMON = Common(1, ("x",), False, "fit-{index}-{lr}-{id}-{gpu}", "p", "me", "q", 0, 0)


def test_a_row_gives_each_name_its_value() -> None:
    assert rows(["lr", "bs"], [["0.1", "8"], ["", "a b"]]) == [
        {"lr": "0.1", "bs": "8"},
        {"lr": "", "bs": "a b"},
    ]
    assert rows(positions(2), [["a", "b"]]) == [{"1": "a", "2": "b"}]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "0 parameters"),
        (["x"] * (MOST_NAMES + 1), "201 parameters"),
        (["2", "1"], "cannot name"),
        (["1", "3"], "cannot name"),
        ([""], "cannot name"),
        (["a b"], "cannot name"),
        (["a\n"], "cannot name"),
        (["id"], "cannot have the name `id`"),
        (["index"], "cannot have the name `index`"),
        (["lr", "LR"], "same name"),
        (["a.b", "a_b"], "same name"),
    ],
)
def test_names_that_mean_nothing_or_something_else_are_refused(
    names: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        rows(names, [["x"] * len(names)])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "no values"),
        ([["a", "b"], ["a"]], "row 2 has 1 values, not 2"),
        ([["a", "b\0"]], "NUL"),
        ([["a", "b"]] * (MOST_MEMBERS + 1), "100,001 jobs"),
    ],
)
def test_rows_that_do_not_fit_are_refused(values: list[list[str]], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        rows(["x", "y"], values)


def test_a_parameter_is_not_named_like_a_kind() -> None:
    check_kinds(["lr"], ["gpu"])
    with pytest.raises(UsageError, match="cannot have the name `gpu`"):
        check_kinds(["lr", "gpu"], ["cpu", "gpu"])


@pytest.mark.parametrize(
    ("name", "found_in"),
    [("1", "GRASS_PARAM_1"), ("lr", "GRASS_PARAM_LR"), ("a.b-c", "GRASS_PARAM_A_B_C")],
)
def test_a_program_finds_a_parameter_in_its_environment(
    name: str, found_in: str
) -> None:
    assert variable(name) == found_in


def test_each_job_fills_the_name_that_it_shares_with_others() -> None:
    job = new_job(7, COMMON, JobState.QUEUED, 3, {"lr": "0.1"})
    assert job.name == "fit-3-0.1-7-{gpu}"
    assert new_job(8, COMMON, JobState.QUEUED, None, None).name == COMMON.name.replace(
        "{id}", "8"
    )


def test_a_job_without_parameters_is_no_larger_for_those_that_have_some() -> None:
    plain = new_job(1, COMMON, JobState.QUEUED, 1, None)
    fields = len(Job.__struct_fields__)
    assert "params" not in Job.__struct_fields__
    assert sys.getsizeof(plain) == sys.getsizeof(object()) + 8 * fields
    assert plain.params == {}


def test_only_a_task_has_room_for_arguments() -> None:
    plain = new_job(1, COMMON, JobState.QUEUED, 1, None)
    task = new_job(1, COMMON, JobState.QUEUED, 1, None, Arguments(b"x"))
    assert (plain.arguments, plain.arguments_blob) == (b"", "")
    assert (task.arguments, task.arguments_blob) == (b"x", "")
    assert sys.getsizeof(task) == sys.getsizeof(plain) + 16
