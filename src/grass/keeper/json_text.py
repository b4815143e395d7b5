"""Writing JSON as one line, with the encoder of the standard library."""

from __future__ import annotations

import json
import json.encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _json_encoder() -> Callable[[object], str]:
    """Return a JSON encoder.

    `JSONEncoder` makes a new C encoder for each call, a quarter of the time. The one
    that is made here once is not public, so another Python may not have it.
    """
    public = json.JSONEncoder(separators=(",", ":")).encode
    to_text, flags = json.encoder.encode_basestring_ascii, (False, False, True)
    try:
        make: Any = vars(json.encoder)["c_make_encoder"]
        write = make(None, None, to_text, None, ":", ",", *flags)
        works = "".join(write({"a": [1]}, 0)) == public({"a": [1]})
    except (KeyError, TypeError):
        return public
    return (lambda value: "".join(write(value, 0))) if works else public


to_json = _json_encoder()
