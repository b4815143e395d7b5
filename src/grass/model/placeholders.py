"""`{gpu}` in a command, environment, directory or output path.

A placeholder is a kind of the job's own request or one of a few fixed words. A brace
after `$` and every brace that is not a placeholder are left alone, as shell and Python
code use them. `{gpu}` in a job that asks for no gpu is an error: it would reach the
program as text, and the program would use every GPU.
"""

import re
from collections.abc import Iterable, Mapping

from grass.errors import UsageError
from grass.model.resources import Allocation, Request, unit_order

_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


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


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace every placeholder that is in `values`."""
    if "{" not in text:
        return text
    return _BRACES.sub(lambda found: values.get(found.group(1), found.group()), text)


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
