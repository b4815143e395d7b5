"""A job as text: what it shows, what a changed text asks for, and every mistake."""

import re
from typing import Any

import pytest

from grass.cli.commands.edit import OPTIONS
from grass.cli.parsing.job_changes import CHANGES, changes
from grass.cli.parsing.job_text import JobText
from grass.errors import NeverFits, Refused, UsageError
from tests.cli.documents import job
from tests.docs.pages import ROOT, blocks

LINES = "for x in 1 2; do\n  echo 'it'\\''s' $x\ndone"


def text_of(**fields: Any) -> JobText:
    return JobText(document(**fields), OPTIONS)


def document(**fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "limit_signal": None,
        "prefix": [],
        "state": "queued",
        "labels": [],
    }
    known |= {"time_limit_s": None, "after": [], "begin_at": None, "retries": 0}
    return {**job(wanted_worker=None), **known, **fields}


def read(known: JobText, text: str) -> dict[str, Any]:
    return known.changes(text, lambda values: changes(values, None))


def edited(known: JobText, key: str, value: str) -> dict[str, Any]:
    """Change one line, or all lines of a value of several, and read the text."""
    text = re.sub(
        rf"(?ms)^{key} = ('''.*?'''|[^\n]*)", lambda _: f"{key} = {value}", known.text
    )
    assert text != known.text
    return read(known, text)


def test_the_text_is_as_the_page_shows_it() -> None:
    [shown] = blocks((ROOT / "docs/how-to/control.md").read_text(), "toml")
    own = {"id": 3, "name": "fit-again", "queue": "lab", "priority": 5}
    known = text_of(**own, command=["sleep", "700"])
    assert known.text.startswith(shown + "\n")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"command": ["sh", "-c", 'echo "it\'s" $A | wc']},
        {"command": [LINES], "shell": True},
        {"command": ["echo '''"], "shell": True},
        {"command": ["echo", "\\", "ü", "\udcff", "\x1b[31m", ""]},
        {"request": {"gpu": 0.5, "ram": 8, "vram": 0.0625, "my-kind": 2}},
        {"time_limit_s": 5400.0, "after": ["7:failed"], "labels": ["a", "b"]},
        {"begin_at": "2030-01-31T08:00:00.000Z", "wanted_worker": "desk"},
        {"cwd": None, "limit_signal": "USR1@60"},
    ],
)
def test_a_text_that_is_left_alone_changes_nothing(fields: dict[str, Any]) -> None:
    known = text_of(**fields)
    assert read(known, known.text) == {}
    assert read(known, "") == {}
    assert read(known, known.text.replace("\n", "\r\n")) == {}


def test_the_command_is_shown_without_the_queues_part() -> None:
    known = text_of(command=["python", "-u", "a b"], prefix=["python", "-u"])
    assert "command = \"'a b'\"\n" in known.text


@pytest.mark.parametrize(
    ("key", "value", "fields"),
    [
        ("command", "'python t.py \"a b\"'", {"command": ["python", "t.py", "a b"]}),
        ("command", "\"echo '|' $A\"", {"command": ["echo", "|", "$A"]}),
        ("shell", "true", {"command": "python train.py"}),
        ("name", "'fit'", {"name": "fit"}),
        ("queue", "'q'", {"queue": "q"}),
        ("priority", "5", {"priority": 5}),
        ("require", "{gpu = 2}", {"require": '{"gpu": 2}'}),
        ("require", "'{gpu:2}'", {"require": "{gpu:2}"}),
        ("time_limit", "'1h'", {"time_limit_s": 3600.0}),
        ("time_limit", "90", {"time_limit_s": 90.0}),
        ("after", "['7', '9:any']", {"after": ["7", "9:any"]}),
        ("after", "7", {"after": ["7"]}),
        ("begin", "'2030-01-31T08:00Z'", {"begin_at": "2030-01-31T08:00:00+00:00"}),
        ("cwd", "'/'", {"cwd": "/"}),
        ("retries", "3", {"retries": 3}),
        ("worker", "'desk'", {"worker": "desk"}),
        ("label", "['a', 'b']", {"labels": ["a", "b"]}),
        ("pool", "'uni'", {"pool": "uni"}),
        ("gpu_model", "'A100|H100'", {"gpu_model": "A100|H100"}),
        ("policy", "'spread'", {"policy": "spread"}),
    ],
)
def test_a_changed_line_is_read_as_its_option(
    key: str, value: str, fields: dict[str, Any]
) -> None:
    assert edited(text_of(), key, value) == fields


