"""`grass wait`: the bar, the last line, and that only paused queues are left."""

import io
import os
import sys
from typing import Any

import pytest

from grass.cli.commands.wait import closing
from grass.cli.printing.waits import status_line
from grass.cli.printing.waits.pause_notice import common_pause
from grass.cli.printing.waits.progress import bar


def end(id: int, state: str = "succeeded", **more: Any) -> dict[str, Any]:
    facts = {"exit_code": None, "signal": None, "reason": None}
    return {"id": id, "state": state, **facts, **more}


@pytest.mark.parametrize(
    ("jobs", "took_s", "said"),
    [
        ([end(7, ran_s=0.5)], 3, "job 7 succeeded"),
        # As `explain` says: how long it ran, not how long somebody waited.
        ([end(7, ran_s=125.4)], 1.9, "job 7 succeeded in 2m05s"),
        ([end(7, "failed", exit_code=3, ran_s=2)], 1, "job 7 failed in 2s: exit 3"),
        ([end(7, "cancelled", ran_s=None)], 60, "job 7 was cancelled"),
        ([end(1), end(2)], 125, "2 succeeded in 2m05s"),
        (
            [end(7, "failed", signal=9)],
            0,
            "job 7 failed: killed by SIGKILL (out of memory?)",
        ),
        ([end(7, "cancelled", reason="cancelled")], 0, "job 7 was cancelled"),
        ([end(1), end(2), end(3, "failed")], 0, "2 succeeded, 1 failed (job 3)"),
        (
            [end(1, "failed"), end(2, "failed"), end(3, "lost")],
            0,
            "2 failed (jobs 1, 2), 1 lost (job 3)",
        ),
        ([end(id, "failed") for id in range(9)], 0, "9 failed"),
    ],
)
def test_the_last_line_says_how_it_ended(
    jobs: list[dict[str, Any]], took_s: float, said: str
) -> None:
    assert closing(jobs, took_s) == said


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["queue `q` is paused"], "queue `q` is paused"),
        (["everything is paused"] * 3, "everything is paused"),
        (["queue `q` is paused", "waits for job 3 (queued)"], "queue `q` is paused"),
        (["queue `q` is paused", "needs cpu 1, free 0 of 1"], ""),
        (["waits for job 3 (running) to succeed"], ""),
        ([], ""),
    ],
)
def test_a_pause_is_told_only_if_it_holds_everything(
    reasons: list[str], said: str
) -> None:
    assert common_pause(reasons) == said


@pytest.mark.parametrize(("done", "full"), [(0, 0), (1, 6), (2, 13), (3, 20)], ids=str)
def test_the_bar_is_full_only_at_the_end(done: int, full: int) -> None:
    drawn = bar(done, 3)
    assert (len(drawn), len(drawn.rstrip("░."))) == (20, full)


def test_the_line_has_only_letters_that_the_terminal_can_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = os.terminal_size((20, 10))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    monkeypatch.setenv("TERM", "xterm")
    text = "job 7 is queued: é is paused"
    for encoding, locale, shown in (
        ("utf-8", "C.UTF-8", "job 7 is queued: é…"),
        ("utf-8", "C", "job 7 is queued:..."),
        ("ascii", "C.UTF-8", "job 7 is queued:..."),
    ):
        monkeypatch.setenv("LC_ALL", locale)
        stderr = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stderr", stderr)
        assert status_line.fitted(text) == shown
