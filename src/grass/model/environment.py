"""Which variables belong to a job, and which to the person who enqueues."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER = "GRASS_ATTEMPT_ID"
"""In every process of a job, so that it is found again whatever became of it."""
SETTINGS = ("GRASS_HOME", "GRASS_BROKER", "GRASS_AUTOSTART")
SETTING_GROUPS = ("GRASS_DEFAULT_", "GRASS_RETENTION_", "GRASS_STORE_", "GRASS_NOTIFY_")
"""Settings of the user, which hold inside a job as well."""
SECRETS = ("GRASS_CERT_PASS",)
"""For the daemon alone: never stored, and in no job's environment."""


def outside_a_job(environment: "Mapping[str, str]") -> dict[str, str]:
    """Drop what a surrounding job of grass has set."""
    if MARKER in environment:
        return without_job_variables(environment)
    return {name: one for name, one in environment.items() if name not in SECRETS}


def without_job_variables(environment: "Mapping[str, str]") -> dict[str, str]:
    """Keep of grass's own variables only the user's settings."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("GRASS_")
        or name in SETTINGS
        or name.startswith(SETTING_GROUPS)
    }
