"""The tables of `show`: signs, arrays, reasons, units and what is left out."""

import re
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.parsing.options import Values
from grass.cli.printing.command_text import command_text, in_a_row, joined
from grass.cli.printing.show.array_rows import counts, with_arrays
from grass.cli.printing.show.overview_page import listing_page, overview_page
from grass.cli.printing.show.show_options import FILTERS, ShowOptions
from grass.cli.printing.show.unit_bars import worker_lines
from grass.cli.printing.signs import ASCII, UNICODE, signs_of_terminal
from grass.cli.printing.styled import cells
from grass.cli.printing.table import Screen

from .documents import Document, attempt, job

PIPE = Screen(None, colours=False)
NARROW = Screen(80, colours=False)
NARROWER = Screen(70, colours=False)
COLOURED = Screen(80, colours=True)
WANTED = ShowOptions(Values(), [])
LATER = "2126-01-02T03:00:00Z"


def running(id: int, **fields: Any) -> Document:
    usual = {"state": "running", "exit_code": None, "finished_at": None}
    held = {"gpu": {"0": 0.5}}
    return job(id=id, **{**usual, "allocation": held, **fields})


def queued(id: int, reason: str, **fields: Any) -> Document:
    usual = {"state": "queued", "exit_code": None, "finished_at": None}
    unknown: Document = {"started_at": None, "attempts": [], "worker": None}
    return job(id=id, reason=reason, **{**usual, **unknown, **fields})


def array(first: int, last: int, states: dict[str, int], **fields: Any) -> Document:
    return {
        "id": first,
        "last": last,
        "name": "train.py",
        "project": "default",
        "queue": "q1",
        "owner": "ada",
        "command": ["python", "train.py", "seed={index}"],
        "request": {"gpu": 1},
        "total": last - first + 1,
        "states": states,
        "created_at": "2026-01-02T03:00:00Z",
        "started_at": "2026-01-02T03:00:00Z",
        "finished_at": None,
        "reason": None,
        "params": [],
        **fields,
    }


def table(
    jobs: list[Document], screen: Screen, arrays: list[Document] | None = None
) -> list[str]:
    page = listing_page(WANTED, {"jobs": jobs, "arrays": arrays or []}, screen)
    return [*page.head, *page.body]


def test_an_array_of_one_job_is_shown_as_that_job() -> None:
    known = running(9, array=9, index=1, command=["python", "only.py"])
    shown = list(with_arrays([known], [array(9, 9, {"running": 1})]))
    assert shown == [known]


def test_an_array_is_one_row_with_its_counts_and_a_bar() -> None:
    members = [running(id, array=724, index=id - 723) for id in (724, 725)]
    waits = queued(726, "", array=724, index=3)
    states = {"running": 2, "queued": 8, "succeeded": 2}
    lines = table([*members, running(9), waits], NARROW, [array(724, 735, states)])
    assert len(lines) == 3
    assert lines[1].split()[:2] == ["724-735", "██▌░░░░░░░"]
    assert "train.py  2 running, 8 queued, 2 done, 0 failed  " in lines[1]
    assert lines[2].startswith("9        ● running")
    assert all(cells(line) <= 80 for line in lines)


def test_signs_stand_for_words_where_these_leave_no_room_for_the_time() -> None:
    states = {"running": 2, "queued": 8, "succeeded": 2}
    member = running(724, array=724, index=1)
    lines = table([member], NARROWER, [array(724, 735, states)])
    assert re.search(r"train.py  ● 2  ○ 8  ✓ 2  ✗ 0  \d+d", lines[1])


def test_in_a_pipe_an_array_is_one_line_with_its_state_and_command() -> None:
    states = {"running": 2, "queued": 8, "succeeded": 2}
    [_, line] = table(
        [running(724, array=724, index=1)], PIPE, [array(724, 735, states)]
    )
    assert line.split()[:4] == ["724-735", "running", "q1", "train.py"]
    assert line.endswith(
        "2 running, 8 queued, 2 done, 0 failed: python train.py seed={index}"
    )


