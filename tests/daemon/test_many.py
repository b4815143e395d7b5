"""Verbs on more than one job: asked, counted, rehearsed."""

import json
import os
import pty
import subprocess
from collections.abc import Sequence

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GRASS, GrassHome

pytestmark = pytest.mark.daemon

VERBS = {"edit": "queued", "rerun": "failed", "suspend": "running"}
"""Some verbs, and the state of the jobs that they are tried on."""


@pytest.fixture
def jobs(shared: GrassHome, gate: Fifo) -> dict[str, list[int]]:
    """Three jobs in each state."""
    made = {"running": shared.enqueue_array("--require", "{}", "--array", "1-3",
                                            f"read x < {gate}")}  # fmt: skip
    made["failed"] = shared.enqueue_array("--array", "1-3", "--", "false")
    shared.wait(*made["failed"])
    shared.ok("pause")
    made["queued"] = shared.enqueue_array("--array", "1-3", "--", "true")
    made["held"] = shared.enqueue_array("--hold", "--array", "1-3", "--", "true")
    return made


def everything(home: GrassHome) -> list[dict[str, object]]:
    return list(home.client.jobs())


@pytest.mark.parametrize("verb", VERBS)
def test_a_rehearsal_names_the_jobs_and_changes_nothing(
    shared: GrassHome, jobs: dict[str, list[int]], verb: str
) -> None:
    ids = jobs[VERBS[verb]]
    span = f"{ids[0]}-{ids[-1]}"
    more = ["--priority", "3"] if verb == "edit" else []
    before = everything(shared)
    wanted = f"would {verb} 3 jobs: {span}\n"
    assert shared.ok(verb, "--dry-run", span, *more) == wanted
    one = str(ids[1])
    assert shared.ok(verb, "--dry-run", one, *more) == f"would {verb} 1 job: {one}\n"
    machine = json.loads(shared.ok(verb, "--dry-run", "--json", span, *more))
    assert machine == {"jobs": ids, "dry_run": True}
    refused = shared.run(verb, span, *more)
    assert (refused.returncode, refused.stdout) == (2, "")
    part = "all" if VERBS[verb] == "running" else "none"
    assert f"would {verb} 3 jobs, {part} of them running (add --yes" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert everything(shared) == before
    printed = shared.ok(verb, "--yes", "-q", span, *more)
    assert printed.split() == list(map(str, ids))
    assert everything(shared) != before


def test_a_selection_takes_only_jobs_that_the_verb_is_for(
    shared: GrassHome, jobs: dict[str, list[int]]
) -> None:
    first, last = jobs["running"][0], jobs["held"][-1]
    span = f"{first}-{last}"
    counts = {"cancel": 9, "hold": 3, "release": 3, "rerun": 3, "suspend": 3}
    for verb, count in counts.items():
        said = shared.ok(verb, "--dry-run", span)
        assert said.startswith(f"would {verb} {count} jobs"), said


def answer(home: GrassHome, words: Sequence[str], text: str) -> tuple[int, str]:
    """Run a command on a terminal, and answer what it asks."""
    ours, theirs = pty.openpty()
    try:
        running = subprocess.Popen(
            [*GRASS, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**home.environment, "NO_COLOR": "1"},
        )
        said = b""
        while not said.endswith(b"[y/N] "):
            said += os.read(ours, 65536)
        os.write(ours, text.encode() + b"\n")
        code = running.wait(timeout=30)
        return code, (said + os.read(ours, 65536)).decode()
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(
    ("text", "code", "states"),
    [("", 1, ["queued"] * 3), ("n", 1, ["queued"] * 3), ("y", 0, ["cancelled"] * 3)],
)
def test_a_person_is_asked(
    shared: GrassHome, text: str, code: int, states: list[str]
) -> None:
    shared.ok("pause")
    ids = shared.enqueue_array("--array", "1-3", "--", "true")
    words = ("cancel", f"{ids[0]}-{ids[-1]}")
    returned, said = answer(shared, words, text)
    assert returned == code, said
    assert said.startswith("cancel 3 jobs, none of them running? [y/N] ")
    assert shared.states(ids) == states


def test_what_comes_after_the_count_is_not_touched(shared: GrassHome) -> None:
    shared.ok("pause")
    first = shared.enqueue("--project", "late", "--", "true")
    second = shared.enqueue("--project", "late", "--", "true")
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [*GRASS, "cancel", "@late"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=shared.environment,
    )
    os.read(ours, 65536)
    third = shared.enqueue("--project", "late", "--", "true")
    os.write(ours, b"y\n")
    assert running.wait(timeout=30) == 0
    os.close(ours)
    os.close(theirs)
    assert shared.states([first, second, third]) == [
        *("cancelled", "cancelled", "queued")
    ]
    shared.ok("cancel", "@late")


def test_nothing_that_fits_is_not_an_error(shared: GrassHome) -> None:
    shared.wait(shared.enqueue("--", "true"))
    assert (
        shared.ok("cancel", "all") == "nothing to cancel: no such job is unfinished\n"
    )
    for verb, selector in (
        ("release", "state:held"),
        ("rerun", "state:held"),
        ("suspend", "state:running"),
    ):
        said = shared.ok(verb, "--yes", selector)
        assert said.startswith(f"nothing to {verb}")
    assert shared.run("cancel", "@nosuch").returncode == 4
    assert shared.run("cancel", "queue:nosuch").returncode == 4
