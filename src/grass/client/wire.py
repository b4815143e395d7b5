"""JSON for requests and replies, without importing `json`.

The package `json` imports `re`, which alone costs half of what starting Python
does. The C half of it, `_json`, does all the work and needs neither; where an
interpreter has no `_json`, the package takes over. Text that holds bytes that are
not UTF-8 (as lone surrogates) survives, because everything outside ASCII is escaped.
"""

from __future__ import annotations

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Document = dict[str, Any]
else:
    Document = dict

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


class _Rules:
    """What the scanner asks of the decoder it belongs to."""

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
