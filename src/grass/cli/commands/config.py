"""`grass config`: the settings, where they come from, and which file to edit.

Works without a daemon, because a mistake in the file keeps one from starting. A daemon
reads its settings when it starts: a running one with other values gets a warning.
"""

from __future__ import annotations

import os
import shlex
import sys

from grass.cli.parsing.options import JSON, Command, Option, at_most, read
from grass.cli.printing.streams import print_document, say, warn
from grass.cli.printing.table import Screen, render, show
from grass.client.connection import Broken, open_connection
from grass.config import config_file, home
from grass.errors import GrassError, UsageError
from grass.settings import DEFAULT_ORIGIN, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OPTIONS = (Option("--origin", about="say where each value comes from"), JSON)


def run(words: list[str]) -> int:
    """Show the settings, or where their file is."""
    values, rest = read(OPTIONS, words)
    if not rest or rest[0] not in ("show", "path"):
        what = f"`{rest[0]}` is neither" if rest else "what to do is missing"
        raise UsageError(what, "`grass config show` or `grass config path`")
    at_most(rest, 1)
    if rest[0] == "path":
        return _path(as_json=values.has("json"))
    listed = settings_of(home()).listed()
    if values.has("json"):
        print_document({"file": config_file(home()), "settings": listed})
    else:
        _print_table(listed, with_origin=values.has("origin"))
    _warn_of_others(listed)
    return 0


def _path(*, as_json: bool) -> int:
    path = config_file(home())
    if as_json:
        print_document({"path": path, "exists": os.path.exists(path)})
    else:
        say(path)
    return 0


def _print_table(listed: list[dict[str, Any]], *, with_origin: bool) -> None:
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


def _warn_of_others(listed: list[dict[str, Any]]) -> None:
    """Warn if the daemon runs with other values."""
    try:
        connection = open_connection(home().socket)
        if connection is None:
            return
        theirs = connection.exchange("GET", "/config")["settings"]
        connection.close()
    except (Broken, GrassError):
        return
    known = {one["name"]: one["value"] for one in theirs}
    other = [one["name"] for one in listed if known.get(one["name"]) != one["value"]]
    if other:
        sys.stdout.flush()  # the warning belongs below the table, also in a file
        names = ", ".join(other)
        warn(f"the daemon runs with another {names} (`grass restart` applies this)")


COMMAND = Command(
    usage="show [--origin] [--json] | path [--json]",
    about=(
        "Show every setting with its value, or print the path of config.toml, where "
        "they are set. The daemon reads it when it starts."
    ),
    options=OPTIONS,
    examples=(
        "grass config show --origin",
        '${EDITOR:-vi} "$(grass config path)" && grass restart',
    ),
    run=run,
)
