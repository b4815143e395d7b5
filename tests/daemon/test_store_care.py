"""`grass store`, `grass backup` and `grass restore`, with a real daemon."""

import json
import signal
import subprocess
import sys

import pytest

from grass.keeper import crash_points
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]


def test_a_queue_moves_to_postgresql_and_back(home: GrassHome, database: str) -> None:
    home.wait(home.enqueue("--", "true"))
    waiting = home.enqueue("--hold", "--", "echo", "moved")
    home.ok("enqueue", "--hold", "--", "sh -c 'echo $OWN'", env={"OWN": "mine"})
    mine = 3
    refused = home.run("store", "move", "sqlite", database)
    assert refused.returncode == 5
    assert "already serves" in refused.stderr
    home.ok("stop")
    assert "moved 3 jobs" in home.ok("store", "move", "sqlite", database)
    assert not (home.folder / "grass.db").exists()
    home.ok("start")
    home.ok("release", "--yes", str(waiting), str(mine))
    assert home.wait(waiting)["state"] == "succeeded"
    assert home.logs(waiting) == "moved\n"
    assert home.run("wait", str(mine)).returncode == 0
    assert home.logs(mine) == "mine\n"
    assert home.enqueue("--", "true") == 4
    checked = json.loads(home.ok("store", "check", "--json"))
    assert (checked["problems"], checked["rows"]["jobs"]) == ([], 4)
    assert "pg_dump" in home.run("backup", "kept").stderr
    home.wait(4)
    home.ok("stop")
    home.ok("store", "move", database, "sqlite")
    home.ok("start")
    assert [one["id"] for one in home.document()["jobs"]] == [1, 2, 3, 4]
    assert "0 problems" in home.ok("store", "check")


def test_a_move_that_is_killed_leaves_the_old_database_as_it_was(
    home: GrassHome, database: str
) -> None:
    home.wait(home.enqueue("--", "true"))
    home.ok("stop")
    file = home.folder / "grass.db"
    for step in ("blobs", "events", "compared"):
        killed = home.run("store", "move", "sqlite", database, env=killed_at(step))
        assert killed.returncode == -signal.SIGKILL
        assert "1 jobs" in home.ok("store", "check")
        assert file.exists()
    killed = home.run("store", "move", "sqlite", database, env=killed_at("put-away"))
    assert killed.returncode == -signal.SIGKILL
    # Which database it is now was not written down.
    refused = home.run("start")
    assert refused.returncode == 1
    assert "grass.db.moved" in refused.stderr
    assert "--store URL" in refused.stderr
    home.ok("start", "--store", database)
    home.ok("stop")
    for step in ("events", "compared", "renamed"):
        killed = home.run("store", "move", database, "sqlite", env=killed_at(step))
        assert killed.returncode == -signal.SIGKILL
        assert "1 jobs" in home.ok("store", "check")
    # Both have it now: the one that it had goes on, until somebody chooses.
    assert "there already" in home.run("store", "move", database, "sqlite").stderr
    home.ok("start")
    assert [one["id"] for one in home.document()["jobs"]] == [1]


def killed_at(step: str) -> dict[str, str]:
    return {crash_points.VARIABLE: f"store.move-{step}:1"}


def test_a_backup_that_was_made_while_it_ran_is_restored(home: GrassHome) -> None:
    home.wait(home.enqueue("--", "true"))
    home.ok("backup", "kept")
    home.wait(home.enqueue("--", "true"))
    assert "already serves" in home.run("restore", "kept").stderr
    home.ok("stop")
    home.ok("restore", "kept")
    home.ok("start")
    assert [one["id"] for one in home.document()["jobs"]] == [1]
    assert home.run("restore", "nowhere").returncode == 4


def test_a_command_that_has_the_lock_is_not_stopped_as_a_daemon(
    cold: GrassHome,
) -> None:
    """As a restore, which would be killed between two of its steps."""
    cold.folder.mkdir(mode=0o700)
    script = (
        "import sys\n"
        "from grass.config import Home\n"
        "from grass.daemon.home_lock import locked\n"
        "with locked(Home(sys.argv[1]), 'grass restore'):\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", script, str(cold.folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "locked\n"
        for words in (["stop"], ["daemon"]):
            refused = cold.run(*words)
            assert refused.returncode == 5
            told = f"grass: `grass restore` (pid {command.pid}) is at work ("
            assert refused.stderr.startswith(told)
            assert refused.stderr.count("\n") == 1
        assert not (cold.folder / "stopped").exists()
        command.communicate("")
    assert command.returncode == 0
    assert "no daemon was running" in cold.ok("stop")
