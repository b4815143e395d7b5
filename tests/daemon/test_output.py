"""What jobs write: followed, appended, kept apart, and no more than allowed."""

import subprocess
from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GRASS, GrassHome
from tests.support.screen import Screen

pytestmark = pytest.mark.daemon

MIB = 1 << 20


def test_logs_can_be_followed_until_the_job_ends(shared: GrassHome, gate: Fifo) -> None:
    id = shared.enqueue(f"echo one; read x < {gate}; echo two; exit 3")
    following = shared.popen("logs", "-f", str(id))
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    gate.tell()
    rest, errors = following.communicate(timeout=30)
    assert (rest, following.returncode) == ("two\n", 0)
    assert errors.endswith(f"grass: job {id} failed: exit 3\n")
    assert shared.ok("logs", "last") == "one\ntwo\n"


def test_logs_follow_a_job_that_has_not_started(shared: GrassHome) -> None:
    shared.ok("pause")
    id = shared.enqueue("--", "echo", "at last")
    following = shared.popen("logs", "-f", str(id))
    screen = Screen([*shared.grass, "logs", "-f", str(id)], shared.environment)
    assert following.stderr is not None
    waits = f"job {id} is queued: everything is paused"
    assert following.stderr.readline() == f"grass: {waits}\n"
    screen.until(f"\r\x1b[K{waits}")
    shared.ok("resume")
    ended = f"grass: job {id} succeeded\n"
    assert following.communicate(timeout=30) == ("at last\n", ended)
    assert screen.ended() == 0
    assert screen.seen.endswith("at last\r\n" + ended.replace("\n", "\r\n"))


def test_logs_are_byte_for_byte(shared: GrassHome) -> None:
    id = shared.enqueue(r"printf '\377\000\033[31mred\r'; echo err >&2")
    shared.wait(id)
    ran = subprocess.run(
        [*GRASS, "logs", str(id)],
        env=shared.environment,
        capture_output=True,
        check=True,
    )
    assert ran.stdout == b"\xff\x00\x1b[31mred\rerr\n"


def test_output_is_appended_and_each_job_finds_its_own_part(shared: GrassHome) -> None:
    file = shared.desk / "shared.log"
    file.write_text("before\n")
    ids = []
    for word in ("first", "second"):
        ids.append(shared.enqueue("--output", "shared.log", "--", "echo", word))
        shared.wait(ids[-1])
    assert file.read_text() == "before\nfirst\nsecond\n"
    assert [shared.logs(id) for id in ids] == ["first\n", "second\n"]
    offsets = [shared.client.job(id)["attempts"][0]["output_offset"] for id in ids]
    assert offsets == [len("before\n"), len("before\nfirst\n")]


def test_stderr_may_go_its_own_way(shared: GrassHome) -> None:
    line = "echo out; echo err >&2"
    id = shared.enqueue("--output", "o.txt", "--stderr", "e.txt", line)
    shared.wait(id)
    assert (shared.desk / "o.txt").read_text() == "out\n"
    assert (shared.desk / "e.txt").read_text() == "err\n"
    assert shared.ok("logs", "--stderr", str(id)) == "err\n"


def test_output_beyond_the_cap_ends_the_job(shared: GrassHome) -> None:
    id = shared.enqueue("--max-output", "100K", "--", "yes")
    job = shared.wait(id)
    assert job["state"] == "failed"
    assert "output" in job["reason"]
    assert "output takes" in shared.ok("show")


def test_the_second_of_two_finds_its_own_part_of_a_shared_stderr(
    shared: GrassHome,
) -> None:
    (shared.desk / "shared.err").write_text("before\n")
    ids = []
    for word in ("first", "second"):
        line = f"echo {word} out; echo {word} err >&2"
        ids.append(shared.enqueue("--stderr", "shared.err", line))
        shared.wait(ids[-1])
    assert shared.ok("logs", "--stderr", str(ids[1])) == "second err\n"
    assert [shared.logs(id) for id in ids] == ["first out\n", "second out\n"]


def test_a_fast_writer_is_cut_where_its_output_may_end(shared: GrassHome) -> None:
    line = "head -c 300000000 /dev/zero; sleep 1000"
    id = shared.enqueue("--max-output", "1M", line)
    job = shared.wait(id)
    assert (job["state"], job["reason"]) == ("failed", "output limit")
    assert Path(job["output"]).stat().st_size == MIB
    assert job["attempts"][0]["output_bytes"] == MIB
    assert len(b"".join(shared.client.output(id))) == MIB


def test_a_writer_that_ends_before_it_is_noticed_is_cut_too(shared: GrassHome) -> None:
    id = shared.enqueue("--max-output", "1M", "--", "head", "-c", "3M", "/dev/zero")
    job = shared.wait(id)
    assert (job["state"], job["reason"]) == ("failed", "output limit")
    assert Path(job["output"]).stat().st_size == MIB


def test_lines_of_a_log_are_found_by_number_and_by_pattern(shared: GrassHome) -> None:
    bar = r"printf '\r 1%%\r99%%\n'"
    id = shared.enqueue(f"seq 1 30000; {bar}; echo Loss is NaN; seq 1 3")
    shared.wait(id)
    assert shared.ok("logs", "--lines", "29999-30002", str(id)) == (
        "29999\n30000\n99%\nLoss is NaN\n"
    )
    assert shared.ok("logs", "--lines", "30003-", str(id)) == "1\n2\n3\n"
    assert shared.ok("logs", "--lines", "7", str(id)) == "7\n"
    assert shared.ok("logs", "--grep", "99%$|(?i)nan", str(id)) == (
        "30001:99%\n30002:Loss is NaN\n"
    )
    assert shared.ok("logs", "--grep", "9", str(id)).count("\n") == 10_318
    assert shared.ok("logs", "--grep", "nowhere", str(id)) == ""
    for words in (("--lines", "x"), ("--grep", "("), ("--lines", "1", "--tail", "2")):
        assert shared.run("logs", *words, str(id)).returncode == 2


def test_any_line_of_a_large_log_is_read(shared: GrassHome) -> None:
    id = shared.enqueue("seq 1 3000000")
    shared.wait(id)
    path = f"/jobs/{id}"
    told = shared.client.read(f"{path}/lines?count=2&numbered=1")
    assert told["lines"] == ["2999999", "3000000"]
    assert (told["first"], told["total_lines"]) == (2_999_999, 3_000_000)
    for line in (1, 1_234_567):
        told = shared.client.read(f"{path}/lines?from={line}&count=1")
        assert (told["first"], told["lines"]) == (line, [str(line)])
    found = shared.client.read(f"{path}/search?pattern=^2345678$")
    assert [one["line"] for one in found["matches"]] == [2_345_678]
    found = shared.client.read(f"{path}/search?text=123456&back=1&from=3000000&limit=1")
    assert [one["line"] for one in found["matches"]] == [2_123_456]
