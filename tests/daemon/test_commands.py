"""Every command, as a person uses it."""

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GRASS, GrassHome
from tests.support.processes import await_end, kill

pytestmark = pytest.mark.daemon

JOB_FIELDS = {
    *("id", "name", "project", "owner", "queue", "state", "flags", "command"),
    *("request", "allocation", "worker", "pid", "exit_code", "signal", "reason"),
    *("priority", "cwd", "created_at", "started_at", "finished_at", "attempts"),
    "output",
}
ATTEMPT_FIELDS = {"number", "started_at", "finished_at", "pid", "exit_code", "output"}


def test_a_command_explains_itself_without_a_daemon(cold: GrassHome) -> None:
    assert "grass show" in cold.ok("show", "--help")
    assert cold.daemon_pid() is None


def test_machine_output_is_one_json_document(shared: GrassHome) -> None:
    for words in (
        ["start", "--json"],
        ["show", "--json"],
        ["create-queue", "q1", "--format", "json"],
        ["delete-queue", "q1", "--json"],
        ["enqueue", "--format", "json", "--", "true"],
        ["wait", "last", "--json"],
        ["cancel", "all", "--json"],
        ["pause", "--json"],
        ["resume", "--json"],
        ["prune", "--json"],
        ["restart", "--json"],
        ["stop", "--json"],
    ):
        printed = shared.ok(*words)
        assert isinstance(json.loads(printed), dict), words
        assert printed.count("\n") == 1, words
    shared.ok("start")


def test_show_gives_every_field_of_a_job(
    shared: GrassHome, gate: Fifo, news: Fifo
) -> None:
    shared.client.prune(0)
    shared.ok("create-queue", "q", "--json", "{gpu:1}")
    id = shared.enqueue("q", "-g", "0.5", f"echo x > {news}; read x < {gate}; exit 3")
    news.hear()
    shown = json.loads(shared.ok("show", "--json"))
    assert set(shown) >= {"daemon", "workers", "queues", "jobs"}
    assert set(shown["daemon"]) >= {"pid", "version", "started_at"}
    [job] = shown["jobs"]
    assert set(job) >= JOB_FIELDS
    assert set(job["attempts"][0]) >= ATTEMPT_FIELDS
    assert job["allocation"]["gpu"] == {"0": 0.5}
    assert job["owner"] == f"uid:{os.getuid()}"
    gate.tell()
    ended = shared.wait(id)
    assert (ended["state"], ended["exit_code"], ended["signal"]) == ("failed", 3, None)
    expected = f"output/default/{ended['name']}/{id}/1.log"
    assert ended["output"] == str(shared.folder / expected)


def test_show_narrows_to_a_queue_and_widens_to_all(shared: GrassHome) -> None:
    shared.client.prune(0)
    shared.ok("create-queue", "q")
    shared.client.enqueue_many(["true"] * 30)
    other = shared.enqueue("q", "--name", "other", "--", "true")
    shared.wait(*range(other - 30, other + 1))
    assert len(json.loads(shared.ok("show", "--json"))["jobs"]) < 31
    assert len(json.loads(shared.ok("show", "--all", "--json"))["jobs"]) == 31
    [only] = json.loads(shared.ok("show", "q", "--all", "--json"))["jobs"]
    assert only["id"] == other
    assert "other" in shared.ok("show", "q")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal of 80 columns: our end and the command's."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_a_job_gives_a_terminal_no_orders(
    shared: GrassHome, terminal: tuple[int, int]
) -> None:
    orders = r"printf 'a\033]52;c;cm0=\007\033[2J\033[32mb\033[0m\n'"
    ours, theirs = terminal
    job = shared.enqueue("--", orders)
    shared.wait(job)
    for words in (["logs", str(job)], ["run", "--quiet", "--", orders]):
        subprocess.run(
            [*GRASS, *words], stdout=theirs, env=shared.environment, check=True
        )
        assert os.read(ours, 65536) == b"a\x1b[32mb\x1b[0m\r\n"
    written = b"a\x1b]52;c;cm0=\x07\x1b[2J\x1b[32mb\x1b[0m\n"
    raw = [*GRASS, "logs", "--raw", str(job)]
    subprocess.run(raw, stdout=theirs, env=shared.environment, check=True)
    assert os.read(ours, 65536) == written.replace(b"\n", b"\r\n")
    piped = subprocess.run(
        [*GRASS, "logs", str(job)],
        env=shared.environment,
        check=True,
        capture_output=True,
    )
    assert piped.stdout == written


