"""Parses JSON5 that people type, with errors that point at the place.

pyjson5 does the parsing. It accepts a repeated key (the last one wins) and gives an
error's place as a character offset; here a repeated key is an error, and every error
has line, column and a caret. Size and depth are limited.
"""

import re
from types import ModuleType

from grass.errors import UsageError

LARGEST_TEXT = 64 * 1024
DEEPEST = 32

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<mark>[{}\[\],:])
      | (?P<word>[^\s{}\[\],:'"/]+|/)""",
    re.VERBOSE | re.DOTALL,
)
_OFFSET = re.compile(r"near (\d+)")
_FOUND = re.compile(r"found U\+([0-9a-fA-F]+)")
_WORDS = {
    "NumericLiteral": "not a number that can be used",
    "Unclosed b'object'": "this `{` is never closed",
    "Unclosed b'array'": "this `[` is never closed",
    "Unclosed b'string'": "this quote is never closed",
    "Stray b'comma'": "one comma too many",
    "b'comma' or": "expected `,` or the closing bracket",
    "b'colon'": "expected `:`",
    "IdentifierStart": "expected a name, in quotes if it is not a plain word",
    "JSON5Value": "expected a value",
    "No JSON data": "it is empty",
}
"""Parts of pyjson5's messages, in the order they are tried, and our words for them."""


def _pyjson5() -> ModuleType:
    """Import the parser on use: an idle daemon does not need its memory."""
    import pyjson5

    return pyjson5


def read_object(text: str, what: str) -> dict[str, object]:
    """Return the object written in `text`; `what` names it in errors."""
    if len(text) > LARGEST_TEXT:
        raise UsageError(f"{what} is longer than {LARGEST_TEXT} characters")
    value = _decoded(text, what)
    _refuse_repeated_keys(text, what)
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be an object", "write {gpu:1}")
    return value


def _decoded(text: str, what: str) -> object:
    pyjson5 = _pyjson5()
    try:
        value: object = pyjson5.decode(text, maxdepth=DEEPEST)
    except pyjson5.Json5Exception as error:
        reason = str(error.args[0])
        raise _at(text, _offset(reason, text), _in_plain_words(reason), what) from None
    except (ValueError, UnicodeError) as error:
        raise UsageError(f"{what} is not JSON5: {error}") from None
    return value


def _offset(reason: str, text: str) -> int:
    found = _OFFSET.search(reason)
    if found is None:
        return len(text)
    # pyjson5 counts from one, except where it has read past the value.
    return int(found.group(1)) - (0 if reason.startswith("Extra data") else 1)


def _in_plain_words(reason: str) -> str:
    """Return what pyjson5 found wrong without its grammar names."""
    if reason.startswith("Extra data"):
        return "something follows the closing brace"
    if "nesting" in reason:
        return f"nested deeper than {DEEPEST}"
    known = (text for part, text in _WORDS.items() if part in reason)
    words = next(known, "this is not JSON5")
    found = _FOUND.search(reason)
    return f"{words}, found `{chr(int(found.group(1), 16))}`" if found else words


def _refuse_repeated_keys(text: str, what: str) -> None:
    """Refuse a repeated key in a text that was parsed before."""
    scopes: list[set[str] | None] = []
    pending: tuple[str, int] | None = None
    for token in _TOKEN.finditer(text):
        mark = token.group("mark")
        if token.group("space"):
            continue
        if mark in ("{", "["):
            scopes.append(set() if mark == "{" else None)
        elif mark in ("}", "]"):
            scopes.pop()
        elif mark == ":" and pending is not None and scopes and scopes[-1] is not None:
            key, offset = pending
            if key in scopes[-1]:
                raise _at(text, offset, f"`{key}` is given twice", what)
            scopes[-1].add(key)
        pending = None if mark else (_key(token.group()), token.start())


def _key(token: str) -> str:
    if token[0] not in "'\"":
        return token
    pyjson5 = _pyjson5()
    try:
        return str(pyjson5.decode(token))
    except pyjson5.Json5Exception:
        return token[1:-1]


def _at(text: str, offset: int, reason: str, what: str) -> UsageError:
    offset = max(0, min(offset, len(text)))
    line_start = text.rfind("\n", 0, offset) + 1
    line = text[line_start:].split("\n", 1)[0]
    number = text.count("\n", 0, offset) + 1
    column = offset - line_start + 1
    place = f"{what}, line {number}, column {column}: {reason}"
    shown, caret = _window(line, column)
    return UsageError(f"{place}\n  {shown}\n  {' ' * (caret - 1)}^")


def _window(line: str, column: int) -> tuple[str, int]:
    """Cut a long line around the caret, to fit 80 columns."""
    start = max(0, column - 60)
    return line[start : start + 74], column - start
