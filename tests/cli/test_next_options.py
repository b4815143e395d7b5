"""The options of the next daemon: those given, over those that the last one had."""

import json
from pathlib import Path

import pytest

from grass.cli.parsing.hosting_options import FRESH, HOSTING, next_options
from grass.cli.parsing.options import read
from grass.config import home

BROKER = ["--bind=127.0.0.1:0", "--advertise=127.0.0.1"]
WORKER = ["--connect=lab:7500", "--on-disconnect=stop", "--lease=30s"]


@pytest.mark.parametrize(
    ("last", "given", "words", "notices"),
    [
        ([], [], [], []),
        (BROKER, [], BROKER, []),
        (
            [*BROKER, "--label=a", "--label=b"],
            ["--label=c"],
            [*BROKER, "--label=c"],
            [],
        ),
        (BROKER, ["--advertise", "lab"], [BROKER[0], "--advertise=lab"], []),
        ([*BROKER, "--no-worker"], ["--fresh", "--label=a"], ["--label=a"], []),
        (
            [*BROKER, "--label=kept"],
            ["--connect", "lab:7500"],
            ["--connect=lab:7500", "--label=kept"],
            ["--connect replaces --bind, --advertise"],
        ),
        (
            WORKER,
            ["--on-disconnect", "keep"],
            ["--connect=lab:7500", "--on-disconnect=keep"],
            ["--on-disconnect replaces --lease"],
        ),
        (WORKER, ["--lease", "40s"], [*WORKER[:2], "--lease=40s"], []),
    ],
)
def test_given_options_replace_those_of_the_last_daemon(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: list[str],
    given: list[str],
    words: list[str],
    notices: list[str],
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(tmp_path))
    Path(home().options).write_text(json.dumps(last))

    values, _ = read((*HOSTING, FRESH), given)
    found = next_options(values)

    assert sorted(found.words) == sorted(words)
    assert found.notices == notices


def test_a_broker_replaces_all_that_a_worker_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRASS_HOME", str(tmp_path))
    Path(home().options).write_text(json.dumps([*WORKER, "--label=kept"]))

    values, _ = read(HOSTING, ["--bind", "127.0.0.1:0"])
    found = next_options(values)

    assert found.words == ["--bind=127.0.0.1:0", "--label=kept"]
    assert found.notices == ["--bind replaces --connect, --on-disconnect, --lease"]
