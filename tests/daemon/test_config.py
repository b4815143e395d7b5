"""Settings with a real daemon: what they do, and what a mistake does not do."""

import json
import os
from pathlib import Path

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def write(home: GrassHome, text: str) -> Path:
    home.folder.mkdir(exist_ok=True)
    path = home.folder / "config.toml"
    path.write_text(text)
    return path


def origins(home: GrassHome) -> dict[str, tuple[object, str]]:
    """Return every setting of the running daemon with its origin."""
    listed = home.client.config()["settings"]
    return {one["name"]: (one["value"], one["origin"]) for one in listed}


def test_config_works_without_a_daemon_and_starts_none(cold: GrassHome) -> None:
    path = write(cold, "[defaults]\nqueue = 'gpu'\n")
    assert cold.ok("config", "path") == f"{path}\n"
    assert json.loads(cold.ok("config", "path", "--json")) == {
        "path": str(path),
        "exists": True,
    }
    shown = cold.ok("config", "show").splitlines()
    assert shown[0].split() == ["SETTING", "VALUE"]
    assert shown[1].split() == ["defaults.queue", "gpu"]
    printed = cold.ok("config", "show", "--origin", env={"GRASS_DEFAULT_PRIORITY": "3"})
    assert f"gpu      file {path}\n" in printed
    assert "3        variable GRASS_DEFAULT_PRIORITY\n" in printed
    assert "sqlite   default\n" in printed
    document = json.loads(cold.ok("config", "show", "--json"))
    assert document["file"] == str(path)
    assert document["settings"][0] == {
        "name": "defaults.queue",
        "value": "gpu",
        "origin": str(path),
    }
    assert cold.daemon_pid() is None


@pytest.mark.parametrize("words", [["config"], ["config", "edit"]])
def test_config_says_what_it_can_do(cold: GrassHome, words: list[str]) -> None:
    ran = cold.run(*words)
    assert ran.returncode == 2
    assert "`grass config show`, `set KEY VALUE`, `unset KEY` or `path`" in ran.stderr


@pytest.mark.sqlite
def test_a_setting_is_set_and_unset_without_a_daemon(cold: GrassHome) -> None:
    assert cold.ok("config", "set", "defaults.priority", "-5") == (
        "defaults.priority is -5 now\n"
    )
    path = cold.folder / "config.toml"
    assert path.read_text() == "[defaults]\npriority = -5\n"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("# mine\n" + path.read_text() + "que = 1 # a mistake\n")
    refused = cold.run("config", "set", "defaults.queue", "gpu")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "line 4: there is no setting `defaults.que`" in refused.stderr
    assert cold.ok("config", "unset", "defaults.que") == "defaults.que is unset now\n"
    done = json.loads(cold.ok("config", "unset", "--json", "defaults.queue"))
    assert done == {
        "name": "defaults.queue",
        "value": None,
        "file": str(path),
        "changed": False,
        "restart_needed": False,
    }
    assert path.read_text() == "# mine\n[defaults]\npriority = -5\n"
    assert cold.daemon_pid() is None


def test_a_bad_value_leaves_the_file_as_it_was(cold: GrassHome) -> None:
    path = write(cold, "[defaults]\npriority = 1 # low\n")
    for words in (
        *(["set", "defaults.priority", "high"], ["set", "defaults.que", "x"]),
        *(["set", "defaults.priority"], ["set", "defaults.priority", "1", "2"]),
        *(["unset", "nosuch"], ["unset"], ["set"]),
    ):
        refused = cold.run("config", *words)
        assert (refused.returncode, refused.stdout) == (2, ""), words
        assert refused.stderr.count("\n") == 1
    assert path.read_text() == "[defaults]\npriority = 1 # low\n"


def test_a_file_that_is_a_link_stays_one(cold: GrassHome) -> None:
    path = write(cold, "")
    path.rename(cold.desk / "dotfile")
    path.symlink_to(cold.desk / "dotfile")
    cold.ok("config", "set", "defaults.project", "thesis")
    assert path.is_symlink()
    assert path.read_text() == '[defaults]\nproject = "thesis"\n'


def test_a_running_daemon_gets_a_changed_setting_by_a_restart(home: GrassHome) -> None:
    said = home.ok("config", "set", "defaults.project", "thesis")
    assert said == "defaults.project is thesis now (`grass restart` applies it)\n"
    words = ("config", "set", "defaults.project", "thesis", "--json")
    again = json.loads(home.ok(*words))
    assert (again["changed"], again["restart_needed"]) == (False, True)
    home.restart()
    assert json.loads(home.ok(*words))["restart_needed"] is False
    assert home.client.job(home.enqueue("--", "true"))["project"] == "thesis"
    ran = home.run(*words[:-1], env={"GRASS_DEFAULT_PROJECT": "other"})
    assert "GRASS_DEFAULT_PROJECT is set in this shell" in ran.stderr


