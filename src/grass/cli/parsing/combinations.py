"""Parameters on the command line: `python t.py {1} {2} ::: 0.1 0.01 ::: 1 2 3`.

Each `:::` begins a list of values, as in GNU parallel, and every combination of them is
one job; the last list changes fastest. A command that uses none of the values gets them
as words at its end.
"""

from __future__ import annotations

import contextlib
from itertools import product
from math import prod

from grass.errors import GrassError, UsageError
from grass.model.jobs.arrays import MOST_MEMBERS
from grass.model.jobs.commands import is_shell_line
from grass.model.jobs.params import positions
from grass.model.jobs.placeholders import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grass.client.json_codec import Document

MARK = ":::"


def split(command: Sequence[str]) -> tuple[list[str], Document]:
    """Split a command from its lists of values; return those as parameters."""
    begins = [at for at, word in enumerate(command) if word.startswith(MARK)]
    for at in begins:
        if command[at] != MARK:
            raise UsageError(
                f"`{command[at]}` is not understood",
                "each ::: begins a list of values; --from FILE reads them from a file",
            )
    ends = [*begins[1:], len(command)]
    lists = [command[at + 1 : end] for at, end in zip(begins, ends, strict=True)]
    return list(command[: begins[0]]), _combined(lists)


def _combined(lists: Sequence[Sequence[str]]) -> Document:
    for number, values in enumerate(lists, 1):
        if not values:
            which = f" number {number}" if len(lists) > 1 else ""
            raise UsageError(f"no values follow{which} :::", "write ::: 1 2 3")
    count = prod(map(len, lists))
    if count > MOST_MEMBERS:
        raise UsageError(
            f"{count:,} combinations", f"at most {MOST_MEMBERS:,} are taken at a time"
        )
    return {"names": positions(len(lists)), "rows": list(map(list, product(*lists)))}


def template(command: list[str], params: Document, fields: Document) -> list[str]:
    """Return a command that uses its values: at its end, if it names none itself."""
    named = params["names"] != positions(len(params["names"]))
    if named or fields.get("raw"):
        return command
    texts = [text for text in fields.values() if isinstance(text, str)]
    texts += fields.get("env", {}).values()
    if names_in([*command, *texts]) & {"", *params["names"]}:
        return command
    if is_shell_line(command):
        return [*command[:-1], command[-1] + " {}"]
    return [*command, "{}"]


@contextlib.contextmanager
def errors_by_row(place: Callable[[int], str]) -> Iterator[None]:
    """Name the place of a row in the daemon's errors about it."""
    try:
        yield
    except GrassError as error:
        if error.job is None:
            raise
        raise error.reworded(place(error.job) + error.message) from None
