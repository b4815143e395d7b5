"""Routes for blobs: which are there, and uploading one in pieces.

A blob is named by its SHA-256 and is never read back here: workers fetch those of the
jobs that they run. The broker does not look into one.
"""

from starlette.requests import Request
from starlette.responses import Response

from grass.api.access.auth import actor
from grass.api.context import Context, context_of
from grass.api.routes.request_bodies import BlobsBody
from grass.api.server.request_body import pieces_of_body
from grass.broker.shell.kept_blobs import BlobLimits, too_large
from grass.errors import UsageError
from grass.model.jobs.task_call import check_blob_name
from grass.queries.documents import BlobReply, MissingBlobsReply, json_bytes
from grass.store.blobs import PIECE

MOST_NAMES = 100_000
CREATED = 201


async def missing(request: Request, body: BlobsBody) -> MissingBlobsReply:
    """Tell which of these blobs are to be uploaded; the others are kept for an hour."""
    if len(body.names) > MOST_NAMES:
        raise UsageError(f"{len(body.names):,} blobs", f"name at most {MOST_NAMES:,}")
    names = [check_blob_name(name) for name in body.names]
    context = context_of(request)
    blobs, limits = context.broker.blobs, _limits(context)
    gone = await blobs.missing(names)
    room = blobs.room(actor(request), limits.unnamed)
    return MissingBlobsReply(gone, limits.largest, room)


async def add(request: Request) -> Response:
    """Keep the body under its SHA-256; answered once it is durable."""
    context, name = context_of(request), check_blob_name(request.path_params["name"])
    limits, owner = _limits(context), actor(request)
    if int(request.headers.get("content-length", "0") or 0) > limits.largest:
        raise too_large(limits.largest)
    async with pieces_of_body(request, owner, 2 * PIECE) as pieces:
        is_new = await context.broker.blobs.add(name, pieces, owner, limits)
    return Response(
        json_bytes(BlobReply(name, is_new)),
        CREATED if is_new else 200,
        media_type="application/json",
    )


def _limits(context: Context) -> BlobLimits:
    return BlobLimits(context.settings.largest_blob, context.settings.most_unnamed)
