"""Lines of output as people see them, and patterns for them."""

import pytest

from grass.model.output_text import TRACEBACK, folded, line_pattern, literal


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain\n", b"plain"),
        (b"from a DOS file\r\n", b"from a DOS file"),
        (b" 10%\r 50%\r100%\n", b"100%"),
        (b" 10%\r 50%\r100%\r\n", b"100%"),
        (b"\r 10%\r 50%", b" 50%"),
        (b"", b""),
        (b"\r\r\n", b""),
    ],
)
def test_of_a_progress_bar_the_last_frame_is_shown(line: bytes, shown: bytes) -> None:
    assert folded(line) == shown


@pytest.mark.parametrize("text", ["a.b", "[x]", r"C:\d", "1+1=2?", "ünlü", "a b", "$^"])
def test_a_text_is_found_as_it_is_in_capitals_or_not(text: str) -> None:
    pattern = line_pattern(literal(text))
    assert pattern.search(f"<{text}>\n".encode()) is not None
    assert pattern.search(f"<{text.upper()}>\n".encode()) is not None
    assert pattern.search(b"a-b C:7 11=2\n") is None


def test_a_pattern_never_matches_over_the_end_of_a_line() -> None:
    assert line_pattern(r"a\s*b").search(b"a\nb\n") is None
    assert line_pattern(r"(?s)a.*b").search(b"a\nb\n") is None
    assert line_pattern(r"a[^x]b").search(b"a\nb\n") is None
    assert line_pattern("^b$").search(b"a\nb\nc\n") is not None


@pytest.mark.parametrize("text", ["(", "a)(b", "[z-a]", r"(a)\1"])
def test_a_wrong_pattern_is_told_in_its_own_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[^?]*$"):
        line_pattern(text)


def test_a_traceback_is_found_behind_a_prefix() -> None:
    line = b"[rank0]: Traceback (most recent call last):\n"
    assert line_pattern(TRACEBACK).search(line) is not None
