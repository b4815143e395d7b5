"""Settings: what a user may choose once instead of on every call.

`SETTINGS` is the whole list, as data: the file, the environment, `grass config show`
and the reference page are checked against it. The environment overrides the file, the
file the default, and an option of a command all three. All values are checked here. An
error is one line with the file, the line if known, the setting and the next step.
`setting_values` reads single values, `config_file` the file itself.

The daemon applies settings, so that every client gets the same. TOML is imported only
where there is a file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from grass.config import config_file
from grass.config_file import ConfigFile
from grass.errors import UsageError
from grass.setting_values import KINDS, NUMBERS, READERS, NotifyCommand, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grass.config import Home
    from grass.model.resources import Request

DEFAULT_ORIGIN = "default"


class Setting(NamedTuple):
    """One setting."""

    name: str
    """As in the file: the table, a dot, the key."""
    field: str
    """The field of `Settings`."""
    kind: str
    default: str | int | None
    variable: str
    about: str


SETTINGS = (
    Setting(
        *("defaults.queue", "queue", "name", "default", "GRASS_DEFAULT_QUEUE"),
        "the queue of a job that names none",
    ),
    Setting(
        *("defaults.require", "require", "request", None, "GRASS_DEFAULT_REQUIRE"),
        "what a job gets that asks for nothing, in a queue without a default of its"
        " own; unset: one cpu",
    ),
    Setting(
        *("defaults.project", "project", "name", "default", "GRASS_DEFAULT_PROJECT"),
        "the project of a job that names none",
    ),
    Setting(
        *("defaults.grace", "grace_s", "duration", "15s", "GRASS_DEFAULT_GRACE"),
        "how long a job that is being ended has between SIGTERM and SIGKILL",
    ),
    Setting(
        *("defaults.priority", "priority", "number", 0, "GRASS_DEFAULT_PRIORITY"),
        "the priority of a job that is given none; higher starts earlier",
    ),
    Setting(
        *("retention.keep", "keep_s", "age", None, "GRASS_RETENTION_KEEP"),
        "how long ended jobs and their output are kept; unset: until `grass prune`",
    ),
    Setting(
        *("store.url", "store", "store", "sqlite", "GRASS_STORE_URL"),
        "the broker's database; `sqlite` is the one in the state directory",
    ),
    Setting(
        *("notify.on_finish", "on_finish", "command", None, "GRASS_NOTIFY_ON_FINISH"),
        "run after every job that has ended",
    ),
    Setting(
        *("notify.on_fail", "on_fail", "command", None, "GRASS_NOTIFY_ON_FAIL"),
        "run after every job that has failed or was lost",
    ),
    Setting(
        *("notify.on_gpu_fault", "on_gpu_fault", "command", None),
        "GRASS_NOTIFY_ON_GPU_FAULT",
        "run when a GPU has failed, and when it works again",
    ),
    Setting(
        *("gpu.guard", "gpu_guard", "size", "512M", "GRASS_GPU_GUARD"),
        "memory of each GPU that no job gets; of a small one at most a fiftieth",
    ),
    Setting(
        *("gpu.strangers", "gpu_strangers", "share", "10%", "GRASS_GPU_STRANGERS"),
        "how much of a GPU's memory others may use before no share of it is given",
    ),
    Setting(
        *("gpu.jobs", "gpu_jobs", "count", None, "GRASS_GPU_JOBS"),
        "how many jobs a GPU may have at a time; unset: as many as fit",
    ),
    Setting(
        *("gpu.busy", "gpu_busy", "share", None, "GRASS_GPU_BUSY"),
        "from which utilization on a GPU takes no more jobs whose memory is learned",
    ),
    Setting(
        *("gpu.acknowledge_after", "gpu_acknowledge_s", "duration", None),
        "GRASS_GPU_ACKNOWLEDGE_AFTER",
        "how long a GPU with a fault must work before it is used again; unset: until"
        " `grass resume gpu:N`",
    ),
    Setting(
        *("tasks.python", "task_python", "program", None, "GRASS_TASKS_PYTHON"),
        "the interpreter for functions of programs; it has grass and their modules"
        " installed; unset: the daemon's own",
    ),
    Setting(
        *("tasks.largest", "largest_blob", "size", "2G"),
        "GRASS_TASKS_LARGEST",
        "how large the arguments or the function of a task may be",
    ),
    Setting(
        *("tasks.unnamed", "most_unnamed", "size", "16G", "GRASS_TASKS_UNNAMED"),
        "how much a user or a token may upload for tasks before a job names it",
    ),
    Setting(
        *("tasks.keep", "keep_results_s", "age", None, "GRASS_TASKS_KEEP"),
        "how long a worker keeps results of tasks; unset: as long as their jobs",
    ),
    Setting(
        *("log.format", "log_format", "log format", "text", "GRASS_LOG_FORMAT"),
        "how the daemon writes its log",
    ),
)


class SettingValue(NamedTuple):
    """A value as it was written, and where."""

    name: str
    value: Any
    origin: str
    """`default`, the file's path, or the name of the variable."""


