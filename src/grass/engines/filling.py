"""Fills the commands and the script of a template from what a pilot needs.

A word of a command, and a line of a script, is left out where it names something that
the pilot does not have: GPUs, or memory of its own. Braces after `$` and all other
braces stay as they are, so a script may use them.
"""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime

from grass.engines.provider import PilotRequest

_NAMES = (
    "mark",
    "name",
    "command",
    "directory",
    "output",
    "time_s",
    "time_minutes",
    "time_hms",
    "hhmmss",
    "cpus",
    "gpus",
    "memory_mib",
)
_PLACE = re.compile(r"(?<!\$)\{(" + "|".join(_NAMES) + r")\}")
Filling = Mapping[str, str | None]


def values_of(request: PilotRequest) -> Filling:
    """Return what each name stands for; None: the pilot has no such thing."""
    seconds = math.ceil(request.time_limit_s)
    minutes = math.ceil(seconds / 60)
    hms = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    memory = request.memory_mib
    return {
        "mark": request.mark,
        "name": request.name,
        "command": shlex.join(request.command),
        "directory": request.directory,
        "output": request.output,
        "time_s": str(seconds),
        "time_minutes": str(minutes),
        "time_hms": hms,
        "hhmmss": datetime.now().strftime("%H%M%S"),  # noqa: DTZ005 -- as Grain has it
        "cpus": str(request.cpus),
        "gpus": str(request.gpus) if request.gpus else None,
        "memory_mib": None if memory is None else str(memory),
    }


def command_of(words: Sequence[str], request: PilotRequest) -> tuple[str, ...]:
    """Return the words of a command that submits."""
    values, filled = values_of(request), list[str]()
    for word in words:
        if word == "{options}":
            filled += request.options
        elif (text := _filled(word, values)) is not None:
            filled.append(text)
    return tuple(filled)


def words_with(
    words: Sequence[str], name: str, engine_ids: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the words of a command about many jobs: their pool's name, their ids.

    A word `{ids}` becomes one word for each; within a word they are set with commas.
    """
    filled = list[str]()
    for word in words:
        if word == "{ids}":
            filled += engine_ids
        else:
            with_name = word.replace("{name}", name)
            filled.append(with_name.replace("{ids}", ",".join(engine_ids)))
    return tuple(filled)


def script_of(script: str, request: PilotRequest) -> str:
    """Return the script; a line with `{options}` is written once for each option."""
    # A path with a blank is one word of a shell, and of the schedulers' own lines.
    quoted = {
        name: shlex.quote(value)
        if name in ("directory", "output") and value is not None
        else value
        for name, value in values_of(request).items()
    }
    lines = list[str]()
    for line in script.splitlines():
        if line.strip() == "{setup}":
            lines += request.setup
        elif "{options}" in line:
            lines += [line.replace("{options}", one) for one in request.options]
        elif (text := _filled(line, quoted)) is not None:
            lines.append(text)
    return "\n".join(lines) + "\n"


def _filled(text: str, values: Filling) -> str | None:
    names = _PLACE.findall(text)
    if any(values[name] is None for name in names):
        return None
    return _PLACE.sub(lambda found: values[found[1]] or "", text)
