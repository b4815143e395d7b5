"""Pictures of kept screens, as SVG for the pages: `python -m tests.screens.pictures`.

Every run of letters stands at its own column, and bars are rectangles, so that a
picture is aligned in any font.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from grass.cli.printing.styled import cells

from .terminal import plain, runs_of

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden")
IMAGES = ROOT / "docs" / "images"
PICTURES = {
    "show": "show-120-colour",
    "watch": "watch-80x24-colour",
    "members": "members-80-colour",
    "top": "top-120x24-colour",
}
"""The pictures, and the screens they are made of."""

_WIDTH, _HEIGHT, _MARGIN, _BAR = 8.4, 19, 18, 34
_COLOURS = {
    "red": "#ff7b72",
    "green": "#56d364",
    "yellow": "#e3b341",
    "cyan": "#56d4dd",
    "dim": "#8b949e",
    "bold": "#ffffff",
}
_PAPER, _INK, _EDGE = "#0d1117", "#d1d7e0", "#30363d"
_BLOCKS = {"█": (1.0, 1.0), "▌": (0.5, 1.0), "░": (1.0, 0.28)}
_BLOCKS |= {"▒": (1.0, 0.5), "▓": (1.0, 0.75)}
"""Letters that are drawn: how much of a cell is filled, and how strongly."""


def picture(screen: str) -> str:
    """Return a kept screen as SVG."""
    lines = screen.rstrip("\n").split("\n")
    width = max(cells(plain(line)) for line in lines) * _WIDTH + 2 * _MARGIN
    height = len(lines) * _HEIGHT + _MARGIN + _BAR
    shapes = [shape for row, line in enumerate(lines) for shape in _line(row, line)]
    buttons = "".join(
        f'<circle cx="{20 + 18 * at}" cy="17" r="5" fill="{colour}"/>'
        for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}"'
        f' width="{width:.0f}" height="{height}">\n'
        "<style>text { font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas,"
        f" monospace; white-space: pre; fill: {_INK} }}</style>\n"
        f'<rect width="{width - 1:.0f}" height="{height - 1}" x=".5" y=".5" rx="9"'
        f' fill="{_PAPER}" stroke="{_EDGE}"/>\n{buttons}\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _line(row: int, line: str) -> Iterator[str]:
    column = 0
    for run in runs_of(line):
        if "reverse" in run.style:
            yield _cursor(run.text, column, row, run.style)
        for piece in _pieces(run.text):
            if piece[0] in _BLOCKS:
                yield _block(piece, column, row, run.style)
            elif piece.strip():
                yield _text(piece, column, row, run.style)
            column += cells(piece)


def _pieces(text: str) -> Iterator[str]:
    """Divide a text where blocks, gaps and other letters meet."""
    piece = ""
    for letter in text:
        if piece and (_kind(letter) != _kind(piece[-1])):
            yield piece
            piece = ""
        piece += letter
    if piece:
        yield piece


def _kind(letter: str) -> str:
    return letter if letter in (" ", *_BLOCKS) else ""


def _text(text: str, column: int, row: int, style: tuple[str, ...]) -> str:
    weight = ' font-weight="600"' if "bold" in style else ""
    weight += ' text-decoration="underline"' if "underlined" in style else ""
    place = f'x="{_MARGIN + column * _WIDTH:.1f}" y="{_BAR + row * _HEIGHT + 14}"'
    length = f'textLength="{cells(text) * _WIDTH:.1f}"'
    # A style of a rule would win over the attribute.
    ink = _PAPER if "reverse" in style else _ink(style)
    painted = f' style="fill: {ink}"' if style else ""
    return f"<text {place} {length}{weight}{painted}>{escape(text)}</text>"


def _cursor(text: str, column: int, row: int, style: tuple[str, ...]) -> str:
    place = f'x="{_MARGIN + column * _WIDTH:.1f}" y="{_BAR + row * _HEIGHT}"'
    size = f'width="{cells(text) * _WIDTH:.1f}" height="{_HEIGHT}"'
    return f'<rect {place} {size} fill="{_ink(style)}"/>'


def _block(text: str, column: int, row: int, style: tuple[str, ...]) -> str:
    share, strength = _BLOCKS[text[0]]
    width = len(text) * _WIDTH * (share if len(text) == 1 else 1)
    place = f'x="{_MARGIN + column * _WIDTH:.1f}" y="{_BAR + row * _HEIGHT + 3}"'
    faint = f' opacity="{strength}"' if strength < 1 else ""
    size = f'width="{width:.1f}" height="{_HEIGHT - 6}"'
    return f'<rect {place} {size} fill="{_ink(style)}"{faint}/>'


def _ink(style: tuple[str, ...]) -> str:
    return next((_COLOURS[one] for one in style[::-1] if one in _COLOURS), _INK)


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    for name, screen in PICTURES.items():
        text = (GOLDEN / f"{screen}.txt").read_text()
        (IMAGES / f"{name}.svg").write_text(picture(text))


if __name__ == "__main__":
    main()
