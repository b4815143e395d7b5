"""The OpenAPI document of a table of routes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from grass.model.access import Right

JSON = "application/json"


class Endpoint(NamedTuple):
    """One row of the table."""

    method: str
    path: str
    right: Right | None
    """What a caller needs; None: no token, as the body has a code instead."""
    handler: Callable[..., Awaitable[object]]
    body: type[Any] | None = None
    reply: type[Any] | None = None
    media_type: str = JSON
    own: Right | None = None
    """Enough for a caller's own jobs, or its own worker's units."""
    largest: int = 2**20
    """The largest body, in bytes."""


def openapi(endpoints: Sequence[Endpoint], prefix: str, version: str) -> dict[str, Any]:
    """Describe every route and body."""
    types = [one.body for one in endpoints if one.body]
    types += [one.reply for one in endpoints if one.reply]
    unique = list(dict.fromkeys(types))
    _, components = msgspec.json.schema_components(
        unique, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(prefix + one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Grass", "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    summary = (endpoint.handler.__doc__ or "").strip().splitlines()[0]
    content = {endpoint.media_type: {"schema": _reply_schema(endpoint)}}
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": {"description": "done", "content": content}},
    }
    if endpoint.body:
        body = {JSON: {"schema": _schema(endpoint.body)}}
        operation["requestBody"] = {"content": body}
    return operation


def _reply_schema(endpoint: Endpoint) -> dict[str, str]:
    if endpoint.reply:
        return _schema(endpoint.reply)
    return {"type": "object" if endpoint.media_type == JSON else "string"}


def _schema(of: type[Any]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{of.__name__}"}
