"""How output becomes lines on a screen."""

import pytest

from grass.tui.output_lines import OutputLines, coloured, plain


def lines_of(*pieces: bytes, most: int = 100) -> list[str]:
    log = OutputLines(most)
    for piece in pieces:
        log.add(piece)
    return log.all()


def test_a_line_may_come_in_pieces() -> None:
    assert lines_of(b"on", b"e\ntw") == ["one", "tw"]
    assert lines_of("ä".encode()[:1], "ä".encode()[1:] + b"\n") == ["ä"]


def test_a_progress_bar_is_its_last_state() -> None:
    assert lines_of(b" 10%\r 20%\r", b" 30%\n") == [" 30%"]
    assert lines_of(b"windows\r\n") == ["windows"]


def test_the_oldest_lines_are_forgotten() -> None:
    log = OutputLines(3)
    log.add(b"1\n2\n3\n4\n5\n")
    assert log.all() == ["3", "4", "5"]
    assert log.forgotten == 2


def test_lines_are_put_before() -> None:
    log = OutputLines()
    log.add(b"3\n4")
    log.put_before(["1", "2"])
    assert log.all() == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[32mgreen\x1b[0m", "green"),
        ("\x1b[2J\x1b[Hwiped", "wiped"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("bell\x07 and \x9b31m", "bell and 31m"),
        ("lone \x1b", "lone "),
        ("[bold]no markup[/]", "[bold]no markup[/]"),
        ("a\tb", "a       b"),
    ],
)
def test_only_colours_are_kept_of_control_sequences(line: str, shown: str) -> None:
    assert plain(line) == shown
    assert coloured(line).plain == shown
    assert coloured("\x1b[31mred").spans
