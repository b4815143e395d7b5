"""The options of a job, which several commands share, and the fields they set.

The daemon reads JSON5 and checks everything that does not depend on the caller's place;
this side resolves paths, `--env NAME`, and times in the caller's zone.
"""

from __future__ import annotations

import os

from grass.cli.parsing.options import Option, Values
from grass.config import caller_directory
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from grass.client.client import Client
    from grass.client.json_codec import Document

REQUIRE = Option("--require", "JSON5", "what the job needs, as {gpu:0.5,ram:'8G'}")
REQUIRE_OR_JSON = Option("--json, --require", REQUIRE.value, REQUIRE.about)
SHORT_REQUIRE = (
    Option("-g, --gpu", "N", "GPUs, also fractions"),
    Option("-c, --cpu", "N", "CPU cores"),
    Option("-m, --ram", "SIZE", "memory: 8G, 500M; a bare number is GiB"),
    Option("--vram", "SIZE", "memory of a GPU: 10G, in GiB, or auto: as was learned"),
)
"""Each replaces the kind it names in the default request, and keeps the others."""
ENV = Option("--env", "NAME=VALUE", "set a variable; NAME alone copies it; repeatable")
CWD = Option("--cwd", "DIR", "directory to run in (default: the current one)")
QUEUE = Option("--queue", "QUEUE", "the queue, named as an option")
NAME = Option("--name", "NAME", "the job's name (default: the script's or program's)")
PRIORITY = Option("--priority", "N", "higher starts earlier (default: 0)")
AFTER = Option(
    "--after", "JOBS", "start after these: 7,9 or 7:failed, 3-8:any, @project"
)
BEGIN = Option("--begin", "TIME", "start not before 22:00, 2030-11-20T08:00 or +2h")
HOLD = Option("--hold", about="start only after `grass release`")
TIME_LIMIT = Option("--time-limit", "TIME", "end it after 90s, 45m, 2h or 1-02:00:00")
SIGNAL = Option("--signal", "NAME@TIME", "send it this signal so long before the limit")
WORKER = Option("--worker", "WORKER", "run it on this worker only")
LABEL = Option("--label", "LABEL", "run it on a worker with this label; repeatable")
POOL = Option("--pool", "POOL", "run it on a worker of this pool only")
GPU_MODEL = Option("--gpu-model", "PATTERN", "only such GPUs: 'A100|H100', or gpu:1")
POLICY = Option("--policy", "POLICY", "spread over GPUs and workers, or pack them")
JOB_TYPE = Option("--type", "NAME", "what it is learned as (default: its script)")
ENFORCE = Option(
    "--enforce",
    "[warn|stop|off]",
    "hold it to its request; warn or stop it when it uses more of a shared GPU",
)
RETRIES = Option("--retries", "N", "run it again up to N times when it fails")

OPTIONS = (
    REQUIRE_OR_JSON,
    *SHORT_REQUIRE,
    GPU_MODEL,
    POLICY,
    JOB_TYPE,
    ENFORCE,
    ENV,
    CWD,
    QUEUE,
    NAME,
    Option("--project", "NAME", "the project it belongs to (default: default)"),
    WORKER,
    LABEL,
    POOL,
    PRIORITY,
    AFTER,
    BEGIN,
    HOLD,
    TIME_LIMIT,
    SIGNAL,
    Option("--grace", "TIME", "how long after SIGTERM comes SIGKILL (default: 15s)"),
    RETRIES,
    Option("--backoff", "TIME", "pause before a retry; doubles with each one"),
    Option(
        "--retry-on",
        "HOW",
        "retry only after 1,137,signal,time-limit,out-of-memory,not-started",
    ),
    Option("--retry-lost", "N", "run it again up to N times when it is lost"),
    Option("--nice", "N", "run it with a lower priority for the CPU: 0 to 19"),
    Option("--shell", "PROGRAM", "what runs a shell line (default: bash, else sh)"),
    Option("--output", "PATH", "append output to this file"),
    Option("--stderr", "PATH", "append what goes to stderr to this file"),
    Option("--max-output", "SIZE", "most output that is kept (default: 10G)"),
    Option("--raw", about="leave {gpu} and other placeholders alone"),
    Option("--verbatim", about="leave those of the command alone", hidden=True),
    Option(
        "--pin", about="run on the allocated CPU cores only, with GPUs on their side"
    ),
)
"""The options of `enqueue` and `run` for a job."""
ARRAY = Option("--array", "LIST", "one job for each index: 1-100, 0-90:10, 1-1000%8")
OF_ARRAYS = (
    Option("--at-most", "N", "how many of the array, or of ::: values, run at a time"),
    Option("--max-fails", "N", "pause the queue when N of the array have failed"),
)
QUIET = Option("-q, --quiet", about="no hints on stderr")
NO_DIRECTIVES = Option(
    "--no-directives", about="leave #GRASS and #SBATCH lines of a script alone"
)


def settings(values: Values, queue: str | None) -> Document:
    """Return the options as the fields of a job; those not given are left out."""
    fields: Document = {"queue": queue, **_request(values)}
    for key, (field, read) in _FIELDS.items():
        if values.has(key):
            fields[field] = read(values, key)
    return {name: value for name, value in fields.items() if value is not None}


def field_of(key: str) -> str:
    """Return the field of a job that an option sets."""
    return _FIELDS[key][0]


