"""Commands of the user that run when jobs end, with a real daemon."""

from pathlib import Path

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def write(home: GrassHome, text: str) -> None:
    home.folder.mkdir(exist_ok=True)
    (home.folder / "config.toml").write_text(f"[notify]\n{text}\n")


def test_a_failed_job_is_told_with_its_facts(cold: GrassHome, news: Fifo) -> None:
    facts = "$GRASS_EVENT $GRASS_JOB_ID $GRASS_NAME $GRASS_STATE $GRASS_EXIT_CODE"
    write(cold, f'on_fail = "echo {facts} $GRASS_ATTEMPT $GRASS_OUTPUT > {news}"')
    cold.enqueue("--", "true")
    id = cold.enqueue("--name", "train", "--", "sh", "-c", "exit 3")
    output = cold.wait(id)["output"]
    assert news.hear() == f"failed {id} train failed 3 1 {output}"


def test_an_end_is_durable_before_it_is_told(cold: GrassHome, news: Fifo) -> None:
    """The command itself asks the store, which knows only what was committed."""
    script = (
        "import os, sqlite3; db = sqlite3.connect(os.environ['GRASS_HOME']"
        " + '/grass.db'); print(*db.execute('SELECT state FROM jobs WHERE id = ?',"
        " (os.environ['GRASS_JOB_ID'],)).fetchone())"
    )
    write(cold, f'on_finish = """python -c "{script}" > {news}"""')
    cold.enqueue("--", "true")
    assert news.hear() == "succeeded"


def test_a_command_may_use_grass_itself(cold: GrassHome, news: Fifo) -> None:
    write(cold, f"on_finish = 'grass logs $GRASS_JOB_ID > {news}'")
    cold.enqueue("--", "echo", "hello")
    assert news.hear() == "hello"


def test_nothing_of_a_job_gets_into_a_command(cold: GrassHome, news: Fifo) -> None:
    write(cold, f"on_finish = 'echo [$SECRET] [$GRASS_ATTEMPT_ID] [$PWD] > {news}'")
    cold.environment["HOME"] = str(cold.desk)
    cold.enqueue("--env", "SECRET=x", "--cwd", "/", "--", "true")
    assert news.hear() == f"[] [] [{cold.desk}]"


def test_a_command_that_fails_harms_nothing(cold: GrassHome) -> None:
    write(cold, "on_finish = ['/no/such/program']\non_fail = 'echo oops; exit 9'")
    ids = [cold.enqueue("--", "false") for _ in range(3)]
    cold.wait(*ids)
    assert cold.states(ids) == ["failed"] * 3
    cold.ok("stop")
    log = Path(cold.folder / "daemon.log").read_text()
    for id in ids:
        assert f"notify.failed setting=notify.on_finish job={id} " in log
        assert f"notify.output setting=notify.on_fail job={id} message=oops" in log
        assert f'setting=notify.on_fail job={id} error="exit code 9"' in log
    assert "Traceback" not in log


def test_a_daemon_that_stops_lets_the_last_command_finish(cold: GrassHome) -> None:
    write(cold, "on_finish = 'sleep 0.3; echo told > told'")
    cold.environment["HOME"] = str(cold.desk)
    cold.wait(cold.enqueue("--", "true"))
    cold.ok("stop")
    assert (cold.desk / "told").read_text() == "told\n"


def test_an_end_while_no_daemon_runs_is_told_by_the_next(
    cold: GrassHome, gate: Fifo, news: Fifo
) -> None:
    write(cold, f"on_finish = 'echo $GRASS_STATE > {news}'")
    id = cold.enqueue(f"echo up > {news}; read x < {gate}; exit 3")
    assert news.hear() == "up"
    cold.kill_daemon()
    gate.tell()
    cold.ok("start")
    assert cold.wait(id)["state"] == "failed"
    assert news.hear() == "failed"
