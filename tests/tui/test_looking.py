"""What the screens of `grass top` show of a real daemon with made-up GPUs."""

import asyncio
from functools import partial

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical

from grass.cli.printing.signs import ASCII, UNICODE
from grass.tui.app import Fresh, TopApp
from grass.tui.job_list import JobList
from grass.tui.log_view import LogView
from grass.tui.updates import News
from tests.support.fifo import Fifo
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

from .playing import LARGE, Play, play

pytestmark = pytest.mark.daemon

NO_CORE = ("--require", "{}")
WAITS = (*NO_CORE, "--", "sh", "-c")


def running(home: GrassHome, job: int) -> None:
    until(lambda: home.state(job), "no start", lambda state: state == "running")


def test_a_small_terminal_shows_the_gpus_and_the_jobs(
    shared: GrassHome, two: FakeGpus, gate: Fifo
) -> None:
    half = ("--require", "{gpu:0.5, vram:'10G'}", "--name", "fit")
    job = shared.enqueue(*half, "--", "use-gpu", "4G")
    until(lambda: shared.run("logs", str(job)).stdout, "it is on no GPU")
    failed = shared.enqueue("--require", "{}", "--name", "broken", "exit 3")
    shared.wait(failed)
    waiting = shared.enqueue("--require", "{gpu:2}", "--name", "large", "true")

    async def scene(at: Play) -> None:
        await at.shows("gpu 0", "gpu 1", "87%", "● live")
        await at.shows(f"{job} fit", "sleep (pid")
        await at.shows("● running", "fit", "○ queued", "large", "✗ failed (3)")
        await at.shows(f"{waiting}", "needs gpu 2, free")
        assert not at.app.screen.query_one("#pane").display

    with two.stranger(1, "3G"):
        play(shared, scene)


