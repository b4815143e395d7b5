"""Slurm's `#SBATCH` lines as options of Grass.

What has the same meaning here is translated, with Slurm's units: `--mem=4000` are
megabytes and `--time=90` minutes. Everything else is left out, and named as such.
"""

from __future__ import annotations

import re

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Asked = dict[str, tuple[int, str]]
"""By an option's long name: the line that it is on, and its value."""

_SHORT = {
    "A": "account",
    "a": "array",
    "b": "begin",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "v": "verbose",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
_SWITCHES = (
    *("contiguous", "exclusive", "get-user-env", "hold", "ignore-pbs", "nice"),
    *("no-kill", "no-requeue", "overcommit", "oversubscribe", "parsable"),
    *("propagate", "quiet", "reboot", "requeue", "spread-job", "use-min-nodes"),
    *("verbose", "wait"),
)
"""Options without a value, or with one that only `=` gives."""
_SILENT = ("parsable", "quiet", "verbose", "no-requeue", "get-user-env")
"""Options that ask for what happens anyway, or nothing of the job."""
_PLACES = {
    "j": "{id}",
    "J": "{id}",
    "a": "{index}",
    "x": "{name}",
    "A": "{SLURM_ARRAY_JOB_ID}",
    "N": "{SLURMD_NODENAME}",
}
"""The last two are filled for jobs with `#SBATCH` lines alone."""
_NEEDS = {"afterok": "succeeded", "afterany": "any", "afternotok": "failed"}
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_DEFAULT_NICE = 100


def read(text: str, line: int, asked: Asked) -> None:
    """Note the options of one line; the last of a name counts."""
    words = _words(text)
    while words:
        word = words.pop(0)
        name, equals, value = _split(word)
        if not equals and name not in _SWITCHES:
            if not words:
                raise UsageError(f"{word} needs a value")
            value = words.pop(0)
        asked[name] = line, value


def translated(name: str, asked: Asked) -> list[str] | None:
    """Return an option in words of Grass, none if nothing is to do; None: left out."""
    if name in _SILENT:
        return []
    make = _OPTIONS.get(name)
    return None if make is None else make(asked[name][1], asked)


def _words(text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text, comments=True)
    except ValueError as error:
        raise UsageError(f"#SBATCH{text}: {error}".lower()) from None


def _split(word: str) -> tuple[str, bool, str]:
    """Return an option's name, whether its value is in the word, and that value."""
    name, equals, value = word[2:].partition("=")
    if not word.startswith("--"):
        name, equals, value = word[1:2], word[2:3], word[2:].lstrip("=")
    # Names are printed as they are.
    plain = name.isascii() and name.replace("-", "").isalnum()
    if not word.startswith("-") or not plain:
        raise UsageError(f"`{word}` is no option of sbatch")
    return name if len(name) > 1 else _SHORT.get(name, name), bool(equals), value


def _same(option: str) -> Callable[[str, Asked], list[str] | None]:
    return lambda value, _: [option, value]


def _time(value: str, _: Asked) -> list[str] | None:
    if value.lower() in ("0", "infinite", "unlimited"):
        return []
    days, dash, clock = value.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in parts) or (dash and not days.isdecimal()):
        raise UsageError(f"--time `{value}` is not a time", "write 90 or 1-02:00:00")
    numbers = [int(part) for part in parts]
    hours_first = dash or len(parts) == len("hms")
    scale = [3600, 60, 1] if hours_first else [60, 1]
    if len(parts) > len(scale):
        raise UsageError(f"--time `{value}` is not a time", "write 90 or 1-02:00:00")
    seconds = sum(a * b for a, b in zip(numbers, scale, strict=False))
    return ["--time-limit", f"{seconds + 86400 * int(days or 0)}s"]


def _gres(value: str, _: Asked) -> list[str] | None:
    kinds = [part.split(":") for part in value.split(",")]
    if any(kind[0] != "gpu" for kind in kinds):
        return None
    counts = [kind[-1] if kind[-1].isdecimal() else "1" for kind in kinds]
    return ["--gpu", str(sum(map(int, counts)))]


