"""Every example in the documentation runs, and prints what the page shows."""

from pathlib import Path

import pytest

from .pages import ROOT, Step, all_pages, steps
from .rehearsal import masked, rehearse

WITH_EXAMPLES = [page for page in all_pages() if steps(page.read_text())]


@pytest.mark.daemon
@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    "page", WITH_EXAMPLES, ids=[str(page.relative_to(ROOT)) for page in WITH_EXAMPLES]
)
def test_examples_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    problems = rehearse(steps(page.read_text()), tmp_path)
    assert not problems, "\n\n".join(problems)


@pytest.mark.daemon
def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    wrong = Step(1, "echo one", ["two"])
    silent = Step(2, "false")
    shown = [Step(3, "(exit 3)"), Step(4, "echo $?", ["3"])]
    problems = rehearse([wrong, silent, *shown], tmp_path)
    assert [problem.splitlines()[0] for problem in problems] == [
        "line 1: $ echo one",
        "line 2: $ false",
    ]


def test_pages_that_promise_examples_have_some() -> None:
    names = {str(page.relative_to(ROOT)) for page in WITH_EXAMPLES}
    assert {"README.md", "docs/tutorial.md", "docs/how-to/queues.md"} <= names


def test_masks_hide_only_what_differs_from_run_to_run() -> None:
    assert masked("7  running  12s  (pid 88)") == masked("7 running 3s (pid 9)")
    assert masked("7  running") != masked("8  running")


def test_masks_hide_when_something_was_but_not_what() -> None:
    before = masked("2026-08-03 21:40:12  started  job 3, for 9m59s")
    assert before == masked("2027-01-01 00:00:00  started  job 3, for 12s")
    assert before != masked("2026-08-03 21:40:12  finished  job 3, for 9m59s")


@pytest.mark.daemon
def test_paths_and_sleep_are_those_of_a_reader(tmp_path: Path) -> None:
    program = "import time\n\ntime.sleep(600)\n"
    where = Step(2, "pwd", ["/home/you/work"])
    file = Step(1, file=("wait.py", program))
    assert not rehearse([file, where, Step(3, "python wait.py")], tmp_path)


def test_masks_hide_pins_codes_and_addresses_but_not_names() -> None:
    pin, code = "p" * 42 + "-", "c" * 21 + "_"
    line = f"grass join desk:7500/{pin}/{code}"
    assert masked(line) == masked(line.replace("p", "q").replace("c", "d"))
    assert masked(line) != masked(line.replace("desk", "rack"))
    assert masked("rack connected 10.0.0.7 2") == masked("rack connected 10.0.0.8 2")
    assert masked("rack connected 10.0.0.7 2") != masked("rack draining 10.0.0.7 2")


@pytest.mark.daemon
def test_a_prompt_names_the_machine_and_a_pasted_line_is_the_last_printed(
    tmp_path: Path,
) -> None:
    line = f"grass join desk:7500/{'p' * 43}/{'c' * 22}"
    said = ["joined the broker at desk:7500 as rack (role read)", "..."]
    token = Step(2, "grass token new --role read 2>/dev/null", [line], machine="desk")
    start = Step(1, "grass start --bind 0.0.0.0:7500 | tail -n 1", [line])
    joined = Step(3, line, said, machine="rack")
    where = Step(4, "grass show --workers -q", ["desk"], machine="rack")
    local = Step(5, "grass show -q --broker local", machine="rack")
    assert not rehearse([start, token, joined, where, local], tmp_path)


def test_a_command_a_file_and_a_mark_are_read_from_a_page() -> None:
    page = (
        "Save this as `a.py`:\n\n```python\nx\n```\n\n<!-- hold -->\n\n"
        "```console\n$ one \\\n> two\nout\n$ three\n```\n"
    )
    file, mark, one, three = steps(page)
    assert file.file == ("a.py", "x\n")
    assert mark.mark == "hold"
    assert (one.command, one.shown) == ("one \\\ntwo", ["out"])
    assert (three.command, three.shown) == ("three", [])


def test_a_prompt_may_have_the_name_of_a_machine() -> None:
    page = "```console\nrack$ one\nout\n$ two\n```\n"
    assert [(step.machine, step.command) for step in steps(page)] == [
        ("rack", "one"),
        ("", "two"),
    ]