@pytest.mark.sqlite
def test_a_mistake_keeps_the_daemon_from_starting_and_nothing_is_lost(
    cold: GrassHome,
) -> None:
    cold.ok("pause")
    id = cold.enqueue("--", "true")
    cold.ok("stop")
    path = write(cold, "[defaults]\nque = 'gpu'\n")
    said = f"{path}, line 2: there is no setting `defaults.que` (did you mean"
    ran = cold.run("daemon")
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"grass: {said}") or said in ran.stderr
    assert "Traceback" not in ran.stderr
    for words in (["start"], ["show"], ["enqueue", "--", "true"], ["config", "show"]):
        ran = cold.run(*words)
        assert ran.returncode in (1, 2)
        assert said in ran.stderr
        assert (ran.stdout, ran.stderr.count("\n")) == ("", 1)
    assert cold.daemon_pid() is None
    write(cold, "")
    cold.ok("start")
    assert cold.state(id) == "queued"


def test_a_restart_with_a_mistake_leaves_the_daemon_running(home: GrassHome) -> None:
    pid = home.daemon_pid()
    path = write(home, "[defaults]\npriority = 'high'\n")
    ran = home.run("restart")
    assert ran.returncode == 2
    assert f"{path}, line 2: defaults.priority: `high` is not a whole" in ran.stderr
    assert home.daemon_pid() == pid
    assert home.wait(home.enqueue("--", "true"))["state"] == "succeeded"


@pytest.mark.sqlite
def test_defaults_apply_to_jobs_of_every_client(cold: GrassHome) -> None:
    cold.ok("create-queue", "q", "--json", "{slot:4}")
    write(
        cold,
        "[defaults]\nqueue = 'q'\nrequire = {slot = 2}\nproject = 'thesis'\n"
        "grace = '3s'\npriority = 5\n",
    )
    cold.ok("restart")
    cold.ok("pause")
    plain = cold.client.job(cold.enqueue("--", "true"))
    assert (plain["queue"], plain["project"], plain["priority"]) == ("q", "thesis", 5)
    assert (plain["request"], plain["grace_s"]) == ({"slot": 2}, 3.0)
    chosen = cold.client.job(
        cold.enqueue(
            *("--queue", "default", "--project", "p", "--priority", "0", "-c", "1"),
            *("--", "true"),
        )
    )
    assert (chosen["queue"], chosen["project"], chosen["priority"]) == (
        *("default", "p"),
        0,
    )
    assert chosen["request"] == {"slot": 2, "cpu": 1}


def test_a_queues_own_default_request_wins_over_the_settings(cold: GrassHome) -> None:
    write(cold, "[defaults]\nrequire = '{slot:2}'\n")
    cold.ok("create-queue", "q", "--json", "{slot:4}", "--default-require", "{slot:1}")
    cold.ok("pause")
    assert cold.client.job(cold.enqueue("q", "--", "true"))["request"] == {"slot": 1}


def test_variables_reach_a_daemon_that_is_started_by_the_way(cold: GrassHome) -> None:
    cold.environment["GRASS_DEFAULT_PROJECT"] = "thesis"
    id = cold.enqueue("--", "true")
    assert cold.client.job(id)["project"] == "thesis"
    assert origins(cold)["defaults.project"] == ("thesis", "GRASS_DEFAULT_PROJECT")


@pytest.mark.sqlite
def test_a_daemon_of_the_usual_home_reads_the_usual_file(tmp_path: Path) -> None:
    state, settings = tmp_path / "state", tmp_path / "settings"
    home = GrassHome(tmp_path, state / "grass" / os.uname().nodename)
    home.environment.update(
        GRASS_HOME="", XDG_STATE_HOME=str(state), XDG_CONFIG_HOME=str(settings)
    )
    path = settings / "grass" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[defaults]\nproject = 'thesis'\n")
    try:
        assert home.ok("config", "path") == f"{path}\n"
        home.ok("start")
        assert origins(home)["defaults.project"] == ("thesis", str(path))
    finally:
        home.end()


@pytest.mark.sqlite
def test_a_daemon_that_runs_with_other_settings_is_mentioned(home: GrassHome) -> None:
    assert home.run("config", "show").stderr == ""
    write(home, "[defaults]\npriority = 1\n")
    ran = home.run("config", "show")
    assert ran.returncode == 0
    assert ran.stderr == (
        "grass: the daemon runs with another defaults.priority"
        " (`grass restart` applies this)\n"
    )
    home.ok("restart")
    assert home.run("config", "show").stderr == ""


@pytest.mark.sqlite
def test_old_jobs_are_forgotten_when_the_daemon_starts(cold: GrassHome) -> None:
    id = cold.enqueue("--", "echo", "old")
    output = Path(cold.wait(id)["output"])
    cold.ok("restart")
    assert cold.state(id) == "succeeded"
    write(cold, "[retention]\nkeep = '0.001s'\n")
    cold.ok("restart")
    cold.ok("prune")  # one at a time: this one waits for the daemon's own
    assert cold.run("logs", str(id)).returncode == 4
    cold.ok("stop")
    assert not output.exists()
    [actor] = cold.rows("SELECT actor FROM events WHERE kind = 'pruned' LIMIT 1")
    assert actor == ("retention",)
