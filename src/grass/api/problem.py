"""Errors as problem documents (RFC 9457), with a stable code and a hint."""

import json

from starlette.responses import Response

from grass.errors import GrassError, LeadLost

MEDIA_TYPE = "application/problem+json"


def problem_response(error: GrassError) -> Response:
    """Return the response for an error."""
    body: dict[str, str | int] = {
        "type": f"urn:grass:{error.code}",
        "title": error.code,
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "hint": error.hint,
    }
    if error.field:
        body["field"] = error.field
    if error.job is not None:
        body["job"] = error.job
    if isinstance(error, LeadLost) and error.leader:
        body["leader"] = error.leader
    return Response(json.dumps(body), status_code=error.status, media_type=MEDIA_TYPE)
