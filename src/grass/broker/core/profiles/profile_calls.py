"""Calls about profiles: to forget them, and to take over exported ones."""

from grass.broker.core.calls import Done, ForgetProfiles, ImportProfiles
from grass.broker.core.profiles import learning
from grass.broker.core.state import State
from grass.errors import NotFound


def forget(state: State, call: ForgetProfiles) -> Done:
    """Forget types: their next jobs are measured again. Those that run go on."""
    for job_type in call.types:
        if not state.profiles.of(job_type):
            raise no_profile(job_type)
    for job_type in dict.fromkeys(call.types):
        learning.forget(state, job_type)
        state.note_by(call.actor, "profile-forgotten", job_type=job_type)
    return Done()


def take_over(state: State, call: ImportProfiles) -> Done:
    """Replace what is known by what was exported elsewhere."""
    for profile in call.profiles:
        learning.put(state, profile)
    if call.profiles:
        state.note_by(call.actor, "profiles-imported", profiles=len(call.profiles))
    return Done(changed=bool(call.profiles))


def no_profile(job_type: str) -> NotFound:
    """Return the error about a type of which nothing is known."""
    return NotFound(
        f"nothing is known of the type `{job_type}`", "`grass profile list` lists types"
    )
