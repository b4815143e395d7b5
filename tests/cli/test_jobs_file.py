"""Jobs from a file: which lines count, and which go on in the next one."""

from pathlib import Path

import pytest

from grass.cli.parsing.jobs_file import JobsFile


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("a\n\n# no\n b \n", ["a", "b"]),
        ("a \\\n  --fast \\\n  -v\nb\n", ["a   --fast   -v", "b"]),
        ("a\\\nb", ["ab"]),
        ("a \\\\\nb\n", ["a \\\\", "b"]),
        ("a \\ \nb\n", ["a \\", "b"]),
        ("a \\\n# b\n", ["a # b"]),
        ("# a \\\nb\n", ["b"]),
        ("a \\\n\nb\n", ["a", "b"]),
        ("a\\", ["a"]),
    ],
)
def test_a_line_that_ends_with_a_backslash_goes_on_in_the_next(
    tmp_path: Path, text: str, commands: list[str]
) -> None:
    file = tmp_path / "jobs.txt"
    file.write_text(text)
    assert [job["command"] for job in JobsFile(str(file)).jobs] == commands
