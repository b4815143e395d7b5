"""Keywords are the options of the command line, and are read as these."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import grass
from grass.cli.commands import edit, enqueue, rerun
from grass.cli.parsing import job_changes
from grass.cli.parsing.job_options import settings
from grass.cli.parsing.options import Option, Values, scan
from grass.errors import UsageError
from grass.verbs import enqueueing, keywords
from grass.verbs.job import Job
from grass.verbs.job_list import Jobs
from grass.verbs.keywords import as_values

FOR_A_SHELL = {"from", "dry_run", "format"}
"""Options that a program needs no keyword for."""
BEGIN = datetime(2030, 1, 2, tzinfo=UTC)
OF_VERBS = {"any", "yes", "dry_run", "quiet", "broker", "json"}


def names(form: type) -> set[str]:
    return set(form.__annotations__)


def keys(options: tuple[Option, ...]) -> set[str]:
    return {one.key for one in options if not one.hidden}


def test_every_option_is_a_keyword_and_no_other() -> None:
    given = keys(enqueue.OPTIONS) - FOR_A_SHELL
    assert keys(enqueueing.ARRAY_OPTIONS) == given
    ours = names(keywords.JobOptions) | names(keywords.ArrayOptions)
    assert ours == (given - {"array"}) | {"request"}
    assert names(keywords.JobOptions) == keys(enqueueing.OPTIONS) | {"request"}


def test_every_change_is_a_keyword_and_no_other() -> None:
    changes = names(keywords.JobChanges)
    assert changes == keys(job_changes.CHANGES) | {"request"}
    besides = {"edit", "hold", "with_dependents"}
    assert changes - {"request"} == keys(rerun.OPTIONS) - OF_VERBS - besides
    both = changes | names(keywords.ChangesBeforeStart)
    moves = {"first", "before"}
    assert both - {"request"} == keys(edit.OPTIONS) - OF_VERBS - moves


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"request": {"gpu": 0.5}}, ['--require={"gpu": 0.5}']),
        ({"require": "{gpu:1}"}, ["--require={gpu:1}"]),
        ({"gpu": 0.5, "ram": "8G", "cpu": 2}, ["-g0.5", "-m8G", "-c2"]),
        ({"env": {"A": 1, "B": "x=y"}}, ["--env=A=1", "--env=B=x=y"]),
        ({"env": ["A=1", "B="]}, ["--env=A=1", "--env=B="]),
        ({"cwd": Path("/tmp"), "output": "a.log"}, ["--cwd=/tmp", "--output=a.log"]),
        ({"after": 7}, ["--after=7"]),
        ({"after": [Job(7), "9:failed"]}, ["--after=7,9:failed"]),
        ({"after": Jobs([3, 4, 6])}, ["--after=3-4,6-6"]),
        ({"after": [Jobs([3, 4]), Job(9)]}, ["--after=3-4,9"]),
        ({"label": ["a100", "fast"]}, ["--label=a100", "--label=fast"]),
        ({"retry_on": [1, "signal"]}, ["--retry-on=1,signal"]),
        ({"time_limit": 90, "grace": "2m"}, ["--time-limit=90s", "--grace=2m"]),
        ({"time_limit": timedelta(hours=2)}, ["--time-limit=2h"]),
        ({"time_limit": 0.5}, ["--time-limit=0.5"]),
        ({"begin": BEGIN}, ["--begin=2030-01-02T00:00+00:00"]),
        ({"hold": True, "raw": False, "name": None}, ["--hold"]),
        ({"enforce": True}, ["--enforce"]),
        ({"enforce": "stop"}, ["--enforce=stop"]),
        ({"name": "--odd", "priority": -3}, ["--name=--odd", "--priority=-3"]),
    ],
)
def test_a_keyword_means_what_the_option_means(
    given: dict[str, Any], words: list[str]
) -> None:
    written = Values()
    scan(enqueueing.OPTIONS, words, 0, written)
    read = settings(as_values(enqueueing.OPTIONS, given), None)
    assert read == settings(written, None)


@pytest.mark.parametrize("nothing", [None, [], (), Jobs([]), iter(())])
def test_a_list_of_nothing_is_as_if_it_were_not_given(nothing: Any) -> None:
    assert settings(as_values(enqueueing.OPTIONS, {"after": nothing}), None) == {}
    values = as_values(job_changes.CHANGES_BEFORE_START, {"after": nothing}, "none")
    assert job_changes.changes(values, None) == {"after": []}


def test_a_request_of_nothing_is_one() -> None:
    read = settings(as_values(enqueueing.OPTIONS, {"request": {}}), None)
    assert read == {"require": "{}"}


def test_none_takes_away_where_a_job_is_changed() -> None:
    given = {"time_limit": None, "label": None, "priority": 3}
    values = as_values(job_changes.CHANGES, given, job_changes.NONE)
    changed = job_changes.changes(values, None)
    assert changed == {"time_limit_s": None, "labels": None, "priority": 3}


def test_a_misspelled_keyword_is_told_as_on_the_command_line() -> None:
    with pytest.raises(UsageError, match=r"no option `--nmae=x`.*mean `--name`"):
        as_values(enqueueing.OPTIONS, {"nmae": "x"})
    with pytest.raises(UsageError, match=r'request=Cores.*of a job it is.*"cpu": 1'):
        as_values(enqueueing.OPTIONS, {"request": grass.Cores(1)})