def test_a_large_terminal_also_shows_the_job_under_the_cursor(
    shared: GrassHome, gate: Fifo
) -> None:
    line = f"echo one; echo two; read x < {gate}; echo three"
    job = shared.enqueue(*WAITS, line)
    running(shared, job)
    other = shared.enqueue("--hold", "--name", "later", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows(f"job {job}: sh", "log, live", "two")
        gate.tell("go")
        await at.shows("three", "succeeded")
        await at.press("k")
        await at.until(lambda: at.app.screen.query_one(JobList).highlighted == 0)
        # What may be on its way is not said to be missing.
        await at.shows(f"job {other}: later", "reading its log")
        await at.shows(f"job {other}: later", "no output yet")
        await at.resize((80, 24))
        await at.shows_not(f"job {other}: later")

    play(shared, scene, LARGE)


class Hidden(App[None]):
    """A table that is not shown at first."""

    def compose(self) -> ComposeResult:
        with Vertical():
            table = JobList(UNICODE)
            table.display = False
            yield table


def test_the_table_has_its_width_when_it_is_first_drawn(shared: GrassHome) -> None:
    shared.enqueue("--hold", "--", "true")
    jobs = shared.document()["jobs"]

    async def scene() -> None:
        app = Hidden()
        async with app.run_test(size=(80, 24)):
            table = app.query_one(JobList)
            table.display = True
            table.show(jobs, ())
            assert "COMMAND" in table.header

    asyncio.run(scene())


def test_without_jobs_and_gpus_the_next_step_is_told(cold: GrassHome) -> None:
    cold.environment["GRASS_AUTOSTART"] = "0"
    cold.ok("start", "--name", "desk")

    async def scene(at: Play) -> None:
        await at.shows("No jobs yet", "grass enqueue -- python train.py", "cpu")

    play(cold, scene)


def test_a_terminal_of_ascii_gets_ascii_alone(shared: GrassHome, gate: Fifo) -> None:
    running(shared, shared.enqueue(*WAITS, f"read x < {gate}"))
    for _ in range(9):
        shared.enqueue("--hold", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("* running", "* live")
        await at.press("full_stop")
        await at.shows("Cancel")
        assert at.text().isascii()
        await at.press("escape")
        await at.shows("* running")
        assert at.text().isascii()
        # More than has room: it scrolls.
        for height in (11, 12, 13):
            await at.resize((80, height))
            await at.shows("* running", "= held")
            assert at.text().isascii()

    play(shared, scene, LARGE, signs=ASCII)


def test_jobs_are_filtered_by_the_selectors_of_the_command_line(
    shared: GrassHome,
) -> None:
    kept = shared.enqueue("--hold", "--name", "kept", "--", "true")
    done = shared.enqueue("--require", "{}", "--name", "done", "true")
    shared.wait(done)

    def is_shown(at: Play, ids: list[int]) -> bool:
        rows = at.app.screen.query_one(JobList).rows
        return [row["id"] for row in rows] == ids

    async def scene(at: Play) -> None:
        await at.shows("kept", "done")
        await at.press("slash")
        await at.type("state:held")
        await at.press("enter")
        await at.shows("filter: state:held")
        await at.shows_not("done")
        assert [row["id"] for row in at.app.screen.query_one(JobList).rows] == [kept]
        await at.press("escape")
        await at.shows("done")
        await at.press("slash")
        await at.type("state:odd")
        await at.press("enter")
        await at.shows("odd", "Esc clears the filter")
        await at.press("escape")
        await at.shows("kept", "done")
        both = {"state:held last": [kept], "--any last all": [kept, done]}
        for words, shown in both.items():
            await at.press("slash")
            await at.type(words)
            await at.press("enter")
            await at.shows(f"filter: {words}")
            await at.until(partial(is_shown, at, shown))
            await at.press("escape")

    play(shared, scene)


def test_an_array_is_a_row_that_opens(shared: GrassHome) -> None:
    ids = shared.enqueue_array("--hold", "--array", "1-4", "--name", "part", "true")

    async def scene(at: Play) -> None:
        await at.shows(f"{ids[0]}-{ids[-1]}", "4 held")
        await at.press("enter")
        await at.shows(f"{ids[0]} [1]", f"{ids[-1]} [4]")

    play(shared, scene)


def test_rows_are_sorted_by_key_and_by_click(shared: GrassHome) -> None:
    for name in ("beta", "alpha"):
        shared.enqueue("--hold", "--name", name, "--", "true")

    def order(at: Play) -> list[str]:
        return [row["name"] for row in at.app.screen.query_one(JobList).rows]

    async def scene(at: Play) -> None:
        await at.until(lambda: order(at) == ["beta", "alpha"])
        await at.press("s")
        await at.until(lambda: order(at) == ["alpha", "beta"])
        await at.shows("sorted by -id")
        column = at.static("#columns").index("NAME") + 1
        await at.click("#columns", (column, 0))
        await at.shows("sorted by name")
        await at.click("#columns", (column, 0))
        await at.shows("sorted by -name")
        assert order(at) == ["beta", "alpha"]

    play(shared, scene)


def test_the_log_follows_and_is_searched(shared: GrassHome, gate: Fifo) -> None:
    line = f"seq 1 300; printf 'a\\rb\\rlast bar'; echo; read x < {gate}; echo later"
    job = shared.enqueue(*WAITS, line)
    running(shared, job)

    async def scene(at: Play) -> None:
        await at.shows("sh")
        await at.press("l")
        await at.shows(f"log of job {job}", "last bar", "lines 280-301, follows")
        await at.press("slash")
        await at.type("7")
        await at.press("enter")
        await at.shows("`7` 57 of 57", "297")
        await at.press("n", "N", "N")
        await at.shows("`7` 56 of 57")
        await at.press("escape", "home")
        await at.shows("lines 1-22, scrolled up")
        await at.press("G")
        gate.tell("go")
        await at.shows("later", "ended")
        await at.press("escape")
        await at.shows("● live")

    play(shared, scene)


def test_a_long_log_is_read_back_to_its_first_line(shared: GrassHome) -> None:
    job = shared.enqueue("--require", "{}", "seq 1 5000")
    shared.wait(job)

    async def scene(at: Play) -> None:
        await at.shows("seq")
        await at.press("l")
        await at.shows("lines 4,979-5,000, ended")
        await at.press("home")
        await at.shows("lines 1-22")
        await at.press("slash")
        await at.type("2345")
        await at.press("enter")
        await at.shows("`2345` 1 of 1", "2344", "2346")
        await at.press("escape", "G")
        await at.shows("lines 4,979-5,000")
        view = at.app.screen.query_one(LogView)
        view.scroll_home(animate=False)
        await at.until(lambda: view.first == 3001)
        view.scroll_home(animate=False)
        await at.until(lambda: view.first == 2001)

    play(shared, scene)


def test_a_job_is_explained_and_shown_with_all_there_is(shared: GrassHome) -> None:
    job = shared.enqueue(
        "--require", "{gpu:2}", "--hold", "--name", "big", "--", "true"
    )

    async def scene(at: Play) -> None:
        await at.shows("big")
        await at.press("e")
        await at.shows(f"job {job} is held")
        await at.press("escape", "enter")
        await at.shows("needs       gpu 2", "enqueued")
        await at.press("q")
        await at.shows("● live")

    play(shared, scene)


def test_gpus_and_queues_have_screens(shared: GrassHome, two: FakeGpus) -> None:
    shared.ok("create-queue", "night")
    shared.enqueue("night", "--hold", "--name", "nightly", "--", "true")
    shared.enqueue("--hold", "--name", "daily", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("daily", "gpu 1")
        await at.press("g", "n")
        await at.shows("Card A", "Card B", f"stranger  sleep  pid {pid}")
        await at.press("j", "d", "y")
        await at.shows("drained")
        assert shared.client.overview()["workers"][0]["drained"]["gpu"] == ["1"]
        await at.press("d")
        await at.shows_not("drained")
        await at.press("g", "q")
        await at.shows("QUEUE", "night")
        await at.press("j", "d", "y")
        await at.shows("paused")
        await at.press("enter")
        await at.shows("filter: queue:night", "nightly")
        await at.shows_not("daily")

    with two.stranger(0, "3G") as pid:
        play(shared, scene)


def test_what_is_read_while_it_is_left_is_not_drawn(shared: GrassHome) -> None:
    seen: list[TopApp] = []

    async def scene(at: Play) -> None:
        await at.shows("● live")
        seen.append(at.app)

    play(shared, scene)
    (app,) = seen
    assert app.screen_stack == []
    app.on_fresh(Fresh(News("overview", shared.document())))


def test_the_keys_are_listed(shared: GrassHome) -> None:
    async def scene(at: Play) -> None:
        await at.press("question_mark")
        await at.shows("GPUs and who is on them", "Kill now")
        await at.press("escape")
        await at.shows("live")

    play(shared, scene, LARGE)


def test_a_paused_screen_stays_as_it_is(shared: GrassHome) -> None:
    shared.enqueue("--hold", "--name", "before", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("before")
        await at.press("p")
        await at.shows("paused for")
        shared.enqueue("--hold", "--name", "meanwhile", "--", "true")
        await at.shows("paused for 2s")
        assert "meanwhile" not in at.text()
        await at.press("p")
        await at.shows("meanwhile", "● live")

    play(shared, scene)


HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]b[/] \x9b2J \u202eright"


def test_nothing_of_a_job_reaches_the_terminal_as_a_sequence(
    shared: GrassHome,
) -> None:
    wrote = HOSTILE.replace("\x1b", "\\033").replace("\x07", "\\007")
    done = shared.enqueue("--require", "{}", "--", "printf", f"{wrote}\\n")
    shared.wait(done)
    shared.enqueue("--hold", "--name", HOSTILE, "--", "echo", HOSTILE)

    def is_clean(at: Play) -> bool:
        return at.text().replace("\n", "").isprintable()

    async def scene(at: Play) -> None:
        await at.shows("‖ held", "[bold]b[/]")
        assert is_clean(at)
        for key, title in (("l", "log of job"), ("e", "is held"), ("enter", "state")):
            await at.press(key)
            await at.shows(title)
            assert is_clean(at)
            await at.press("escape")
            await at.shows("‖ held")
        await at.press("j", "l")
        await at.shows("red [bold]b[/]")
        # Letters that turn the direction are text; sequences are gone.
        assert "\x1b" not in at.text()
        assert "\x9b" not in at.text()

    play(shared, scene, LARGE)


def test_what_a_job_uses_fits_into_the_pane_of_a_usual_terminal(
    shared: GrassHome,
) -> None:
    shared.enqueue("--require", "{gpu:0.5, vram:'20G'}", "--", "use-gpu", "12G")

    async def scene(at: Play) -> None:
        await at.shows("gpu 0 utilization", "PEAK", "12.0 GiB  12.0 GiB")

    play(shared, scene, (120, 40))
