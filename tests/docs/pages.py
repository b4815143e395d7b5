"""Pages of the documentation, and the examples in them.

A page's examples are its `console` blocks: a line that begins with `$ ` is a command,
one that begins with `> ` continues it, the rest is what it prints. Where there is more
than one machine the prompt has its name: `rack$ `. A code block after the words "Save
this as `NAME`" is a file. `<!-- hold -->` makes files that sleep wait, `<!-- let go
-->` lets them go on, so that a page may show running jobs and its test is still quick.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARKS = ("hold", "let go")

_SAVED_AS = re.compile(r"[Ss]ave this as\s+`([^`]+)`")
_MARK = re.compile(r"<!-- ([a-z ]+) -->")
_PROMPT = re.compile(r"([a-z]*)\$ ")


@dataclass
class Step:
    """One thing a reader does: a command, or for the test alone a mark."""

    line: int
    command: str = ""
    shown: list[str] = field(default_factory=list)
    mark: str = ""
    file: tuple[str, str] | None = None
    machine: str = ""
    """Where it is done; empty: on the reader's own."""

    @property
    def shows_exit_code(self) -> bool:
        return self.command == "echo $?"


@dataclass
class Block:
    """A fenced block, with the paragraph before it."""

    language: str
    line: int
    lines: list[str]
    before: str


def all_pages() -> list[Path]:
    """Return every page of the repository's documentation."""
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def steps(text: str) -> list[Step]:
    """Read a page's examples, in order."""
    found: list[Step] = []
    for item in _items(text):
        if isinstance(item, Step):
            found.append(item)
        elif item.language == "console":
            found += _commands(item)
        elif saved := _SAVED_AS.search(item.before):
            content = "\n".join(item.lines) + "\n"
            found.append(Step(item.line, file=(saved[1], content)))
    return found


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    items = _items(text)
    found = [item for item in items if isinstance(item, Block)]
    return ["\n".join(item.lines) for item in found if item.language == language]


def _items(text: str) -> list[Block | Step]:
    items: list[Block | Step] = []
    block: Block | None = None
    before: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line == "```":
                block, before = None, []
            else:
                block.lines.append(line)
        elif line.startswith("```"):
            block = Block(line[3:], number, [], " ".join(before))
            items.append(block)
        elif mark := _MARK.fullmatch(line):
            assert mark[1] in MARKS, f"line {number}: unknown mark"
            items.append(Step(number, mark=mark[1]))
        elif line:
            before.append(line)
        elif before and not before[-1].endswith(":"):
            before = []
    return items


def _commands(block: Block) -> list[Step]:
    found: list[Step] = []
    for number, line in enumerate(block.lines, block.line + 1):
        if prompt := _PROMPT.match(line):
            found.append(Step(number, line[prompt.end() :], machine=prompt[1]))
        elif line.startswith("> ") and found and not found[-1].shown:
            found[-1].command += "\n" + line[2:]
        else:
            assert found, f"line {number}: output before any command"
            found[-1].shown.append(line)
    return found
