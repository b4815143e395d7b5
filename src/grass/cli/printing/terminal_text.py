"""Output of jobs for a terminal: colours, tabs and carriage returns pass, nothing else.

A job, and whoever wrote what it prints, could otherwise set the clipboard (OSC 52) or
the title of the terminal that reads its log, hide lines, or reorder text (bidirectional
controls). Into a pipe or a file every byte goes as it is.
"""

from __future__ import annotations

import codecs
import re

from grass.cli.printing.prefixed_output import Unchanged

_UNSAFE_BYTE = re.compile(rb"[^\t\n\r -~]")
_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # control sequences
    "|\x1b[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)"  # strings for the terminal
    "|\x1b[ -/]*[0-OQ-WYZ\\\\`-~]"
    "|\x1b"
)
_COLOURS = re.compile("\x1b\\[[0-9;:]*m")
_INCOMPLETE = re.compile(
    "\x1b(?:\\[[0-?]*[ -/]*|[\\]PX^_][^\x07\x1b\n]*\x1b?|[ -/]*)?\\Z"
)
_LONGEST_SEQUENCE = 4096
"""A longer one that does not end is text."""
_HIDDEN = dict.fromkeys(
    [
        *(code for code in range(0x20) if chr(code) not in "\t\n\r\x1b"),
        *range(0x7F, 0xA0),
        0x061C,
        *(0x200E, 0x200F, 0x2028, 0x2029),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        # Bytes that are not UTF-8 and would be controls in another encoding.
        *range(0xDC80, 0xDCA0),
    ]
)


class TerminalText(Unchanged):
    """Removes what a terminal obeys from output that comes in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._kept = ""
        """The beginning of a sequence whose end has not come."""

    def feed(self, piece: bytes) -> bytes:
        """Return what may be shown of the output up to here."""
        is_whole = not self._kept and not self._decoder.getstate()[0]
        if is_whole and not _UNSAFE_BYTE.search(piece):
            return piece
        text = self._kept + self._decoder.decode(piece)
        rest = _INCOMPLETE.search(text)
        self._kept = "" if rest is None else rest[0]
        if len(self._kept) > _LONGEST_SEQUENCE:
            self._kept = ""
        return _shown(text[: len(text) - len(self._kept)])

    def end(self) -> bytes:
        """Return what is left at the end of the output."""
        kept, self._kept = self._kept, ""
        return _shown(kept + self._decoder.decode(b"", final=True))


def _shown(text: str) -> bytes:
    if "\x1b" in text:
        text = _SEQUENCE.sub(
            lambda found: found[0] if _COLOURS.fullmatch(found[0]) else "", text
        )
    return text.translate(_HIDDEN).encode("utf-8", "surrogateescape")
