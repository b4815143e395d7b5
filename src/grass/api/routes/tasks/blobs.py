"""Routes for blobs: which are there, and uploading one in pieces.

A blob is named by its SHA-256 and is never read back here: workers fetch those of the
jobs that they run. The broker does not look into one.
"""

from starlette.requests import Request
from starlette.responses import Response

from grass.api.access.auth import actor
from grass.api.context import context_of
from grass.api.routes.request_bodies import BlobsBody
from grass.api.server.request_body import pieces_of_body
from grass.errors import TooLarge, UsageError
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
    gone = await context.broker.blobs.missing(names)
    return MissingBlobsReply(gone, context.settings.largest_blob)


async def add(request: Request) -> Response:
    """Keep the body under its SHA-256; answered once it is durable."""
    context, name = context_of(request), check_blob_name(request.path_params["name"])
    most = context.settings.largest_blob
    if int(request.headers.get("content-length", "0") or 0) > most:
        raise too_large(most)
    async with pieces_of_body(request, actor(request), 2 * PIECE) as pieces:
        is_new = await context.broker.blobs.add(name, pieces, most)
    return Response(
        json_bytes(BlobReply(name, is_new)),
        CREATED if is_new else 200,
        media_type="application/json",
    )


def too_large(most: int) -> TooLarge:
    """Return the error for a blob that is larger than the settings allow."""
    return TooLarge(
        f"the blob is larger than {most:,} bytes",
        "the broker's setting tasks.largest says how large one may be",
    )