def _gpus(value: str, _: Asked) -> list[str] | None:
    count = value.rpartition(":")[2]
    return ["--gpu", count] if count.isdecimal() else None


def _memory(value: str, times: int = 1) -> list[str] | None:
    """Read a size; a bare number is megabytes, and 0 means all there is."""
    number = re.fullmatch(r"(\d+)([KMGT]?)B?", value, re.IGNORECASE)
    if number is None:
        raise UsageError(f"--mem `{value}` is not a size", "write 4000, 4G or 500M")
    amount = int(number[1]) * times
    return ["--ram", f"{amount}{number[2].upper() or 'M'}"] if amount else None


def _per_unit(*counted: str) -> Callable[[str, Asked], list[str] | None]:
    def read(value: str, asked: Asked) -> list[str] | None:
        counts = [asked[name][1] for name in counted if name in asked]
        last = counts[-1].rpartition(":")[2] if counts else "1"
        return _memory(value, int(last)) if last.isdecimal() else None

    return read


def _path(option: str) -> Callable[[str, Asked], list[str] | None]:
    def read(value: str, _: Asked) -> list[str] | None:
        known = re.sub(r"%\d*([jJAaxN])", lambda one: _PLACES[one[1]], value)
        rest = known.replace("%%", "")
        return None if "%" in rest else [option, known.replace("%%", "%")]

    return read


def _dependency(value: str, _: Asked) -> list[str] | None:
    found = []
    for part in value.split(","):
        kind, *jobs = part.split(":")
        if kind not in _NEEDS or not jobs or "?" in value:
            return None
        found += [f"{job.partition('+')[0]}:{_NEEDS[kind]}" for job in jobs]
    return ["--after", ",".join(found)]


def _begin(value: str, _: Asked) -> list[str] | None:
    later = re.fullmatch(r"now\+(\d+)([a-z]*?)s?", value)
    if later is not None:
        scale = _UNITS.get(later[2] or "second")
        return None if scale is None else ["--begin", f"+{int(later[1]) * scale}s"]
    if re.fullmatch(r"\d\d:\d\d(:\d\d)?|\d{4}-\d\d-\d\d(T[\d:]+)?", value):
        return ["--begin", value]
    return [] if value == "now" else None


def _nice(value: str, _: Asked) -> list[str] | None:
    amount = value or str(_DEFAULT_NICE)
    digits = amount.removeprefix("-").isdecimal()
    return ["--priority", str(-int(amount))] if digits else None


def _signal(value: str, _: Asked) -> list[str] | None:
    name, _at, before = value.rpartition(":")[2].partition("@")
    return ["--signal", f"{name.removeprefix('SIG')}@{before or 60}"]


def _export(value: str, _: Asked) -> list[str] | None:
    names = [part for part in value.split(",") if part != "ALL"]
    if "NONE" in names or "NIL" in names:
        return None
    return [word for name in names for word in ("--env", name)]


def _only(*values: str) -> Callable[[str, Asked], list[str] | None]:
    """Take an option that asks for what happens anyway."""
    return lambda value, _: [] if value in values else None


_OPTIONS: dict[str, Callable[[str, Asked], list[str] | None]] = {
    "array": _same("--array"),
    "begin": _begin,
    "chdir": _same("--cwd"),
    "cpus-per-task": _same("--cpu"),
    "dependency": _dependency,
    "error": _path("--stderr"),
    "export": _export,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gpus-per-task": _gpus,
    "gres": _gres,
    "hold": lambda *_: ["--hold"],
    "job-name": _same("--name"),
    "mem": lambda value, _: _memory(value),
    "mem-per-cpu": _per_unit("cpus-per-task"),
    "mem-per-gpu": _per_unit("gpus", "gpus-per-node", "gpus-per-task"),
    "nice": _nice,
    "nodes": _only("1", "1-1"),
    "ntasks": _only("1"),
    "ntasks-per-node": _only("1"),
    "open-mode": _only("append"),
    "output": _path("--output"),
    "requeue": lambda *_: ["--retry-lost", "1"],
    "signal": _signal,
    "time": _time,
}
"""By an option's name: words of Grass; none where nothing is to do, None: left out."""
