"""The options that change a job, and the fields they set; `none` takes one away."""

from __future__ import annotations

from grass.cli.parsing import job_options
from grass.cli.parsing.job_options import settings
from grass.cli.parsing.options import Option, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

CHANGES = (
    job_options.REQUIRE,
    *job_options.SHORT_REQUIRE,
    Option("--gpu-model", "PATTERN", "only GPUs of this name: 'A100|H100'; or none"),
    Option("--policy", "POLICY", "spread over GPUs and workers, or pack them; or none"),
    Option("--type", "NAME", "what it is learned as; or none: its script"),
    Option("--priority", "N", "higher starts earlier"),
    Option("--queue", "QUEUE", "move it to another queue"),
    Option("--worker", "WORKER", "run it on this worker only; or none"),
    Option("--label", "LABEL", "run it on a worker with this label instead; or none"),
    Option("--pool", "POOL", "run it on a worker of this pool only; or none"),
    Option("--time-limit", "TIME", "end it after 90s, 45m, 2h or 1-02:00:00; or none"),
    Option("--signal", "NAME@TIME", "a signal so long before the limit; or none"),
    Option("--env", "NAME=VALUE", "set a variable besides those it has; repeatable"),
    Option("--cwd", "DIR", "directory to run in"),
    Option("--name", "NAME", "the job's name"),
)
"""The options of `rerun` and `edit` that change a job."""
CHANGES_BEFORE_START = (
    *CHANGES,
    Option("--after", "JOBS", "start after these instead: 7,9 or 7:failed; or none"),
    Option("--begin", "TIME", "start not before 22:00, 2030-11-20T08:00, +2h; or none"),
    job_options.RETRIES,
)
"""Those of `edit`, which is for jobs that have not started."""
NONE = "none"
_CLEARED: dict[str, tuple[str, object]] = {
    "time_limit": ("time_limit_s", None),
    "signal": ("limit_signal", None),
    "begin": ("begin_at", None),
    "after": ("after", []),
    "worker": ("worker", None),
    "label": ("labels", None),
    "pool": ("pool", None),
    "gpu_model": ("gpu_model", None),
    "policy": ("policy", None),
    "type": ("job_type", None),
}


def changes(values: Values, command: list[str] | None) -> Document:
    """Return the fields of a job that change; null clears one."""
    kept, cleared = _split(values)
    fields = settings(kept, values.text("queue"))
    fields.pop("hold", None)
    if command is not None:
        fields["command"] = command
    return {**fields, **cleared}


def _split(values: Values) -> tuple[Values, Document]:
    """Separate the options that were given as `none`."""
    kept, cleared = Values(), {}
    for option in CHANGES_BEFORE_START:
        if option.key in _CLEARED and values.text(option.key) == NONE:
            field, nothing = _CLEARED[option.key]
            cleared[field] = nothing
        else:
            for value in values.all(option.key):
                kept.add(option, value)
    return kept, cleared
