"""`grain.toml`, the file of `grain up`, read as a pool.

The keys are those of Grain's releases: of 0.11 with everything under `worker` (`PPN`,
`MPN`, `log_dir`, `log_filename`), and of later ones (`cores`, `memory`, `log_file`,
`custom_system`), where `worker` may change what stands above it. The script is the one
that Grain would submit, with a worker of Grass in the place of Grain's.

Lines of `setup_cleanup` that begin with `defer ` run after the worker, the last first.
"""

from __future__ import annotations

import hashlib
import os
import re

from grass.config_file import ConfigFile
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from grass.client.json_codec import Document

MOST_WORKERS = 1000
IDLE_S = 1800.0
_DEFAULT_TIME = "12:00:00"
_NO_QUEUE = ("", "''", '""')
_MAIN = "{{MAIN}}"
_OF_GRAIN = re.compile(r"\{c\.([\w.]+)\}")
_NOW = "{{HHMMSS}}"
_DEFER = "defer "
_DIRECTIVES = {
    "slurm": (
        "#SBATCH -J {c.name}",
        "#SBATCH -p {c.script.queue}",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks-per-node={c.script.cores}",
        "#SBATCH --mem={c.script.memory}G",
        "#SBATCH --time={c.script.walltime}",
        "#SBATCH -o {c.log_file}",
    ),
    "pbs": (
        "#PBS -N {c.name}",
        "#PBS -q {c.script.queue}",
        "#PBS -l nodes=1:ppn={c.script.cores},walltime={c.script.walltime}",
        "#PBS -l vmem={c.script.memory}gb",
        "#PBS -j oe",
        "#PBS -o {c.log_file}",
    ),
}
_SUBMITTING = {
    "slurm": ["sbatch", "--comment={mark}", "--no-requeue"],
    "pbs": ["qsub", "-v", "GRASS_MARK={mark}"],
}
_SIGNS = {"slurm": "#SBATCH", "pbs": "#PBS"}
_WORKER = """\
echo "worker {c.name}'s node is $(hostname)"

{c.script.setup}

date
{command} &
worker=$!
trap 'kill -TERM $worker' TERM INT
wait $worker || wait $worker
trap - TERM INT
date

{c.script.cleanup}
"""
_SUBMIT = """\
cd "$0" && file=$(mktemp ./grass-up.XXXXXX) && cat > "$file" || exit 1
program=$1; shift
"$program" "$@" "$file"; code=$?
rm -f "$file"; exit $code"""
"""Grain gives the script as a file, in the directory where it was called. What stands
behind that file is no option of `sbatch`, so options come first."""
_SLURM_ASKED: Document = {
    "status": {
        "command": ["squeue", "-h", "-t", "all", "-o", "%i|%T|%k|%P|%N|%r"],
        "id": r"^(\d+)\|",
        "state": r"^\d+\|(\w+)",
        "mark": r"^\d+\|\w+\|(\w+)\|",
        "place": r"^\d+\|\w+\|\w+\|([^|]+)",
        "reason": r"\|([^|]+)$",
    },
    "states": {
        "pending": ["PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD"],
        "running": ["RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"],
        "ended": [
            *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
            *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
        ],
    },
    "cancel": {"command": ["scancel", "{ids}"], "over": ["Invalid job id"]},
}
_PBS_ASKED: Document = {
    "status": {
        "command": ["qstat", "-f"],
        "split": "Job Id: ",
        "unfold": "\n\t",
        "id": r"^(\S+)",
        "mark": r"GRASS_MARK=(\w+)",
        "state": r"job_state = (\w+)",
        "place": r"exec_host = (\S+)",
        "reason": "comment = (.+)",
    },
    "states": {
        "pending": ["Q", "H", "W", "T"],
        "running": ["R", "E", "S", "U"],
        "ended": ["C", "F", "X"],
    },
    "cancel": {
        "command": ["qdel", "{ids}"],
        "over": ["Unknown Job", "Unknown job", "has finished", "invalid for state"],
    },
}
_NO_ANSWER = [
    *("Socket timed out", "Unable to contact", "cannot connect"),
    *("Connection refused", "timed out"),
]


