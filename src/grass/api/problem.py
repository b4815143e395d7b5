"""Errors on the wire: problem documents with a stable code and the next step."""

import json

from starlette.responses import Response

from grass.errors import GrassError

MEDIA_TYPE = "application/problem+json"


def problem_response(error: GrassError) -> Response:
    """Write an error the way every route answers it."""
    body = {
        "type": f"urn:grass:{error.code}",
        "title": error.code,
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "hint": error.hint,
    }
    return Response(json.dumps(body), status_code=error.status, media_type=MEDIA_TYPE)
