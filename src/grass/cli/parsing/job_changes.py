"""The options that change a job, and the fields they set; `none` takes one away."""

from __future__ import annotations

from grass.cli.parsing import job_options
from grass.cli.parsing.job_options import field_of, settings
from grass.cli.parsing.options import Option, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

NONE = "none"


class Clearable(Option):
    """An option of which `none` takes away what a job has."""

    def __init__(self, option: Option, about: str = "") -> None:
        """Say of it what `enqueue` says, unless a change means something else."""
        about = about or f"{option.about}; or {NONE}"
        super().__init__(", ".join(option.names), option.value, about)


CHANGES = (
    job_options.REQUIRE,
    *job_options.SHORT_REQUIRE,
    Clearable(job_options.GPU_MODEL, "only GPUs of this name: 'A100|H100'; or none"),
    Clearable(job_options.POLICY),
    Clearable(job_options.JOB_TYPE, "what it is learned as; or none: its script"),
    Option("--priority", "N", "higher starts earlier"),
    Option("--queue", "QUEUE", "move it to another queue"),
    Clearable(job_options.WORKER),
    Clearable(job_options.LABEL, "run it on a worker with this label instead; or none"),
    Clearable(job_options.POOL),
    Clearable(job_options.TIME_LIMIT),
    Clearable(job_options.SIGNAL, "a signal so long before the limit; or none"),
    Option("--env", "NAME=VALUE", "set a variable besides those it has; repeatable"),
    Option("--cwd", "DIR", "directory to run in"),
    Option("--name", "NAME", "the job's name"),
)
"""The options of `rerun` and `edit` that change a job."""
CHANGES_BEFORE_START = (
    *CHANGES,
    Clearable(job_options.AFTER, "start after these instead: 7,9 or 7:failed; or none"),
    Clearable(
        job_options.BEGIN, "start not before 22:00, 2030-11-20T08:00, +2h; or none"
    ),
    job_options.RETRIES,
)
"""Those of `edit`, which is for jobs that have not started."""


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
        if isinstance(option, Clearable) and values.text(option.key) == NONE:
            # A job that waits for none has an empty list of them, not nothing.
            nothing: list[str] | None = [] if option.key == "after" else None
            cleared[field_of(option.key)] = nothing
        else:
            for value in values.all(option.key):
                kept.add(option, value)
    return kept, cleared
