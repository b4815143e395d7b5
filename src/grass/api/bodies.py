"""JSON in and out.

Text may hold bytes that are not UTF-8, escaped as lone surrogates, which msgspec's own
decoder refuses: then the standard library reads the JSON and msgspec only checks it.
"""

import json
from typing import NoReturn, TypeVar

import msgspec

from grass.errors import UsageError

T = TypeVar("T")


def read_body(data: bytes | bytearray, body: type[T]) -> T:
    """Read a request's body, or say which field is wrong."""
    try:
        return msgspec.json.decode(data or b"{}", type=body)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not understood: {error}") from None
    except (msgspec.DecodeError, UnicodeError):
        pass
    except RecursionError:
        raise _too_deep() from None
    try:
        return msgspec.convert(json.loads(data, parse_constant=_refuse), body)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request is not understood: {error}") from None
    except ValueError as error:
        raise UsageError(f"the request is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> UsageError:
    return UsageError("the request is nested too deep")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def json_bytes(value: object) -> bytes:
    """Write a reply, surrogates escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()
