"""Changes to `config.toml`: one value, and everything else stays as it was written."""

import pytest

from grass.config_file import ConfigFile
from grass.errors import UsageError
from grass.settings import SETTINGS, Setting, find_setting, settings_in, value_of

PATH = "config.toml"
COMMENTED = """\
# mine
[defaults]
queue = 'gpu'   # the fast ones
  grace="1m"

# what is about the log
[log]
format = 'text'
"""


def with_value(text: str, name: str, value: str | int) -> str:
    return ConfigFile(PATH, text).with_value(name, value).text


def without_value(text: str, name: str) -> str:
    return ConfigFile(PATH, text).without_value(name).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '[defaults]\nqueue = "new"\n'),
        ("[defaults]", '[defaults]\nqueue = "new"\n'),
        (COMMENTED, COMMENTED.replace("'gpu'", '"new"')),
        ("defaults.queue='x'\n", 'defaults.queue="new"\n'),
        ("defaults={queue='x'}", 'defaults={queue="new"}'),
        ("[defaults]\r\nqueue='a'\r\n", '[defaults]\r\nqueue="new"\r\n'),
        ("['defaults']\n\"queue\"='a'#b\n", '[\'defaults\']\n"queue"="new"#b\n'),
    ],
)
def test_a_value_is_set_where_it_stands(text: str, expected: str) -> None:
    assert with_value(text, "defaults.queue", "new") == expected


def test_a_new_value_goes_behind_those_of_its_table() -> None:
    expected = COMMENTED.replace('"1m"\n', '"1m"\npriority = 5\n')
    assert with_value(COMMENTED, "defaults.priority", 5) == expected


def test_a_new_table_goes_to_the_end() -> None:
    expected = COMMENTED + '\n[retention]\nkeep = "30d"\n'
    assert with_value(COMMENTED, "retention.keep", "30d") == expected
    assert with_value(COMMENTED[:-1], "retention.keep", "30d").count("[retention]") == 1


def test_a_list_or_a_table_is_replaced_whole() -> None:
    text = "[notify]\non_fail = [\n 'a', # x\n 'b',\n] # d\n[defaults.require]\ngpu=1\n"
    text = with_value(text, "notify.on_fail", "mail 'x' \"y\" \\ z")
    text = with_value(text, "defaults.require", "{cpu:2}")
    assert ConfigFile(PATH, text).tables == {
        "notify": {"on_fail": "mail 'x' \"y\" \\ z"},
        "defaults": {"require": "{cpu:2}"},
    }


def test_a_value_is_taken_out_and_the_rest_stays() -> None:
    expected = COMMENTED.replace("queue = 'gpu'   # the fast ones\n", "")
    assert without_value(COMMENTED, "defaults.queue") == expected
    assert without_value("defaults.queue='x'\n", "defaults.queue") == ""


def test_what_is_no_table_cannot_get_a_value() -> None:
    with pytest.raises(UsageError, match="line 1: defaults is not a table"):
        with_value("defaults = 5\n", "defaults.queue", "new")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_can_be_set_from_text(setting: Setting) -> None:
    texts = {
        "defaults.require": "{gpu:0.5}",
        "defaults.grace": "90s",
        "defaults.priority": "-5",
        "retention.keep": "30d",
        "store.url": "sqlite",
        "notify.on_finish": "echo $GRASS_NAME",
        "notify.on_fail": "mail me",
        "gpu.guard": "1G",
        "gpu.strangers": "20%",
        "gpu.jobs": "4",
        "gpu.busy": "90%",
        "gpu.acknowledge_after": "30m",
        "tasks.python": "/env/bin/python",
        "tasks.largest": "1G",
        "tasks.unnamed": "4G",
        "tasks.keep": "7d",
        "log.format": "json",
    }
    value = value_of(setting, texts.get(setting.name, "gpu"))
    changed = ConfigFile(PATH, COMMENTED).with_value(setting.name, value)
    listed = settings_in(changed, {}).listed()
    origins = {one["name"]: one["origin"] for one in listed}
    assert origins[setting.name] == PATH


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "defaults.priority",
            "high",
            "defaults.priority: `high` is not a whole",
        ),
        ("defaults.queue", "a b", "defaults.queue: queue name `a b` is not allowed"),
        ("retention.keep", "0s", "retention.keep: 0 would keep nothing at all"),
        ("log.format", "xml", "log.format: `xml` is not a log format"),
        ("notify.on_fail", " ", "notify.on_fail: `` is not a command"),
    ],
)
def test_a_bad_value_is_refused_by_its_setting(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        value_of(find_setting(name), text)
    assert caught.value.message.startswith(said)
    assert caught.value.hint


def test_an_unknown_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no setting `defaults\.que`") as caught:
        find_setting("defaults.que")
    assert caught.value.hint == "did you mean `defaults.queue`?"