class Settings(NamedTuple):
    """Checked values, one for each row of `SETTINGS`."""

    queue: str
    require: Request | None
    project: str
    grace_s: float
    priority: int
    keep_s: float | None
    store: str
    on_finish: NotifyCommand | None
    on_fail: NotifyCommand | None
    on_gpu_fault: NotifyCommand | None
    gpu_guard: int
    gpu_strangers: int
    gpu_jobs: int | None
    gpu_busy: int | None
    gpu_acknowledge_s: float | None
    task_python: str | None
    largest_blob: int
    most_unnamed: int
    keep_results_s: float | None
    log_format: str
    sources: tuple[SettingValue, ...]

    def listed(self) -> list[dict[str, Any]]:
        """Return every setting as a document: name, value as written, origin."""
        return [source._asdict() for source in self.sources]


def settings_of(home: Home) -> Settings:
    """Read the settings that a daemon of this home would start with now."""
    return read_settings(config_file(home), os.environ)


def default_settings() -> Settings:
    """Return the defaults."""
    return read_settings("", {})


def read_settings(path: str, environment: Mapping[str, str]) -> Settings:
    """Read and check every setting; the file may be missing."""
    return settings_in(ConfigFile(path), environment)


def settings_in(file: ConfigFile, environment: Mapping[str, str]) -> Settings:
    """Check every setting of a file that was read."""
    _refuse_unknown(file)
    chosen: dict[str, Any] = {}
    sources = []
    for setting in SETTINGS:
        source = _source(setting, file, environment)
        value = _checked(setting, source, file)
        chosen[setting.field] = value
        sources.append(_shown(source, value))
    return Settings(**chosen, sources=tuple(sources))


def find_setting(name: str) -> Setting:
    """Return a setting by its name, or refuse with the nearest one."""
    for setting in SETTINGS:
        if setting.name == name:
            return setting
    raise _unknown(name, [setting.name for setting in SETTINGS])


def value_of(setting: Setting, text: str) -> str | int:
    """Read and check a value that was given as text; return it as a file has it."""
    value = _from_text(text) if setting.kind in NUMBERS else text
    try:
        _read(setting, value)
    except UsageError as error:
        raise UsageError(f"{setting.name}: {error.message}", error.hint) from None
    return value


def _source(
    setting: Setting, file: ConfigFile, environment: Mapping[str, str]
) -> SettingValue:
    """Return the value with the highest precedence."""
    given = environment.get(setting.variable)
    if given:
        written = _from_text(given) if setting.kind in NUMBERS else given
        return SettingValue(setting.name, written, setting.variable)
    table, _, key = setting.name.partition(".")
    if key in file.tables.get(table, {}):
        return SettingValue(setting.name, file.tables[table][key], file.path)
    return SettingValue(setting.name, setting.default, DEFAULT_ORIGIN)


def _from_text(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _shown(source: SettingValue, value: object) -> SettingValue:
    """Return a request as a mapping, however it was written."""
    if source.name != "defaults.require" or value is None:
        return source
    from grass.model.resources import request_json

    assert isinstance(value, tuple)
    return source._replace(value=request_json(value))


def _checked(setting: Setting, source: SettingValue, file: ConfigFile) -> object:
    if source.value is None:
        return None
    try:
        return _read(setting, source.value)
    except UsageError as error:
        where = f"{file.place(setting.name)}: {setting.name}"
        if source.origin == setting.variable:
            where = setting.variable
        raise UsageError(f"{where}: {error.message}", error.hint) from None


def _read(setting: Setting, value: object) -> object:
    """Check one value; an error is one line with the next step."""
    called, hint = KINDS[setting.kind]
    try:
        return READERS[setting.kind](value, setting.name)
    except UsageError as error:
        reason, hint = error.message.partition("\n")[0], error.hint or hint
    except TypeError:
        reason = f"{quoted(value)} is not {called}"
    raise UsageError(reason, hint)


def _refuse_unknown(file: ConfigFile) -> None:
    known = [setting.name for setting in SETTINGS]
    groups = list(dict.fromkeys(name.partition(".")[0] for name in known))
    for group, keys in file.tables.items():
        if group not in groups:
            _refuse(group, groups, file)
        if not isinstance(keys, dict):
            raise UsageError(
                f"{file.place(group)}: {group}: {quoted(keys)} is not a table",
                f"write [{group}] on a line of its own, and its settings below",
            )
        for key in keys:
            if f"{group}.{key}" not in known:
                _refuse(f"{group}.{key}", known, file)


def _refuse(name: str, known: list[str], file: ConfigFile) -> NoReturn:
    """Raise for an unknown name in a file."""
    error = _unknown(name, known)
    raise UsageError(f"{file.place(name)}: {error.message}", error.hint)


def _unknown(name: str, known: list[str]) -> UsageError:
    """Return the error for an unknown name, with the nearest known one."""
    from difflib import get_close_matches

    key = name.rpartition(".")[2]
    same_key = [one.name for one in SETTINGS if one.name.partition(".")[2] == key]
    near = get_close_matches(name, known, 1) or same_key
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
    return UsageError(f"there is no setting `{name}`", hint)
