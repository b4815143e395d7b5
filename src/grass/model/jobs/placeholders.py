"""`{gpu}` in a command, environment, directory, output path or name.

A placeholder is a kind of the job's own request, one of its parameters or one of a few
fixed words. A brace after `$` and every brace that is not a placeholder are left alone,
as shell and Python code use them. `{gpu}` in a job that asks for no gpu is an error: it
would reach the program as text, and the program would use every GPU.

In a shell line a value is quoted for the shell, so that it never becomes code. Within
quotes of the line's own that would end these quotes: there a value that needs quoting
is refused.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from grass.errors import UsageError
from grass.model.jobs.params import Params, listed
from grass.model.resources import Allocation, Request, unit_order

_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_.-]*|[0-9]{0,3})\}")
_ALL = "{}"
_QUOTED = re.compile(r"\\.|'[^']*'?|\"(?:\\.|[^\"\\])*\"?", re.DOTALL)

PlaceholderValues = dict[str, str]


def check(texts: Iterable[str], request: Request, known_kinds: Iterable[str]) -> None:
    """Raise if a text names a known kind that the request does not ask for."""
    asked = {kind for kind, _ in request}
    missing = frozenset(known_kinds) - asked
    for text in texts:
        if "{" not in text:
            continue
        for found in _BRACES.finditer(text):
            if found.group(1) in missing:
                raise _not_asked_for(found.group(1))


def check_positions(texts: Iterable[str], params: Params) -> None:
    """Raise if a text names a third value, and a job is given two."""
    count = len(listed(params) or ())
    for name in sorted(names_in(texts)) if count else ():
        if name.isdecimal() and int(name) > count:
            values = "one value" if count == 1 else f"{count} values"
            last = "{1}" if count == 1 else f"{{1}} to {{{count}}}"
            raise UsageError(
                f"`{{{name}}}` is used, but each job is given {values}",
                f"use {last}, or {{}} for all; give one ::: for each list of values",
            )


def names_in(texts: Iterable[str]) -> set[str]:
    """Return what braces of these texts name; the empty name is that of `{}`."""
    return {found.group(1) for text in texts for found in _BRACES.finditer(text)}


def check_quoted(line: str, params: Params) -> None:
    """Refuse values that would end the quotes of a shell line in which they stand."""
    for name in _quoted_names(line):
        for value in (listed(params) or ()) if not name else [params.get(name, "")]:
            if value and shlex.quote(value) != value:
                raise UsageError(
                    f"`{{{name}}}` stands in quotes, and its value {value!r} needs"
                    " quotes of its own",
                    f"write {{{name}}} without quotes around it: a value is quoted by"
                    " itself in a shell line",
                )


@lru_cache(maxsize=16)
def _quoted_names(line: str) -> tuple[str, ...]:
    """Return what braces within quotes of a shell line name."""
    names = names_in(found.group() for found in _QUOTED.finditer(line))
    return tuple(sorted(names))


def values_of(  # noqa: PLR0913 -- one for each fixed word
    *,
    id: int,
    name: str,
    project: str,
    index: int | None,
    params: Params,
    attempt: int | None = None,
    allocation: Allocation | None = None,
) -> PlaceholderValues:
    """Return what the placeholders of a job stand for; what is not known is left."""
    return {
        **of_the_job(id, index, params),
        "name": name,
        "project": project,
        **({} if attempt is None else {"attempt": str(attempt)}),
        **unit_names(allocation or {}),
    }


def of_the_job(id: int, index: int | None, params: Params) -> PlaceholderValues:
    """Return what the placeholders of a name stand for."""
    values = {"id": str(id), **params}
    if index is not None:
        values["index"] = str(index)
    several = listed(params)
    return values if several is None else {**values, "": " ".join(several)}


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder that is in `values`."""
    if "{" not in text:
        return text
    return _BRACES.sub(lambda found: values.get(found.group(1), found.group()), text)


def fill_command(
    words: Sequence[str], values: Mapping[str, str], params: Params, *, shell: bool
) -> list[str]:
    """Replace the placeholders of a command, whose last word may be a shell line.

    A word that is `{}` becomes one word for each parameter.
    """
    several = listed(params)
    if shell and words:
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        if several is not None:
            quoted[""] = shlex.join(several)
        return [*(fill(word, values) for word in words[:-1]), fill(words[-1], quoted)]
    filled: list[str] = []
    for word in words:
        if word == _ALL and several is not None:
            filled += several
        else:
            filled.append(fill(word, values))
    return filled


def unit_names(allocation: Allocation) -> dict[str, str]:
    """Return each kind's units as a job gets them: `0` or `0,1,2`."""
    return {
        kind: ",".join(sorted(units, key=unit_order))
        for kind, units in allocation.items()
    }


def _not_asked_for(kind: str) -> UsageError:
    return UsageError(
        f"`{{{kind}}}` is used, but the job asks for no {kind}",
        f"add it to --require, e.g. --require '{{{kind}:1}}', or use --raw",
    )
