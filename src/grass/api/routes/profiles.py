"""Routes for what is learned of job types."""

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.context import context_of
from grass.api.routes.broker_calls import do
from grass.api.routes.request_bodies import ForgetProfilesBody, ImportProfilesBody
from grass.broker.core.calls import Done, ForgetProfiles, ImportProfiles
from grass.broker.core.profiles.profile_calls import no_profile
from grass.model.usage.profile_lines import read_profiles
from grass.queries.documents import ExportedReply, ProfilesReply
from grass.queries.profile_documents import profile_documents
from grass.store.bodies import json_text


async def page(request: Request) -> ProfilesReply:
    """List what is known of job types, or of one `type` with its samples."""
    profiles = context_of(request).broker.state.profiles
    wanted = request.query_params.get("type")
    if wanted is not None and not profiles.of(wanted):
        raise no_profile(wanted)
    return ProfilesReply(profile_documents(profiles, wanted))


async def export(request: Request) -> ExportedReply:
    """Return all profiles as lines that can be imported elsewhere."""
    profiles = list(context_of(request).broker.state.profiles)
    text = "".join(f"{json_text(one)}\n" for one in profiles)
    return ExportedReply(len(profiles), text)


async def import_(request: Request, body: ImportProfilesBody) -> Done:
    """Take over exported profiles, in place of those of the same types and models."""
    return await do(request, ImportProfiles(actor(request), read_profiles(body.text)))


async def forget(request: Request, body: ForgetProfilesBody) -> Done:
    """Forget what is known of job types; their next jobs are measured again."""
    return await do(request, ForgetProfiles(actor(request), body.types))
