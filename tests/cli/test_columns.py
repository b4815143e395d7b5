"""What the cells, the card and the explanation of a job say."""

import pytest

from grass.cli.printing import wording
from grass.cli.printing.explanation import explained
from grass.cli.printing.quantities import utc_now
from grass.cli.printing.show import job_details
from grass.cli.printing.show.columns import COLUMNS, chosen, order, rows
from grass.cli.printing.show.summary import notes, queue_rows, worker_rows
from grass.cli.printing.styled import cells
from grass.cli.printing.table import Screen, render
from grass.cli.printing.wording import TINTS
from grass.errors import UsageError
from grass.model.jobs.spec import SHOWN_AS_STORED

from .documents import Document, attempt, job

PIPE = Screen(None, colours=False)


def cell(name: str, document: Document) -> str:
    [[text]] = rows([document], chosen(name), utc_now())
    return text


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("id", {}, "7"),
        ("id", {"index": 3}, "7 [3]"),
        ("state", {"state": "running", "flags": ["suspended"]}, "suspended"),
        ("state", {"flags": ["suspended", "stopping"]}, "stopping"),
        ("units", {"allocation": {"gpu": {"0": 1, "1": 0.5}}}, "gpu:0,1(0.5)"),
        ("request", {}, "gpu 0.5, cpu 4"),
        ("waited", {}, "1m00s"),
        ("ran", {}, "2m05s"),
        ("ran", {"ran_s": 61.4}, "1m01s"),
        ("ran", {"started_at": None}, ""),
        ("exit", {"exit_code": None, "signal": 15}, "killed by SIGTERM"),
        ("units", {"allocation": {}}, "gpu:0(0.5) cpu:0,1"),
        ("reason", {"state": "failed", "exit_code": 3}, "exit 3"),
        ("reason", {"state": "failed", "signal": 15, "reason": "late"}, "late"),
        ("command", {"command": ["python", "a b.py"]}, "python 'a b.py'"),
        ("after", {"after": ["3:succeeded", "4:any"]}, "3:succeeded 4:any"),
        ("retries", {"retries": 3, "retries_left": 1}, "1/3"),
        ("retries", {"retries": 0, "retries_left": 0}, ""),
        ("limit", {"time_limit_s": 7200}, "2h00m"),
        ("memory", {}, "3.0 MiB"),
        ("memory", {"attempts": []}, ""),
        ("cpu", {}, "1m01s"),
        ("attempts", {"attempts": [attempt(), attempt()]}, "2"),
    ],
)
def test_a_cell_says_it(name: str, fields: Document, expected: str) -> None:
    assert cell(name, job(**fields)) == expected


def test_every_column_can_be_written_and_sorted_by_also_without_the_newer_fields() -> (
    None
):
    jobs = [job(id=9), job(id=7, state="queued", started_at=None, attempts=[])]
    for column in COLUMNS:
        assert len(list(rows(jobs, [column], utc_now()))) == 2
        assert len(order(column.name)(jobs)) == 2


def test_an_error_about_a_column_lists_all_columns() -> None:
    with pytest.raises(UsageError, match="there is no column `colour`") as caught:
        chosen("id,colour")
    assert caught.value.hint.startswith("columns: id, state, ")
    assert "\n" not in str(caught.value)


def test_jobs_are_sorted_up_and_down() -> None:
    jobs = [job(id=1, priority=5), job(id=10, priority=-1), job(id=9, priority=2)]
    assert [one["id"] for one in order("priority")(jobs)] == [10, 9, 1]
    assert [one["id"] for one in order("-id")(jobs)] == [10, 9, 1]


def test_more_columns_than_fit_are_cut_at_the_edge() -> None:
    columns = list(COLUMNS)
    header = [column.header for column in columns]
    shown = rows([job()], columns, utc_now())
    lines = render(header, shown, Screen(80, colours=False)).splitlines()
    assert all(cells(line) <= 80 for line in lines)


