"""The output of several jobs, line by line behind their ids."""

import json
import threading

import pytest

from grass.cli.commands.events import line
from grass.cli.printing.prefixed_output import JsonLines, Prefixed, Unchanged, prefix
from grass.cli.printing.waits.progress import UNREACHABLE, tally, tally_of_all

LOCK = threading.Lock()


def test_lines_are_written_whole_whatever_the_pieces(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    one, other = (
        Prefixed(b"7 | ", LOCK, Unchanged()),
        Prefixed(b"8 | ", LOCK, Unchanged()),
    )
    one.write(b"he")
    other.write(b"a\nb\nc")
    one.write(b"llo\n\xff")
    one.end()
    other.end()
    written = capfdbinary.readouterr().out
    assert written == b"8 | a\n8 | b\n7 | hello\n7 | \xff\n8 | c\n"


def test_a_line_that_never_ends_is_not_kept_for_ever(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    writer = Prefixed(b"7 | ", LOCK, Unchanged())
    writer.write(b"x" * 70_000)
    assert capfdbinary.readouterr().out == b"7 | " + b"x" * 70_000 + b"\n"


def test_a_program_that_draws_over_its_line_leaves_the_prefix(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    writer = Prefixed(b"7 | ", LOCK, Unchanged())
    writer.write(b"10%\r20%\rdone\r\n")
    assert capfdbinary.readouterr().out == b"7 | 10%\r7 | 20%\r7 | done\n"


def test_json_has_the_job_and_survives_split_characters(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    writer = JsonLines(7, LOCK)
    for byte in "é".encode() + b"\xff":
        writer.write(bytes([byte]))
    writer.end()
    lines = [json.loads(text) for text in capfdbinary.readouterr().out.splitlines()]
    assert lines == [{"job": 7, "text": "é"}, {"job": 7, "text": "\udcff"}]


def test_prefixes_are_aligned_and_coloured_only_where_asked() -> None:
    assert prefix(7, 3, place=None) == b"  7 | "
    assert prefix(7, 1, place=1) == b"\x1b[33m7 | \x1b[0m"


def test_an_event_is_one_line() -> None:
    event = {
        "seq": 1,
        "at": "2026-01-02T03:00:00Z",
        "actor": "scheduler",
        "kind": "started",
        "job": 7,
        "attempt": 2,
        "data": {"units": {"gpu": {"0": 10000}}, "exit_code": None, "reason": "a\nb"},
    }
    text = line(event)
    assert text.endswith(
        "started           job 7, attempt 2  units=gpu:0  reason=a\\nb"
    )
    assert line({**event, "actor": "ada", "data": {}}).endswith("  by ada")


def test_the_line_of_wait_counts() -> None:
    states = {1: "succeeded", 2: "failed", 3: "running", 4: "queued", 5: "held"}
    expected = "2 of 5 jobs done (1 failed), 1 running, 2 waiting"
    assert str(tally(states)) == expected


def test_the_progress_of_all_is_what_the_daemon_counts() -> None:
    states = ("held", "waiting", "queued", "running")
    ends = ("succeeded", "failed", "cancelled", "lost")
    counts = dict.fromkeys((*states, *ends), 1)
    before = {"daemon": {"jobs": counts}, "jobs": []}
    later = counts | {"queued": 0, "succeeded": 3, "failed": 2}
    now = {"daemon": {"jobs": later}, "jobs": [{"unreachable": True}]}
    assert str(tally_of_all(before, now)) == (
        "3 of 6 jobs done (1 failed), 1 running (1 unreachable), 2 waiting"
    )


def test_the_line_of_wait_tells_whose_worker_is_unreachable() -> None:
    states = {1: "running", 2: UNREACHABLE, 3: "succeeded"}
    expected = "1 of 3 jobs done, 2 running (1 unreachable), 0 waiting"
    assert str(tally(states)) == expected
