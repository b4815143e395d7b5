"""Which seeds a run has, and where those that fail are kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import fresh_seeds
from tests.simulation.runner import Result, kept_seeds

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "failed_seeds.txt"
    monkeypatch.setattr(fresh_seeds, "FAILED", file)
    return file


def first_of_a_new_run() -> int:
    code = "from tests.simulation.fresh_seeds import first_seed; print(first_seed())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_every_run_begins_with_another_seed() -> None:
    assert first_of_a_new_run() != first_of_a_new_run()


def test_all_processes_of_a_run_begin_with_one_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(fresh_seeds.FIRST)
    first = fresh_seeds.first_seed()
    assert fresh_seeds.first_seed() == first
    assert os.environ[fresh_seeds.FIRST] == str(first)


def test_a_given_seed_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fresh_seeds.FIRST, "7000000")
    assert fresh_seeds.first_seed() == 7_000_000


def test_a_seed_that_fails_is_kept_once_with_the_command_that_repeats_it(
    failures: Path,
) -> None:
    result = Result(7, "", 1, problem="a defect:\nKeyError(33)", kind="brokers")
    report = fresh_seeds.keep(result)
    assert fresh_seeds.keep(result) == report
    assert failures.read_text() == "7 brokers a defect: KeyError(33)\n"
    assert fresh_seeds.failed("brokers") == [7]
    assert fresh_seeds.failed("broker") == []
    assert "run it alone: .venv/bin/python -m tests.simulation 7 brokers" in report
    assert f"kept in {failures}" in report
    line = "7 a defect: KeyError(33)"
    assert f"once mended, add to brokers_seeds.txt: {line}" in report


@pytest.mark.parametrize("name", fresh_seeds.SEEDS.values())
def test_the_file_that_a_report_names_exists(name: str) -> None:
    assert kept_seeds(name)
