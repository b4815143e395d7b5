"""Views that are drawn anew while things happen, in a pipe and on a terminal."""

import signal

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.screen import Screen

pytestmark = pytest.mark.daemon


def on_screen(home: GrassHome, *words: str) -> Screen:
    return Screen([*home.grass, *words], home.environment)


def test_a_watched_view_is_printed_anew_in_a_pipe(shared: GrassHome) -> None:
    watching = shared.popen("show", "--watch=0", "-q", "--all")
    assert watching.stdout is not None
    id = shared.enqueue("--", "true")
    while watching.stdout.readline() != f"{id}\n":
        pass
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=30)
    assert watching.returncode == 130


def test_a_watched_view_is_redrawn_on_a_terminal_and_leaves_it_as_it_was(
    shared: GrassHome,
) -> None:
    screen = on_screen(shared, "show", "--name", "shows-up", "--watch")
    screen.until("no such jobs")
    shared.enqueue("--name", "shows-up", "--", "true")
    screen.until("succeeded")
    assert screen.interrupt() == 130
    assert screen.seen.startswith("\x1b[?1049h")
    assert screen.seen.endswith("\x1b[?25h\x1b[?1049l")
    assert "Traceback" not in screen.seen


def test_a_watched_view_ends_with_q_and_the_terminal_shows_what_is_typed_again(
    shared: GrassHome,
) -> None:
    screen = on_screen(shared, "show", "--watch")
    screen.until("q quits")
    screen.press(b"\x1b[Bxq")
    assert screen.ended() == 0
    assert screen.seen.endswith("\x1b[?25h\x1b[?1049l")


def test_wait_shows_how_far_things_are_on_a_terminal_alone(
    shared: GrassHome, gate: Fifo
) -> None:
    first = shared.enqueue("--require", "{}", f"read x < {gate}")
    second = shared.enqueue("--require", "{}", "--", "true")
    both = f"{first}-{second}"
    shared.wait(second)
    screen = on_screen(shared, "wait", both)
    screen.until("1 of 2 jobs done, 1 running, 0 waiting")
    gate.tell()
    assert screen.ended() == 0
    assert "██████████░░░░░░░░░░" in screen.seen
    assert "\r\x1b[Kgrass: 2 succeeded" in screen.seen
    piped = shared.run("wait", both)
    assert (piped.stdout, piped.stderr) == ("", "grass: 2 succeeded\n")
    quiet = shared.run("wait", "-q", both)
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_wait_tells_why_nothing_runs_and_when_it_may_be_over(
    shared: GrassHome, gate: Fifo
) -> None:
    for _ in range(2):
        shared.enqueue("--name", "steady", "--require", "{}", "--", "sleep", "0.1")
    shared.ok("wait", "name~^steady$")
    shared.ok("create-queue", "later")
    shared.ok("pause", "later")
    first = shared.enqueue("later", "--name", "steady", f"read x < {gate}")
    screen = on_screen(shared, "wait", str(first))
    screen.until(f"job {first} is queued: queue `later` is paused")
    piped = shared.popen("wait", str(first))
    assert piped.stderr is not None
    assert piped.stderr.readline() == "grass: still waiting: queue `later` is paused\n"
    shared.ok("resume", "later")
    screen.until(f"job {first} is running")
    gate.tell()
    assert screen.ended() == 0
    assert f"grass: job {first} succeeded" in screen.seen
    assert piped.communicate()[1].startswith(f"grass: job {first} succeeded")
