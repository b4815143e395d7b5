"""A home whose jobs run gets a lost `worker-id` back, and a copy of it does not."""

import os
import shutil
from pathlib import Path

import pytest

from grass.config import Home
from grass.daemon import worker_setup
from grass.daemon.worker_setup import worker_id
from grass.keeper.protocol import HelloEntry, Notes, StateEntry


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / "home"))
    made.make()
    return made


@pytest.fixture(autouse=True)
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[StateEntry]:
    """Have a keeper with a running attempt; a test may take it away."""
    blank = dict.fromkeys(StateEntry._fields)
    fields = {**blank, "e": "state", "id": "a.1.1", "state": "running"}
    found = [StateEntry(**{**fields, "meta": Notes({})})]  # type: ignore[arg-type]
    keeper = HelloEntry(5, 7, "boot", {}, None, found)
    monkeypatch.setattr(worker_setup, "state_of", lambda folder: keeper)
    return found


def test_a_lost_id_is_the_same_again(home: Home) -> None:
    made = worker_id(home)
    os.unlink(home.worker_id)
    assert worker_id(home) == made


def test_without_jobs_a_removed_id_is_a_wish(
    home: Home, attempts: list[StateEntry]
) -> None:
    made = worker_id(home)
    attempts.clear()
    os.unlink(home.worker_id)
    assert worker_id(home) != made


def test_a_copy_whose_id_was_removed_is_another_worker(
    home: Home, tmp_path: Path
) -> None:
    made = worker_id(home)
    copy = Home(str(tmp_path / "copy"))
    shutil.copytree(home.folder, copy.folder)
    assert worker_id(copy) == made
    os.unlink(copy.worker_id)
    assert worker_id(copy) != made


def test_after_another_boot_nothing_of_it_runs(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = worker_id(home)
    os.unlink(home.worker_id)
    monkeypatch.setattr(worker_setup, "boot_id", lambda: "another")
    assert worker_id(home) != made


def test_each_boot_is_noted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made = worker_id(home)
    monkeypatch.setattr(worker_setup, "boot_id", lambda: "another")
    assert worker_id(home) == made
    os.unlink(home.worker_id)
    assert worker_id(home) == made


def test_a_note_that_is_damaged_counts_for_nothing(home: Home) -> None:
    worker_id(home)
    os.unlink(home.worker_id)
    Path(home.keeper, worker_setup.ID_NOTE).write_text("odd\n")
    assert len(worker_id(home)) == len("0123456789abcdef")


def test_a_home_from_before_there_were_notes_gets_one(home: Home) -> None:
    made = worker_id(home)
    os.unlink(Path(home.keeper, worker_setup.ID_NOTE))
    assert worker_id(home) == made
    os.unlink(home.worker_id)
    assert worker_id(home) == made


def test_a_copy_of_a_home_from_before_there_were_notes_never_has_its_id(
    home: Home, tmp_path: Path
) -> None:
    made = worker_id(home)
    os.unlink(Path(home.keeper, worker_setup.ID_NOTE))
    copy = Home(str(tmp_path / "copy"))
    shutil.copytree(home.folder, copy.folder)
    for _ in range(2):
        assert worker_id(copy) == made
    os.unlink(copy.worker_id)
    assert worker_id(copy) != made