@pytest.mark.parametrize(
    ("states", "text", "state"),
    [
        ({"queued": 12}, "12 queued", "queued"),
        ({"succeeded": 12}, "12 done, 0 failed", "succeeded"),
        ({"succeeded": 9, "failed": 3}, "9 done, 3 failed", "failed"),
        ({"held": 2, "cancelled": 1}, "2 held, 0 failed, 1 cancelled", "held"),
    ],
)
def test_the_counts_of_an_array(states: Document, text: str, state: str) -> None:
    assert counts(states) == text
    [_, line] = table([], PIPE, [array(1, 12, states, finished_at=LATER)])
    assert line.split()[1] == state


def test_a_row_of_an_array_can_be_written_in_every_column() -> None:
    from grass.cli.printing.show.columns import COLUMNS

    wanted = ShowOptions(Values(), [])
    wanted.columns, wanted.has_usual_columns = list(COLUMNS), False
    document = {"jobs": [], "arrays": [array(1, 12, {"queued": 12})]}
    for screen in (PIPE, NARROW):
        assert len(listing_page(wanted, document, screen).body) == 1


def test_states_have_signs_on_a_terminal_and_are_words_in_a_pipe() -> None:
    jobs = [
        running(1),
        queued(2, ""),
        queued(3, "", state="waiting"),
        queued(4, "", state="held"),
        job(id=5),
        job(id=6, state="failed", exit_code=3),
        job(id=7, state="cancelled"),
        job(id=8, state="lost"),
    ]
    words = ["running", "queued", "waiting", "held"]
    words += ["succeeded", "failed", "cancelled", "lost"]
    assert [line.split()[1] for line in table(jobs, PIPE)[1:]] == words
    signs = [line.split()[1] for line in table(jobs, NARROW)[1:]]
    assert signs == ["●", "○", "◌", "‖", "✓", "✗", "⊘", "?"]
    plain = table(jobs, Screen(80, colours=False, signs=ASCII))
    assert "".join(plain).isascii()
    assert [line.split()[2] for line in plain[1:]] == words
    assert "✗ failed (3)" in table(jobs, NARROW)[6]


def test_ended_jobs_are_dimmed_and_failures_stand_out() -> None:
    ran, failed, runs = table(
        [job(id=1), job(id=2, state="failed", exit_code=3), running(3)], COLOURED
    )[1:]
    assert ran.startswith("\x1b[2m1\x1b[0m   \x1b[2m✓ succeeded\x1b[0m")
    assert "\x1b[31m✗ failed (3)\x1b[0m" in failed
    assert runs.startswith("3   \x1b[32m● running\x1b[0m")
    assert "\x1b[2m" not in runs


def test_a_reason_is_told_once_below_the_jobs_that_have_it() -> None:
    reason = "needs gpu 2, free 0 of 2"
    jobs = [running(1), queued(2, reason), queued(3, reason), queued(4, "paused")]
    assert [line.strip() for line in table(jobs, NARROW)[1:] if "└" in line] == [
        f"└ both: {reason}",
        "└ paused",
    ]
    in_pipe = table(jobs, PIPE)
    assert len(in_pipe) == 5
    assert in_pipe[0].split()[-2:] == ["REASON", "COMMAND"]
    assert all(line.endswith("python train.py") for line in in_pipe[1:])
    assert "REASON" not in table([running(1)], PIPE)[0]


def test_a_signal_is_told_below_the_job_that_it_ended() -> None:
    lines = table([job(state="failed", exit_code=None, signal=9)], NARROW)
    assert lines[2].strip().startswith("└ ")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_command_is_never_pushed_out(width: int) -> None:
    long = running(
        123456,
        index=99999,
        name="n" * 60,
        queue="q" * 60,
        worker="w" * 30,
        allocation={"gpu": dict.fromkeys(map(str, range(16)), 1)},
    )
    lines = table([long, running(7, owner="bob")], Screen(width, colours=False))
    assert all(cells(line) <= width for line in lines)
    assert lines[0].split()[-1] == "COMMAND"
    assert "python train.py" in lines[1]
    assert lines[1].startswith("123456 [99999]  ● running")


