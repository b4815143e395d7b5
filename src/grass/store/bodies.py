"""Values as JSON text in a database: whole, or without what has a column of its own.

A body holds fields by name. A new field of a struct needs no other statement, one that
is missing has its default, and one that is not known is passed over. So a field of a
struct that is stored keeps its name and its default, or a migration changes both.
"""

import json
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decoder: Any = cache(msgspec.json.Decoder)


class CorruptRow(ValueError):
    """A row in the database that is not what was written there."""


def json_text(value: object) -> str:
    """Write JSON that any database accepts.

    Surrogates, which stand for bytes that are not UTF-8, are escaped.
    """
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def from_json(text: str, kind: type[T], key: object = "") -> T:
    """Read what `json_text` wrote; `CorruptRow` names the kind and the key."""
    try:
        found: T = _decoder(kind).decode(text)
    except (msgspec.DecodeError, TypeError):
        pass  # It may be right, and hold escaped surrogates.
    else:
        return found
    try:
        return msgspec.convert(json.loads(text), kind)
    except (ValueError, TypeError) as error:
        what = f"{kind.__name__.lower()} {key}".strip()
        raise CorruptRow(f"{what} cannot be read: {error}") from error


class Rest:
    """The fields of a struct but for some, as one body."""

    def __init__(
        self, kind: type[msgspec.Struct], others: tuple[str, ...], name: str = ""
    ) -> None:
        """Take the struct, and what its body leaves out; errors have its `name`."""
        fields = msgspec.structs.fields(kind)
        rest = [field for field in fields if field.name not in others]
        self._values = attrgetter(*(field.name for field in rest))
        self._defaults = tuple(field.default for field in rest)
        self._kind = msgspec.defstruct(
            name or kind.__name__, map(_definition, rest), omit_defaults=True, gc=False
        )

    def text(self, value: msgspec.Struct) -> str | None:
        """Write the fields that do not have their defaults; None: all have."""
        values = self._values(value)
        return None if values == self._defaults else json_text(self._kind(*values))

    def fields(self, text: str, key: object = "") -> dict[str, Any]:
        """Read the fields by name."""
        return msgspec.structs.asdict(from_json(text, self._kind, key))


def _definition(field: msgspec.structs.FieldInfo) -> tuple[str, Any, Any]:
    default = field.default
    if default is msgspec.NODEFAULT and not field.required:
        default = msgspec.field(default_factory=field.default_factory)
    return field.name, field.type, default