@pytest.mark.parametrize(
    ("key", "value", "fields"),
    [
        ("time_limit", "'none'", {"time_limit_s": None}),
        ("after", "[]", {"after": []}),
        ("begin", "'none'", {"begin_at": None}),
        ("worker", "'none'", {"worker": None}),
        ("label", "[]", {"labels": None}),
        ("pool", "'none'", {"pool": None}),
        ("gpu_model", "'none'", {"gpu_model": None}),
        ("policy", "'none'", {"policy": None}),
    ],
)
def test_none_takes_a_value_away(key: str, value: str, fields: dict[str, Any]) -> None:
    known = text_of(
        time_limit_s=5.0,
        after=["7"],
        labels=["a"],
        begin_at="2030-01-31T08:00:00.000Z",
        wanted_worker="desk",
        pool="uni",
        gpu_model="T4",
        policy="pack",
    )
    assert edited(known, key, value) == fields


def test_a_line_for_the_shell_is_changed_as_text() -> None:
    known = text_of(command=[LINES], shell=True)
    assert edited(known, "command", "'a | b'") == {"command": "a | b"}


def test_variables_are_added() -> None:
    known = text_of()
    assert read(known, known.text + "A = '1'\nB = 'x=y'\n") == {
        "env": {"A": "1", "B": "x=y"}
    }


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("priority", "'high'", "line 10: --priority must be a whole number"),
        ("priority", "true", "line 10: priority cannot be `True`"),
        ("priority", "", "the text is not TOML: Invalid value (at line 10, column 12)"),
        ("time_limit", "'soon'", "line 14: `soon` is not a duration"),
        ("command", "'a | b'", "line 5: `|` needs a shell"),
        ("command", "'a > b'", "line 5: `>` needs a shell"),
        ("command", "'a \"b'", "line 5: the command cannot be split: no closing quot"),
        ("command", "''", "line 5: a command is text in quotes"),
        ("command", "5", "line 5: a command is text in quotes"),
        ("shell", "'bash'", "line 6: shell is true or false"),
    ],
)
def test_a_mistake_names_its_line(key: str, value: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        edited(text_of(), key, value)
    assert caught.value.message.startswith(said)


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    known = text_of()
    with pytest.raises(UsageError, match="line 1: there is no `prio`") as caught:
        read(known, "prio = 5\n" + known.text)
    assert caught.value.hint == "did you mean `priority`?"


def test_a_job_that_ended_has_only_what_can_be_given_anew() -> None:
    known = JobText(document(state="failed"), CHANGES)
    assert "\nafter = " not in known.text
    assert "\npriority = " in known.text
    with pytest.raises(UsageError, match="there is no `after`"):
        read(known, "after = ['7']")


def test_a_refusal_is_placed_by_its_option_or_the_only_change() -> None:
    known = text_of()
    one = known.text.replace("priority = 0", "priority = 5")
    two = one.replace("retries = 0", "retries = 1001")
    assert known.place(one, Refused("there is no such thing")) == "line 10: "
    assert known.place(two, UsageError("--retries is 1001")) == "line 22: "
    assert known.place(two, Refused("there is no such thing")) == ""
    three = two.replace("{gpu = 0.5, cpu = 4}", "{cpu = 999}")
    assert known.place(three, NeverFits("cpu: asked 999")) == "line 12: "