def read_grain_file(path: str, name: str, extra: Sequence[str] = ()) -> Document:
    """Return the request for a pool whose workers are asked for by hand.

    `extra` are options of the command that submits. The directory is this one.
    """
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path}", "name a pool, or Grain's file: -c")
    file = ConfigFile(path)
    settings = _merged(file.tables, file.tables.get("worker"))
    script = settings.get("script") or {}
    if not isinstance(script, dict):
        raise UsageError(f"{_place(file, 'script')}: `script` is no table", "[script]")
    cores = _number(file, script, "cores", "PPN") or 1
    memory = _number(file, script, "memory", "MPN") or 0
    walltime = str(script.get("walltime") or _DEFAULT_TIME)
    template = _template(file, settings, script, cores, memory, walltime)
    body: Document = {
        "name": name,
        "engine": "command",
        "max_workers": MOST_WORKERS,
        "idle_s": IDLE_S,
        "time_limit_s": _seconds(file, walltime),
        "mode": "shared",
        "cpus": cores,
        # Grain keeps a fifteenth for itself.
        "memory_mib": memory * 1024 * 14 // 15 or None,
        "options": list(extra),
        "template": template,
        "paused": True,
    }
    text = repr(sorted(body.items())).encode()
    return {**body, "source": hashlib.sha256(text).hexdigest()[:12]}


def _merged(above: Mapping[str, Any], below: object) -> dict[str, Any]:
    """Return the keys of both; those of `worker` win, also inside of tables."""
    found = {
        key: value for key, value in above.items() if key not in ("head", "worker")
    }
    if isinstance(below, dict):
        for key, value in below.items():
            known = found.get(key)
            both = isinstance(known, dict) and isinstance(value, dict)
            found[key] = {**known, **value} if both and known else value
    return found


def _template(
    file: ConfigFile,
    settings: Mapping[str, Any],
    script: Mapping[str, Any],
    cores: int,
    memory: int,
    walltime: str,
) -> Document:
    system, submit, sign, text = _system(file, settings)
    setup, cleanup = _deferred(str(script.get("setup_cleanup") or ""))
    extra = script.get("extra_args") or []
    values = {
        "name": str(settings.get("name") or f"w{_NOW}"),
        "log_file": _log_file(settings),
        "script.shebang": str(script.get("shebang") or "#!/bin/bash"),
        "script.queue": str(script.get("queue") or ""),
        "script.cores": str(cores),
        "script.memory": str(memory),
        "script.walltime": walltime,
        "script.extra_args_str": "\n".join(f"{sign} {one}" for one in extra),
        "script.setup": setup,
        "script.cleanup": cleanup,
    }
    if _MAIN not in text:
        raise UsageError(
            f"{_place(file, 'custom_system.template')}: it has no {_MAIN}",
            "put it where the worker is to run",
        )
    filled = _filled(file, text.replace(_MAIN, _WORKER), values)
    asked = {"slurm": _SLURM_ASKED, "pbs": _PBS_ASKED}.get(system, {})
    return {
        "submit": {
            "command": ["sh", "-c", _SUBMIT, os.getcwd(), *submit, "{options}"],
            "script": filled,
            "id": r"(\d[\w.]*)",
            "no_answer": _NO_ANSWER,
        },
        **asked,
    }