def test_columns_in_which_all_jobs_are_alike_are_left_out() -> None:
    same = table([running(1), running(2, worker=None)], NARROW)
    assert same[0].split() == ["ID", "STATE", "NAME", "UNITS", "TIME", "COMMAND"]
    assert table([running(1)], PIPE)[0].split()[:4] == ["ID", "STATE", "QUEUE", "NAME"]
    wide = Screen(200, colours=False)
    other = table([running(1), running(2, worker="w", owner="bob", queue="q")], wide)
    assert {"QUEUE", "OWNER", "WORKER"} <= set(other[0].split())


def test_units_stay_after_the_end() -> None:
    ended = job(attempts=[attempt(allocation={"gpu": {"3": 1}})])
    assert "gpu:3" in table([ended], NARROW)[1]


OVERVIEW = {
    "daemon": {
        "jobs": {"queued": 90, "running": 2, "succeeded": 500},
        "paused": False,
        "output_bytes": 0,
    },
    "workers": [],
    "queues": [],
}


def test_what_is_left_out_is_counted_and_members_of_a_row_are_not() -> None:
    document = {
        **OVERVIEW,
        "jobs": [running(1), running(3, array=3, index=1), job(id=9)],
        "arrays": [array(3, 92, {"running": 1, "queued": 80, "succeeded": 9})],
        "totals": {"running": 2, "queued": 85, "succeeded": 10, "failed": 1},
    }
    foot = overview_page(WANTED, document, PIPE).foot
    assert foot == [
        "and 6 more: 5 queued, 1 failed (`--all` shows them)",
        "2 running, 85 queued, 10 succeeded, 1 failed; output takes 0 B",
    ]


def test_a_daemon_without_totals_is_counted_as_a_whole() -> None:
    foot = overview_page(WANTED, {**OVERVIEW, "jobs": [running(1)]}, PIPE).foot
    assert foot[0].startswith("and 591 more: 1 running, 90 queued, 500 succeeded")


def worker(**fields: Any) -> Document:
    cores = {str(core): 1.0 for core in range(16)}
    return {
        "name": "desk",
        "connected": True,
        "capacity": {"cpu": cores, "ram": {"0": 64}, "gpu": {"0": 1, "1": 1}},
        "free": {
            "cpu": {core: 1 for core in cores if int(core) > 3},
            "ram": {"0": 64},
            "gpu": {"0": 0, "1": 0.5},
        },
        "origin": {"gpu": {"0": "declared", "1": "declared"}},
        "drained": {"gpu": ["1"]},
        **fields,
    }


def test_units_are_bars_on_a_terminal() -> None:
    lines = worker_lines([worker()], NARROW)
    assert lines[0].split() == ["WORKER", "KIND", "FREE", "HELD"]
    assert lines[1].endswith("cpu   12 of 16    ████░░░░░░░░░░░░")
    assert lines[2].endswith("░░░░░░░░░░")
    assert lines[3].endswith("0 ████  1 ██░░  declared  1 drained")
    plain = worker_lines([worker()], Screen(80, colours=False, signs=ASCII))
    assert plain[3].endswith("0 ####  1 ##..  declared  1 drained")


def lost_gpu() -> Document:
    fault = {"why": "it is lost from the bus, since 2026-01-01T00:00:00Z"}
    free = {"gpu": {"0": 0, "1": 1}}
    capacity = {"gpu": {"0": 1, "1": 1}}
    shown = {"origin": {}, "drained": {}, "faults": {"0": fault}}
    return worker(capacity=capacity, free=free, **shown)


