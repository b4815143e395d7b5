"""The backend of joblib: results in order, errors, and more than one process."""

import os
from math import sqrt

import joblib
import pytest

import grass.joblib
from tests.support.gpus import FakeGpus


def test_calls_run_in_other_processes_and_in_order() -> None:
    with joblib.parallel_config("grass", n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(sqrt)(n * n) for n in range(50))
        assert found == list(range(50))
        pids = joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(4))
    assert os.getpid() not in pids


def test_an_exception_is_raised_and_the_next_search_works() -> None:
    with joblib.parallel_config("grass", n_jobs=2):
        with pytest.raises(ValueError, match="math domain error"):
            joblib.Parallel()(joblib.delayed(sqrt)(-n) for n in range(10))
        assert joblib.Parallel()([joblib.delayed(sqrt)(9)]) == [3]


def test_each_batch_can_ask_for_something_else(gpus: FakeGpus) -> None:
    gpus.device(0)
    with joblib.parallel_config(
        "grass", n_jobs=2, request={"gpu": 0.5}, rpw={"gpu": 1, "cpu": 1}
    ):
        seen = joblib.Parallel()(
            joblib.delayed(os.getenv)("CUDA_VISIBLE_DEVICES") for _ in range(3)
        )
    assert seen == ["0"] * 3


def test_all_cores_are_counted_from_the_end() -> None:
    backend, cores = grass.joblib.TaskBackend(), len(os.sched_getaffinity(0))
    assert [backend.effective_n_jobs(n) for n in (None, 3, -1)] == [1, 3, cores]
    with pytest.raises(ValueError, match="no meaning"):
        backend.effective_n_jobs(0)
