"""A pool with a site's own commands: a real daemon, and a queue of real processes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines import templates
from tests.support.homes import GrassHome
from tests.support.patience import until


@pytest.fixture
def home(tmp_path: Path) -> Iterator[GrassHome]:
    """A broker without a worker of its own."""
    made = GrassHome(tmp_path)
    made.ok("start", "--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
    yield made
    for pool in json.loads(made.ok("pool", "show", "--json"))["pools"]:
        made.ok("pool", "remove", pool["name"])
    made.end()


@pytest.fixture
def site(tmp_path: Path, folder: Path) -> Path:
    """The file of a pool whose scheduler keeps its jobs in a folder."""
    (tmp_path / "queue").mkdir()
    path = tmp_path / "site.toml"
    options = f'max_workers = 2\ntime = "10m"\nidle = "2s"\nfolder = "{folder}"\n'
    path.write_text(options + templates.queue_text(tmp_path / "queue"))
    return path


@pytest.mark.daemon
def test_jobs_run_through_the_commands_of_a_template(
    home: GrassHome, site: Path, folder: Path, tmp_path: Path
) -> None:
    assert "would start now" in home.ok("pool", "add", "site", f"--template={site}")
    site.unlink()
    ledger = folder / "ledger"
    shown = f'echo "$GRASS_JOB_ID $CUDA_VISIBLE_DEVICES" >> {ledger}'
    jobs = [home.enqueue("sh", "-c", shown) for _ in range(6)]
    home.wait(*jobs)
    ran = [line.split() for line in ledger.read_text().splitlines()]
    assert sorted(int(job) for job, *_ in ran) == jobs
    assert len(list((tmp_path / "queue").iterdir())) <= 2
    until(
        lambda: json.loads(home.ok("pool", "show", "--json"))["pools"][0]["pilots"],
        "a worker that is idle stays",
        lambda pilots: not pilots,
    )


@pytest.mark.daemon
def test_a_wrong_template_adds_nothing(home: GrassHome, site: Path) -> None:
    text = site.read_text().replace("{ids}", "{id}")
    site.write_text(text)
    ran = home.run("pool", "add", "site", f"--template={site}")
    assert ran.returncode == 2
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "{id}" in one)
    assert ran.stderr.startswith(f"grass pool: {site}, line {line}: `cancel.command`: ")
    assert len(ran.stderr.splitlines()) == 1
    assert json.loads(home.ok("pool", "show", "--json"))["pools"] == []


@pytest.mark.daemon
def test_workers_asked_for_by_hand_come_and_are_sent_away(
    home: GrassHome, site: Path
) -> None:
    home.ok("pool", "add", "site", f"--template={site}", "--idle=10m")
    home.ok("pool", "pause", "site")
    script = home.ok("up", "--dry", "site")
    assert script.startswith("#!/bin/sh\n# ")
    assert "--mark=MARK" in script
    assert workers(home) == []
    assert home.run("up", "-n", "3", "site").returncode == 5
    home.ok("up", "-n", "2", "site")
    came = until(lambda: workers(home), "they do not come", both_are_connected)
    assert [one["by_hand"] for one in came] == [True, True]
    assert came[0]["worker"] in home.ok("up", "ls", "site")
    home.ok("up", "unreg", came[0]["worker"])
    until(lambda: workers(home), "it stays", lambda left: len(left) == 1)
    home.ok("up", "unreg", came[1]["engine_id"])
    until(lambda: workers(home), "it stays", lambda left: not left)
    assert home.run("up", "unreg", "nobody").returncode == 4


def workers(home: GrassHome) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(home.ok("up", "ls", "--json"))["workers"]
    return found


def both_are_connected(pilots: list[dict[str, Any]]) -> bool:
    return [one["connected"] for one in pilots] == [True, True]


@pytest.mark.daemon
def test_a_worker_that_its_scheduler_has_forgotten_ends_itself(
    home: GrassHome, site: Path, tmp_path: Path
) -> None:
    home.ok("pool", "add", "site", f"--template={site}", "--idle=10m")
    home.ok("up", "site")
    (one,) = until(
        lambda: workers(home), "it does not come", lambda x: x and x[0]["connected"]
    )
    (tmp_path / "queue" / one["engine_id"]).unlink()
    home.ok("up", "unreg", one["worker"])
    pilot = Path(f"/proc/{one['engine_id']}/cmdline")
    until(
        lambda: pilot.read_text() if pilot.exists() else "",
        "its process goes on",
        lambda words: one["mark"] not in words,
    )