def test_a_gpu_with_a_fault_is_neither_free_nor_held() -> None:
    plain = worker_lines([lost_gpu()], Screen(80, colours=False, signs=ASCII))
    assert " ".join(plain[1].split()) == "desk gpu 1 of 2 0 ---- 1 .... 0 faulty"
    only = lost_gpu() | {"capacity": {"gpu": {"0": 1}}}
    alone = worker_lines([only], Screen(80, colours=False, signs=ASCII))
    assert " ".join(alone[1].split()) == "desk gpu 0 of 1 ---------- faulty"
    document = {**OVERVIEW, "workers": [lost_gpu()]}
    foot = overview_page(WANTED, document, PIPE).foot
    assert any(
        line.startswith("gpu 0 of desk takes no jobs: it is lost from the bus, for ")
        for line in foot
    )


def test_in_a_pipe_units_are_numbers() -> None:
    lines = worker_lines([worker()], PIPE)
    assert lines[1].endswith("0-3: 0/1  4-15: 1/1")
    assert lines[3].endswith("0: 0/1  1: 0.5/1 drained")


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999, 1])
def test_a_bar_never_hides_a_little(share: float) -> None:
    filled, empty = UNICODE.bar(share, 10)
    assert len(filled + empty) == 10
    assert bool(filled) == (share > 0)
    assert (filled == "█" * 10) == (share == 1)


def test_a_shell_line_is_written_as_it_was_given() -> None:
    line = "echo 'a b' | wc"
    assert command_text(job(command=[line], shell=True)) == line


@given(st.lists(st.text(min_size=1), min_size=1))
def test_a_command_can_be_pasted(words: list[str]) -> None:
    assert shlex.split(joined(words)) == words


def test_a_row_leaves_out_the_comments_at_the_head_of_a_script() -> None:
    script = "#!/bin/sh\n#GRASS -c 1\n\n  # why\necho 1\n# two\necho 2\n"
    assert in_a_row({"command": [script], "shell": True}) == "echo 1\n# two\necho 2"
    assert in_a_row({"command": ["# no more"], "shell": True}) == "# no more"


def test_placeholders_need_no_quotes() -> None:
    assert joined(["a", "seed={index}", "{}", "${x}", "{1,2}"]) == (
        "a seed={index} {} '${x}' '{1,2}'"
    )


@pytest.mark.parametrize(
    ("variables", "signs"),
    [
        ({"LANG": "C"}, ASCII),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, ASCII),
        ({"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, ASCII),
        ({"TERM": "dumb", "LANG": "C.UTF-8"}, ASCII),
        ({"LANG": "C.UTF-8"}, UNICODE),
        ({}, UNICODE),
    ],
)
def test_signs_are_those_of_the_locale(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], signs: object
) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert signs_of_terminal() is signs


class Asked:
    """A client that answers every call with one array, and keeps what was asked."""

    def __init__(self, name: str) -> None:
        self._array = array(5, 16, {"queued": 12}, name=name)
        self.members: list[bool] = []

    def listing(self, *, members: bool, **_wanted: Any) -> Document:
        self.members.append(members)
        arrays = [] if members else [self._array]
        return {"jobs": [], "arrays": arrays, "totals": {}, "next": None}


@pytest.mark.parametrize(
    ("word", "name", "asked"),
    [
        ("name~^fit-4$", "fit-{index}", [False, True]),
        ("name~^fit$", "fit", [False]),
        ("@demo", "fit-{index}", [False]),
        ("state:failed", "fit", [True]),
    ],
)
def test_an_array_is_opened_where_its_members_have_names_to_choose_by(
    word: str, name: str, asked: list[bool]
) -> None:
    client: Any = Asked(name)
    ShowOptions(Values(), [word]).read(client)
    assert client.members == asked


def test_where_all_jobs_are_shown_none_is_said_to_be_left_out() -> None:
    values = Values()
    values.add(next(one for one in FILTERS if one.key == "all"), "")
    everything = ShowOptions(values, [])
    document = {"jobs": [running(7)], "arrays": [], "totals": {"queued": 9}}
    assert "more" not in listing_page(everything, document, PIPE).text()
    assert "more" in listing_page(WANTED, document, PIPE).text()
