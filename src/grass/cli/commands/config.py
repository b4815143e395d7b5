"""`grass config`: the settings, where they come from, and changes to their file.

Works without a daemon, because a mistake in the file keeps one from starting. A daemon
reads its settings when it starts: a running one with other values gets a warning. The
file is written whole or not at all, and only with values that a daemon would accept.
"""

from __future__ import annotations

import os
import shlex
import sys

from grass.cli.parsing.options import JSON, Command, Option, Values, at_most, read, scan
from grass.cli.printing.streams import print_document, say, warn
from grass.cli.printing.table import Screen, render, show
from grass.client.connection import Broken, open_connection
from grass.config import config_file, home
from grass.config_file import ConfigFile
from grass.errors import GrassError, NotFound, UsageError
from grass.settings import (
    DEFAULT_ORIGIN,
    find_setting,
    settings_in,
    settings_of,
    value_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from grass.client.json_codec import Document

    Listed = list[dict[str, Any]]

OPTIONS = (Option("--origin", about="with `show`: where each value comes from"), JSON)
_ACTIONS = "`grass config show`, `set KEY VALUE`, `unset KEY` or `path`"
_EXAMPLE = "grass config set defaults.queue gpu"


def run(words: list[str]) -> int:
    """Show or change the settings, or say where their file is."""
    values = Values()
    at = scan(OPTIONS, words, 0, values)
    if at == len(words):
        raise UsageError("what to do is missing", _ACTIONS)
    action = _RUN.get(words[at])
    if action is None:
        raise UsageError(f"`{words[at]}` is none of its verbs", _ACTIONS)
    return action(words[:at] + words[at + 1 :])


def _show(words: list[str]) -> int:
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    listed = settings_of(home()).listed()
    if values.has("json"):
        print_document({"file": config_file(home()), "settings": listed})
    else:
        _print_table(listed, with_origin=values.has("origin"))
    other = _not_applied(listed)
    if other:
        sys.stdout.flush()  # the warning belongs below the table, also in a file
        names = ", ".join(other)
        warn(f"the daemon runs with another {names} (`grass restart` applies this)")
    return 0


def _path(words: list[str]) -> int:
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    path = config_file(home())
    if values.has("json"):
        print_document({"path": path, "exists": os.path.exists(path)})
    else:
        say(path)
    return 0


def _set(words: list[str]) -> int:
    # The word after the key is the value, also where it begins with a dash.
    values = Values()
    at = scan(OPTIONS, words, 0, values)
    if len(words) < at + 2:
        raise UsageError("a setting or its value is missing", _EXAMPLE)
    name, text = words[at : at + 2]
    at_most(words[scan(OPTIONS, words, at + 2, values) :], 0)
    setting = find_setting(name)
    value = value_of(setting, text)

    def change(file: ConfigFile) -> ConfigFile:
        changed = file.with_value(name, value)
        settings_in(changed, {})
        return changed

    done = {"name": name, "value": value, **_change_file(change)}
    _report(values, done, f"{name} is {shown(value)} now")
    if name == "defaults.queue" and _is_missing(str(value)):
        warn(f"there is no queue `{value}` yet (`grass create-queue {value}`)")
    if os.environ.get(setting.variable):
        warn(f"{setting.variable} is set in this shell, and goes before the file")
    return 0


def _unset(words: list[str]) -> int:
    values, rest = read(OPTIONS, words)
    if not rest:
        raise UsageError("the name of a setting is missing", "grass config unset KEY")
    at_most(rest, 1)
    (name,) = rest

    def change(file: ConfigFile) -> ConfigFile:
        # A name that is in the file can be taken out, also one that is a mistake.
        if not file.has(name):
            find_setting(name)
            return file
        return file.without_value(name)

    done = {"name": name, "value": None, **_change_file(change)}
    said = f"{name} is unset now" if done["changed"] else f"{name} was not set"
    _report(values, done, said)
    return 0


_RUN = {"show": _show, "set": _set, "unset": _unset, "path": _path}


def _change_file(change: Callable[[ConfigFile], ConfigFile]) -> dict[str, Any]:
    """Change the file, with no other such command at the same time."""
    import fcntl

    from grass.client.private_files import replace_private

    # A link, as into a folder that a user keeps such files in, stays one.
    path = os.path.realpath(config_file(home()))
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # A file of its own: the daemon locks the folder, and a write replaces the file.
    lock = os.open(f"{path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = ConfigFile(path)
        after = change(before)
        if after.text != before.text:
            replace_private(path, after.text)
    finally:
        os.close(lock)
    return {"file": path, "changed": after.text != before.text}


def _report(values: Values, done: dict[str, Any], said: str) -> None:
    """Say what was done, and whether a daemon runs that does not know it."""
    try:
        restart = done["name"] in _not_applied(settings_of(home()).listed())
    except UsageError:  # another mistake in the file: no daemon would start with it
        restart = False
    if values.has("json"):
        print_document({**done, "restart_needed": restart})
    else:
        say(said + (" (`grass restart` applies it)" if restart else ""))


def _is_missing(queue: str) -> bool:
    """Tell whether a running daemon has no such queue."""
    try:
        _asked(f"/queues/{queue}")
    except NotFound:
        return True
    except (Broken, GrassError):
        return False
    return False


def _not_applied(listed: Listed) -> list[str]:
    """Return the settings of which a running daemon has another value."""
    try:
        theirs = _asked("/config")
    except (Broken, GrassError):
        return []
    if theirs is None:
        return []
    known = {one["name"]: one["value"] for one in theirs["settings"]}
    return [one["name"] for one in listed if known.get(one["name"]) != one["value"]]


def _asked(path: str) -> Document | None:
    """Return what a running daemon answers; None where none runs."""
    connection = open_connection(home().socket)
    if connection is None:
        return None
    try:
        answer: Document = connection.exchange("GET", path)
        return answer
    finally:
        connection.close()


def _print_table(listed: Listed, *, with_origin: bool) -> None:
    header = ["SETTING", "VALUE", "ORIGIN"]
    rows = [[one["name"], shown(one["value"]), _from(one["origin"])] for one in listed]
    columns = len(header) if with_origin else 2
    # Never cut: a path or a command is useless without its end.
    screen = Screen(None, colours=False)
    show(render(header[:columns], [row[:columns] for row in rows], screen))


def shown(value: object) -> str:
    """Write a value as it stands in a command line."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        return "{" + ",".join(f"{kind}:{asked}" for kind, asked in value.items()) + "}"
    return shlex.join(value) if isinstance(value, list) else str(value)


def _from(origin: str) -> str:
    if origin == DEFAULT_ORIGIN:
        return origin
    if not origin.startswith("/"):
        return f"variable {origin}"
    folder = os.path.expanduser("~") + "/"
    inside = origin.startswith(folder)
    return f"file ~/{origin.removeprefix(folder)}" if inside else f"file {origin}"


COMMAND = Command(
    usage=(
        "show [--origin] [--json] | set KEY VALUE [--json] | unset KEY [--json] | "
        "path [--json]"
    ),
    about=(
        "Show every setting with its value, set one in config.toml or take it out "
        "again, or print the path of that file. Comments and everything else in it "
        "stay. The daemon reads it when it starts: `grass restart` applies a change."
    ),
    options=OPTIONS,
    examples=(
        "grass config show --origin",
        "grass config set defaults.queue gpu",
        "grass config set notify.on_fail 'mail -s \"$GRASS_NAME failed\" me'",
        "grass config unset retention.keep",
        '${EDITOR:-vi} "$(grass config path)" && grass restart',
    ),
    run=run,
)
