"""JSON and query strings for requests and replies, without importing `json`.

The package `json` imports `re`, which alone costs half of what starting Python
does. The C half of it, `_json`, does all the work and needs neither; where an
interpreter has no `_json`, the package is used. Text that holds bytes that are not
UTF-8 (as lone surrogates) survives, because everything outside ASCII is escaped.
"""

from __future__ import annotations

import os

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Document = dict[str, Any]
else:
    Document = dict

_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_UNRESERVED = _LETTERS + _LETTERS.upper() + b"0123456789-._~"

try:
    import _json
except ImportError:
    _json = None  # type: ignore[assignment]


def encoded(value: object) -> bytes:
    """Write a value as JSON in ASCII."""
    try:
        return _text(value).encode("ascii")
    except ValueError:
        raise UsageError("a number is too large, or is none") from None


def decoded(data: bytes) -> Any:  # noqa: ANN401 -- bytes come in here
    """Read a value; raises ValueError for anything that is not one JSON value."""
    text = data.decode("utf-8", "surrogatepass").strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("this is not JSON") from None
    if end != len(text):
        raise ValueError("something follows the JSON")
    return value


def quoted(text: str) -> str:
    """Escape a word for use in a path or a query."""
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in os.fsencode(text)
    )


def query(**fields: object) -> str:
    """Write a query string; None is left out, True is 1, a list is repeated."""
    pairs = []
    for name, value in fields.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        texts = ("1" if one is True else str(one) for one in values if one is not None)
        pairs += [f"{name}={quoted(text)}" for text in texts]
    return "?" + "&".join(pairs) if pairs else ""


class AnyOf(list[str]):
    """Selectors of which a job matches any; in a plain list, different kinds narrow."""


def selecting(select: Sequence[str]) -> Document:
    """Return the fields of a request that select jobs."""
    fields: Document = {"select": list(select)}
    return {**fields, "any": True} if isinstance(select, AnyOf) else fields


def filter_fields(wanted: Mapping[str, Any]) -> Document:
    """Return the fields of a query for the keywords of `Client.jobs`."""
    fields = {**wanted, **selecting(wanted.get("select", ()))}
    return {**fields, "state": fields.pop("states", None)}


class _Rules:
    """The attributes that the scanner reads from its decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 -- the scanner's own


def _not_json(value: object) -> object:
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


def _functions() -> tuple[
    Callable[[object], str], Callable[[str, int], tuple[Any, int]]
]:
    try:
        encode = _json.make_encoder(
            None, _not_json, _json.encode_basestring_ascii, None, ":", ",", *[False] * 3
        )
        scan = _json.make_scanner(_Rules)  # type: ignore[arg-type]
        text = "".join(encode({"a": [1, None]}, 0))
        if scan(text, 0) == ({"a": [1, None]}, len(text)):
            return lambda value: "".join(encode(value, 0)), scan
    except (AttributeError, TypeError):
        pass
    from json import JSONDecoder, dumps

    return dumps, JSONDecoder().raw_decode


_text, _scan = _functions()