def _system(
    file: ConfigFile, settings: Mapping[str, Any]
) -> tuple[str, list[str], str, str]:
    """Return the system, what submits, the sign of its lines, and its script."""
    custom = settings.get("custom_system")
    if isinstance(custom, dict):
        missing = [
            key for key in ("submit_cmd", "directory", "template") if key not in custom
        ]
        if missing:
            key = f"custom_system.{missing[0]}"
            raise UsageError(f"{_place(file, 'custom_system')}: `{key}` is missing")
        words = [str(custom["submit_cmd"])]
        return "custom", words, str(custom["directory"]), str(custom["template"])
    system = str(settings.get("system") or "").lower().removesuffix("_wrap")
    if system not in _DIRECTIVES:
        raise UsageError(
            f"{_place(file, 'system')}: there is no system `{system}`",
            "slurm, pbs, or the table custom_system; here alone `grass start` will do",
        )
    lines = ("{c.script.shebang}", *_directives(system, settings))
    extra = ("{c.script.extra_args_str}", "", *_entering(system), _MAIN)
    return (
        system,
        _SUBMITTING[system],
        _SIGNS[system],
        "\n".join((*lines, *extra)) + "\n",
    )


def _directives(system: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the lines for the scheduler, without those that would say nothing."""
    script = settings.get("script") or {}
    absent = []
    if str(script.get("queue") or "") in _NO_QUEUE:
        absent.append("{c.script.queue}")
    if not (script.get("memory") or script.get("MPN")):
        absent.append("{c.script.memory}")
    lines = _DIRECTIVES[system]
    return [line for line in lines if not any(one in line for one in absent)]


def _entering(system: str) -> tuple[str, ...]:
    return ("cd $PBS_O_WORKDIR",) if system == "pbs" else ()


def _log_file(settings: Mapping[str, Any]) -> str:
    if "log_file" in settings:
        return str(settings["log_file"])
    name = str(settings.get("log_filename") or f"w{_NOW}.log")
    return os.path.join(str(settings.get("log_dir") or ""), name)


def _deferred(text: str) -> tuple[str, str]:
    """Split what runs before the worker from what runs after it, the last first."""
    lines = text.split("\n")
    setup = [line for line in lines if not line.startswith(_DEFER)]
    later = [line.removeprefix(_DEFER) for line in lines if line.startswith(_DEFER)]
    return "\n".join(setup), "\n".join(reversed(later))


def _filled(file: ConfigFile, text: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            place = _place(file, "custom_system.template")
            known = ", ".join(f"{{c.{one}}}" for one in values)
            raise UsageError(f"{place}: there is no {found[0]}", f"it may use {known}")
        return values[found[1]]

    # In a template of Grain two braces stand for one, but not in what is filled in.
    parts = _OF_GRAIN.split(text)
    plain = [part.replace("{{", "{").replace("}}", "}") for part in parts[::2]]
    names = [value(found) for found in _OF_GRAIN.finditer(text)]
    whole = "".join(
        piece for pair in zip(plain, [*names, ""], strict=True) for piece in pair
    )
    return whole.replace(_NOW, "{hhmmss}")


def _seconds(file: ConfigFile, walltime: str) -> float:
    """Read `12:00:00`, `1-12:00:00` or `1:12:00:00`."""
    *days, hours, minutes, seconds = [
        "0",
        "0",
        "0",
        *walltime.replace("-", ":").split(":"),
    ]
    parts = [*days, hours, minutes, seconds][-4:]
    if walltime.count(":") < 2 or not all(one.isdecimal() for one in parts):
        raise UsageError(
            f"{_place(file, 'script.walltime')}: `{walltime}` is no walltime",
            "as 12:00:00",
        )
    numbers = [int(one) for one in parts]
    days_s, hours_s, minutes_s, seconds_s = numbers
    return float(days_s * 86400 + hours_s * 3600 + minutes_s * 60 + seconds_s)


def _number(file: ConfigFile, script: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = script.get(name)
        if value is not None and (not isinstance(value, int) or value < 0):
            place = _place(file, f"script.{name}")
            raise UsageError(f"{place}: `{name}` is a whole number, not `{value}`")
        if value:
            return int(value)
    return None


def _place(file: ConfigFile, key: str) -> str:
    """Return the file and the line of a key, which may stand under `worker`."""
    places = [file.place(name) for name in (f"worker.{key}", key)]
    return next((place for place in places if place != file.path), file.path)
