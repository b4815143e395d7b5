"""The record of a job: what a request can give reaches the spec and the worker."""

from typing import Any

import pytest

from grass.errors import UsageError
from grass.link.messages import Start
from grass.model.jobs.job import Common
from grass.model.jobs.spec import (
    EDITABLE,
    JOB_READERS,
    JobPatch,
    RunOptions,
    Spec,
    changed,
    given,
    job_fields,
    run_options,
)

ONE_CORE = (("cpu", 10_000),)
PLAIN = Spec(request=ONE_CORE)


def test_every_field_of_a_patch_has_a_place() -> None:
    kept = {*Spec.__struct_fields__, *Common.__struct_fields__}
    assert set(JobPatch.__struct_fields__) - kept == {"request_also", "hold"}


def test_every_option_of_a_run_can_be_given_and_reaches_the_worker() -> None:
    options = set(RunOptions.__struct_fields__)
    assert options <= set(JobPatch.__struct_fields__)
    assert options <= set(Start.__struct_fields__)
    assert run_options(Spec(request=ONE_CORE, nice=3))["nice"] == 3


def test_every_reader_reads_a_field_of_a_patch() -> None:
    read = {reader.field or name for name, reader in JOB_READERS.items()}
    assert read <= set(JobPatch.__struct_fields__)
    assert set(EDITABLE) <= {*JOB_READERS, *JobPatch.__struct_fields__}


def test_a_patch_changes_only_what_it_gives() -> None:
    assert changed(PLAIN, JobPatch()) is PLAIN
    spec = changed(PLAIN, JobPatch(nice=3, name="x", queue="q"))
    assert spec == Spec(request=ONE_CORE, nice=3)


def test_variables_are_added_to_those_of_the_spec() -> None:
    spec = changed(PLAIN, JobPatch(env=(("A", "1"),)))
    assert changed(spec, JobPatch(env=(("B", "2"),))).env == (("A", "1"), ("B", "2"))


def test_single_amounts_leave_the_others() -> None:
    spec = changed(PLAIN, JobPatch(request_also={"gpu": 5000}))
    assert spec.request == (("cpu", 10_000), ("gpu", 5000))
    assert changed(spec, JobPatch(request_also={"cpu": 0})).request == (("gpu", 5000),)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"require": "{gpu:0.5, vram:'auto'}"}, ((("gpu", 5000),), True)),
        ({"require": {"vram": "auto"}}, ((), True)),
        ({"require": "{gpu:1}"}, ((("gpu", 10_000),), False)),
        ({"require_also": {"vram": "auto"}}, (ONE_CORE, True)),
    ],
)
def test_memory_to_look_up_is_no_amount(asked: Any, found: Any) -> None:
    spec = changed(PLAIN, JobPatch(**job_fields(asked, last_job=0)))
    assert (spec.request, spec.auto_vram) == found


def test_an_amount_of_memory_replaces_one_to_look_up() -> None:
    auto = changed(PLAIN, JobPatch(**job_fields({"require": "{vram:'auto'}"}, 0)))
    fixed = changed(auto, JobPatch(**job_fields({"require_also": {"vram": "8G"}}, 0)))
    assert (fixed.request, fixed.auto_vram) == ((("vram", 80_000),), False)
    again = changed(
        fixed, JobPatch(**job_fields({"require_also": {"vram": "auto"}}, 0))
    )
    assert (again.request, again.auto_vram) == ((), True)
    whole = changed(again, JobPatch(**job_fields({"require": "{gpu:1}"}, 0)))
    assert (whole.request, whole.auto_vram) == ((("gpu", 10_000),), False)


def test_texts_are_read_as_the_spec_has_them() -> None:
    asked = {
        "require": "{gpu:0.5}",
        "max_output": "1K",
        "begin_at": "1970-01-01T00:00:01Z",
        "after": ["last:any", "3,4"],
        "labels": ["b", "a", "b"],
        "env": {"A": "1"},
        "retry_on": [1, "signal"],
    }
    assert given(JobPatch(**job_fields(asked, last_job=9))) == {
        "request": (("gpu", 5000),),
        "max_output": 1024,
        "begin_at": 1_000_000,
        "after": (("any", 9, 9), ("succeeded", 3, 4)),
        "labels": ("a", "b"),
        "env": (("A", "1"),),
        "retry_on": ("1", "signal"),
        "threads": None,
    }


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"priority": 1_000_001}, "priority 1000001 is out of range"),
        ({"project": "a b"}, "project name `a b` is not allowed"),
        ({"env": {"A=": "1"}}, "cannot be an environment variable"),
        ({"output": "log"}, "--output `log` is not an absolute path"),
    ],
)
def test_what_is_out_of_range_is_refused(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        job_fields(asked, last_job=0)
