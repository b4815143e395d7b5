"""Parameters of a job: an ordered mapping of names to texts, beside its spec.

Jobs of one call share command and options, and differ in their parameters. Those that
are given without names are named by their place: `1`, `2`, `3`. A program finds them in
place of `{1}` or `{lr}`, and in `GRASS_PARAM_1` or `GRASS_PARAM_LR`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from grass.errors import UsageError
from grass.model.jobs.arrays import MOST_MEMBERS

Params = dict[str, str]

MOST_NAMES = 200
RESERVED = frozenset({"id", "name", "attempt", "project", "index"})
"""Placeholders that every job has."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}\Z")
_NOT_IN_A_VARIABLE = re.compile(r"[^A-Z0-9]")


def rows(names: Sequence[str], values: Sequence[Sequence[str]]) -> list[Params]:
    """Return the parameters of each job; a row has one value for each name."""
    check_names(names)
    if not values:
        raise UsageError("there are no values for the parameters", "give at least one")
    if len(values) > MOST_MEMBERS:
        raise UsageError(f"{len(values):,} jobs", f"give at most {MOST_MEMBERS:,}")
    return [_row(names, row, number) for number, row in enumerate(values, 1)]


def _row(names: Sequence[str], row: Sequence[str], number: int) -> Params:
    if len(row) != len(names):
        raise UsageError(f"row {number} has {len(row)} values, not {len(names)}")
    if any("\0" in value for value in row):
        raise UsageError(f"row {number}: a value cannot hold a NUL byte")
    return dict(zip(names, row, strict=True))


def check_names(names: Sequence[str]) -> None:
    """Refuse names that are no placeholders, or that mean something else."""
    if not 0 < len(names) <= MOST_NAMES:
        raise UsageError(f"{len(names)} parameters", f"give 1 to {MOST_NAMES}")
    if list(names) == positions(len(names)):
        return
    for name in names:
        if not _NAME.match(name):
            raise UsageError(
                f"`{name}` cannot name a parameter", "use letters, digits, _ . and -"
            )
        if name in RESERVED:
            raise _means_something(name)
    if len({variable(name) for name in names}) < len(names):
        raise UsageError(f"two of the parameters {', '.join(names)} have the same name")


def check_kinds(names: Iterable[str], kinds: Iterable[str]) -> None:
    """Refuse parameters that are named like a kind of resource."""
    for name in sorted(set(names) & set(kinds)):
        raise _means_something(name)


def positions(count: int) -> list[str]:
    """Return the names of parameters that are given without names."""
    return [str(number) for number in range(1, count + 1)]


def listed(params: Mapping[str, str]) -> list[str] | None:
    """Return the values of parameters without names, which `{}` stands for."""
    return list(params.values()) if "1" in params else None


def variable(name: str) -> str:
    """Return the environment variable that has a parameter's value."""
    return f"GRASS_PARAM_{_NOT_IN_A_VARIABLE.sub('_', name.upper())}"


def _means_something(name: str) -> UsageError:
    return UsageError(
        f"a parameter cannot have the name `{name}`",
        f"`{{{name}}}` has a meaning of its own",
    )
