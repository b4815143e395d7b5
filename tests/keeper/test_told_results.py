"""What a task leaves without a file: a small result, and output that is empty."""

from __future__ import annotations

import base64
import os
import sys
import threading
from pathlib import Path
from typing import Any

from grass.tasks.children.packed_frames import unpack_result

from .conversation import Daemon, Entry
from .successors import Make, exit_of, replaced
from .tasks import begin, result, run

TOLD = {"most_told": 200}


def pid() -> int:
    return os.getpid()


def say(words: str) -> None:
    sys.stdout.write(words)


def say_and_wait(path: str) -> str:
    sys.stdout.write("waits")
    Path(path).read_bytes()
    return "done"


def leave_a_thread() -> str:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return "with a thread"


def told(exited: Entry) -> Any:
    return unpack_result(base64.b64decode(exited["result"]))[1]


def file_of(daemon: Daemon, id: str) -> Path:
    return daemon.directory / "output" / f"{id}.result"


def test_a_small_result_comes_with_the_exit_and_a_large_one_is_a_file(
    daemon: Daemon,
) -> None:
    exited = run(daemon, "a", pid, of_task=TOLD)
    assert told(exited) > 0
    assert not file_of(daemon, "a").exists()
    large = run(daemon, "b", bytes, 1000, of_task=TOLD)
    assert (large["result"], result(daemon, "b")) == ("", bytes(1000))


def test_a_runner_that_does_not_answer_leaves_a_file(daemon: Daemon) -> None:
    exited = run(daemon, "a", leave_a_thread, of_task=TOLD)
    assert (exited["code"], exited["result"]) == (0, "")
    assert result(daemon, "a") == "with a thread"


def test_a_result_is_there_when_the_keeper_dies_before_the_task(
    daemon: Daemon, make_daemon: Make, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    run(daemon, "a", pid, of_task=TOLD)
    told = {"of_task": TOLD, "own_output": True}
    begin(daemon, "b", say_and_wait, str(tmp_path / "go"), **told)
    daemon.expect("started", "b")
    successor = replaced(daemon, make_daemon)
    (tmp_path / "go").write_text("x")
    assert exit_of(successor, "b")["result"] == ""
    assert result(successor, "b") == "done"
    assert successor.output("b").read_text() == "waits"


def test_output_has_a_name_once_something_is_written(daemon: Daemon) -> None:
    run(daemon, "a", pid, own_output=True)
    assert run(daemon, "b", pid, own_output=True)["output_bytes"] == 0
    assert not daemon.output("b").exists()
    assert run(daemon, "c", say, "hello", own_output=True)["output_bytes"] == 5
    assert daemon.output("c").read_text() == "hello"
    run(daemon, "d", say, "again", own_output=True)
    assert daemon.output("d").read_text() == "again"
    assert daemon.output("c").read_text() == "hello"


def test_output_of_a_task_that_runs_on_has_a_name(
    daemon: Daemon, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    run(daemon, "a", pid, own_output=True)
    begin(daemon, "b", say_and_wait, str(tmp_path / "go"), own_output=True)
    daemon.wait_for_output("b", "waits")
    (tmp_path / "go").write_text("x")
    assert daemon.expect("exited", "b")["output_bytes"] == 5
