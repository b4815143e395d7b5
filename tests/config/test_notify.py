"""Notifications with real processes: how many, how long, and what they are told."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.building import a_job
from tests.support.fifo import Fifo
from tests.support.patience import PATIENCE_S
from tests.support.processes import await_end

from grass import notify
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.worker import GpuNotice
from grass.notify import CommandEnvironment, Notifier
from grass.setting_values import NotifyCommand
from grass.settings import default_settings


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def job(id: int, state: JobState = JobState.SUCCEEDED) -> Job:
    return a_job(
        id,
        name=f"name {id}",
        project="thesis",
        owner="uid:1",
        queue="gpu",
        state=state,
        created_at=0,
        started_at=1_000_000,
        finished_at=2_500_000,
        exit_code=0 if state is JobState.SUCCEEDED else 3,
        attempts=2,
    )


Story = Callable[[Notifier], Awaitable[None] | None]


def play(
    folder: Path,
    story: Story,
    *,
    on_finish: NotifyCommand | None = None,
    on_fail: NotifyCommand | None = None,
    on_gpu_fault: NotifyCommand | None = None,
    patience_s: float = PATIENCE_S,
) -> None:
    """Let a notifier hear of ends, and return when all commands have ended."""

    async def output_of(id: int, attempt: int) -> str:
        return f"/out/{id}/{attempt}.log"

    async def run() -> None:
        settings = default_settings()._replace(
            on_finish=on_finish, on_fail=on_fail, on_gpu_fault=on_gpu_fault
        )
        around = CommandEnvironment(
            {"PATH": os.environ["PATH"]}, str(folder), "/bin/sh"
        )
        notifier = Notifier(settings, around, output_of)
        told = story(notifier)
        if told is not None:
            await told
        await notifier.finish(patience_s)
        await notifier.aclose()

    asyncio.run(run())


def test_a_command_is_told_the_facts_and_nothing_of_the_caller(tmp_path: Path) -> None:
    play(
        tmp_path,
        lambda notifier: notifier.notify([job(7, JobState.FAILED)]),
        on_fail="env > facts; readlink /proc/self/fd/0 > stdin",
    )
    lines = (tmp_path / "facts").read_text().splitlines()
    facts = [line for line in lines if line.startswith("GRASS_")]
    assert sorted(facts) == [
        "GRASS_ATTEMPT=2",
        "GRASS_EVENT=failed",
        "GRASS_EXIT_CODE=3",
        "GRASS_FINISHED_AT=1970-01-01T00:00:02.500Z",
        "GRASS_JOB_ID=7",
        "GRASS_NAME=name 7",
        "GRASS_OUTPUT=/out/7/2.log",
        "GRASS_PROJECT=thesis",
        "GRASS_QUEUE=gpu",
        "GRASS_REASON=",
        "GRASS_SIGNAL=",
        "GRASS_STARTED_AT=1970-01-01T00:00:01.000Z",
        "GRASS_STATE=failed",
    ]
    assert (tmp_path / "stdin").read_text() == "/dev/null\n"


def test_failures_go_to_both_commands_and_other_ends_to_one(tmp_path: Path) -> None:
    ends = [job(number, state) for number, state in enumerate(JobState)]
    play(
        tmp_path,
        lambda notifier: notifier.notify([one for one in ends if one.exit_code]),
        on_finish="echo $GRASS_STATE >> finished",
        on_fail="echo $GRASS_STATE >> failed",
    )
    assert sorted((tmp_path / "failed").read_text().split()) == ["failed", "lost"]
    finished = sorted((tmp_path / "finished").read_text().split())
    assert finished == ["cancelled", "failed", "lost"]


def test_words_are_a_program_and_its_arguments_without_a_shell(tmp_path: Path) -> None:
    play(
        tmp_path,
        lambda notifier: notifier.notify([job(1)]),
        on_finish=("touch", "a b", "$HOME"),
    )
    assert sorted(os.listdir(tmp_path)) == ["$HOME", "a b"]


def test_a_few_run_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "now").mkdir()
    play(
        tmp_path,
        lambda notifier: notifier.notify([job(id) for id in range(1, 41)]),
        on_finish=": > now/$$; ls now | wc -l >> counts; rm now/$$",
    )
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 40
    assert max(counts) <= notify.MOST_AT_ONCE


def test_a_burst_drops_what_is_too_much_and_says_so(
    tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    most = notify.MOST_WAITING
    line = "echo $GRASS_JOB_ID >> done"

    def burst(notifier: Notifier) -> None:
        notifier.notify([job(id) for id in range(1, 10_001)])
        waiting = sum(len(line._waiting) for line in notifier._queues)
        assert waiting <= most
        for queued in notifier._queues:
            while len(queued._waiting) > 10:
                queued._waiting.pop()

    play(tmp_path, burst, on_finish=line)
    assert f"notify.dropping setting=notify.on_finish job={most + 1} " in heard.text
    assert f"notify.dropped setting=notify.on_finish jobs={10_000 - most}" in heard.text
    assert len((tmp_path / "done").read_text().split()) == 10 + notify.MOST_AT_ONCE


def test_failures_are_told_before_a_flood_of_successes(
    tmp_path: Path, gate: Fifo, news: Fifo
) -> None:
    flood = [*[job(id) for id in range(1, 50)], job(50, JobState.FAILED)]

    async def story(notifier: Notifier) -> None:
        notifier.notify(flood)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, news.hear) == "failed"
        gate.tell(times=len(flood))

    play(
        tmp_path,
        story,
        on_finish=f"read x < {gate}",
        on_fail=f"echo $GRASS_EVENT > {news}",
    )


def test_a_command_that_hangs_is_ended_with_all_it_started(
    tmp_path: Path,
    news: Fifo,
    heard: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notify, "LIMIT_S", 0.5)
    line = f"trap '' TERM; sleep 1000 & echo $! > {news}; echo $$ > {news}; wait"
    play(tmp_path, lambda notifier: notifier.notify([job(1)]), on_finish=line)
    for _ in range(2):
        await_end(int(news.hear()))
    assert 'setting=notify.on_finish job=1 error="ended after 0.5 s"' in heard.text


def test_what_a_command_leaves_in_the_background_ends_with_it(
    tmp_path: Path, news: Fifo, heard: pytest.LogCaptureFixture
) -> None:
    line = f"sleep 1000 > /dev/null 2>&1 & echo $! > {news}"
    play(tmp_path, lambda notifier: notifier.notify([job(1)]), on_finish=line)
    await_end(int(news.hear()))
    assert heard.text == ""


def test_a_command_that_fails_is_a_line_in_the_log(
    tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    play(
        tmp_path,
        lambda notifier: notifier.notify([job(1), job(2, JobState.FAILED)]),
        on_finish=("no-such-program",),
        on_fail="echo said; printf 'no\\033[31mred\\n' >&2; exit 4",
    )
    assert 'notify.failed setting=notify.on_finish job=1 error="[Errno 2]' in heard.text
    assert "notify.output setting=notify.on_fail job=2 message=said\n" in heard.text
    assert r'job=2 message="no\u001b[31mred"' in heard.text
    assert 'setting=notify.on_fail job=2 error="exit code 4"\n' in heard.text


def test_a_talkative_command_does_not_fill_the_log(
    tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    line = "head -c 10000000 /dev/zero | tr '\\0' 'x'"
    play(tmp_path, lambda notifier: notifier.notify([job(1)]), on_finish=line)
    assert len(heard.text) < 2 * notify.MOST_LOGGED


def test_facts_are_those_of_the_end_whatever_happens_to_the_job_then(
    tmp_path: Path,
) -> None:
    def story(notifier: Notifier) -> None:
        rerun = job(1, JobState.FAILED)
        notifier.notify([rerun])
        rerun.state, rerun.attempts = JobState.RUNNING, 3

    play(tmp_path, story, on_fail="echo $GRASS_STATE $GRASS_ATTEMPT > facts")
    assert (tmp_path / "facts").read_text() == "failed 2\n"


def test_closing_ends_what_runs_and_drops_what_waits(
    tmp_path: Path, news: Fifo, heard: pytest.LogCaptureFixture
) -> None:
    async def story(notifier: Notifier) -> None:
        notifier.notify([job(id) for id in range(1, 11)])
        await asyncio.get_running_loop().run_in_executor(None, hear_all)

    def hear_all() -> None:
        pids.extend(int(news.hear()) for _ in range(notify.MOST_AT_ONCE))

    pids: list[int] = []
    line = f"echo $$ > {news}; exec sleep 1000"
    play(tmp_path, story, on_finish=line, patience_s=0.01)
    for pid in pids:
        await_end(pid)
    assert "notify.dropped setting=notify.on_finish jobs=6" in heard.text
    assert 'job=1 error="ended, because the daemon stops"' in heard.text


def test_a_gpu_that_fails_is_reported_with_its_reason_and_no_job(
    tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    lost = GpuNotice("gpu-failed", "desk", "gpu:0", "it is lost", 1_000_000)
    play(
        tmp_path,
        lambda notifier: notifier.notify([job(1)], [lost]),
        on_gpu_fault="env | grep ^GRASS | sort > facts; echo sent",
    )
    assert (tmp_path / "facts").read_text().splitlines() == [
        "GRASS_AT=1970-01-01T00:00:01.000Z",
        "GRASS_EVENT=gpu-failed",
        "GRASS_REASON=it is lost",
        "GRASS_UNIT=gpu:0",
        "GRASS_WORKER=desk",
    ]
    assert "notify.output setting=notify.on_gpu_fault message=sent\n" in heard.text