def variables(texts: list[str]) -> dict[str, str]:
    """Read `--env NAME=value`, or `--env NAME` which copies the caller's."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise UsageError(f"--env `{text}` has no name", "write NAME=value")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: there is no such variable here")
        found[name] = value if equals else os.environ[name]
    return found


def check_directory(path: str | None) -> None:
    """Refuse a directory that is not there, unless it has a placeholder."""
    if path is not None and "{" not in path and not os.path.isdir(path):
        raise UsageError(f"there is no directory {path}")


def check_paths(client: Client, fields: Document) -> None:
    """Refuse paths that would fail a job when it starts, if it can only run here."""
    if any(name in fields for name in ("cwd", "output", "stderr")):
        from grass.cli.parsing.path_checks import PathChecks

        PathChecks(client).check(fields)


def absolute(path: str | None) -> str | None:
    """Resolve a path against the current directory."""
    if path is None:
        return None
    if not path:
        raise UsageError("a path is empty")
    path = os.path.expanduser(path)
    return path if os.path.isabs(path) else os.path.join(caller_directory(), path)


def duration(values: Values, key: str) -> float | None:
    """Return an option's value in seconds."""
    text = values.text(key)
    if text is None:
        return None
    from grass.model.durations import seconds

    return seconds(text)


def listed(values: Values, key: str) -> list[str] | None:
    """Return the values of an option that is repeatable, and a list with commas."""
    if not values.has(key):
        return None
    parts = [part.strip() for text in values.all(key) for part in text.split(",")]
    if not all(parts):
        name = key.replace("_", "-")
        raise UsageError(f"--{name} `{','.join(parts)}` names nothing between commas")
    return parts


def enforcement(values: Values, key: str) -> str:
    """Return how a job is enforced; the option alone warns."""
    return values.text(key) or "warn"


def _variables(values: Values, key: str) -> dict[str, str]:
    return variables(values.all(key))


def _path(values: Values, key: str) -> str | None:
    return absolute(values.text(key))


def _moment(values: Values, key: str) -> str:
    return moment(values.text(key) or "")


def moment(text: str, now: datetime | None = None) -> str:
    """Read `22:00`, `2030-11-20T08:00` or `+2h` in the caller's zone; write RFC 3339.

    A time of day that has passed already means tomorrow.
    """
    from datetime import datetime, timedelta

    from grass.model.durations import seconds

    now = datetime.now().astimezone() if now is None else now
    if text.startswith("+"):
        return (now + timedelta(seconds=seconds(text[1:]))).isoformat()
    try:
        found = _time_of_day(text, now) or datetime.fromisoformat(text)
        return (found if found.tzinfo else found.astimezone()).isoformat()
    except (ValueError, TypeError, OverflowError, OSError):
        raise UsageError(
            f"`{text}` is not a time", "write 22:00, 2030-11-20T08:00 or +2h"
        ) from None


def _time_of_day(text: str, now: datetime) -> datetime | None:
    if "-" in text or ":" not in text:
        return None
    from datetime import datetime, time, timedelta

    asked = datetime.combine(now.date(), time.fromisoformat(text))
    passed = asked <= now.replace(tzinfo=None)
    return asked + timedelta(days=1) if passed else asked


def _request(values: Values) -> Document:
    """Return the field that says what is asked for; a short form alone says a part."""
    text, short = values.text("require"), _short_forms(values)
    if text is None:
        return {"require_also": short} if short else {}
    return {"require": _merged(text, short) if short else text}


def _short_forms(values: Values) -> Document:
    """Read the amounts of `-g`, `-c`, `-m` and `--vram`, by kind."""
    found: Document = {}
    for option in SHORT_REQUIRE:
        text = values.text(option.key)
        if text is not None:
            is_size = option.value == "SIZE"
            found[option.key] = text if is_size else _number(option.key, text)
    return found


def _merged(text: str, short: Document) -> Document:
    from grass.model.json5 import read_object

    asked = read_object(text, "--require")
    for kind in short:
        if kind in asked:
            raise UsageError(f"{kind} is asked for twice: in --require and as --{kind}")
    return {**asked, **short}


def _number(kind: str, text: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise UsageError(f"--{kind} must be a number, not `{text}`")
    return int(number) if number.is_integer() else number


_FIELDS: dict[str, tuple[str, Callable[[Values, str], object]]] = {
    "env": ("env", _variables),
    "cwd": ("cwd", _path),
    "name": ("name", Values.text),
    "project": ("project", Values.text),
    "worker": ("worker", Values.text),
    "label": ("labels", listed),
    "pool": ("pool", Values.text),
    "gpu_model": ("gpu_model", Values.text),
    "policy": ("policy", Values.text),
    "enforce": ("enforce", enforcement),
    "type": ("job_type", Values.text),
    "priority": ("priority", Values.whole_number),
    "after": ("after", listed),
    "begin": ("begin_at", _moment),
    "hold": ("hold", Values.has),
    "time_limit": ("time_limit_s", duration),
    "signal": ("limit_signal", Values.text),
    "grace": ("grace_s", duration),
    "retries": ("retries", Values.whole_number),
    "backoff": ("backoff_s", duration),
    "retry_on": ("retry_on", listed),
    "retry_lost": ("retry_lost", Values.whole_number),
    "nice": ("nice", Values.whole_number),
    "shell": ("shell_program", Values.text),
    "output": ("output", _path),
    "stderr": ("stderr", _path),
    "max_output": ("max_output", Values.text),
    "raw": ("raw", Values.has),
    "verbatim": ("verbatim", Values.has),
    "pin": ("pin", Values.has),
    "at_most": ("at_most", Values.whole_number),
    "max_fails": ("max_fails", Values.whole_number),
    "array": ("array", Values.text),
}
"""By an option's key: the field of a job that it sets, and how its value is read."""