def test_a_card_says_everything_and_lists_the_attempts() -> None:
    document = job(
        state="failed",
        exit_code=3,
        index=4,
        array=100,
        after=["3:any"],
        begin_at="2026-01-02T03:00:30Z",
        time_limit_s=90.0,
        grace_s=15.0,
        retries=2,
        retries_left=0,
        backoff_s=30.0,
        retry_on=["1", "signal"],
        nice=5,
        attempts=[attempt(exit_code=1), attempt(number=2, exit_code=3)],
    )
    text = job_details.text(document, PIPE)
    for line in (
        "job 7: train",
        "state       failed, exit 3",
        "command     python train.py",
        "array       100, index 4",
        "needs       gpu 0.5, cpu 4",
        "after       3:any",
        "time limit  1m30s",
        "retries     0 of 2 left, back-off 30s, doubling, on 1, signal",
        "nice        5",
        "output      /data/7.log",
    ):
        assert line in text.splitlines()
    table = text.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in table] == ["ATTEMPT", "1", "2"]
    assert table[2].endswith("exit 3")


def test_a_card_shows_every_option_that_the_api_shows() -> None:
    plain = job_details.text(job(), PIPE)
    in_line_of_retries = {"backoff_s", "retry_on"}
    for name in set(SHOWN_AS_STORED) - in_line_of_retries:
        other = {"labels": ["big"], "limit_signal": "USR1@60", "stdin": "pty"}
        text = job_details.text(job(**{name: other.get(name, 3)}), PIPE)
        assert len(text.splitlines()) == len(plain.splitlines()) + 1, name
    text = job_details.text(job(shell_program="/bin/zsh", max_fails=3), PIPE)
    assert "shell       /bin/zsh" in text.splitlines()
    assert "max fails   3" in text.splitlines()


def test_a_card_of_a_suspended_job_says_since_when() -> None:
    document = job(
        state="running",
        flags=["suspended"],
        suspended_since="2026-01-02T03:02:00Z",
        exit_code=None,
        finished_at=None,
    )
    assert "state       suspended for " in job_details.text(document, PIPE)


def test_a_job_out_of_sight_shows_both_of_its_flags() -> None:
    document = job(
        state="running",
        flags=["stopping", "unreachable"],
        stopping_since="2026-01-02T03:02:00Z",
        unreachable_since="2026-01-02T03:01:00Z",
        exit_code=None,
        finished_at=None,
    )
    state = job_details.text(document, PIPE).splitlines()[1]
    assert state.startswith("state       unreachable for ")
    assert ", stopping for " in state
    assert wording.state(document) == "unreachable, stopping"
    assert wording.state({**document, "flags": ["suspended", "stopping"]}) == "stopping"
    screen = Screen(80, colours=True)
    row = ["7", "unreachable, stopping", "x" * 80]
    table = render(("ID", "STATE", ""), [row], screen, TINTS)
    assert "\x1b[33munreachable, stopp\x1b[0m\x1b[33m…" in table


def test_a_card_says_where_alone_a_job_may_run() -> None:
    document = job(wanted_worker="rack", labels=["a100", "big"])
    lines = job_details.text(document, PIPE).splitlines()
    assert "only on     rack" in lines
    assert "labels      a100, big" in lines


def test_a_worker_that_is_away_is_called_unreachable() -> None:
    worker = {
        "name": "rack",
        "connected": False,
        "capacity": {"gpu": {"0": 1, "1": 1}},
        "free": {"gpu": {"0": 0, "1": 1}},
        "origin": {"gpu": {"0": "found", "1": "found"}},
    }
    assert worker_rows([worker]) == [
        ["rack (unreachable)", "gpu", "found", "0: 0/1  1: 1/1"]
    ]


@pytest.mark.parametrize(
    ("views", "limits"),
    [
        ({}, ""),
        ({"w1": {"slot": {"0": 1}}}, "slot 1"),
        ({"w1": {"slot": {"0": 1}}, "w2": {"slot": {"0": 1, "1": 1}}},
         "slot 1 on w1, slot 2 on w2"),
        ({"w1": {"slot": {"0": 1}, "cpu": {"0": 1}}, "w2": {}}, "slot 1, cpu 1 on w1"),
        ({f"w{n}": {"slot": {"0": 1}} for n in range(6)},
         "slot 1 on w0, slot 1 on w1, slot 1 on w2, and 3 more"),
    ],
)  # fmt: skip
def test_limits_name_the_workers_where_there_are_several(
    views: Document, limits: str
) -> None:
    queue = {
        "name": "q",
        "running": 0,
        "waiting": 0,
        "paused": False,
        "max_running": None,
        "views": {
            worker: {"capacity": capacity, "command": [], "cwd": None}
            for worker, capacity in views.items()
        },
    }
    assert queue_rows([queue])[0][3] == limits


