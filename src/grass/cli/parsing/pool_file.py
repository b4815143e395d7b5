"""The file of a pool: options of `grass pool add`, and the commands of a site.

A key is an option with `_` for `-`; those that may be repeated have a list. The tables
`submit`, `check`, `status`, `states` and `cancel` are a template. Every error is one
line with the file, the line if it is found, the key and what to do.
"""

from __future__ import annotations

import os
import shlex

from grass.cli.parsing.options import Option, Values
from grass.config_file import ConfigFile
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.client.json_codec import Document

_LISTS = {"options": "option", "setup": "setup", "omit": "omit"}
"""The keys with a list, and the option of each of its words."""
_WORDS = ("submit_prefix", "worker_prefix")
"""The keys with the words of one command."""
_NOT_IN_A_FILE = ("file", "option")


def read_pool_file(
    path: str, options: Sequence[Option]
) -> tuple[Values, Document | None]:
    """Read the options of a file, and its template if it has one."""
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path}", "give the file of a pool")
    file = ConfigFile(path)
    from grass.model.command_templates import TABLES, tables_of, template_from

    tables = tables_of(file.tables)
    values = Values()
    for key, value in file.tables.items():
        if key not in TABLES:
            _read_key(file, key, value, options, values)
    if not tables:
        return values, None
    try:
        template_from(tables)
    except UsageError as error:
        place = file.place(error.field.removeprefix("template."))
        raise error.reworded(f"{place}: {error.message}") from None
    return values, tables


def _read_key(
    file: ConfigFile, key: str, value: object, options: Sequence[Option], values: Values
) -> None:
    from grass.model.command_templates import TABLES

    known = {one.key: one for one in options if one.key not in _NOT_IN_A_FILE}
    known |= {name: _option(options, key) for name, key in _LISTS.items()}
    option = known.get(key)
    if option is None:
        names = ", ".join((*sorted(known), *(f"[{one}]" for one in TABLES)))
        raise UsageError(f"{file.place(key)}: there is no `{key}`", f"it is {names}")
    for text in _texts(file, key, value, option):
        values.add(option, text)


def _option(options: Sequence[Option], key: str) -> Option:
    return next(one for one in options if one.key == key)


def _texts(file: ConfigFile, key: str, value: object, option: Option) -> list[str]:
    """Return a value as the command line would have it."""
    if key in _LISTS or key in _WORDS:
        words = _words(file, key, value)
        return words if key in _LISTS else [shlex.join(words)]
    if not option.value:
        if isinstance(value, bool):
            return [""] if value else []
        raise _wrong(file, key, "true or false")
    if isinstance(value, str) or (isinstance(value, int) and value is not True):
        return [str(value)]
    raise _wrong(file, key, 'a text or a number, as "4h" or 8')


def _words(file: ConfigFile, key: str, value: object) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [str(one) for one in value]
    raise _wrong(file, key, 'a list of texts: ["...", "..."]')


def _wrong(file: ConfigFile, key: str, wanted: str) -> UsageError:
    return UsageError(
        f"{file.place(key)}: `{key}` has a wrong value", f"it is {wanted}"
    )