def test_tables_fit_a_terminal_of_80_columns(
    shared: GrassHome, terminal: tuple[int, int]
) -> None:
    shared.ok("create-queue", "a-queue-with-a-rather-long-name", "--json", "{gpu:64}")
    first = shared.enqueue("--name", "n" * 60, "--", "echo", "x" * 300)
    second = shared.enqueue("--name", "名前" * 20, "--", "sh", "-c", "exit 3")
    shared.wait(first, second)
    ours, theirs = terminal
    subprocess.run(
        [*GRASS, "show"],
        stdout=theirs,
        env={**shared.environment, "NO_COLOR": "1"},
        check=True,
    )
    lines = os.read(ours, 65536).decode().splitlines()
    assert max(map(_cells, lines)) <= 80
    [row] = [line for line in lines if "nnn" in line]
    assert row.startswith(f"{first} ")
    assert "succeeded" in row


def _cells(line: str) -> int:
    return sum(2 if letter >= "名" or letter == "前" else 1 for letter in line)


@pytest.mark.parametrize(
    ("line", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
def test_wait_exits_as_the_job_did(shared: GrassHome, line: str, code: int) -> None:
    id = shared.enqueue(f"true; {line}")
    assert shared.run("wait", str(id)).returncode == code
    assert shared.run("wait", "last").returncode == code


def test_wait_for_several_is_0_only_if_all_succeeded(shared: GrassHome) -> None:
    first, second = shared.enqueue("--", "true"), shared.enqueue("exit 7")
    assert shared.run("wait", f"{first}-{second}").returncode == 1
    assert shared.run("wait", str(first), str(first)).returncode == 0
    assert shared.run("wait", "all").returncode == 0


def test_wait_for_all_counts_how_those_end_that_have_not_yet(home: GrassHome) -> None:
    home.client.enqueue_many(["exit 7"])
    home.run("wait", "1")
    home.ok("pause")
    home.client.enqueue_many(["true", "true"])
    late = home.run("wait", "--timeout", "0.1s", "all")
    assert late.returncode == 7
    assert "2 of 2 jobs are unfinished" in late.stderr
    home.ok("resume")
    assert home.run("wait", "all").returncode == 0
    home.ok("pause")
    home.client.enqueue_many(["true", "exit 7"])
    daemon = home.client.overview()["daemon"]
    body = {"up_to": daemon["last_job"], "after": daemon["last_event"]}
    home.ok("resume")
    found = home.client.once("POST", "/jobs/wait-all", body, may_last=True)
    assert found == {"ends": {"succeeded": 1, "failed": 1}}


def test_a_job_that_could_not_start_is_not_one_that_exits_127(
    shared: GrassHome,
) -> None:
    missing = shared.enqueue("--", "no-such-program")
    own = shared.enqueue("no-such-program 2>/dev/null")
    job = shared.wait(missing)
    assert (job["state"], job["exit_code"]) == ("failed", None)
    assert "could not start" in job["reason"]
    assert shared.run("wait", str(missing)).returncode == 125
    assert shared.run("wait", str(own)).returncode == 127


def test_a_directory_that_is_gone_by_then_is_told(shared: GrassHome) -> None:
    folder = shared.desk / "gone"
    folder.mkdir()
    shared.ok("pause")
    id = shared.enqueue("--cwd", str(folder), "--", "true")
    folder.rmdir()
    shared.ok("resume")
    job = shared.wait(id)
    assert job["state"] == "failed"
    assert str(folder) in job["reason"]


def test_cancel_ends_the_whole_tree(shared: GrassHome, news: Fifo) -> None:
    line = (
        f"setsid sh -c 'trap \"\" TERM; echo $$ > {news}; exec sleep 1000' & "
        f"(sleep 1000 & echo $! > {news}); echo $$ > {news}; wait"
    )
    id = shared.enqueue(line)
    pids = [int(news.hear()) for _ in range(3)]
    assert "cancelled 1 job" in shared.ok("cancel", "--grace", "0.2s", str(id))
    for pid in pids:
        await_end(pid)
    job = shared.client.job(id)
    assert job["state"] == "cancelled"
    assert shared.run("wait", str(id)).returncode == 125


def test_a_job_may_clean_up_within_its_grace(shared: GrassHome, news: Fifo) -> None:
    line = f"trap 'echo bye; exit 4' TERM; echo x > {news}; sleep 1000 & wait"
    id = shared.enqueue(line)
    news.hear()
    shared.ok("cancel", str(id))
    job = shared.client.job(id)
    assert (job["state"], job["exit_code"]) == ("cancelled", 4)
    assert shared.logs(id) == "bye\n"


def test_what_a_job_leaves_behind_ends_before_its_units_are_free(
    shared: GrassHome, news: Fifo
) -> None:
    id = shared.enqueue(f"setsid sleep 1000 & echo $! > {news}")
    assert shared.wait(id)["state"] == "succeeded"
    await_end(int(news.hear()))


def test_a_queued_job_is_cancelled_without_running(shared: GrassHome) -> None:
    shared.ok("pause")
    ids = shared.enqueue_array("--array", "1-3", "--", "true")
    shared.ok("cancel", "--yes", f"{ids[1]}-{ids[2]}")
    shared.ok("resume")
    shared.wait(ids[0])
    assert shared.states(ids) == ["succeeded", "cancelled", "cancelled"]
    assert shared.client.job(ids[1])["attempts"] == []


def test_pause_and_resume_one_queue_or_all(shared: GrassHome) -> None:
    shared.ok("create-queue", "q")
    shared.ok("pause", "q")
    held, other = shared.enqueue("q", "--", "true"), shared.enqueue("--", "true")
    shared.wait(other)
    assert shared.state(held) == "queued"
    assert "paused" in shared.client.job(held)["reason"]
    shared.ok("pause")
    shared.ok("resume", "q")
    assert shared.state(held) == "queued"
    shared.ok("resume")
    assert shared.wait(held)["state"] == "succeeded"


def test_a_queue_is_deleted_once_its_jobs_are_gone(
    shared: GrassHome, gate: Fifo
) -> None:
    words = ("create-queue", "q", "--json", "{slot:1}")
    assert shared.ok(*words) == "created queue q\n"
    assert shared.ok(*words) == "queue q is there already\n"
    id = shared.enqueue("q", f"read x < {gate}")
    assert shared.run("delete-queue", "q").returncode == 5
    gate.tell()
    shared.wait(id)
    assert shared.ok("delete-queue", "q") == "deleted queue q\n"
    assert shared.run("delete-queue", "q").returncode == 4
    assert shared.run("show", "q").returncode == 4
    assert shared.client.job(id)["queue"] == "q"


def test_prune_removes_jobs_and_output_but_not_files_of_the_user(
    home: GrassHome,
) -> None:
    home.enqueue("--", "echo", "kept by grass")
    home.enqueue("--output", "mine.txt", "--", "echo", "mine")
    job = home.wait(1, 2)
    home.wait(1)
    ours = Path(home.client.job(1)["output"])
    assert "would forget 2 jobs" in home.ok("prune", "--older", "0s", "--dry-run")
    assert ours.exists()
    assert "forgot 2 jobs" in home.ok("prune", "--older", "0s", "--yes")
    assert home.document()["jobs"] == []
    assert Path(job["output"]).read_text() == "mine\n"
    assert home.enqueue("--", "true") == 3
    home.ok("stop")
    assert not ours.exists()


def test_many_jobs_come_from_a_file_or_stdin(home: GrassHome) -> None:
    lines = home.desk / "jobs.txt"
    lines.write_text("# two jobs\necho a\n\necho b | cat\n")
    assert home.ok("enqueue", "--from", "jobs.txt") == "1-2\n"
    documents = [
        {"command": ["echo", "c"], "name": "third", "require": {"cpu": 0.5}},
        {"command": "echo $X", "env": {"X": "d"}, "priority": 3},
    ]
    text = "".join(json.dumps(one) + "\n" for one in documents)
    assert home.ok("enqueue", "--from", "-", input=text) == "3-4\n"
    home.wait(1, 2, 3, 4)
    assert [home.logs(id) for id in range(1, 5)] == ["a\n", "b\n", "c\n", "d\n"]
    assert home.client.job(3)["name"] == "third"
    assert home.client.job(3)["request"] == {"cpu": 0.5}
    assert home.client.job(4)["priority"] == 3


def test_options_are_defaults_for_every_line_of_a_file(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "--json", "{gpu:2}")
    lines = "echo {gpu}\necho {gpu}\n"
    words = ("q", "--require", "{gpu:1}", "--from", "-")
    ids = shared.enqueue_array(*words, input=lines)
    shared.wait(*ids)
    assert {shared.logs(id) for id in ids} <= {"0\n", "1\n"}


def test_names_may_hold_anything(shared: GrassHome) -> None:
    for name in ("two words", "../../etc", "ünï", "a/b", ".", "x" * 200):
        id = shared.enqueue("--name", name, "--", "echo", "fine")
        job = shared.wait(id)
        assert job["name"] == name
        assert Path(job["output"]).is_relative_to(shared.folder / "output")
        assert shared.logs(id) == "fine\n"
    assert shared.run("wait", "name~two words").returncode == 0


def test_commands_work_from_any_directory(shared: GrassHome) -> None:
    elsewhere = shared.desk / "else where"
    elsewhere.mkdir()
    (elsewhere / "run.sh").write_text("#!/bin/sh\npwd\n")
    (elsewhere / "run.sh").chmod(0o755)
    id = shared.enqueue("./run.sh", cwd=elsewhere)
    shared.wait(id)
    assert shared.ok("logs", str(id), cwd=Path("/")) == f"{elsewhere}\n"
    other = shared.enqueue("--cwd", "else where", "--output", "o.txt", "--", "./run.sh")
    shared.wait(other)
    assert (shared.desk / "o.txt").read_text() == f"{elsewhere}\n"


def test_a_job_killed_from_outside_has_failed_at_once(
    shared: GrassHome, news: Fifo
) -> None:
    id = shared.enqueue(f"echo $$ > {news}; exec sleep 1000")
    waiting = shared.popen("wait", str(id))
    kill(int(news.hear()))
    said = waiting.communicate(timeout=30)[1]
    assert said.startswith(f"grass: job {id} failed")
    assert said.endswith(": killed by SIGKILL (out of memory?)\n")
    assert waiting.returncode == 128 + signal.SIGKILL
    job = shared.client.job(id)
    assert (job["state"], job["signal"], job["exit_code"]) == ("failed", 9, None)


@pytest.mark.sqlite
def test_a_home_with_a_very_long_path_works(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    home = GrassHome(tmp_path, folder)
    try:
        id = home.enqueue("--", "echo", "far away")
        assert home.wait(id)["state"] == "succeeded"
        assert home.ok("logs", "1") == "far away\n"
        home.ok("restart")
        assert home.enqueue("--", "true") == 2
        home.wait(2)
    finally:
        home.end()
        shutil.rmtree(folder.parent)


def test_interrupting_a_wait_leaves_the_job_alone(
    shared: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = shared.enqueue(f"echo x > {news}; read x < {gate}")
    news.hear()
    waiting = shared.popen("logs", "-f", str(id))
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=30)
    assert waiting.returncode != 0
    assert shared.state(id) == "running"
    gate.tell()
    assert shared.wait(id)["state"] == "succeeded"


def test_selectors_name_jobs_in_many_ways(home: GrassHome) -> None:
    home.ok("create-queue", "q")
    home.ok("pause")
    home.enqueue("--project", "p", "--", "true")
    home.enqueue("--name", "alpha", "--", "true")
    home.enqueue("q", "--", "true")
    home.client.enqueue_many(["true"] * 3)
    for selector, ids in (
        ("@p", [1]),
        ("name~^al", [2]),
        ("queue:q", [3]),
        ("4-5", [4, 5]),
        ("last", [6]),
    ):
        done = json.loads(home.ok("cancel", "--yes", "--json", selector))
        assert done["jobs"] == ids
    assert json.loads(home.ok("cancel", "--json", "all"))["jobs"] == []
    assert home.run("wait", "state:cancelled").returncode == 1


def test_an_ended_job_remembers_what_its_queue_ran(shared: GrassHome) -> None:
    shared.ok("create-queue", "q", "echo", "old")
    id = shared.enqueue("q", "word")
    ran = shared.wait(id)
    shared.ok("delete-queue", "q")
    shared.ok("create-queue", "q", "printf", "new %s", cwd=Path("/"))
    shared.replace_daemon()
    job = shared.client.job(id)
    assert job["command"] == ran["command"] == ["echo", "old", "word"]
    assert job["cwd"] == ran["cwd"] == str(shared.desk)
    assert "echo old word" in shared.ok("show", "--all")
