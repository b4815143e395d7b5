"""What of a job's output reaches a terminal."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.printing.terminal_text import TerminalText

COLOURED = "\x1b[1;31merror\x1b[0m: 100%\r 50%\tdone\nnext ä 日本 שלום 🙂\n".encode()
OBEYED = re.compile(
    "\x1b(?!\\[[0-9;:]*m)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
    "|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
LETTERS = (
    st.sampled_from("\x1b[]0;52c?hlmKJ\\\x07\x9b\x9d\x9c\n\r\tax\u202eä") | st.text()
)


def shown(*pieces: bytes) -> bytes:
    text = TerminalText()
    return b"".join([*map(text.feed, pieces), text.end()])


def test_text_and_colours_pass() -> None:
    assert shown(COLOURED) == COLOURED


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (b"a\x1b]52;c;cm0gLXJm\x07b", b"ab"),
        (b"a\x1b]0;title\x1b\\b", b"ab"),
        (b"a\x1bP1$r\x1b\\b\x1b_x\x1b\\c\x1b^x\x07d", b"abcd"),
        (b"a\x1b[2J\x1b[1;1Hb\x1b[?1049hc\x1b[6n", b"abc"),
        (b"a\x1bcb\x1b(0c\x1b7", b"abc"),
        (b"a\x1b[>4;2mb", b"ab"),
        ("a\x9b2Jb\x9d0;t\x9cc".encode(), b"a2Jb0;tc"),
        (b"a\x9b2Jb\x85", b"a2Jb"),
        ("a\u202eb\u2066c\u200fd".encode(), b"abcd"),
        (b"a\x07\x08\x0b\x0c\x00\x7fb", b"ab"),
        (b"a\xffb\xe9", b"a\xffb\xe9"),
        (b"a\x1b]0;no end\nb", b"a]0;no end\nb"),
        (b"a\x1b", b"a"),
        (b"a\x1b[3", b"a[3"),
    ],
)
def test_nothing_else_does(written: bytes, left: bytes) -> None:
    assert shown(written) == left
    assert shown(*(bytes([one]) for one in written)) == left


def test_a_string_that_does_not_end_hides_little() -> None:
    hidden = b"\x1b]52;c;" + b"A" * 10_000
    text = TerminalText()
    assert b"A" * 10_000 in text.feed(hidden) + text.feed(b"B")


@given(st.lists(LETTERS, max_size=30), st.lists(st.integers(0, 60), max_size=5))
def test_pieces_make_no_difference(letters: list[str], cuts: list[int]) -> None:
    written = "".join(letters).encode("utf-8", "ignore")
    places = [0, *sorted(cut for cut in cuts if cut < len(written)), len(written)]
    pieces = [written[a:b] for a, b in pairwise(places)]
    once = shown(written)
    assert shown(*pieces) == once
    assert not OBEYED.search(once.decode("utf-8", "ignore"))