def test_names_on_a_card_cannot_write_escape_sequences() -> None:
    document = job(name="\x1b[31mred", command=["a\nb"], reason="\x07")
    text = job_details.text(document, PIPE)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "command     'a\\nb'" in text


def test_strangers_and_faults_are_marked() -> None:
    worker = {
        "name": "here",
        "connected": True,
        "capacity": {"gpu": {"0": 1, "1": 1}, "vram": {"0": 80, "1": 80}},
        "free": {"gpu": {"0": 1, "1": 1}, "vram": {"0": 68, "1": 80}},
        "origin": {},
        "strangers": {"0": ["python (pid 4711, alice): 12G"]},
        "faults": {"1": "lost from the bus"},
    }
    assert [row[3] for row in worker_rows([worker])] == [
        "0: 1/1  1: 1/1 faulty",
        "0: 68G/80G strangers  1: 80G/80G faulty",
    ]


def test_drained_units_are_marked() -> None:
    worker = {
        "name": "here",
        "connected": True,
        "capacity": {"gpu": {"0": 1, "1": 1, "2": 1}},
        "free": {"gpu": {"0": 1, "1": 1, "2": 1}},
        "origin": {"gpu": {"0": "found", "1": "found", "2": "found"}},
        "drained": {"gpu": ["2"]},
    }
    assert worker_rows([worker]) == [
        ["here", "gpu", "found", "0-1: 1/1  2: 1/1 drained"]
    ]


def test_a_queue_that_paused_by_itself_says_why() -> None:
    queue = {
        "name": "q1",
        "paused": True,
        "paused_reason": "3 jobs failed in a row",
        "max_running": 4,
        "max_fails": 3,
        "fails": 3,
        "running": 0,
        "waiting": 9,
        "views": {},
    }
    assert notes([queue]) == [
        "queue q1 paused by itself: 3 jobs failed in a row (`grass resume q1` goes on)"
    ]
    assert queue_rows([queue]) == [["q1", "0", "9", "paused, max 4, fails 3/3", ""]]


def test_an_explanation_of_a_waiting_job_has_the_numbers() -> None:
    document = {
        "id": 7,
        "state": "queued",
        "why": "needs gpu 1, free 0.5 of 2",
        "constraints": [
            {"what": "gpu", "need": "1", "have": "0.5", "of": "2", "ok": False},
            {"what": "cpu", "need": "1", "have": "4", "of": "8", "ok": True},
        ],
        "holders": [
            {"job": 3, "name": "big", "units": {"gpu": {"0": 1}}, "since": None}
        ],
        "position": 4,
        "overtaken": 0,
        "estimated_start_at": "2126-01-02T03:00:00Z",
        "estimate_from": "median of 12 runs",
        "attempts": 0,
    }
    lines = explained(document, PIPE).splitlines()
    assert lines[0] == "job 7 is queued: needs gpu 1, free 0.5 of 2"
    assert lines[3].split() == ["gpu", "1", "0.5", "2", "short"]
    assert "3        big   gpu:0" in lines
    assert "place in its queue: 4" in lines
    assert lines[-1].startswith("starts about ")
    assert lines[-1].endswith("(median of 12 runs)")
    document["estimated_start_at"] = "2026-01-02T03:00:00Z"
    past = explained(document, PIPE).splitlines()
    assert past[-1] == "starts soon (median of 12 runs)"


def test_an_explanation_of_a_failed_job_has_its_last_lines() -> None:
    document = {
        "id": 7,
        "state": "failed",
        "why": "exit code 3",
        "exit_code": 3,
        "signal": None,
        "last_lines": ["Traceback", "oh \x1b[31mno"],
        "max_rss": 2**30,
        "cpu_s": 61.0,
        "took_s": 90.0,
        "attempts": 2,
    }
    text = explained(document, PIPE)
    assert text.startswith("job 7 failed: exit code 3\n")
    assert "most memory: 1.0 GiB\n" in text
    assert "attempts: 2\n" in text
    assert text.endswith("last lines of its output:\n  Traceback\n  oh \\x1b[31mno\n")
