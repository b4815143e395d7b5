"""The options of `grass pool add`, and the request that is made of them."""

from __future__ import annotations

import math
import os

from grass.cli.parsing.options import Option, Values
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

ADDING = (
    Option("--slurm", about="ask Slurm, with `sbatch`"),
    Option("--ray", "URL", "ask Ray, at the address of its dashboard"),
    Option("--token-file", "FILE", "the token of a Ray that asks for one"),
    Option("--template, --file", "FILE", "read options, or a site's commands, from it"),
    Option("--max-workers", "N", "never have more workers of it than this"),
    Option("--time", "TIME", "how long the scheduler lets a worker run"),
    Option("--idle", "TIME", "a worker without a job leaves after this (5m)"),
    Option("--lease", "TIME", "one out of reach for this long ends its jobs (1m)"),
    Option("--mode", "MODE", "a worker for each job: per-job, shared or auto (auto)"),
    Option("--environment", "WHOSE", "variables of jobs: caller or site"),
    Option("--partition", "NAME", "the partition of Slurm to ask in"),
    Option("--cpus", "N", "cores of each worker (1)"),
    Option("--gpus", "N", "GPUs of each worker (0)"),
    Option("--gres", "GRES", "the same as Slurm writes it: gpu:1, gpu:a100:2"),
    Option("--memory", "SIZE", "memory of each worker (what the site gives)"),
    Option("--option", "OPTION", "an option of the site's own; repeatable"),
    Option("--setup", "LINE", "a shell line before the worker starts; repeatable"),
    Option("--omit", "OPTION", "an option that the site refuses; repeatable"),
    Option("--submit-prefix", "WORDS", "run `sbatch` behind these: 'ssh login1'"),
    Option(
        "--worker-prefix", "WORDS", "run workers behind these: 'apptainer exec ...'"
    ),
    Option("--python", "PROGRAM", "the Python with Grass on its hosts (the broker's)"),
    Option("--folder", "FOLDER", "a folder that workers see too (in your home)"),
)
_DEFAULT_IDLE, _DEFAULT_LEASE = "5m", "1m"
_RAY_TIME = "24h"
"""Ray has no time limit of its own."""
_NO_ENGINE = "say which scheduler the pool is of"


def pool_body(values: Values, name: str) -> Document:
    """Return the request that adds a pool, from its file and the options."""
    template = None
    path = values.text("file")
    if path is not None:
        from grass.cli.parsing.pool_file import read_pool_file

        from_file, template = read_pool_file(path, ADDING)
        values = from_file.followed_by(values)
    return {
        **_shape(values),
        **_site(values),
        **_engine(values, template),
        "name": name,
    }


def _engine(values: Values, template: Document | None) -> Document:
    known = (values.has("slurm"), values.has("ray"), template is not None)
    if sum(known) > 1:
        raise UsageError("--slurm, --ray and a file with commands are one or the other")
    if template is not None:
        return {"engine": "command", "template": template}
    if values.has("ray"):
        path = values.text("token_file")
        token_file = "" if path is None else os.path.abspath(os.path.expanduser(path))
        address = values.text("ray")
        return {"engine": "ray", "address": address, "token_file": token_file}
    if not values.has("slurm"):
        raise UsageError(
            _NO_ENGINE, "--slurm, --ray URL, or --template with its commands"
        )
    return {"engine": "slurm"}


def _shape(values: Values) -> Document:
    from grass.model.durations import seconds

    usual = _RAY_TIME if values.has("ray") else None
    most, time = values.whole_number("max_workers"), values.text("time") or usual
    if most is None or time is None:
        raise UsageError("a pool needs --max-workers N and --time TIME")
    cpus = values.whole_number("cpus")
    return {
        "max_workers": most,
        "idle_s": seconds(values.text("idle") or _DEFAULT_IDLE),
        "time_limit_s": seconds(time),
        "lease_s": seconds(values.text("lease") or _DEFAULT_LEASE),
        "mode": _mode(values.text("mode") or "auto"),
        "environment": _environment(values.text("environment")),
        "cpus": 1 if cpus is None else cpus,
        "gpus": _gpus(values),
        "memory_mib": _memory_mib(values),
    }


def _gpus(values: Values) -> int:
    gres = values.text("gres")
    if gres is None:
        return values.whole_number("gpus") or 0
    kind, _, count = gres.rpartition(":")
    if kind.partition(":")[0] != "gpu" or not count.isdecimal():
        raise UsageError(f"--gres `{gres}` is not known", "gpu:1 or gpu:a100:2")
    if values.has("gpus"):
        raise UsageError("--gres and --gpus both say how many GPUs", "give one of them")
    return int(count)


def _typed_gpus(values: Values) -> list[str]:
    """Return the option that names the type of GPUs, if one was named."""
    gres = values.text("gres") or ""
    return [f"--gres={gres}"] if gres.count(":") > 1 else []


def _mode(word: str) -> str:
    if word not in ("auto", "per-job", "shared"):
        raise UsageError(f"--mode `{word}` is not known", "auto, per-job or shared")
    return word


def _environment(word: str | None) -> str | None:
    if word not in (None, "caller", "site"):
        raise UsageError(f"--environment `{word}` is not known", "caller or site")
    return word


def _site(values: Values) -> Document:
    import shlex

    partition = values.text("partition")
    options = [] if partition is None else [f"--partition={partition}"]
    folder = values.text("folder")
    return {
        "options": options + _typed_gpus(values) + values.all("option"),
        "setup": values.all("setup"),
        "omitted": values.all("omit"),
        "submit_prefix": shlex.split(values.text("submit_prefix") or ""),
        "worker_prefix": shlex.split(values.text("worker_prefix") or ""),
        "python": values.text("python") or "",
        "folder": "" if folder is None else os.path.abspath(folder),
    }


def _memory_mib(values: Values) -> int | None:
    text = values.text("memory")
    if text is None:
        return None
    from grass.model.amount_text import WHOLE
    from grass.model.resources import request_from

    amount = dict(request_from(f'{{ram:"{text}"}}')).get("ram", 0)
    if not amount:
        raise UsageError(f"--memory `{text}` is no memory", "as --memory 8G")
    return math.ceil(amount * 1024 / WHOLE)
