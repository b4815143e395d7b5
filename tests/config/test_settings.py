"""Settings from the file and the environment: what counts, and every mistake."""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from grass.config import Home, caller_umask, config_file, without_job_variables
from grass.config_file import line_of
from grass.errors import UsageError
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import DEFAULT_PROJECT, DEFAULT_QUEUE
from grass.model.jobs.spec import DEFAULT_GRACE_S
from grass.model.resources import request_from, split_auto
from grass.settings import SETTINGS, Setting, default_settings, read_settings

EVERYTHING = """
[defaults]
queue = "gpu"
require = {gpu = 0.5, ram = "8G"}
project = "thesis"
grace = "1m30s"
priority = -3

[retention]
keep = "30d"

[store]
url = "sqlite"

[notify]
on_finish = "echo $GRASS_JOB_ID"
on_fail = ["notify-send", "", "a b"]
on_gpu_fault = "mail me"

[gpu]
guard = "1G"
strangers = "25%"
jobs = 4
busy = "90%"
acknowledge_after = "30m"

[tasks]
python = "/env/python"
largest = "4G"
unnamed = "32G"
keep = "1d"
[log]
format = "json"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def test_memory_to_look_up_may_be_asked_for_by_default(file: Path) -> None:
    file.write_text('[defaults]\nrequire = {gpu = 0.5, vram = "auto"}\n')
    asked = read_settings(str(file), {}).require
    assert asked is not None
    assert split_auto(asked) == ((("gpu", 5000),), True)


def test_without_a_file_the_defaults_are_those_of_the_model(file: Path) -> None:
    settings = read_settings(str(file), {})
    assert settings == default_settings()
    assert settings[:5] == (DEFAULT_QUEUE, None, DEFAULT_PROJECT, DEFAULT_GRACE_S, 0)
    assert (settings.keep_s, settings.store) == (None, "sqlite")
    assert (settings.on_finish, settings.on_fail) == (None, None)
    assert (settings.gpu_guard, settings.gpu_strangers) == (2**29, WHOLE // 10)
    assert (settings.gpu_jobs, settings.gpu_busy) == (None, None)
    assert (settings.gpu_acknowledge_s, settings.on_gpu_fault) == (None, None)
    assert (settings.task_python, settings.largest_blob) == (None, 2**31)
    assert settings.log_format == "text"


@pytest.mark.parametrize(
    "line",
    [
        *("guard = 'much'", "guard = -1", "strangers = '101%'", "strangers = 'x'"),
        *("jobs = 0", "jobs = 'many'", "busy = 90", "busy = '120%'"),
    ],
)
def test_a_size_or_share_that_cannot_be_is_refused(file: Path, line: str) -> None:
    file.write_text(f"[gpu]\n{line}\n")
    with pytest.raises(UsageError, match="gpu"):
        read_settings(str(file), {})


def test_every_setting_can_be_written_in_the_file(file: Path) -> None:
    file.write_text(EVERYTHING)
    settings = read_settings(str(file), {})
    assert settings[:-1] == (
        *("gpu", request_from("{gpu:0.5,ram:8}"), "thesis", 90.0, -3),
        *(30 * 86400.0, "sqlite"),
        *("echo $GRASS_JOB_ID", ("notify-send", "", "a b"), "mail me"),
        *(2**30, 2_500, 4, 9_000, 1800.0, "/env/python"),
        *(2**32, 2**35, 86400.0, "json"),
    )
    assert {one["origin"] for one in settings.listed()} == {str(file)}


def test_every_setting_has_a_variable_that_wins_over_the_file(file: Path) -> None:
    file.write_text(EVERYTHING)
    variables = {
        "GRASS_DEFAULT_QUEUE": "other",
        "GRASS_DEFAULT_REQUIRE": "{cpu:2}",
        "GRASS_DEFAULT_PROJECT": "paper",
        "GRASS_DEFAULT_GRACE": "2.5",
        "GRASS_DEFAULT_PRIORITY": "7",
        "GRASS_RETENTION_KEEP": "1w",
        "GRASS_STORE_URL": "sqlite",
        "GRASS_NOTIFY_ON_FINISH": "true",
        "GRASS_NOTIFY_ON_FAIL": "false",
        "GRASS_NOTIFY_ON_GPU_FAULT": "echo",
        "GRASS_GPU_GUARD": "2G",
        "GRASS_GPU_STRANGERS": "0%",
        "GRASS_GPU_JOBS": "2",
        "GRASS_GPU_BUSY": "80%",
        "GRASS_GPU_ACKNOWLEDGE_AFTER": "1h",
        "GRASS_TASKS_PYTHON": "/opt/python",
        "GRASS_TASKS_LARGEST": "3G",
        "GRASS_TASKS_UNNAMED": "5G",
        "GRASS_TASKS_KEEP": "2d",
        "GRASS_LOG_FORMAT": "text",
    }
    assert list(variables) == [setting.variable for setting in SETTINGS]
    settings = read_settings(str(file), variables)
    assert settings[:-1] == (
        *("other", request_from("{cpu:2}"), "paper", 2.5, 7),
        *(7 * 86400.0, "sqlite", "true", "false", "echo", 2**31, 0, 2, 8_000, 3600.0),
        *("/opt/python", 3 * 2**30, 5 * 2**30, 2 * 86400.0, "text"),
    )
    assert [one["origin"] for one in settings.listed()] == list(variables)


def test_an_empty_variable_counts_as_unset(file: Path) -> None:
    assert read_settings(str(file), {"GRASS_DEFAULT_QUEUE": ""}).queue == "default"


def test_values_are_listed_as_they_were_written(file: Path) -> None:
    file.write_text("[defaults]\nrequire = '{gpu:1}'\ngrace = '5m'\n")
    listed = read_settings(str(file), {"GRASS_DEFAULT_PRIORITY": "2"}).listed()
    values = {one["name"]: (one["value"], one["origin"]) for one in listed}
    assert list(values) == [setting.name for setting in SETTINGS]
    assert values["defaults.require"] == ({"gpu": 1}, str(file))
    assert values["defaults.grace"] == ("5m", str(file))
    assert values["defaults.priority"] == (2, "GRASS_DEFAULT_PRIORITY")
    assert values["retention.keep"] == (None, "default")


@pytest.mark.parametrize(
    ("text", "line", "said", "hint"),
    [
        ("[defaults]\nque = 1", 2, "no setting `defaults.que`", "`defaults.queue`?"),
        ("queue = 'x'", 1, "no setting `queue`", "did you mean `defaults.queue`?"),
        ("\n[defualts]", 2, "there is no setting `defualts`", "`defaults`?"),
        ("[web]\nport = 1", 1, "there is no setting `web`", "there are defaults, re"),
        ("defaults = 3", 1, "defaults: `3` is not a table", "write [defaults]"),
        ("[[defaults]]\nqueue = 'a'", 1, "is not a table", "write [defaults]"),
        ("[defaults]\nqueue = 'a b'", 2, "`a b` is not allowed", "use letters"),
        ("[defaults]\nqueue = 1", 2, "defaults.queue: `1` is not a name", "letters"),
        ("[defaults]\n\ngrace = 'soon'", 3, "`soon` is not a duration", "90s"),
        ("[defaults]\ngrace = -1", 2, "-1 seconds are out of range", "90s"),
        ("[defaults]\ngrace = nan", 2, "nan seconds are out of range", "90s"),
        ("defaults.grace = true", 1, "`True` is not a duration", "90s"),
        ("[defaults]\nrequire = '{gpu:}'", 2, "JSON5, line 1, column 6", "{gpu:1}"),
        ("[defaults.require]\nhome = 1", 1, "`home` is reserved", "write {gpu = 1}"),
        ("[defaults]\nrequire = 1", 2, "`1` is not a request", "write {gpu = 1}"),
        ("[defaults]\npriority = '5'", 2, "`5` is not a whole", "without quotes"),
        ("[defaults]\npriority = 1.0", 2, "`1.0` is not a whole number", "write 5"),
        ("[defaults]\npriority = 9999999", 2, "out of range", "at most 1000000"),
        ("[retention]\nkeep = '0s'", 2, "would keep nothing at all", "leave it out"),
        ("[store]\nurl = 'mysql://h/d'", 2, "`mysql://...` is not", '"sqlite"'),
        ("[store]\nurl = 'u:pw@h'", 2, "this is not a database", '"sqlite"'),
        ("[store]\nurl = 'postgresql://u:pw@h/d'", 2, "has a password", "~/.pgpass"),
        ("[store]\nurl = 'postgres://h/d?password=pw'", 2, "has a password", "PGPASS"),
        ("[store]\nurl = 'postgresql://u:p?w@h/d'", 2, "has a password", "~/.pgpass"),
        ("[store]\nurl = 'postgresql://u:p/w@h/d'", 2, "has a password", "as %40"),
        ("[notify]\non_fail = []", 2, "`[]` is not a command", "shell line"),
        ("[notify]\non_fail = ['a', 1]", 2, "is not a command", "shell line"),
        ("[notify]\non_finish = ' '", 2, "is not a command", "shell line"),
        ('[notify]\non_finish = "a\\u0000"', 2, "is not a command", "shell line"),
        ("x = [", None, "is not TOML: Invalid value", "mend"),
        ("[defaults]\nqueue", None, "after a key in a key/value pair (at", "mend"),
    ],
)
def test_a_mistake_is_one_line_with_place_and_next_step(
    file: Path, text: str, line: int | None, said: str, hint: str
) -> None:
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_settings(str(file), {})
    place = str(file) if line is None else f"{file}, line {line}: "
    assert caught.value.message.startswith(place)
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_mistake_in_a_variable_names_the_variable(file: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings(str(file), {"GRASS_DEFAULT_PRIORITY": "high"})
    assert str(caught.value).startswith("GRASS_DEFAULT_PRIORITY: `high` is not a whole")


ODD = (
    *("true", "0", "-1", "1.5", "nan", "inf", "99999999999999999999", '""', '"x"'),
    *('"x y"', "[]", "[[]]", '["a"]', "{}", "{a = 1}", "{gpu = {a = 1}}"),
    *("1979-05-27", "07:32:00", '"""a\nb"""', f'"{"x" * 500}"', '"\\u001b[31m"'),
)


def mistake(file: Path) -> UsageError | None:
    try:
        read_settings(str(file), {})
    except UsageError as error:
        return error
    return None


def test_whatever_a_setting_is_given_it_is_read_or_refused_in_one_line(
    file: Path,
) -> None:
    for setting, odd in product(SETTINGS, ODD):
        table, _, key = setting.name.partition(".")
        file.write_text(f"[{table}]\n{key} = {odd}\n")
        error = mistake(file)
        if error is not None:
            assert setting.name in error.message
            assert error.hint
            assert "\n" not in str(error)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_settings(str(tmp_path), {})
    file.write_bytes(b"# caf\xe9\n")
    with pytest.raises(UsageError, match="cannot be read: it is not UTF-8"):
        read_settings(str(file), {})


def test_a_file_from_another_system_is_read(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf[defaults]\r\nqueue = "gpu"\r\n')
    assert read_settings(str(file), {}).queue == "gpu"


def test_the_line_of_a_setting_is_found_however_it_is_written() -> None:
    text = '# queue = 1\n[ defaults ]\n"queue" = 1\n\n[a]\ndefaults.queue = 2\n'
    assert line_of(text, "defaults.queue") == 3
    assert line_of(text, "defaults") == 2
    assert line_of(text, "a.defaults") == 6
    assert line_of(text, "retention.keep") is None


def test_the_file_is_in_the_home_unless_that_is_the_usual_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    usual = Home(str(tmp_path / ".local/state/grass" / os.uname().nodename))
    assert config_file(Home("/elsewhere")) == "/elsewhere/config.toml"
    assert config_file(usual) == str(tmp_path / ".config/grass/config.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/settings")
    assert config_file(usual) == "/settings/grass/config.toml"


def test_importing_the_settings_loads_no_toml() -> None:
    script = "import sys, grass.settings; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    loaded = set(ran.stdout.split())
    assert "grass.settings" in loaded
    assert loaded & {"tomllib", "msgspec", "difflib", "pyjson5"} == set()


def test_a_command_that_needs_no_settings_does_not_read_them(tmp_path: Path) -> None:
    script = (
        "import sys; from grass.cli.main import dispatch\n"
        "dispatch(['show'])\nprint(*sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "GRASS_HOME": str(tmp_path / "home"),
            "GRASS_AUTOSTART": "0",
        },
    )
    assert set(ran.stdout.split()) & {"tomllib", "grass.settings"} == set()


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_variable_of_a_setting_reaches_a_daemon_that_is_started(
    setting: Setting,
) -> None:
    assert without_job_variables({setting.variable: "x"}) == {setting.variable: "x"}


def test_the_umask_is_read_and_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # A thread of the program may make a file just then.
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("it was set"))
        assert caller_umask() == 0o027
    finally:
        monkeypatch.undo()
        os.umask(before)
